/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces: the published examples to the letter, and what else a decision may say of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../common/ring_fixture.h"
#include "lib/explanation.h"
#include "lib/policy.h"
#include "lib/ring.h"

/* llm-0, llm-1, llm-2 in slots 7, 8, 9. */
#define SLOT(number) (7 + (number))

static struct world {
	struct ring ring;
	struct service_load sums;
	struct replica_load loads[REPLICAS_MAX];
	__u32 incarnations[REPLICAS_MAX];
	struct placement placement;
	bool placed;
	struct decide_state state;
	struct event_decision event;
	struct explanation explanation;
	char *text;
} world;

static const char *name_of(const void *context, __u32 slot)
{
	static const char *const names[] = {"llm-0", "llm-1", "llm-2"};

	(void)context;
	return slot >= SLOT(0) && slot <= SLOT(2) ? names[slot - SLOT(0)] : NULL;
}

static const struct explanation_names names = {.replica = name_of, .service = "chat"};

static void make_world(enum routing_policy policy, __u32 load0, __u32 load1, __u32 load2)
{
	const __u32 loads[] = {load0, load1, load2};
	struct ring_replica replicas[] = {
		{.name = "llm-0", .slot = SLOT(0), .weight_thousandths = 1000},
		{.name = "llm-1", .slot = SLOT(1), .weight_thousandths = 1000},
		{.name = "llm-2", .slot = SLOT(2), .weight_thousandths = 1000},
	};
	struct ring_settings settings = {.dialect = RING_LLM, .vnodes = 100};
	struct error error;

	ring_free(&world.ring);
	free(world.text);
	memset(&world, 0, sizeof(world));
	assert_int_equal(ring_build(&world.ring, &settings, replicas, 3, &error), 0);
	for (int i = 0; i < 3; i++) {
		world.incarnations[SLOT(i)] = 4;
		world.loads[SLOT(i)].tokens = loads[i];
		world.loads[SLOT(i)].requests = loads[i];
		decide_run_set_member(&world.sums, &world.loads[SLOT(i)], true);
	}
	world.state.settings = policy_published(policy);
}

static void place(__u32 number, __u32 prompt_tokens)
{
	world.placement = (struct placement){
		.replica = SLOT(number), .incarnation = 4, .prompt_tokens = prompt_tokens};
	world.placed = true;
}

/* Decides, and explains what was decided from the event alone. */
static const char *explain(__u32 prompt_tokens, __u32 max_tokens)
{
	const char *id = id_that_walks_021(&world.ring);
	struct decide_state *state = &world.state;
	struct decide_tables tables = {
		.points = world.ring.points,
		.members = world.ring.members,
		.service_load = &world.sums,
		.loads = world.loads,
		.incarnations = world.incarnations,
		.placement = world.placed ? &world.placement : NULL,
	};
	struct error error;
	size_t size;
	FILE *to;

	state->request.id_hash = ring_hash(&world.ring, id, strlen(id));
	state->request.prompt_tokens = prompt_tokens;
	state->request.max_tokens = max_tokens;
	state->point_count = world.ring.header.point_count;
	state->member_count = world.ring.header.member_count;
	state->dialect = RING_LLM;
	state->first_point = ring_lookup(&world.ring, state->request.id_hash);
	decide_run(&tables, state);
	explanation_make_event(&world.event, &tables, state, id, strlen(id));
	assert_int_equal(
		explain_event(&world.explanation, &world.event, sizeof(world.event), &error), 0);
	assert_true(world.explanation.agrees);
	free(world.text);
	to = open_memstream(&world.text, &size);
	explanation_print(to, &world.explanation, &names);
	fclose(to);
	return world.text;
}

static void assert_says(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	if (!at || (at != text && at[-1] != '\n') || at[strlen(line)] != '\n')
		fail_msg("the line \"%s\" is not in:\n%s", line, text);
}

static void the_published_llm_aware_trace(void **unused)
{
	const char *text;

	(void)unused;
	make_world(POLICY_LLM_AWARE, 2400, 900, 900);
	place(0, 820);
	text = explain(860, 48);
	assert_says(text, "llm-aware → llm-0 (home-long)");
	assert_says(
		text,
		"  placement memory: last served on llm-0 with 820 prompt tokens → preferred=llm-0");
	assert_says(text,
		    "  cost on llm-0: max(1, 860-820)=40 + 48 = 88 (new tokens only, cache hit)");
	assert_says(
		text,
		"  load (tokens): llm-0=2400 llm-1=900 llm-2=900; +88 → total=4288, avg=1429.3, "
		"cap=1786.7");
	assert_says(
		text,
		"  long stickiness: prompt_tokens=860 ≥ 800 and cache_likely=True → long_cap=2858.7");
	assert_says(text,
		    "  llm-0: 2400+88=2488 ≤ long_cap=2858.7 (> normal cap=1786.7) → home-long");
}

static void the_published_bounded_trace(void **unused)
{
	const char *text;

	(void)unused;
	make_world(POLICY_BOUNDED, 2400, 900, 900);
	world.state.settings.load_metric = LOAD_TOKENS;
	text = explain(860, 48);
	assert_says(text, "bounded (token mode) → llm-2 (overflow)");
	assert_says(
		text,
		"  load (tokens): llm-0=2400 llm-1=900 llm-2=900; +908 → total=5108, avg=1702.7, "
		"cap=2128.3");
	assert_says(text, "  llm-0: 2400+908=3308 > 2128.3 → skip");
	assert_says(text, "  llm-2: 900+908=1808 ≤ 2128.3 → overflow");
	assert_null(strstr(text, "  llm-1:"));
	assert_null(strstr(text, "long stickiness"));
}

static void the_order_is_that_of_the_published_traces(void **unused)
{
	static const char *const order[] = {
		"llm-aware →", "  request ",	   "  placement memory:",
		"  cost on ",  "  load (tokens):", "  long stickiness:",
		"  llm-0: "};
	const char *at;

	(void)unused;
	make_world(POLICY_LLM_AWARE, 2400, 900, 900);
	place(0, 820);
	at = explain(860, 48);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		at = strstr(at, order[i]);
		assert_non_null(at);
		at++;
	}
}

static void why_long_stickiness_does_not_apply(void **unused)
{
	(void)unused;
	make_world(POLICY_LLM_AWARE, 2400, 900, 900);
	place(0, 100);
	assert_says(explain(500, 48), "  long stickiness: prompt_tokens=500 < 800 → not applied");
	assert_int_equal(world.explanation.long_verdict, LONG_TOO_SHORT);

	make_world(POLICY_LLM_AWARE, 2400, 900, 900);
	assert_says(explain(900, 48), "  long stickiness: cache_likely=False → not applied");
	assert_says(world.text, "  placement memory: nothing → preferred=llm-0 (ring home)");
	assert_says(world.text, "  cost on llm-0: 900 + 48 = 948 (whole prompt)");

	make_world(POLICY_LLM_AWARE, 2400, 900, 900);
	world.state.settings.long_stickiness = 0;
	assert_says(explain(900, 48), "  long stickiness: off");

	make_world(POLICY_LLM_AWARE, 2400, 900, 900);
	world.state.settings.placement_memory = 0;
	assert_says(explain(900, 48), "  placement memory: off → preferred=llm-0 (ring home)");
	assert_int_equal(world.explanation.long_verdict, LONG_APPLIED);
}

static void requests_are_counted_whole(void **unused)
{
	(void)unused;
	make_world(POLICY_BOUNDED, 3, 1, 0);
	explain(500, 48);
	assert_says(world.text, "bounded (request mode) → llm-2 (overflow)");
	assert_says(world.text, "  cost on llm-0: 1 request");
	assert_says(world.text,
		    "  load (requests): llm-0=3 llm-1=1 llm-2=0; +1 → total=5, avg=1.7, cap=3");
	assert_says(world.text, "  llm-0: 3+1=4 > 3 → skip");
	assert_says(world.text, "  llm-2: idle → overflow");
}

static void a_fallback_names_everybody(void **unused)
{
	(void)unused;
	make_world(POLICY_BOUNDED, 900, 800, 900);
	world.state.settings.load_metric = LOAD_TOKENS;
	explain(5000, 100);
	assert_says(world.text, "bounded (token mode) → llm-1 (fallback-least-loaded)");
	assert_says(world.text, "  llm-0: 900+5100=6000 > 3208.3 → skip");
	assert_says(world.text, "  llm-2: 900+5100=6000 > 3208.3 → skip");
	assert_says(world.text, "  llm-1: 800+5100=5900 > 3208.3 → skip");
	assert_says(world.text,
		    "  no replica fits: the least loaded, llm-1 with 800 → fallback-least-loaded");
}

static void a_sticky_decision_beside_home(void **unused)
{
	(void)unused;
	make_world(POLICY_LLM_AWARE, 0, 500, 0);
	place(1, 300);
	explain(320, 40);
	assert_says(world.text, "llm-aware → llm-0 (overflow)");
	assert_says(world.text, "  llm-0: idle → overflow");
	assert_says(world.text, "  llm-1: 500+60=560 > 233.3 → skip");
	make_world(POLICY_LLM_AWARE, 100, 90, 100);
	place(1, 300);
	explain(320, 10);
	assert_says(world.text, "llm-aware → llm-1 (sticky)");
	assert_says(world.text, "  llm-1: 90+30=120 ≤ 133.3 → sticky");
	assert_int_equal(world.explanation.tried_count, 1);
}

static void policies_without_a_cap(void **unused)
{
	(void)unused;
	make_world(POLICY_ROUND_ROBIN, 1, 2, 3);
	explain(10, 10);
	assert_says(world.text, "round-robin → llm-0 (round-robin)");
	assert_says(world.text, "  load (requests): llm-0=1 llm-1=2 llm-2=3");
	make_world(POLICY_CONSISTENT, 1, 2, 3);
	explain(10, 10);
	assert_says(world.text, "consistent → llm-0 (home)");
	assert_says(world.text, "  ring home: llm-0");
	make_world(POLICY_MOD_N, 1, 2, 3);
	assert_says(explain(10, 10), "  hash of the id modulo the number of replicas");
}

static void every_decision_explains_itself_alike(void **unused)
{
	int reasons[REASON_COUNT] = {0};

	(void)unused;
	srandom(5);
	for (int i = 0; i < 3000; i++) {
		/* one after the other: in what order arguments are evaluated is the compiler's choice */
		uint64_t loads[3] = {0};
		long policy, size, most, tokens;

		for (int j = 2; j >= 0; j--)
			loads[j] = random() % 3000;
		loads[0] *= random() % 3;
		policy = random() % 4;
		make_world(policy ? POLICY_LLM_AWARE : POLICY_BOUNDED, loads[0], loads[1],
			   loads[2]);
		world.state.settings.load_metric = random() % 2 ? LOAD_TOKENS : LOAD_REQUESTS;
		world.state.settings.token_load = random() % 4 != 0;
		world.state.settings.long_stickiness = random() % 4 != 0;
		if (random() % 2) {
			tokens = random() % 1500;
			place(random() % 3, tokens);
		}
		/* asserts that the event alone leads to the same decision */
		tokens = random() % 300;
		most = random() % 4 ? 2000 : 20000;
		size = random() % most;
		explain(size, tokens);
		reasons[world.event.decision.reason]++;
	}
	assert_true(reasons[REASON_home] > 50 && reasons[REASON_home_long] > 50 &&
		    reasons[REASON_sticky] > 50 && reasons[REASON_sticky_long] > 50 &&
		    reasons[REASON_overflow] > 50 && reasons[REASON_fallback_least_loaded] > 50);
}

static void an_event_that_is_not_whole_is_refused(void **unused)
{
	struct explanation explanation;
	struct event_decision bad;
	struct error error;
	size_t fixed = offsetof(struct event_decision, loads);

	(void)unused;
	make_world(POLICY_BOUNDED, 1, 1, 1);
	explain(10, 10);
	assert_int_equal(explain_event(&explanation, &world.event, fixed - 1, &error), -22);
	assert_int_equal(explain_event(&explanation, &world.event, fixed + 3 * 8, &error), 0);
	assert_int_equal(explain_event(&explanation, &world.event, fixed + 3 * 8 - 1, &error), -22);
	bad = world.event;
	bad.loads[1].replica = REPLICAS_MAX;
	assert_int_equal(explain_event(&explanation, &bad, sizeof(bad), &error), -22);
	bad = world.event;
	bad.decision.replica_count = 0;
	assert_int_equal(explain_event(&explanation, &bad, sizeof(bad), &error), -22);
	bad = world.event;
	bad.load_count = EVENT_REPLICAS_MAX + 1;
	assert_int_equal(explain_event(&explanation, &bad, sizeof(bad), &error), -22);
}

static void json_has_all_the_numbers(void **unused)
{
	json_t *object, *tried;

	(void)unused;
	make_world(POLICY_LLM_AWARE, 2400, 900, 900);
	place(0, 820);
	explain(860, 48);
	object = explanation_json(&world.explanation, &names);
	assert_non_null(object);
	assert_string_equal(json_string_value(json_object_get(object, "reason")), "home-long");
	assert_string_equal(json_string_value(json_object_get(object, "replica")), "llm-0");
	assert_int_equal(json_integer_value(json_object_get(object, "total")), 4288);
	assert_true(json_real_value(json_object_get(object, "cap")) == 1786.67);
	assert_true(json_real_value(json_object_get(object, "long_cap")) == 2858.67);
	assert_string_equal(json_string_value(json_object_get(object, "long_stickiness")),
			    "applied");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(object, "loads"), "llm-0")),
		2400);
	tried = json_array_get(json_object_get(object, "tried"), 0);
	assert_true(json_is_true(json_object_get(tried, "fits")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "settings"),
							    "long_threshold_tokens")),
			 800);
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_llm_aware_trace),
		cmocka_unit_test(the_published_bounded_trace),
		cmocka_unit_test(the_order_is_that_of_the_published_traces),
		cmocka_unit_test(why_long_stickiness_does_not_apply),
		cmocka_unit_test(requests_are_counted_whole),
		cmocka_unit_test(a_fallback_names_everybody),
		cmocka_unit_test(a_sticky_decision_beside_home),
		cmocka_unit_test(policies_without_a_cap),
		cmocka_unit_test(every_decision_explains_itself_alike),
		cmocka_unit_test(an_event_that_is_not_whole_is_refused),
		cmocka_unit_test(json_has_all_the_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
