/* SPDX-License-Identifier: BSD-2-Clause */
/* The decision core: fits and caps at the edges of their ranges, walks, placements, what is charged and given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../common/ring_fixture.h"
#include "lib/decide_core.h"
#include "lib/decide_text.h"
#include "lib/policy.h"
#include "lib/ring.h"

struct world {
	struct ring ring;
	struct service_load sums;
	struct replica_load loads[REPLICAS_MAX];
	__u32 incarnations[REPLICAS_MAX];
	struct placement placement;
	bool placed;
	struct decide_state state;
};

static struct world world;

/* Replicas llm-0, llm-1, ... in slots of the same number, all idle. */
static void make_world(__u32 count, enum routing_policy policy)
{
	struct ring_replica *replicas = calloc(count, sizeof(*replicas));
	char(*names)[REPLICA_NAME_SIZE] = calloc(count, sizeof(*names));
	struct ring_settings settings = {.dialect = RING_LLM, .vnodes = 100};
	struct error error;

	ring_free(&world.ring);
	memset(&world, 0, sizeof(world));
	for (__u32 i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "llm-%u", i);
		replicas[i] = (struct ring_replica){
			.name = names[i], .slot = i, .weight_thousandths = 1000};
		world.incarnations[i] = 1;
		decide_run_set_member(&world.sums, &world.loads[i], true);
	}
	assert_int_equal(ring_build(&world.ring, &settings, replicas, count, &error), 0);
	world.state.settings = policy_published(policy);
	free(names);
	free(replicas);
}

static void load_replica(__u32 slot, __u32 requests, __u64 tokens)
{
	world.loads[slot].requests += requests;
	world.loads[slot].tokens += tokens;
	world.sums.requests += requests;
	world.sums.tokens += tokens;
}

static const struct decision *ask_hash(__u64 hash, __u32 prompt_tokens, __u32 max_tokens)
{
	struct decide_tables tables = {
		.points = world.ring.points,
		.members = world.ring.members,
		.service_load = &world.sums,
		.loads = world.loads,
		.incarnations = world.incarnations,
		.placement = world.placed ? &world.placement : NULL,
	};
	struct decide_state *state = &world.state;

	state->request.id_hash = hash;
	state->request.prompt_tokens = prompt_tokens;
	state->request.max_tokens = max_tokens;
	state->point_count = world.ring.header.point_count;
	state->member_count = world.ring.header.member_count;
	state->dialect = world.ring.header.dialect;
	state->first_point = state->point_count > 0 ? ring_lookup(&world.ring, hash) : 0;
	decide_run(&tables, state);
	return &state->decision;
}

static const struct decision *ask(const char *id, __u32 prompt_tokens, __u32 max_tokens)
{
	return ask_hash(ring_hash(&world.ring, id, strlen(id)), prompt_tokens, max_tokens);
}

static void give_back(const struct decision *decision)
{
	struct decide_tables tables = {.service_load = &world.sums, .loads = world.loads};

	decide_run_give_back(&tables, decision->replica, decision->number,
			     decision->flags & DECISION_CHARGED ? 1 : 0, decision->charge);
}

static void assert_sums_equal_parts(void)
{
	__u64 requests = 0, tokens = 0;
	__u32 count = 0;

	for (__u32 i = 0; i < REPLICAS_MAX; i++) {
		if (!world.loads[i].counted)
			continue;
		requests += world.loads[i].requests;
		tokens += world.loads[i].tokens;
		count++;
	}
	assert_int_equal(world.sums.requests, requests);
	assert_int_equal(world.sums.tokens, tokens);
	assert_int_equal(world.sums.replica_count, count);
}

static void the_published_llm_aware_example(void **unused)
{
	const struct decision *decision;

	(void)unused;
	make_world(3, POLICY_LLM_AWARE);
	load_replica(0, 3, 2400);
	load_replica(1, 1, 900);
	load_replica(2, 1, 900);
	world.placement = (struct placement){.replica = 0, .incarnation = 1, .prompt_tokens = 820};
	world.placed = true;
	decision = ask(id_that_walks_021(&world.ring), 860, 48);
	assert_int_equal(decision->reason, REASON_home_long);
	assert_int_equal(decision->replica, 0);
	assert_int_equal(decision->cost, 88);
	assert_int_equal(decision->charge, 88);
	assert_int_equal(decision->sum + decision->preferred_cost, 4288);
	assert_int_equal(decision->load, 2400);
	assert_true(decision->flags & DECISION_LONG_APPLIED);
	assert_int_equal(world.loads[0].tokens, 2488);
	assert_sums_equal_parts();
}

static void the_published_bounded_example(void **unused)
{
	const struct decision *decision;

	(void)unused;
	make_world(3, POLICY_BOUNDED);
	world.state.settings.load_metric = LOAD_TOKENS;
	load_replica(0, 3, 2400);
	load_replica(1, 1, 900);
	load_replica(2, 1, 900);
	decision = ask(id_that_walks_021(&world.ring), 860, 48);
	assert_int_equal(decision->reason, REASON_overflow);
	assert_int_equal(decision->replica, 2);
	assert_int_equal(decision->cost, 908);
	assert_int_equal(decision->sum + decision->preferred_cost, 5108);
	assert_int_equal(world.state.walked_count, 2);
	assert_int_equal(world.state.walked[0].replica, 0);
	assert_int_equal(world.state.walked[0].load, 2400);
	assert_int_equal(world.state.walked[1].replica, 2);
}

/* The same question with 128-bit numbers, in which nothing can overflow. */
static bool fits_exactly(__u64 load, __u64 cost, __u64 sum, __u64 count, __u64 epsilon,
			 enum load_metric metric)
{
	unsigned __int128 million = 1000000;
	unsigned __int128 right = (million + epsilon) * (sum + cost);

	if (load == 0)
		return true;
	if (metric == LOAD_REQUESTS) {
		unsigned __int128 cap = (right + million * count - 1) / (million * count);

		return load + 1 <= cap;
	}
	return (load + cost) * million * count <= right;
}

static void fits_are_exact_at_the_edges_of_the_ranges(void **unused)
{
	static const __u32 loads[] = {0, 1, 2, 1000, REPLICA_LOAD_MAX - 1, REPLICA_LOAD_MAX};
	static const __u32 costs[] = {1, 2, REQUEST_TOKENS_MAX, 2 * REQUEST_TOKENS_MAX};
	static const __u32 counts[] = {1, 2, 3, 1023, REPLICAS_MAX};
	static const __u32 epsilons[] = {1, 250000, 333333, EPSILON_MAX - 1, EPSILON_MAX};
	__u64 compared = 0;

	(void)unused;
	for (size_t l = 0; l < 6; l++)
		for (size_t c = 0; c < 4; c++)
			for (size_t n = 0; n < 5; n++)
				for (size_t e = 0; e < 5; e++)
					for (int others = 0; others < 4; others++) {
						__u64 sum = loads[l] + (__u64)(counts[n] - 1) *
									       REPLICA_LOAD_MAX *
									       others / 3;

						assert_int_equal(
							decide_run_fits(loads[l], costs[c], sum,
									counts[n], epsilons[e],
									LOAD_TOKENS),
							fits_exactly(loads[l], costs[c], sum,
								     counts[n], epsilons[e],
								     LOAD_TOKENS));
						assert_int_equal(
							decide_run_fits(loads[l], 1, sum, counts[n],
									epsilons[e], LOAD_REQUESTS),
							fits_exactly(loads[l], 1, sum, counts[n],
								     epsilons[e], LOAD_REQUESTS));
						compared++;
					}
	assert_int_equal(compared, 6 * 4 * 5 * 5 * 4);
}

static void fits_are_exact_where_load_and_cap_are_near(void **unused)
{
	int equal = 0;

	(void)unused;
	srandom(7);
	for (int i = 0; i < 200000; i++) {
		__u32 count = 1 + random() % REPLICAS_MAX, epsilon = 1 + random() % 4 * 250000;
		__u32 cost = 1 + random() % 5000, load;
		__u64 sum = random() % 1000000, cap;

		cap = (1000000ULL + epsilon) * (sum + cost) / (1000000ULL * count);
		load = cap > cost ? cap - cost + random() % 3 : 1;
		equal += load + cost == cap;
		assert_int_equal(decide_run_fits(load, cost, sum, count, epsilon, LOAD_TOKENS),
				 fits_exactly(load, cost, sum, count, epsilon, LOAD_TOKENS));
		assert_int_equal(decide_run_fits(load, 1, sum, count, epsilon, LOAD_REQUESTS),
				 fits_exactly(load, 1, sum, count, epsilon, LOAD_REQUESTS));
	}
	assert_true(equal > 1000);
}

static void tokens_and_loads_stop_at_their_maximum(void **unused)
{
	const struct decision *decision;
	struct decision first;

	(void)unused;
	make_world(1, POLICY_CONSISTENT);
	decision = ask("conv1", 0xffffffff, 0xfffffffe);
	assert_int_equal(decision->prompt_tokens, REQUEST_TOKENS_MAX);
	assert_int_equal(decision->charge, 2 * REQUEST_TOKENS_MAX);
	first = *decision;
	for (int i = 0; i < 10; i++)
		decision = ask("conv1", 0xffffffff, 0xffffffff);
	assert_int_equal(world.loads[0].tokens, REPLICA_LOAD_MAX);
	assert_int_equal(decision->charge, 0);
	assert_int_equal(world.loads[0].requests, 11);
	give_back(&first);
	assert_int_equal(world.loads[0].tokens, REPLICA_LOAD_MAX - 2 * REQUEST_TOKENS_MAX);
	assert_sums_equal_parts();

	load_replica(0, REPLICA_LOAD_MAX - world.loads[0].requests, 0);
	decision = ask("conv1", 1, 1);
	assert_false(decision->flags & DECISION_CHARGED);
	assert_int_equal(world.loads[0].requests, REPLICA_LOAD_MAX);
	give_back(decision);
	assert_int_equal(world.loads[0].requests, REPLICA_LOAD_MAX);
	assert_sums_equal_parts();
}

static void giving_back_more_than_there_is_stops_at_zero(void **unused)
{
	struct decision decision = {
		.replica = 1, .number = 5, .charge = 500, .flags = DECISION_CHARGED};

	(void)unused;
	make_world(2, POLICY_BOUNDED);
	load_replica(0, 1, 77);
	load_replica(1, 0, 100);
	give_back(&decision);
	assert_int_equal(world.loads[1].tokens, 0);
	assert_int_equal(world.loads[1].requests, 0);
	assert_int_equal(world.sums.tokens, 77);
	assert_sums_equal_parts();
}

static void every_replica_of_1024_is_walked_over_once(void **unused)
{
	const struct decision *decision;
	__u32 walk[REPLICAS_MAX];
	const char *id = "s1-c000";

	(void)unused;
	make_world(REPLICAS_MAX, POLICY_BOUNDED);
	world.state.settings.load_metric = LOAD_TOKENS;
	for (__u32 i = 0; i < REPLICAS_MAX; i++)
		load_replica(i, 1, 1000);
	ring_walk(&world.ring, ring_hash(&world.ring, id, strlen(id)), walk, REPLICAS_MAX);

	/* the last one on the walk is the only idle one */
	world.sums.tokens -= 1000;
	world.loads[world.ring.members[walk[REPLICAS_MAX - 1]].replica].tokens = 0;
	decision = ask(id, 4000, 300);
	assert_int_equal(decision->reason, REASON_overflow);
	assert_int_equal(decision->replica, world.ring.members[walk[REPLICAS_MAX - 1]].replica);
	assert_int_equal(world.state.walked_count, REPLICAS_MAX);
	for (__u32 i = 0; i < EVENT_REPLICAS_MAX; i++)
		assert_int_equal(world.state.walked[i].replica,
				 world.ring.members[walk[i]].replica);

	/* and none: the least loaded, of equals the first on the walk */
	world.loads[world.ring.members[walk[700]].replica].tokens = 999;
	world.loads[world.ring.members[walk[300]].replica].tokens = 999;
	world.sums.tokens -= 2;
	decision = ask(id, 400000, 300);
	assert_int_equal(decision->reason, REASON_fallback_least_loaded);
	assert_int_equal(decision->replica, world.ring.members[walk[300]].replica);
}

/* However requests come and go, some replica fits, and none is ever above the cap that its decision reports. */
static void bounded_by_requests_never_falls_back(void **unused)
{
	static struct decision open[600];
	size_t count = 0;

	(void)unused;
	srandom(11);
	for (int round = 0; round < 30; round++) {
		__u32 replicas = 1 + random() % 40, epsilon = 1 + random() % 3 * random() % 1000000;

		make_world(replicas, POLICY_BOUNDED);
		world.state.settings.epsilon_millionths = epsilon;
		count = 0;
		for (int i = 0; i < 2000; i++) {
			const struct decision *decision;
			char id[32];

			if (count == 600 || (count > 0 && random() % 100 < 45)) {
				size_t which = random() % count;

				give_back(&open[which]);
				open[which] = open[--count];
				continue;
			}
			/* half of them are one conversation */
			snprintf(id, sizeof(id), "c%ld", random() % 2 ? 0 : random() % 50);
			decision = ask(id, 100, 10);
			assert_true(decision->reason == REASON_home ||
				    decision->reason == REASON_overflow);
			assert_true(fits_exactly(decision->load, 1, decision->sum,
						 decision->replica_count, epsilon, LOAD_REQUESTS));
			open[count++] = *decision;
		}
		assert_sums_equal_parts();
	}
}

/* Caps must work where the average load is far below one request. */
static void two_hundred_replicas_with_ten_requests(void **unused)
{
	static struct decision open[10];
	__u32 home = 0, served[REPLICAS_MAX] = {0}, beside = 0, at_home = 0;

	(void)unused;
	srandom(3);
	make_world(200, POLICY_BOUNDED);
	for (int i = 0; i < 4000; i++) {
		const struct decision *decision;
		bool popular = random() % 4 == 0;
		char id[32];

		if (i >= 10)
			give_back(&open[i % 10]);
		snprintf(id, sizeof(id), "c%d", popular ? 0 : i + 1);
		decision = ask(id, 500, 100);
		/* (1 + 0.25) x 10 / 200, rounded up: one request; never less */
		assert_true(decision_cap(decision->sum, 1, decision->replica_count,
					 world.state.settings.epsilon_millionths,
					 LOAD_REQUESTS) == 1);
		assert_true(decision->reason == REASON_home || decision->reason == REASON_overflow);
		assert_int_equal(decision->load, 0);
		if (popular) {
			home = decision->home;
			served[decision->replica]++;
			at_home += decision->replica == decision->home;
			beside += decision->replica != decision->home;
		}
		open[i % 10] = *decision;
	}
	/* the popular conversation is at home when its home is idle, and only then beside it */
	assert_int_equal(served[home], at_home);
	assert_true(at_home > beside / 4 && beside > 0);
	assert_int_equal(world.sums.requests, 10);
	assert_sums_equal_parts();
}

static void replicas_outside_the_set_count_nowhere(void **unused)
{
	const struct decision *decision;
	__u32 home;

	(void)unused;
	make_world(3, POLICY_BOUNDED);
	home = ask("conv1", 10, 10)->home;
	load_replica(home, 20, 2000);
	/* draining: still on the ring that this decision sees, no longer in the set */
	decide_run_set_member(&world.sums, &world.loads[home], false);
	assert_int_equal(world.sums.replica_count, 2);
	assert_int_equal(world.sums.requests, 0);
	decision = ask("conv1", 10, 10);
	assert_int_not_equal(decision->replica, home);
	assert_int_equal(decision->reason, REASON_home);
	assert_int_equal(decision->replica_count, 2);
	assert_int_equal(decision->sum, 0);

	/* back, and as busy as it was */
	decide_run_set_member(&world.sums, &world.loads[home], true);
	decide_run_set_member(&world.sums, &world.loads[home], true);
	assert_int_equal(world.sums.requests, 22);
	assert_int_equal(ask("conv1", 10, 10)->reason, REASON_overflow);
	assert_sums_equal_parts();
}

static void no_policy_decides_without_replicas(void **unused)
{
	(void)unused;
	for (int policy = POLICY_ROUND_ROBIN; policy <= POLICY_LLM_AWARE; policy++) {
		make_world(0, policy);
		assert_int_equal(ask("conv1", 10, 10)->reason, REASON_no_replica);
		make_world(2, policy);
		decide_run_set_member(&world.sums, &world.loads[0], false);
		assert_int_equal(ask("conv1", 10, 10)->replica, 1);
		decide_run_set_member(&world.sums, &world.loads[1], false);
		assert_int_equal(ask("conv1", 10, 10)->reason, REASON_no_replica);
		assert_int_equal(world.state.decision.replica, REPLICA_NONE);
		assert_int_equal(world.state.decision.number, 0);
	}
}

static void a_placement_is_void_in_another_life(void **unused)
{
	const struct decision *decision;
	__u32 home, other;

	(void)unused;
	make_world(3, POLICY_LLM_AWARE);
	home = ask("conv1", 100, 10)->home;
	other = (home + 1) % 3;
	world.placement =
		(struct placement){.replica = other, .incarnation = 1, .prompt_tokens = 90};
	world.placed = true;
	decision = ask("conv1", 100, 10);
	assert_int_equal(decision->reason, REASON_sticky);
	assert_int_equal(decision->replica, other);
	assert_int_equal(decision->cost, 20);

	world.incarnations[other] = 2;
	decision = ask("conv1", 100, 10);
	assert_int_equal(decision->placement_replica, REPLICA_NONE);
	assert_int_equal(decision->preferred, home);

	world.incarnations[other] = 0; /* not active */
	assert_int_equal(ask("conv1", 100, 10)->placement_replica, REPLICA_NONE);
	world.incarnations[other] = 1;
	decide_run_set_member(&world.sums, &world.loads[other], false);
	assert_int_equal(ask("conv1", 100, 10)->placement_replica, REPLICA_NONE);
}

static void a_shorter_prompt_than_the_placement_costs_one_token(void **unused)
{
	(void)unused;
	make_world(2, POLICY_LLM_AWARE);
	world.placement = (struct placement){.replica = 1, .incarnation = 1, .prompt_tokens = 500};
	world.placed = true;
	assert_int_equal(ask("conv1", 300, 40)->cost, 41);
	give_back(&world.state.decision);
	assert_int_equal(ask("conv1", 500, 40)->cost, 41);
	give_back(&world.state.decision);
	assert_int_equal(ask("conv1", 502, 40)->cost, 42);
}

/* Whatever the policy and the loads, and also a replica outside the set; but then it is not part of the sums. */
static void a_pinned_request_stays_and_is_charged_there(void **unused)
{
	static const enum routing_policy policies[] = {POLICY_ROUND_ROBIN, POLICY_MOD_N,
						       POLICY_CONSISTENT, POLICY_BOUNDED,
						       POLICY_LLM_AWARE};

	(void)unused;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		for (__u32 replica = 0; replica < 4; replica++) {
			const struct decision *decision;
			__u64 before;

			make_world(4, policies[i]);
			load_replica(replica, 50, 50000);
			if (replica == 3)
				decide_run_set_member(&world.sums, &world.loads[3], false);
			before = world.sums.requests;
			world.state.request.pinned = replica + 1;
			decision = ask("conv1", 100, 10);
			assert_int_equal(decision->reason, REASON_pinned);
			assert_int_equal(decision->replica, replica);
			assert_int_equal(decision->charge, 110);
			assert_int_equal(world.loads[replica].requests, 51);
			assert_int_equal(world.sums.requests, before + (replica != 3));
			give_back(decision);
			assert_int_equal(world.loads[replica].requests, 50);
			assert_int_equal(world.loads[replica].tokens, 50000);
			assert_int_equal(world.sums.requests, before);
			world.state.request.pinned = 0;
		}
	}
}

static void anonymous_requests_spread(void **unused)
{
	__u32 served[8] = {0};
	struct decision first;

	(void)unused;
	for (int policy = POLICY_BOUNDED; policy <= POLICY_LLM_AWARE; policy++) {
		make_world(8, policy);
		memset(served, 0, sizeof(served));
		world.state.request.anonymous = 1;
		/* one after the other, all replicas idle: still not all on one */
		for (int i = 0; i < 80; i++) {
			const struct decision *decision = ask_hash(42, 100, 10);

			assert_int_equal(decision->reason, REASON_least_loaded);
			served[decision->replica]++;
			give_back(decision);
		}
		for (int i = 0; i < 8; i++)
			assert_int_equal(served[i], 10);
		/* and under load, to the least loaded */
		for (int i = 0; i < 8; i++)
			load_replica(i, 2 + (i != 5), 2000 + 1000 * (i != 5));
		first = *ask_hash(42, 100, 10);
		assert_int_equal(first.replica, 5);
	}
}

static void mod_n_takes_all_128_bits(void **unused)
{
	(void)unused;
	make_world(7, POLICY_MOD_N);
	world.ring.header.dialect = RING_REPLICA_ROUTER;
	for (int i = 0; i < 200; i++) {
		char id[16];
		struct md5_digest digest;
		unsigned __int128 whole;

		snprintf(id, sizeof(id), "conv%d", i);
		digest = md5(id, strlen(id));
		whole = (unsigned __int128)digest.high << 64 | digest.low;
		world.state.request.id_hash_low = digest.low;
		assert_int_equal(ring_mod_n_of_id(&world.ring, id, strlen(id)), (int)(whole % 7));
		assert_int_equal(ask_hash(digest.high, 1, 1)->replica,
				 world.ring.members[(int)(whole % 7)].replica);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_llm_aware_example),
		cmocka_unit_test(the_published_bounded_example),
		cmocka_unit_test(fits_are_exact_at_the_edges_of_the_ranges),
		cmocka_unit_test(fits_are_exact_where_load_and_cap_are_near),
		cmocka_unit_test(tokens_and_loads_stop_at_their_maximum),
		cmocka_unit_test(giving_back_more_than_there_is_stops_at_zero),
		cmocka_unit_test(every_replica_of_1024_is_walked_over_once),
		cmocka_unit_test(bounded_by_requests_never_falls_back),
		cmocka_unit_test(two_hundred_replicas_with_ten_requests),
		cmocka_unit_test(replicas_outside_the_set_count_nowhere),
		cmocka_unit_test(no_policy_decides_without_replicas),
		cmocka_unit_test(a_placement_is_void_in_another_life),
		cmocka_unit_test(a_shorter_prompt_than_the_placement_costs_one_token),
		cmocka_unit_test(a_pinned_request_stays_and_is_charged_there),
		cmocka_unit_test(anonymous_requests_spread),
		cmocka_unit_test(mod_n_takes_all_128_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
