/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/health.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/health_parts.h"
#include "lib/address.h"

const struct config_health *health_settings(const struct health *health, __u32 slot)
{
	const struct routing *routing = &health->agent->routing;
	const struct config_service *settings = routing->settings[routing->replicas[slot].service];

	return settings ? &settings->health : NULL;
}

bool health_is_checked(const struct config_health *settings)
{
	return settings && settings->check != HEALTH_CHECK_NONE;
}

/* --- the set ------------------------------------------------------------------------------------------------------- */

static const struct address *checked_address(const struct replica *replica)
{
	return address_is_set(&replica->ipv4) ? &replica->ipv4 : &replica->ipv6;
}

static bool is_same(const struct health_watched *watched, const struct replica *replica)
{
	return watched->watched && watched->service == replica->service &&
	       watched->port == replica->port &&
	       address_equal(&watched->address, checked_address(replica)) &&
	       strcmp(watched->name, replica->name) == 0;
}

static void forget(struct health *health, __u32 slot)
{
	struct health_watched *watched = &health->replicas[slot];
	unsigned int i;

	for (i = 0; watched->under_way && i < HEALTH_CHECKS_MAX; i++) {
		if (health->pool[i].check != watched->under_way)
			continue;
		health_check_free(health->pool[i].check);
		health->pool[i].check = NULL;
	}
	memset(watched, 0, sizeof(*watched));
}

/* trusted: it was there before this agent, which so has no cause to doubt it. */
static void watch(struct health *health, __u32 slot, bool trusted)
{
	const struct replica *replica = &health->agent->routing.replicas[slot];
	const struct config_health *settings = health_settings(health, slot);
	struct health_watched *watched = &health->replicas[slot];

	forget(health, slot);
	watched->watched = true;
	memcpy(watched->name, replica->name, sizeof(watched->name));
	watched->service = replica->service;
	watched->address = *checked_address(replica);
	watched->port = replica->port;
	watched->record.trusted = trusted;
	health_read_contact(health, slot, &watched->contact);
	if (replica->held & HELD_BY_HEALTH)
		watched->record.state = HEALTH_DOWN;
	/* spread over the interval, so that a thousand replicas are not asked in one moment */
	watched->due = uv_now(&health->agent->loop);
	if (health_is_checked(settings))
		watched->due += rand_r(&health->seed) % settings->interval_milliseconds;
}

/* Without checks and passive failures nothing would ever put it back. */
static void release_unchecked(struct health *health, __u32 slot)
{
	const struct config_health *settings = health_settings(health, slot);
	struct health_watched *watched = &health->replicas[slot];

	if (!(health->agent->routing.replicas[slot].held & HELD_BY_HEALTH) ||
	    health_is_checked(settings) || watched->try_again || watched->pending.up)
		return;
	health_try_again(health, slot);
}

static void follow(struct health *health, bool first)
{
	const struct routing *routing = &health->agent->routing;
	__u32 slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &routing->replicas[slot];

		if (!replica_in_set(replica) || !routing->settings[replica->service]) {
			if (health->replicas[slot].watched)
				forget(health, slot);
			continue;
		}
		if (!is_same(&health->replicas[slot], replica))
			watch(health, slot, first && health->agent->datapath.adopted);
		release_unchecked(health, slot);
	}
	health_schedule(health);
}

void health_follow(struct health *health)
{
	if (health)
		follow(health, false);
}

/* --- questions ------------------------------------------------------------------------------------------------------ */

const struct health_record *health_of(const struct health *health, __u32 slot)
{
	if (!health || !health->replicas[slot].watched ||
	    !health_is_checked(health_settings(health, slot)))
		return NULL;
	return &health->replicas[slot].record;
}

static void add_time(json_t *object, const char *name, time_t when)
{
	char text[32];
	struct tm parts;

	if (!when)
		return;
	gmtime_r(&when, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	json_object_set_new(object, name, json_string(text));
}

json_t *health_json(const struct health *health, __u32 slot)
{
	const struct health_watched *watched = health ? &health->replicas[slot] : NULL;
	const struct health_record *record;
	json_t *object;

	if (!watched || !watched->watched ||
	    (!health_is_checked(health_settings(health, slot)) &&
	     watched->record.state != HEALTH_DOWN))
		return json_pack("{s:s}", "state", "unchecked");
	record = &watched->record;
	object = json_pack("{s:s, s:I, s:I, s:I}", "state", health_state_name(record->state),
			   "checks_good", (json_int_t)record->checks_good, "checks_failed",
			   (json_int_t)record->checks_failed, "check_milliseconds",
			   (json_int_t)record->milliseconds);
	add_time(object, "since", record->since);
	add_time(object, "failed_at", record->failed_at);
	if (record->failed_at)
		json_object_set_new(object, "failure", json_string(record->failure));
	return object;
}

/* --- beginning and end ------------------------------------------------------------------------------------------------ */

int health_open(struct agent *agent, struct health **result, struct error *error)
{
	struct health *health = calloc(1, sizeof(*health));
	unsigned int i;
	int failed;

	*result = NULL;
	if (!health)
		return error_set(error, -ENOMEM, "not enough memory");
	failed = transfers_open(&agent->loop, &health->transfers, error);
	if (failed) {
		free(health);
		return failed;
	}
	health->agent = agent;
	health->seed = (unsigned int)uv_hrtime();
	for (i = 0; i < HEALTH_CHECKS_MAX; i++)
		health->pool[i].health = health;
	health->open_handles = 2;
	uv_timer_init(&agent->loop, &health->checks);
	health->checks.data = health;
	uv_timer_init(&agent->loop, &health->apply);
	health->apply.data = health;
	/* so that uv_timer_again() starts it */
	uv_timer_start(&health->apply, health_on_apply, HEALTH_APPLY_MILLISECONDS,
		       HEALTH_APPLY_MILLISECONDS);
	uv_timer_stop(&health->apply);
	*result = health;
	follow(health, true);
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct health *health = handle->data;

	if (--health->open_handles == 0)
		free(health);
}

void health_close(struct health *health)
{
	unsigned int i;

	if (!health)
		return;
	for (i = 0; i < HEALTH_CHECKS_MAX; i++)
		health_check_free(health->pool[i].check);
	transfers_close(health->transfers);
	uv_close((uv_handle_t *)&health->checks, on_closed);
	uv_close((uv_handle_t *)&health->apply, on_closed);
}
