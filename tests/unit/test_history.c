/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of decisions: what is kept how long, why a conversation moved, and the totals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/history.h"

#define SERVICE 3

struct world {
	struct history *history;
	struct replica replicas[REPLICAS_MAX];
	__u64 number;
	struct event_decision event; /* the next one */
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	world->history = history_new();
	for (int i = 0; i < 4; i++) {
		snprintf(world->replicas[i].name, sizeof(world->replicas[i].name), "llm-%d", i);
		world->replicas[i].state = REPLICA_ACTIVE;
		world->replicas[i].service = SERVICE;
	}
	world->event.header.kind = EVENT_DECISION;
	world->event.header.service = SERVICE;
	world->event.settings.policy = POLICY_LLM_AWARE;
	world->event.settings.placement_memory = 1;
	world->event.decision.reason = REASON_home;
	world->event.decision.placement_replica = REPLICA_NONE;
	world->event.decision.prompt_tokens = 100;
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	history_free(world->history);
	free(world);
	return 0;
}

static const struct history_entry *decide(struct world *world, __u64 hash, __u32 replica)
{
	world->event.header.id_hash = hash;
	world->event.decision.number = ++world->number;
	world->event.decision.replica = replica;
	return history_decision(world->history, &world->event,
				offsetof(struct event_decision, loads), world->replicas);
}

static void complete(struct world *world, __u64 hash, __u64 number, enum completion_status status)
{
	const struct event_completion event = {
		.header = {.kind = EVENT_COMPLETION,
			   .service = SERVICE,
			   .id_hash = hash,
			   .nanoseconds = 3500000000ULL},
		.number = number,
		.decided_nanoseconds = 1000000000ULL,
		.status = status,
	};

	history_completion(world->history, &event);
}

static void assert_moved(const struct history_entry *entry, const char *from, enum move_cause cause,
			 const char *why)
{
	char text[200];

	assert_string_equal(entry->from_name, from);
	assert_int_equal(entry->cause, cause);
	history_explain_move(entry, text, sizeof(text));
	if (!strstr(text, why))
		fail_msg("\"%s\" does not say \"%s\"", text, why);
}

static void test_order_and_completion(void **state)
{
	struct world *world = *state;
	const struct history_entry *entry;

	decide(world, 7, 0);
	decide(world, 8, 1);
	decide(world, 7, 0);
	complete(world, 7, 1, COMPLETION_SUCCESS);
	complete(world, 9, 1, COMPLETION_FAILED); /* of a conversation that is not known */

	entry = history_of(world->history, SERVICE, 7, NULL);
	assert_int_equal(entry->event->decision.number, 3);
	assert_int_equal(entry->status, 0);
	entry = history_of(world->history, SERVICE, 7, entry);
	assert_int_equal(entry->event->decision.number, 1);
	assert_int_equal(entry->status, COMPLETION_SUCCESS);
	assert_true(entry->seconds == 2.5);
	assert_null(history_of(world->history, SERVICE, 7, entry));
	assert_null(history_of(world->history, SERVICE + 1, 7, NULL));
	assert_int_equal(history_totals(world->history, SERVICE)->traced, 3);
	assert_int_equal(history_totals(world->history, SERVICE)->completions[COMPLETION_SUCCESS],
			 1);
	assert_int_equal(history_totals(world->history, SERVICE)->completions[COMPLETION_FAILED],
			 1);
}

/* Conversations whose hashes share a bucket are told apart, and the oldest entries give way. */
static void test_buckets_and_limit(void **state)
{
	struct world *world = *state;
	const struct history_entry *entry = NULL;
	unsigned int count = 0;

	for (unsigned int i = 0; i < HISTORY_DECISIONS + 10; i++)
		decide(world, 5 + (__u64)HISTORY_DECISIONS * (i % 4), i % 3);
	while ((entry = history_of(world->history, SERVICE, 5, entry))) {
		assert_int_equal(entry->event->header.id_hash, 5);
		count++;
	}
	assert_int_equal(count, HISTORY_DECISIONS / 4);
	assert_int_equal(history_forget(world->history, SERVICE, 5), HISTORY_DECISIONS / 4);
	assert_null(history_of(world->history, SERVICE, 5, NULL));
	assert_non_null(history_of(world->history, SERVICE, 5 + HISTORY_DECISIONS, NULL));
}

static void test_moves_by_membership(void **state)
{
	struct world *world = *state;

	assert_int_equal(decide(world, 1, 0)->cause, MOVE_none);
	assert_int_equal(decide(world, 1, 0)->cause, MOVE_none);
	world->replicas[0].state = REPLICA_DRAINING;
	world->event.decision.home = 1;
	assert_moved(decide(world, 1, 1), "llm-0", MOVE_gone, "llm-0 is draining");
	world->replicas[1].state = REPLICA_DOWN;
	assert_moved(decide(world, 1, 2), "llm-1", MOVE_gone, "llm-1 is down");
	world->replicas[2].state = REPLICA_REMOVED;
	assert_moved(decide(world, 1, 3), "llm-2", MOVE_gone, "llm-2 has left");
	world->replicas[1].state = REPLICA_ACTIVE;
	world->event.decision.home = 2;
	assert_moved(decide(world, 1, 1), "llm-3", MOVE_ring, "its home is another one");
	assert_int_equal(history_totals(world->history, SERVICE)->moves[MOVE_gone], 3);
	assert_int_equal(history_totals(world->history, SERVICE)->moves[MOVE_ring], 1);
	assert_int_equal(history_totals(world->history, SERVICE)->moves[MOVE_none], 2);
	assert_int_equal(history_replica(world->history, 1)->moves_in, 2);
	assert_int_equal(history_replica(world->history, 1)->moves_out, 1);
}

static void test_moves_by_load(void **state)
{
	struct world *world = *state;

	decide(world, 1, 0);
	world->event.decision.reason = REASON_overflow;
	assert_moved(decide(world, 1, 1), "llm-0", MOVE_overloaded, "at its cap");
	world->event.decision.reason = REASON_home;
	world->event.decision.placement_replica = 0;
	assert_moved(decide(world, 1, 0), "llm-1", MOVE_returned, "where its cache is");
	world->event.settings.policy = POLICY_BOUNDED;
	world->event.decision.placement_replica = REPLICA_NONE;
	world->event.decision.reason = REASON_fallback_least_loaded;
	assert_moved(decide(world, 2, 1) ? decide(world, 2, 2) : NULL, "llm-1", MOVE_overloaded,
		     "cap");
	world->event.decision.reason = REASON_home;
	assert_moved(decide(world, 2, 1), "llm-2", MOVE_returned, "at its home");
}

/* Who has just refused a connection is left out by the data path, whatever the reason of the decision is called then. */
static void test_moves_by_refusal(void **state)
{
	struct world *world = *state;
	struct event_refusal refusal = {
		.header = {.service = SERVICE, .nanoseconds = 5000000000ULL},
		.replica = 1,
		.cause = REFUSAL_RESET,
	};

	decide(world, 1, 1);
	decide(world, 2, 1);
	decide(world, 3, 2);
	history_refusal(world->history, &refusal);
	refusal.replica = 2;
	refusal.cause = REFUSAL_ABORTED;
	history_refusal(world->history, &refusal);
	world->event.decision.home = 3;
	world->event.header.nanoseconds = 5900000000ULL;
	assert_moved(decide(world, 1, 3), "llm-1", MOVE_refused, "llm-1 had just refused");
	assert_moved(decide(world, 3, 3), "llm-2", MOVE_ring, "its home is another one");
	world->event.header.nanoseconds = 6100000000ULL;
	assert_moved(decide(world, 2, 3), "llm-1", MOVE_ring, "its home is another one");
	assert_int_equal(history_totals(world->history, SERVICE)->refusals, 2);
}

static void test_moves_by_memory(void **state)
{
	struct world *world = *state;

	/* home is slot 0 throughout; the request on slot 1 is not answered */
	decide(world, 1, 1);
	assert_moved(decide(world, 1, 0), "llm-1", MOVE_unanswered, "was not answered by llm-1");
	decide(world, 2, 1);
	complete(world, 2, world->number, COMPLETION_SUCCESS);
	assert_moved(decide(world, 2, 0), "llm-1", MOVE_restarted, "llm-1 had served");
}

static void test_moves_by_policy(void **state)
{
	struct world *world = *state;

	decide(world, 1, 1);
	world->event.settings.policy = POLICY_ROUND_ROBIN;
	assert_moved(decide(world, 1, 2), "llm-1", MOVE_policy, "policy round-robin");
	assert_moved(decide(world, 1, 0), "llm-2", MOVE_policy, "policy round-robin");
	world->event.settings.policy = POLICY_LLM_AWARE;
	decide(world, 2, 1);
	world->event.decision.reason = REASON_pinned;
	assert_moved(decide(world, 2, 2), "llm-1", MOVE_policy, "its connection was open");
}

/* Requests without an id share a key by chance only: they are no conversation that could move. */
static void test_anonymous(void **state)
{
	struct world *world = *state;

	world->event.anonymous = 1;
	decide(world, 1, 0);
	assert_int_equal(decide(world, 1, 1)->cause, MOVE_none);
}

static void test_cached_tokens(void **state)
{
	struct world *world = *state;
	const struct history_replica *replica = history_replica(world->history, 1);

	decide(world, 1, 1); /* 100 tokens, none of them there before */
	world->event.decision.prompt_tokens = 250;
	decide(world, 1, 1); /* 100 of 250 */
	assert_int_equal(replica->prompt_tokens, 350);
	assert_int_equal(replica->cached_tokens, 100);
	world->event.decision.placement_replica = 1;
	world->event.decision.placement_prompt_tokens = 400;
	decide(world, 1, 1); /* not more than the prompt has */
	assert_int_equal(replica->cached_tokens, 350);
	world->event.decision.placement_replica = 2; /* overflow: the cache is elsewhere */
	decide(world, 1, 1);
	assert_int_equal(replica->prompt_tokens, 850);
	assert_int_equal(replica->cached_tokens, 350);
	history_reset_replica(world->history, 1);
	assert_int_equal(replica->prompt_tokens, 0);
}

/* Names are those of the time of the decision, also when the slot has another replica since. */
static void test_names_stay(void **state)
{
	struct world *world = *state;

	decide(world, 1, 1);
	strcpy(world->replicas[1].name, "llm-9");
	assert_string_equal(history_of(world->history, SERVICE, 1, NULL)->replica_name, "llm-1");
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_order_and_completion), TEST(test_buckets_and_limit),
		TEST(test_moves_by_membership),	 TEST(test_moves_by_load),
		TEST(test_moves_by_refusal),	 TEST(test_moves_by_memory),
		TEST(test_moves_by_policy),	 TEST(test_anonymous),
		TEST(test_cached_tokens),	 TEST(test_names_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
