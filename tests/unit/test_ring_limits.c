/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring's limits, and the sentences for what it refuses.
 */
#include "../common/ring_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/hash_key.h"

static void refused(const struct ring_settings *settings, const struct replica_list *list, int code,
		    const char *sentence)
{
	struct error error = {""};
	struct ring ring;

	assert_int_equal(ring_build(&ring, settings, list->replicas, list->count, &error), code);
	assert_string_equal(error.text, sentence);
	assert_null(ring.points);
}

static void largest_ring(void **state)
{
	struct replica_list *list = make_replicas(REPLICAS_MAX, "llm-%d", 0);
	struct ring_settings settings = llm_settings(RING_POINTS_MAX / REPLICAS_MAX);
	__u32 in_buckets = 0;
	struct ring ring;

	(void)state;
	build(&ring, &settings, list);
	assert_int_equal(ring.header.point_count, RING_POINTS_MAX);
	assert_int_equal(ring.header.index_bits, RING_INDEX_BITS_MAX);
	for (__u32 i = 1; i < RING_POINTS_MAX; i++)
		assert_true(ring.points[i - 1].hash <= ring.points[i].hash);
	for (__u32 i = 0; i < 1u << RING_INDEX_BITS_MAX; i++) {
		assert_int_equal(ring.index[i].first_point, in_buckets);
		in_buckets += ring.index[i].point_count;
	}
	assert_int_equal(in_buckets, RING_POINTS_MAX);
	ring_free(&ring);

	settings.vnodes++;
	refused(&settings, list, -E2BIG,
		"the ring would have 1049600 points and at most 1048576 are possible: lower the "
		"number of virtual nodes or the weights");
	free(list);
}

static void too_many_replicas(void **state)
{
	struct replica_list *list = make_replicas(REPLICAS_MAX + 1, "llm-%d", 0);
	struct ring_settings settings = llm_settings(1);

	(void)state;
	refused(&settings, list, -E2BIG, "there are more than 1024 replicas: that is the limit");
	free(list);
}

static void settings_out_of_range(void **state)
{
	struct replica_list *list = make_replicas(2, "llm-%d", 0);
	struct ring_settings settings = llm_settings(0);
	__u8 hash_key[RING_HASH_KEY_LENGTH_MAX + 1] = {1};

	(void)state;
	refused(&settings, list, -EINVAL,
		"0 virtual nodes for each replica are not possible: give 1 to 1048576");
	settings.vnodes = RING_POINTS_MAX + 1;
	refused(&settings, list, -EINVAL,
		"1048577 virtual nodes for each replica are not possible: give 1 to 1048576");
	settings = llm_settings(10);
	settings.hash_key = hash_key;
	settings.hash_key_length = sizeof(hash_key);
	refused(&settings, list, -EINVAL, "the hash key has 65 bytes; at most 64 are allowed");
	settings.dialect = RING_REPLICA_ROUTER;
	settings.hash_key_length = 16;
	refused(&settings, list, -EINVAL,
		"a hash key is only possible with the ring dialect llm-ring");
	settings.dialect = 7;
	refused(&settings, list, -EINVAL,
		"there is no ring dialect number 7: use llm-ring or replica-router");
	free(list);
}

static void replicas_that_are_wrong(void **state)
{
	struct replica_list *list = make_replicas(3, "llm-%d", 0);
	struct ring_settings settings = llm_settings(10);
	struct ring_replica *replica = &list->replicas[1];

	(void)state;
	replica->weight_thousandths = 0;
	refused(&settings, list, -EINVAL,
		"the weight of replica llm-1 is 0 thousandths; 0.001 to 1000 is allowed");
	replica->weight_thousandths = RING_WEIGHT_MAX + 1;
	refused(&settings, list, -EINVAL,
		"the weight of replica llm-1 is 1000001 thousandths; 0.001 to 1000 is allowed");
	replica->weight_thousandths = RING_WEIGHT_ONE;
	replica->slot = REPLICAS_MAX;
	refused(&settings, list, -EINVAL, "replica llm-1 has slot 1024; the last one is 1023");
	replica->slot = list->replicas[0].slot;
	refused(&settings, list, -EINVAL, "replicas llm-0 and llm-1 have the same slot, 11");
	replica->slot = 5;
	replica->vnodes = RING_POINTS_MAX + 1;
	refused(&settings, list, -EINVAL,
		"1048577 virtual nodes for replica llm-1 are not possible: give 1 to 1048576");
	replica->vnodes = 0;
	list->replicas[2] = list->replicas[1];
	list->replicas[2].weight_thousandths = 2000;
	refused(&settings, list, -EINVAL, "replica llm-1 is given twice, with different settings");
	free(list);
}

static void names(void **state)
{
	struct replica_list *list = make_replicas(1, "llm-%d", 0);
	struct ring_settings settings = llm_settings(10);
	char longest[REPLICA_NAME_SIZE + 1];
	struct ring ring;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[REPLICA_NAME_SIZE - 1] = '\0';
	list->replicas[0].name = longest;
	build(&ring, &settings, list);
	assert_string_equal(ring.names[0], longest);
	ring_free(&ring);

	longest[REPLICA_NAME_SIZE - 1] = 'x';
	longest[REPLICA_NAME_SIZE] = '\0';
	refused(&settings, list, -EINVAL,
		"the replica name \"xxxxxxxxxxxxxxxxxxxx...\" has 64 characters; at most 63 are allowed");
	list->replicas[0].name = "";
	refused(&settings, list, -EINVAL, "a replica's name is empty: give it 1 to 63 characters");
	list->replicas[0].name = "llm#0";
	refused(&settings, list, -EINVAL,
		"the replica name \"llm#0\" has a character (number 4) that is not a letter, a digit, "
		"or one of . _ -");
	free(list);
}

static void check_key_file(size_t size, int code, const char *end_of_sentence)
{
	char path[] = "/tmp/warmpath-hash-key-XXXXXX";
	__u8 written[BLAKE2B_KEY_LENGTH_MAX + 2], read[BLAKE2B_KEY_LENGTH_MAX];
	struct error error = {""};
	size_t length = 999;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(written); i++)
		written[i] = 11 * i;
	assert_int_equal(write(fd, written, size), size);
	close(fd);
	assert_int_equal(hash_key_read(path, read, &length, &error), code);
	if (code) {
		assert_non_null(strstr(error.text, path));
		assert_non_null(strstr(error.text, end_of_sentence));
		assert_int_equal(length, 999);
	} else {
		assert_int_equal(length, size);
		assert_memory_equal(read, written, size);
	}
	unlink(path);
}

static void key_files(void **state)
{
	__u8 read[BLAKE2B_KEY_LENGTH_MAX];
	struct error error;
	size_t length;

	(void)state;
	check_key_file(1, 0, NULL);
	check_key_file(64, 0, NULL);
	check_key_file(0, -EINVAL, "is empty; it may have 1 to 64 bytes");
	check_key_file(65, -EINVAL, "is too long; it may have 1 to 64 bytes");
	assert_int_equal(hash_key_read("/nonexistent/key", read, &length, &error), -ENOENT);
	assert_string_equal(error.text,
			    "the hash key file /nonexistent/key cannot be opened: No such "
			    "file or directory");
	assert_int_equal(hash_key_read("/", read, &length, &error), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(largest_ring),
		cmocka_unit_test(too_many_replicas),
		cmocka_unit_test(settings_out_of_range),
		cmocka_unit_test(replicas_that_are_wrong),
		cmocka_unit_test(names),
		cmocka_unit_test(key_files),
	};

	return cmocka_run_group_tests_name("ring limits", tests, NULL, NULL);
}
