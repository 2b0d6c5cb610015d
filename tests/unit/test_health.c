/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How results of checks become verdicts, who begins slowly and in which steps, and what of an answer tells one process from the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/health_check.h"
#include "agent/health_record.h"
#include "agent/slow_start.h"
#include "lib/ring.h"

/* --- checks --------------------------------------------------------------------------------------------------- */

static const struct config_health settings = {
	.check = HEALTH_CHECK_HTTP, .rise = 2, .fall = 3, .passive_failures = 4};

static enum health_verdict failed(struct health_record *record)
{
	return health_take_check(record, &settings, "status 503, expected 200", false, 77);
}

static enum health_verdict good(struct health_record *record)
{
	return health_take_check(record, &settings, NULL, false, 88);
}

static void falls_after_as_many_failures_as_configured(void **state)
{
	struct health_record record = {0};

	(void)state;
	assert_int_equal(good(&record), HEALTH_ROSE);
	assert_int_equal(record.state, HEALTH_UP);
	assert_int_equal(record.since, 88);
	assert_int_equal(failed(&record), HEALTH_UNCHANGED);
	assert_int_equal(failed(&record), HEALTH_UNCHANGED);
	assert_int_equal(record.state, HEALTH_UP);
	assert_int_equal(failed(&record), HEALTH_FELL);
	assert_int_equal(record.state, HEALTH_DOWN);
	assert_int_equal(record.since, 77);
	assert_string_equal(record.failure, "status 503, expected 200");
	assert_int_equal(failed(&record), HEALTH_UNCHANGED);
}

static void failures_must_be_in_a_row(void **state)
{
	struct health_record record = {0};
	int i;

	(void)state;
	good(&record);
	for (i = 0; i < 10; i++) {
		assert_int_equal(failed(&record), HEALTH_UNCHANGED);
		assert_int_equal(failed(&record), HEALTH_UNCHANGED);
		assert_int_equal(good(&record), HEALTH_UNCHANGED);
	}
	assert_int_equal(record.checks_failed, 20);
	assert_int_equal(record.checks_good, 11);
}

static void rises_after_as_many_good_checks_as_configured(void **state)
{
	struct health_record record = {.state = HEALTH_DOWN};

	(void)state;
	assert_int_equal(good(&record), HEALTH_UNCHANGED);
	assert_int_equal(failed(&record), HEALTH_UNCHANGED);
	assert_int_equal(good(&record), HEALTH_UNCHANGED);
	assert_int_equal(good(&record), HEALTH_ROSE);
}

static void the_only_one_rises_with_the_first_good_check(void **state)
{
	struct health_record record = {.state = HEALTH_DOWN};

	(void)state;
	assert_int_equal(health_take_check(&record, &settings, NULL, true, 5), HEALTH_ROSE);
}

static void a_new_one_falls_with_its_first_failure(void **state)
{
	struct health_record unknown = {0}, trusted = {.trusted = true};

	(void)state;
	assert_int_equal(failed(&unknown), HEALTH_FELL);
	assert_int_equal(failed(&trusted), HEALTH_UNCHANGED);
	assert_int_equal(failed(&trusted), HEALTH_UNCHANGED);
	assert_int_equal(failed(&trusted), HEALTH_FELL);
}

static void refusals_count_until_a_good_check(void **state)
{
	struct config_health off = settings;
	struct health_record record = {.state = HEALTH_UP};

	(void)state;
	assert_int_equal(health_take_refusals(&record, &settings, 3, 9), HEALTH_UNCHANGED);
	good(&record);
	assert_int_equal(health_take_refusals(&record, &settings, 3, 9), HEALTH_UNCHANGED);
	assert_int_equal(health_take_refusals(&record, &settings, 0, 9), HEALTH_UNCHANGED);
	assert_int_equal(health_take_refusals(&record, &settings, 1, 9), HEALTH_FELL);
	assert_string_equal(record.failure, "4 connections of users in a row refused or reset");
	assert_int_equal(health_take_refusals(&record, &settings, UINT32_MAX, 9), HEALTH_UNCHANGED);
	assert_int_equal(good(&record), HEALTH_UNCHANGED);
	assert_int_equal(good(&record), HEALTH_ROSE);
	off.passive_failures = 0;
	assert_int_equal(health_take_refusals(&record, &off, 1000, 9), HEALTH_UNCHANGED);
}

/* --- which process ---------------------------------------------------------------------------------------------- */

static __u32 process_of(const char *line, __u32 before)
{
	return health_process_of_header(line, strlen(line), before);
}

static void an_answer_names_its_process(void **state)
{
	__u32 first = process_of("Process-Start-Time-Unix: 1764490000\r\n", 0);

	(void)state;
	assert_int_not_equal(first, 0);
	assert_int_equal(process_of("process-start-time-unix:1764490000", 0), first);
	assert_int_not_equal(process_of("Process-Start-Time-Unix: 1764490001\r\n", 0), first);
	assert_int_equal(process_of("Content-Type: text/plain\r\n", 0), 0);
	assert_int_equal(process_of("Content-Type: text/plain\r\n", first), first);
	assert_int_equal(process_of("Process-Start-Time-Unix", 0), 0);
	/* the same start on another boot of the machine */
	assert_int_not_equal(process_of("X-Boot-Id: 7e2d\r\n", first), first);
	assert_int_not_equal(process_of("X-Boot-Id: 7e2d\r\n", first),
			     process_of("X-Boot-Id: 7e2e\r\n", first));
}

/* --- slow start ------------------------------------------------------------------------------------------------- */

struct fixture {
	struct config_service settings;
	struct routing before, after;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	int slot;

	fixture->settings.health.slow_start_milliseconds = 9000;
	fixture->before.settings[0] = fixture->after.settings[0] = &fixture->settings;
	for (slot = 0; slot < 3; slot++) {
		struct replica *replica = &fixture->before.replicas[slot];

		snprintf(replica->name, sizeof(replica->name), "llm-%d", slot);
		replica->state = REPLICA_ACTIVE;
		replica->weight_thousandths = 2000;
		replica->incarnation = 1;
	}
	fixture->after = fixture->before;
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void who_returns_in_a_new_life_begins_slowly(void **state)
{
	struct fixture *fixture = *state;
	struct replica *replica = &fixture->after.replicas[1];

	fixture->before.replicas[1].state = REPLICA_DOWN;
	replica->incarnation = 2;
	slow_start_begin(&fixture->before, &fixture->after);
	assert_int_equal(replica->share_thousandths, 100);
	assert_int_equal(replica_ring_weight(replica), 200);
	assert_int_equal(fixture->after.replicas[0].share_thousandths, 0);
	assert_int_equal(replica_ring_weight(&fixture->after.replicas[0]), 2000);
	/* and goes on where it is */
	replica->share_thousandths = 300;
	slow_start_begin(&fixture->after, &fixture->after);
	assert_int_equal(replica->share_thousandths, 300);
}

static void who_is_new_begins_slowly(void **state)
{
	struct fixture *fixture = *state;

	memset(&fixture->before.replicas[2], 0, sizeof(struct replica));
	slow_start_begin(&fixture->before, &fixture->after);
	assert_int_equal(fixture->after.replicas[2].share_thousandths, 100);
}

static void who_was_only_drained_has_its_share_at_once(void **state)
{
	struct fixture *fixture = *state;

	fixture->before.replicas[1].state = REPLICA_DRAINING;
	slow_start_begin(&fixture->before, &fixture->after);
	assert_int_equal(fixture->after.replicas[1].share_thousandths, 0);
}

static void where_all_are_new_nobody_begins_slowly(void **state)
{
	struct fixture *fixture = *state;

	memset(fixture->before.replicas, 0, sizeof(fixture->before.replicas));
	slow_start_begin(&fixture->before, &fixture->after);
	assert_int_equal(fixture->after.replicas[0].share_thousandths, 0);
	assert_int_equal(fixture->after.replicas[2].share_thousandths, 0);
}

static void where_only_slow_ones_are_left_they_get_all(void **state)
{
	struct fixture *fixture = *state;

	fixture->before.replicas[1].share_thousandths = 200;
	fixture->after.replicas[1].share_thousandths = 200;
	fixture->after.replicas[0].state = REPLICA_DOWN;
	fixture->after.replicas[2].state = REPLICA_DRAINING;
	slow_start_begin(&fixture->before, &fixture->after);
	assert_int_equal(fixture->after.replicas[1].share_thousandths, 0);
}

static void without_slow_start_all_have_their_shares(void **state)
{
	struct fixture *fixture = *state;

	fixture->settings.health.slow_start_milliseconds = 0;
	fixture->before.replicas[1].share_thousandths = 200;
	fixture->after.replicas[1].share_thousandths = 200;
	slow_start_begin(&fixture->before, &fixture->after);
	assert_int_equal(fixture->after.replicas[1].share_thousandths, 0);
}

static void a_share_rises_in_ten_steps_and_reaches_all(void **state)
{
	uint64_t elapsed;
	__u16 last = 0;
	int steps = 0;

	(void)state;
	for (elapsed = 0; elapsed <= 9001; elapsed++) {
		__u16 share = slow_start_share(elapsed, 9001);
		unsigned int rank = share ? share : 1000;

		assert_true(rank >= (last ? last : 0));
		if (rank != last) {
			steps++;
			/* the moment of each step is that from which it counts */
			assert_int_equal(slow_start_elapsed(share, 9001), elapsed);
		}
		last = rank;
	}
	assert_int_equal(last, 1000);
	assert_int_equal(steps, SLOW_START_STEPS);
	assert_int_equal(slow_start_share(0, 0), 0);
}

/* Each step of one replica moves keys to it only, and never one back. */
static void a_rising_share_never_moves_a_key_twice(void **state)
{
	struct ring_settings ring_settings = {.dialect = RING_LLM, .vnodes = 100};
	struct replica rising = {.weight_thousandths = 1000};
	unsigned int step, key, moved, moved_at_most = 0, at_home[4000] = {0};
	struct error error;
	struct ring ring;

	(void)state;
	for (step = 1; step <= SLOW_START_STEPS; step++) {
		struct ring_replica replicas[] = {
			{.name = "llm-0", .slot = 0, .weight_thousandths = 1000},
			{.name = "llm-1", .slot = 1, .weight_thousandths = 1000},
			{.name = "llm-2", .slot = 2},
		};

		rising.share_thousandths = step < SLOW_START_STEPS ? step * 100 : 0;
		replicas[2].weight_thousandths = replica_ring_weight(&rising);
		assert_int_equal(ring_build(&ring, &ring_settings, replicas, 3, &error), 0);
		moved = 0;
		for (key = 0; key < 4000; key++) {
			bool home = ring_home_slot(&ring, key * 0x9e3779b97f4a7c15ULL) == 2;

			assert_true(home || !at_home[key]);
			moved += home && !at_home[key];
			at_home[key] = home;
		}
		ring_free(&ring);
		moved_at_most = moved > moved_at_most ? moved : moved_at_most;
	}
	/* a third of all in ten steps: no step has much more than its part */
	assert_in_range(moved_at_most, 1, 4000 / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(falls_after_as_many_failures_as_configured),
		cmocka_unit_test(failures_must_be_in_a_row),
		cmocka_unit_test(rises_after_as_many_good_checks_as_configured),
		cmocka_unit_test(the_only_one_rises_with_the_first_good_check),
		cmocka_unit_test(a_new_one_falls_with_its_first_failure),
		cmocka_unit_test(refusals_count_until_a_good_check),
		cmocka_unit_test(an_answer_names_its_process),
		cmocka_unit_test_setup_teardown(who_returns_in_a_new_life_begins_slowly, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_is_new_begins_slowly, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_was_only_drained_has_its_share_at_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(where_all_are_new_nobody_begins_slowly, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(where_only_slow_ones_are_left_they_get_all, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(without_slow_start_all_have_their_shares, set_up,
						tear_down),
		cmocka_unit_test(a_share_rises_in_ten_steps_and_reaches_all),
		cmocka_unit_test(a_rising_share_never_moves_a_key_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
