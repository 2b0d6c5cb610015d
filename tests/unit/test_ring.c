/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold for any ring: it is a function of the set alone, the search finds what a plain scan finds, few keys move, weights
 * weigh.
 */
#include "../common/ring_fixture.h"

#include <errno.h>
#include <math.h>
#include <warmpath/ring.h>

#define KEYS 20000

static void shuffle(struct replica_list *list, __u64 *random)
{
	for (size_t i = list->count; i > 1; i--) {
		size_t other = next_random(random) % i;
		struct ring_replica kept = list->replicas[i - 1];

		list->replicas[i - 1] = list->replicas[other];
		list->replicas[other] = kept;
	}
}

static void assert_same_ring(const struct ring *a, const struct ring *b)
{
	assert_memory_equal(&a->header, &b->header, sizeof(a->header));
	assert_memory_equal(a->points, b->points, a->header.point_count * sizeof(a->points[0]));
	assert_memory_equal(a->index, b->index, (1u << a->header.index_bits) * sizeof(a->index[0]));
	assert_memory_equal(a->members, b->members, a->header.member_count * sizeof(a->members[0]));
	for (__u32 i = 0; i < a->header.member_count; i++)
		assert_string_equal(a->names[i], b->names[i]);
}

static void order_and_repetition_change_nothing(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 8, 64, 333};
	const struct ring_settings dialects[] = {llm_settings(100), replica_router_settings(3)};
	__u64 random = 88172645463325252;

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (int d = 0; d < 2; d++) {
			struct replica_list *list = make_replicas(sizes[s], "pod-%d.web", 0);
			struct ring first, other;

			for (size_t i = 0; i < list->count; i++)
				list->replicas[i].weight_thousandths = 500 + 250 * (i % 5);
			build(&first, &dialects[d], list);
			for (int round = 0; round < 3; round++) {
				shuffle(list, &random);
				list->replicas[list->count] = list->replicas[list->count / 2];
				list->count++; /* one is given twice */
				build(&other, &dialects[d], list);
				list->count--;
				assert_same_ring(&first, &other);
				ring_free(&other);
			}
			ring_free(&first);
			free(list);
		}
	}
}

static void slots_move_no_key(void **state)
{
	struct replica_list *list = make_replicas(16, "llm-%d", 0);
	struct ring_settings settings = llm_settings(40);
	struct ring first, other;

	(void)state;
	build(&first, &settings, list);
	for (size_t i = 0; i < list->count; i++)
		list->replicas[i].slot = REPLICAS_MAX - 1 - i;
	build(&other, &settings, list);
	for (__u32 i = 0; i < first.header.point_count; i++) {
		assert_int_equal(first.points[i].hash, other.points[i].hash);
		assert_int_equal(first.member_of_slot[first.points[i].replica],
				 other.member_of_slot[other.points[i].replica]);
	}
	ring_free(&first);
	ring_free(&other);
	free(list);
}

/* The rule itself, point by point. */
static __u32 scan(const struct ring *ring, __u64 key)
{
	for (__u32 i = 0; i < ring->header.point_count; i++)
		if (ring->points[i].hash > key ||
		    (ring->points[i].hash == key && ring->header.dialect == RING_REPLICA_ROUTER))
			return i;
	return 0;
}

static void check_key(const struct ring *ring, __u64 key)
{
	const struct ring_bucket *bucket =
		&ring->index[ring_bucket_number(key, ring->header.index_bits)];
	__u32 point = scan(ring, key), behind;

	assert_int_equal(ring_lookup(ring, key), point);
	assert_int_equal(ring_home_slot(ring, key), ring->points[point].replica);
	if (ring_bucket_decides(bucket, key, ring->header.index_bits, &behind))
		assert_int_equal(behind ? bucket->next_replica : bucket->replica,
				 ring->points[point].replica);
}

static void lookup_equals_a_scan(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 7, 50};
	static const __u32 vnodes[] = {1, 2, 3, 20};
	__u64 random = 362436069;

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (int v = 0; v < 8; v++) {
			struct replica_list *list = make_replicas(sizes[s], "r%d", 100);
			struct ring_settings settings =
				v % 2 ? llm_settings(vnodes[v / 2])
				      : replica_router_settings(vnodes[v / 2]);
			struct ring ring;

			build(&ring, &settings, list);
			for (__u32 i = 0; i < ring.header.point_count; i++)
				for (int step = -1; step <= 1; step++)
					check_key(&ring, ring.points[i].hash + step);
			for (__u64 b = 0; b < 1u << ring.header.index_bits; b++) {
				check_key(&ring, b << (64 - ring.header.index_bits));
				check_key(&ring, (b << (64 - ring.header.index_bits)) - 1);
			}
			for (int i = 0; i < 500; i++)
				check_key(&ring, next_random(&random));
			ring_free(&ring);
			free(list);
		}
	}
}

/* A bucket may hold up to RING_BUCKET_POINTS_MAX points, many of them equal: far more than hashing ever gives. */
static void search_in_crowded_buckets(void **state)
{
	static const __u32 sizes[] = {
		1, 2, 3, 4, 5, 31, 32, 33, 1000, 32768, RING_BUCKET_POINTS_MAX};
	__u64 *points = calloc(RING_BUCKET_POINTS_MAX, sizeof(*points));

	(void)state;
	assert_non_null(points);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (__u32 i = 0; i < sizes[s]; i++)
			points[i] = i % 3 == 0 ? (__u64)i << 40 : points[i - 1]; /* in threes */
		points[sizes[s] - 1] = UINT64_MAX;
		for (__u32 i = 0; i <= sizes[s]; i++) {
			enum ring_dialect dialect = i % 2 ? RING_LLM : RING_REPLICA_ROUTER;
			__u64 key = i < sizes[s] ? points[i] : UINT64_MAX;
			struct ring_search search = {7, sizes[s]};
			__u32 expected = i < sizes[s] ? i : sizes[s] - 1, steps = 0;

			while (expected > 0 && points[expected - 1] == key)
				expected--;
			while (dialect == RING_LLM && expected < sizes[s] &&
			       points[expected] == key)
				expected++;
			for (; search.left > 0; steps++)
				ring_search_step(&search, points[ring_search_probe(&search) - 7],
						 key, dialect);
			assert_true(steps <= RING_SEARCH_STEPS);
			assert_int_equal(search.first, 7 + expected);
		}
	}
	free(points);
}

static void walk_meets_every_replica_once(void **state)
{
	struct replica_list *list = make_replicas(REPLICAS_MAX, "llm-%d", 0);
	struct ring_settings settings = llm_settings(3);
	__u32 members[REPLICAS_MAX];
	__u64 random = 521288629;
	struct ring ring;

	(void)state;
	build(&ring, &settings, list);
	for (int i = 0; i < 20; i++) {
		bool seen[REPLICAS_MAX] = {false};
		__u64 key = next_random(&random);

		assert_int_equal(ring_walk(&ring, key, members, REPLICAS_MAX), REPLICAS_MAX);
		assert_int_equal(ring.members[members[0]].replica, ring_home_slot(&ring, key));
		for (int m = 0; m < REPLICAS_MAX; m++) {
			assert_false(seen[members[m]]);
			seen[members[m]] = true;
		}
		assert_int_equal(ring_walk(&ring, key, members, 5), 5);
	}
	ring_free(&ring);
	free(list);
}

/* What a new replica changes: its own keys come to it, no others move; taking it away undoes exactly that. */
static void only_the_new_replicas_keys_move(void **state)
{
	struct replica_list *list = make_replicas(9, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring nine, eight;
	__u64 random = 123456789;
	int moved = 0;

	(void)state;
	build(&nine, &settings, list);
	list->count = 8;
	build(&eight, &settings, list);
	for (int i = 0; i < KEYS; i++) {
		__u64 key = next_random(&random);
		int before = ring_home_slot(&eight, key), after = ring_home_slot(&nine, key);

		if (before != after) {
			assert_int_equal(after, list->replicas[8].slot);
			moved++;
		}
	}
	/* ideal 1/9 = 0.111 */
	assert_true(moved > KEYS * 0.08 && moved < KEYS * 0.14);
	ring_free(&nine);
	ring_free(&eight);
	free(list);
}

static void weights_weigh(void **state)
{
	struct replica_list *list = make_replicas(4, "llm-%d", 0);
	struct ring_settings settings = llm_settings(1000);
	double shares[4], sum = 0;
	struct ring ring;

	(void)state;
	list->replicas[1].weight_thousandths = 500;
	list->replicas[2].weight_thousandths = 2000;
	list->replicas[3].weight_thousandths = 4000;
	build(&ring, &settings, list);
	assert_int_equal(ring.header.point_count, 7500);
	ring_shares(&ring, shares);
	for (int i = 0; i < 4; i++) {
		double ideal = list->replicas[i].weight_thousandths / 7500.0;

		assert_true(fabs(shares[i] / ideal - 1) < 0.1);
		sum += shares[i];
	}
	assert_true(fabs(sum - 1) < 1e-12);
	ring_free(&ring);
	free(list);
}

static void shares_of_one_replica_and_of_none(void **state)
{
	struct replica_list *list = make_replicas(1, "llm-%d", 0);
	struct ring_settings settings = llm_settings(1);
	double share = 0;
	struct ring ring;

	(void)state;
	build(&ring, &settings, list);
	ring_shares(&ring, &share);
	assert_true(share == 1.0);
	ring_free(&ring);

	list->count = 0;
	share = 7;
	build(&ring, &settings, list);
	ring_shares(&ring, &share);
	assert_true(share == 7);
	ring_free(&ring);
	free(list);
}

static void weight_points_round_as_published(void **state)
{
	static const struct {
		__u32 vnodes, weight, points;
	} cases[] = {
		{100, 1000, 100}, {100, 2500, 250}, {3, 1000, 3},
		{5, 500, 2},	  {7, 500, 4},	    {1, 500, 1}, /* 0.5 -> 0 -> at least 1 */
		{3, 1, 1},	  {100, 575, 57}, /* 57.49999999999999 in double precision */
		{100, 145, 14},	  {100, 1115, 112}, {RING_POINTS_MAX, 1000000, 1048576000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(ring_weight_points(cases[i].vnodes, cases[i].weight),
				 cases[i].points);
}

static void weights_are_read(void **state)
{
	static const struct {
		const char *text;
		__u32 thousandths; /* 0: refused */
	} cases[] = {
		{"1", 1000},
		{"1.0", 1000},
		{"0.5", 500},
		{"2.125", 2125},
		{"0.001", 1},
		{"1000", 1000000},
		{"1000.000", 1000000},
		{"007", 7000},
		{"0", 0},
		{"0.000", 0},
		{"1000.001", 0},
		{"1001", 0},
		{"", 0},
		{".5", 0},
		{"1.", 0},
		{"1.2345", 0},
		{"-1", 0},
		{"1e3", 0},
		{"1,5", 0},
		{" 1", 0},
		{"1.5.5", 0},
		{"nan", 0},
		{"99999999999999999999999", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error;
		__u32 thousandths = 0;
		int err = ring_parse_weight(cases[i].text, &thousandths, &error);

		assert_int_equal(err, cases[i].thousandths ? 0 : -EINVAL);
		assert_int_equal(thousandths, cases[i].thousandths);
	}
}

static void empty_ring(void **state)
{
	struct replica_list *list = make_replicas(0, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring ring;
	__u32 member;

	(void)state;
	build(&ring, &settings, list);
	assert_int_equal(ring.header.point_count, 0);
	assert_int_equal(ring_lookup(&ring, 1), -ENOENT);
	assert_int_equal(ring_home_slot(&ring, 1), -ENOENT);
	assert_int_equal(ring_mod_n(&ring, 1), -ENOENT);
	assert_int_equal(ring_walk(&ring, 1, &member, 1), 0);
	assert_int_equal(ring_find_member(&ring, "llm-0"), -ENOENT);
	ring_free(&ring);
	free(list);
}

static void the_key_changes_the_ring(void **state)
{
	struct replica_list *list = make_replicas(8, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring plain, keyed, other;
	__u64 start[8];
	int same = 0;

	(void)state;
	build(&plain, &settings, list);
	settings.hash_key = "correct horse battery staple";
	settings.hash_key_length = strlen(settings.hash_key);
	build(&keyed, &settings, list);
	assert_int_equal(keyed.header.hash_keyed, 1);
	assert_int_equal(plain.header.hash_keyed, 0);
	assert_int_equal(key_of(&keyed, "conv1"),
			 blake2b_64("conv1", 5, settings.hash_key, settings.hash_key_length));
	blake2b_64_start(start, settings.hash_key, settings.hash_key_length);
	assert_memory_equal(keyed.header.hash_state, start, sizeof(start));
	settings.hash_key_length--;
	build(&other, &settings, list);
	assert_int_not_equal(other.points[0].hash, keyed.points[0].hash);
	for (int i = 0; i < 1000; i++) {
		char id[16];

		snprintf(id, sizeof(id), "c%d", i);
		same += strcmp(home_of(&plain, id), home_of(&keyed, id)) == 0;
	}
	assert_true(same > 50 && same < 250); /* by chance one in eight */
	ring_free(&plain);
	ring_free(&keyed);
	ring_free(&other);
	free(list);
}

static void mod_n_counts_by_name(void **state)
{
	struct replica_list *list = make_replicas(12, "llm-%d", 0);
	struct ring_settings settings = llm_settings(10);
	/* sorted by name: llm-0, llm-1, llm-10, llm-11, llm-2, ... */
	struct ring ring;

	(void)state;
	build(&ring, &settings, list);
	assert_string_equal(ring.names[ring_mod_n(&ring, 12 * 5 + 2)], "llm-10");
	assert_string_equal(ring.names[ring_mod_n(&ring, 4)], "llm-2");
	assert_int_equal(ring_find_member(&ring, "llm-11"), 3);
	assert_int_equal(ring_find_member(&ring, "llm-12"), -ENOENT);
	assert_int_equal(ring.members[3].replica, list->replicas[11].slot);
	ring_free(&ring);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_and_repetition_change_nothing),
		cmocka_unit_test(slots_move_no_key),
		cmocka_unit_test(lookup_equals_a_scan),
		cmocka_unit_test(search_in_crowded_buckets),
		cmocka_unit_test(walk_meets_every_replica_once),
		cmocka_unit_test(only_the_new_replicas_keys_move),
		cmocka_unit_test(weights_weigh),
		cmocka_unit_test(shares_of_one_replica_and_of_none),
		cmocka_unit_test(weight_points_round_as_published),
		cmocka_unit_test(weights_are_read),
		cmocka_unit_test(empty_ring),
		cmocka_unit_test(the_key_changes_the_ring),
		cmocka_unit_test(mod_n_counts_by_name),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
