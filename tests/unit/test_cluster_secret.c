/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster's secret: files, and the keys made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cluster_secret.h"

static char path_a[] = "/tmp/test_cluster_secret_a.XXXXXX";
static char path_b[] = "/tmp/test_cluster_secret_b.XXXXXX";

static void write_secret(const char *path, const char *bytes, size_t length)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	fclose(file);
}

static int make_files(void **state)
{
	(void)state;
	close(mkstemp(path_a));
	close(mkstemp(path_b));
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	unlink(path_a);
	unlink(path_b);
	return 0;
}

/* Values by an independent BLAKE2b (Python's hashlib): a new release must not derive other keys from old secrets. */
static void keys_are_those_of_earlier_releases(void **state)
{
	struct handoff_keys keys = {0};

	(void)state;
	cluster_keys_derive((const __u8 *)"0123456789abcdef", 16, &keys, 1);
	assert_int_equal(keys.cookie[1].word[0], 0x8a317ceecf65a030ULL);
	assert_int_equal(keys.cookie[1].word[1], 0x41e2893b97404c2cULL);
	assert_int_equal(keys.mark[1].word[0], 0x9fd55650f08219c1ULL);
	assert_int_equal(keys.mark[1].word[1], 0x4f4925bc2c7073e7ULL);
	assert_int_equal(keys.cookie[0].word[0], 0);
}

/* By the same; people compare it between machines of different releases. */
static void fingerprints_are_those_of_earlier_releases(void **state)
{
	char fingerprint[CLUSTER_FINGERPRINT_SIZE], other[CLUSTER_FINGERPRINT_SIZE];
	struct error error;

	(void)state;
	write_secret(path_a, "0123456789abcdef", 16);
	assert_int_equal(cluster_secret_fingerprint(path_a, fingerprint, &error), 0);
	assert_string_equal(fingerprint, "aa5d26ad67821a83");
	write_secret(path_b, "0123456789abcdeg", 16);
	assert_int_equal(cluster_secret_fingerprint(path_b, other, &error), 0);
	assert_string_not_equal(fingerprint, other);
	write_secret(path_b, "0123456789abcde", 15);
	assert_int_equal(cluster_secret_fingerprint(path_b, other, &error), -EINVAL);
	assert_non_null(strstr(error.text, "has 15 bytes"));
}

static void files_become_generations(void **state)
{
	struct config_handoff handoff = {0};
	struct handoff_keys a = {0}, b = {0};
	struct error error;

	(void)state;
	write_secret(path_a, "0123456789abcdef", 16);
	write_secret(path_b, "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210",
		     64);
	cluster_keys_derive((const __u8 *)"0123456789abcdef", 16, &a, 0);
	cluster_keys_derive(
		(const __u8 *)"fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210",
		64, &b, 1);

	assert_int_equal(cluster_secrets_load(&handoff, &error), 0);
	assert_int_equal(handoff.keys.count, 0);
	snprintf(handoff.secret_file, sizeof(handoff.secret_file), "%s", path_a);
	assert_int_equal(cluster_secrets_load(&handoff, &error), 0);
	assert_int_equal(handoff.keys.count, 1);
	assert_memory_equal(&handoff.keys.mark[0], &a.mark[0], sizeof(a.mark[0]));
	snprintf(handoff.second_secret_file, sizeof(handoff.second_secret_file), "%s", path_b);
	assert_int_equal(cluster_secrets_load(&handoff, &error), 0);
	assert_int_equal(handoff.keys.count, 2);
	assert_memory_equal(&handoff.keys.mark[0], &a.mark[0], sizeof(a.mark[0]));
	assert_memory_equal(&handoff.keys.mark[1], &b.mark[1], sizeof(b.mark[1]));
	assert_memory_equal(&handoff.keys.cookie[1], &b.cookie[1], sizeof(b.cookie[1]));
}

static void bad_files_are_named(void **state)
{
	static const struct {
		size_t length;
		const char *words;
	} cases[] = {
		{0, "is empty; it may have 1 to 64 bytes"},
		{15, "has 15 bytes; it needs 16 to 64, best from /dev/urandom"},
		{65, "is too long; it may have 1 to 64 bytes"},
	};
	char bytes[65];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config_handoff handoff = {0};
		struct error error;

		write_secret(path_a, bytes, cases[i].length);
		snprintf(handoff.secret_file, sizeof(handoff.secret_file), "%s", path_a);
		assert_int_equal(cluster_secrets_load(&handoff, &error), -EINVAL);
		if (!strstr(error.text, cases[i].words) || !strstr(error.text, path_a))
			fail_msg("%s", error.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_those_of_earlier_releases),
		cmocka_unit_test(fingerprints_are_those_of_earlier_releases),
		cmocka_unit_test(files_become_generations),
		cmocka_unit_test(bad_files_are_named),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
