/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a check is due, and how many run at once.
 */
#include <errno.h>
#include <string.h>

#include "agent/health_parts.h"
#include "lib/log.h"

#define LATE_MAX 3 /* checks in a row that this process itself was too late for */
#define EMPTY_MILLISECONDS \
	1000 /* between checks, at most, while no replica of the service is active */
#define SHORT_MILLISECONDS 500 /* without a check, where there was no memory for one */

/* --- checks ------------------------------------------------------------------------------------------------------- */

static bool nobody_is_active(const struct health *health, __u32 service)
{
	const struct routing *routing = &health->agent->routing;
	__u32 slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		if (routing->replicas[slot].service == service &&
		    routing->replicas[slot].state == REPLICA_ACTIVE)
			return false;
	}
	return true;
}

static void on_answered(void *context, const struct health_answer *answer)
{
	static const struct health_answer too_late = {.failure = "no answer in time"};
	struct health_slot_check *slot_check = context;
	struct health *health = slot_check->health;
	struct health_watched *watched = &health->replicas[slot_check->slot];
	const struct config_health *settings = health_settings(health, slot_check->slot);

	watched->under_way = NULL;
	if (!answer && ++watched->late < LATE_MAX) {
		watched->due = uv_now(&health->agent->loop);
	} else if (health_is_checked(settings)) {
		answer = answer ? answer : &too_late;
		watched->late = 0;
		watched->record.milliseconds = answer->milliseconds;
		if (answer->process) {
			watched->says_process = false;
			health_heard(health, slot_check->slot, answer->process);
			watched->says_process = true;
		}
		health_take_verdict(health, slot_check->slot,
				    health_take_check(&watched->record, settings, answer->failure,
						      nobody_is_active(health, watched->service),
						      time(NULL)));
	}
	health_schedule(health);
}

/* Nothing is begun for a while: without that, checks that are due would be tried again and again. */
static void fall_short(struct health *health, int why)
{
	if (!health->short_of_memory)
		log_warning("replicas cannot be checked at present: %s", strerror(why));
	health->short_of_memory = true;
	health->no_sooner = uv_now(&health->agent->loop) + SHORT_MILLISECONDS;
}

/* NULL: as many run as may, or there is no memory. */
static struct health_slot_check *find_free(struct health *health)
{
	unsigned int i;

	for (i = 0; i < HEALTH_CHECKS_MAX; i++) {
		struct health_slot_check *slot_check = &health->pool[i];
		__u32 slot = slot_check->slot;

		if (slot_check->check && health->replicas[slot].under_way == slot_check->check)
			continue;
		if (!slot_check->check)
			slot_check->check =
				health_check_new(health->transfers, on_answered, slot_check);
		if (!slot_check->check)
			fall_short(health, ENOMEM);
		return slot_check->check ? slot_check : NULL;
	}
	return NULL;
}

static uint64_t interval_of(const struct health *health, __u32 slot)
{
	const struct health_watched *watched = &health->replicas[slot];
	uint64_t interval = health_settings(health, slot)->interval_milliseconds;

	if (interval > EMPTY_MILLISECONDS && nobody_is_active(health, watched->service))
		return EMPTY_MILLISECONDS;
	return interval;
}

/* False: no more can be begun now. */
static bool begin_check(struct health *health, __u32 slot)
{
	struct health_watched *watched = &health->replicas[slot];
	struct health_slot_check *slot_check = find_free(health);
	int result;

	if (!slot_check)
		return false;
	slot_check->slot = slot;
	result = health_check_begin(slot_check->check, health_settings(health, slot),
				    &watched->address, watched->port);
	watched->begun = uv_now(&health->agent->loop);
	watched->due = watched->begun + interval_of(health, slot);
	if (result) {
		fall_short(health, -result);
		return false;
	}
	watched->under_way = slot_check->check;
	health->short_of_memory = false;
	return true;
}

static void on_checks(uv_timer_t *timer)
{
	struct health *health = timer->data;
	uint64_t now = uv_now(&health->agent->loop);
	bool more = health->no_sooner <= now;
	__u32 slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		struct health_watched *watched = &health->replicas[slot];

		if (!watched->watched)
			continue;
		if (watched->try_again && watched->try_again <= now)
			health_try_again(health, slot);
		if (more && health_is_checked(health_settings(health, slot)) &&
		    !watched->under_way && watched->due <= now)
			more = begin_check(health, slot);
	}
	health_schedule(health);
}

void health_schedule(struct health *health)
{
	uint64_t now = uv_now(&health->agent->loop), due = UINT64_MAX, check = UINT64_MAX;
	unsigned int running = 0;
	__u32 slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct health_watched *watched = &health->replicas[slot];

		if (!watched->watched)
			continue;
		running += watched->under_way != NULL;
		if (watched->try_again && watched->try_again < due)
			due = watched->try_again;
		if (!watched->under_way && watched->due < check &&
		    health_is_checked(health_settings(health, slot)))
			check = watched->due;
	}
	if (check < health->no_sooner)
		check = health->no_sooner;
	if (check < due)
		due = check;
	if (due == UINT64_MAX || running == HEALTH_CHECKS_MAX)
		uv_timer_stop(&health->checks);
	else
		uv_timer_start(&health->checks, on_checks, due > now ? due - now : 0, 0);
}
