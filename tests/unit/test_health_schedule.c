/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When replicas are checked while there is no memory for a check: not again and again. The linker gives calls of health_check_new() to
 * this file (Makefile).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "agent/health_parts.h"
#include "lib/log.h"

#define ATTEMPTS  4
#define FAR_APART 100 /* milliseconds: less than the pause between attempts, more than none */
#define HERE	  7   /* the replicas' slots */
#define ALSO_HERE 9

static uv_loop_t *loop;
static uint64_t attempts[ATTEMPTS];
static unsigned int attempt_count;

struct health_check *__wrap_health_check_new(struct transfers *transfers, health_answered answered,
					     void *context);
struct health_check *__wrap_health_check_new(struct transfers *transfers, health_answered answered,
					     void *context)
{
	(void)transfers, (void)answered, (void)context;
	if (attempt_count < ATTEMPTS)
		attempts[attempt_count] = uv_now(loop);
	if (++attempt_count >= ATTEMPTS)
		uv_stop(loop);
	/* timers without a pause between them never let the loop see that it is to stop */
	if (attempt_count == 1000)
		fail_msg("checks are tried again without a pause");
	return NULL;
}

static void without_memory_checks_wait(void **state)
{
	static const __u32 slots[] = {HERE, ALSO_HERE};
	struct agent *agent = calloc(1, sizeof(*agent));
	struct health *health = calloc(1, sizeof(*health));
	struct config_service service = {
		.health = {.check = HEALTH_CHECK_HTTP, .interval_milliseconds = 3000}};
	unsigned int i;

	(void)state;
	assert_non_null(agent);
	assert_non_null(health);
	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(uv_loop_init(&agent->loop), 0);
	loop = &agent->loop;
	agent->routing.settings[0] = &service;
	health->agent = agent;
	uv_timer_init(loop, &health->checks);
	health->checks.data = health;
	for (i = 0; i < 2; i++) {
		agent->routing.replicas[slots[i]].state = REPLICA_ACTIVE;
		health->replicas[slots[i]].watched = true;
	}
	health_schedule(health);
	uv_run(loop, UV_RUN_DEFAULT);
	assert_int_equal(attempt_count, ATTEMPTS);
	for (i = 1; i < ATTEMPTS; i++) {
		if (attempts[i] - attempts[i - 1] < FAR_APART)
			fail_msg("attempt %u came %u ms after the one before", i,
				 (unsigned int)(attempts[i] - attempts[i - 1]));
	}
	uv_close((uv_handle_t *)&health->checks, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(loop), 0);
	free(health);
	free(agent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_checks_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
