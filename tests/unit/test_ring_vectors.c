/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The published numbers of the ring: hashes, points, shares, walks, and how many conversations move.
 */
#include "../common/ring_fixture.h"

#include <errno.h>
#include <math.h>

#include "lib/replica_router.h"

static void hashes(void **state)
{
	struct replica_list *list = make_replicas(3, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring ring;

	(void)state;
	build(&ring, &settings, list);
	assert_int_equal(key_of(&ring, ""), 0xe4a6a0577479b2b4);
	assert_int_equal(key_of(&ring, "llm-0#0"), 0xb2a373b8ac63e042);
	assert_int_equal(key_of(&ring, "llm-2#99"), 0xca68c5014a2996ac);
	assert_int_equal(key_of(&ring, "conv1"), 0x7b0e98587fc95488);
	ring_free(&ring);
	free(list);
}

static const char *owner(const struct ring *ring, __u32 point)
{
	return ring->names[ring->member_of_slot[ring->points[point].replica]];
}

static void lowest_and_highest_point(void **state)
{
	struct replica_list *list = make_replicas(3, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring ring;

	(void)state;
	build(&ring, &settings, list);
	assert_int_equal(ring.header.point_count, 300);
	assert_int_equal(ring.points[0].hash, 0x000dd910f7c66ec2);
	assert_string_equal(owner(&ring, 0), "llm-1");
	assert_int_equal(ring.points[299].hash, 0xffca2874baba683b);
	assert_string_equal(owner(&ring, 299), "llm-0");
	ring_free(&ring);
	free(list);
}

static void check_shares(size_t replicas, const char *const *expected)
{
	struct replica_list *list = make_replicas(replicas, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	double shares[REPLICAS_MAX];
	struct ring ring;
	char text[16];

	build(&ring, &settings, list);
	ring_shares(&ring, shares);
	for (size_t i = 0; i < replicas; i++) {
		snprintf(text, sizeof(text), "%.5f", shares[i]);
		assert_string_equal(text, expected[i]);
	}
	ring_free(&ring);
	free(list);
}

static void arc_shares(void **state)
{
	(void)state;
	check_shares(3, (const char *const[]){"0.32008", "0.35782", "0.32209"});
	check_shares(4, (const char *const[]){"0.26574", "0.23226", "0.23523", "0.26678"});
}

static void md5_walk_and_a_key_that_is_a_point(void **state)
{
	struct replica_list *list = make_replicas(3, "R%d", 1);
	struct ring_settings settings = replica_router_settings(3);
	const char *const walk[] = {"R2", "R1", "R3"};
	__u32 members[3];
	struct ring ring;

	(void)state;
	build(&ring, &settings, list);
	assert_int_equal(ring_walk(&ring, key_of(&ring, "conv1"), members, 3), 3);
	for (int i = 0; i < 3; i++)
		assert_string_equal(ring.names[members[i]], walk[i]);
	assert_string_equal(home_of(&ring, "R1#0"), "R1");

	/* the same points under the other rule: strictly greater */
	ring.header.dialect = RING_LLM;
	assert_string_equal(owner(&ring, ring_lookup(&ring, md5("R1#0", 4).high)), "R3");
	ring_free(&ring);
	free(list);
}

static void conversations_that_move(void **state)
{
	static const struct {
		int seed, ring_moves, mod_n_moves;
	} runs[] = {{1, 17, 40}, {2, 14, 41}, {42, 14, 38}};
	struct replica_list *list = make_replicas(4, "llm-%d", 0);
	struct ring_settings settings = llm_settings(100);
	struct ring three, four;

	(void)state;
	build(&four, &settings, list);
	list->count = 3;
	build(&three, &settings, list);
	for (size_t run = 0; run < sizeof(runs) / sizeof(runs[0]); run++) {
		int ring_moves = 0, mod_n_moves = 0;

		for (int i = 0; i < 50; i++) {
			char id[32];
			__u64 key;

			snprintf(id, sizeof(id), "s%d-c%03d", runs[run].seed, i);
			key = key_of(&three, id);
			ring_moves += strcmp(home_of(&three, id), home_of(&four, id)) != 0;
			mod_n_moves += strcmp(three.names[ring_mod_n(&three, key)],
					      four.names[ring_mod_n(&four, key)]) != 0;
		}
		assert_int_equal(ring_moves, runs[run].ring_moves);
		assert_int_equal(mod_n_moves, runs[run].mod_n_moves);
	}
	ring_free(&three);
	ring_free(&four);
	free(list);
}

/* The example in the published text of ReplicaRouter, line by line. */
static void replica_router_example(void **state)
{
	struct replica_router *router = replica_router_new();
	struct error error;
	char before[REPLICA_NAME_SIZE];
	const char *after;

	(void)state;
	assert_non_null(router);
	assert_int_equal(replica_router_add(router, "R1", REPLICA_ROUTER_VNODES, &error), 0);
	assert_string_equal(replica_router_route(router, "conv1"), "R1");
	assert_int_equal(replica_router_add(router, "R2", REPLICA_ROUTER_VNODES, &error), 0);
	assert_int_equal(replica_router_add(router, "R3", REPLICA_ROUTER_VNODES, &error), 0);
	snprintf(before, sizeof(before), "%s", replica_router_route(router, "conv1"));
	assert_int_equal(replica_router_remove(router, "R2", &error), 0);
	after = replica_router_route(router, "conv1");
	assert_true(strcmp(after, before) == 0 || strcmp(before, "R2") == 0);
	replica_router_free(router);
}

static void replica_router_changes(void **state)
{
	struct replica_router *router = replica_router_new();
	const char *walk[4];
	struct error error;

	(void)state;
	assert_non_null(router);
	assert_null(replica_router_route(router, "conv1"));
	assert_int_equal(replica_router_walk(router, "conv1", walk, 4), 0);
	assert_int_equal(replica_router_remove(router, "R1", &error), 0);

	for (int i = 1; i <= 3; i++) {
		const char *const names[] = {"R3", "R1", "R2"};

		assert_int_equal(replica_router_add(router, names[i - 1], 3, &error), 0);
		assert_int_equal(replica_router_add(router, names[i - 1], 3, &error), 0);
		assert_int_equal(replica_router_add(router, names[i - 1], 1, &error), 0);
	}
	assert_int_equal(replica_router_walk(router, "conv1", walk, 4), 3);
	assert_string_equal(walk[0], "R2");
	assert_string_equal(walk[1], "R1");
	assert_string_equal(walk[2], "R3");
	assert_int_equal(replica_router_walk(router, "conv1", walk, 1), 1);
	assert_string_equal(walk[0], "R2");

	assert_int_equal(replica_router_add(router, "R/4", 3, &error), -EINVAL);
	assert_int_equal(replica_router_add(router, "R4", 0, &error), -EINVAL);
	assert_int_equal(replica_router_add(router, "R4", RING_POINTS_MAX, &error), -E2BIG);
	assert_int_equal(replica_router_add(router, "R1", RING_POINTS_MAX, &error), -E2BIG);
	assert_int_equal(replica_router_walk(router, "conv1", walk, 4), 3);
	assert_string_equal(walk[0], "R2");

	/* more points than before take keys over, and are given up with the replica */
	assert_int_equal(replica_router_add(router, "R3", 100000, &error), 0);
	assert_string_equal(replica_router_route(router, "conv1"), "R3");
	assert_int_equal(replica_router_remove(router, "R3", &error), 0);
	assert_int_equal(replica_router_walk(router, "conv1", walk, 4), 2);
	assert_string_equal(walk[0], "R2");
	assert_string_equal(walk[1], "R1");
	assert_int_equal(replica_router_remove(router, "R2", &error), 0);
	assert_int_equal(replica_router_remove(router, "R1", &error), 0);
	assert_null(replica_router_route(router, "conv1"));
	replica_router_free(router);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes),
		cmocka_unit_test(lowest_and_highest_point),
		cmocka_unit_test(arc_shares),
		cmocka_unit_test(md5_walk_and_a_key_that_is_a_point),
		cmocka_unit_test(conversations_that_move),
		cmocka_unit_test(replica_router_example),
		cmocka_unit_test(replica_router_changes),
	};

	return cmocka_run_group_tests_name("ring vectors", tests, NULL, NULL);
}
