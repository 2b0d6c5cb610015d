/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of the results of checks, and of connections of users that were refused.
 */
#include <bpf/bpf.h>
#include <string.h>

#include "agent/health_parts.h"
#include "lib/log.h"

#define RETRY_MILLISECONDS   1000 /* if the rings could not be changed */
#define HURRIED_MILLISECONDS 100  /* from one check to the next where users were refused */
#define PASSIVE_MILLISECONDS \
	10000 /* without checks, a replica that refused is tried again after so long */

/* --- what becomes of verdicts -------------------------------------------------------------------------------------- */

static void apply_soon(struct health *health)
{
	if (!uv_is_active((uv_handle_t *)&health->apply))
		uv_timer_again(&health->apply);
}

static const char *service_name(const struct health *health, const struct health_watched *watched)
{
	return health->agent->routing.services[watched->service].name;
}

static void apply_process(const struct health *health, struct replica *replica,
			  const struct health_watched *watched)
{
	if (replica->process && replica->process != watched->taken.process &&
	    !(replica->held & HELD_BY_HEALTH)) {
		log_info(
			"replica %s of service %s has been started anew: what it had cached is gone",
			replica->name, service_name(health, watched));
		replica->incarnation++;
	}
	replica->process = watched->taken.process;
}

static int take_verdicts(struct agent *agent, struct routing *next, void *context,
			 struct error *error)
{
	const struct health *health = context;
	__u32 slot;

	(void)agent;
	(void)error;
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct health_watched *watched = &health->replicas[slot];
		struct replica *replica = &next->replicas[slot];

		if (!watched->watched || !replica_in_set(replica))
			continue;
		if (watched->taken.process)
			apply_process(health, replica, watched);
		if (watched->taken.down) {
			routing_hold(replica, HELD_BY_HEALTH, true);
		} else if (watched->taken.up && (replica->held & HELD_BY_HEALTH)) {
			routing_hold(replica, HELD_BY_HEALTH, false);
			replica->incarnation++;
		}
	}
	return 0;
}

/* What could not be applied is still to be, unless something newer is known. */
static void put_back(struct health_watched *watched)
{
	if (!watched->pending.down && !watched->pending.up) {
		watched->pending.down = watched->taken.down;
		watched->pending.up = watched->taken.up;
	}
	if (!watched->pending.process)
		watched->pending.process = watched->taken.process;
}

void health_on_apply(uv_timer_t *timer)
{
	struct health *health = timer->data;
	struct error error;
	int result;
	__u32 slot;

	uv_timer_stop(timer);
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		health->replicas[slot].taken = health->replicas[slot].pending;
		memset(&health->replicas[slot].pending, 0, sizeof(struct health_outcome));
	}
	result = agent_change_routing(health->agent, take_verdicts, health, &error);
	if (!result)
		return;
	log_warning("what is known about the health of replicas cannot be applied: %s", error.text);
	for (slot = 0; slot < REPLICAS_MAX; slot++)
		put_back(&health->replicas[slot]);
	uv_timer_start(timer, health_on_apply, RETRY_MILLISECONDS, HEALTH_APPLY_MILLISECONDS);
}

void health_take_verdict(struct health *health, __u32 slot, enum health_verdict verdict)
{
	struct health_watched *watched = &health->replicas[slot];
	bool held = health->agent->routing.replicas[slot].held & HELD_BY_HEALTH;

	if (verdict == HEALTH_FELL)
		log_warning("replica %s of service %s is down: %s", watched->name,
			    service_name(health, watched), watched->record.failure);
	else if (verdict == HEALTH_ROSE && (held || watched->pending.down))
		log_info("replica %s of service %s is up", watched->name,
			 service_name(health, watched));
	else
		return;
	watched->pending.down = verdict == HEALTH_FELL;
	watched->pending.up = verdict == HEALTH_ROSE;
	apply_soon(health);
}

void health_heard(struct health *health, __u32 slot, __u32 process)
{
	const struct replica *replica;

	if (!health || !process || !health->replicas[slot].watched ||
	    health->replicas[slot].says_process)
		return;
	replica = &health->agent->routing.replicas[slot];
	if (replica->process == process)
		return;
	health->replicas[slot].pending.process = process;
	apply_soon(health);
}

void health_try_again(struct health *health, __u32 slot)
{
	struct health_watched *watched = &health->replicas[slot];

	watched->try_again = 0;
	watched->record.state = HEALTH_UNKNOWN;
	watched->record.since = time(NULL);
	health_take_verdict(health, slot, HEALTH_ROSE);
}

/* --- users' connections -------------------------------------------------------------------------------------------- */

void health_read_contact(const struct health *health, __u32 slot, struct replica_contact *contact)
{
	memset(contact, 0, sizeof(*contact));
	bpf_map_lookup_elem(health->agent->datapath.replica_contacts, &slot, contact);
}

/* How many it has refused or reset since the last look, with none answered after them. */
static uint32_t take_refusals(struct health *health, __u32 slot)
{
	struct health_watched *watched = &health->replicas[slot];
	struct replica_contact now, before = watched->contact;
	uint64_t count;

	health_read_contact(health, slot, &now);
	watched->contact = now;
	count = now.refused + now.aborted - before.refused - before.aborted;
	if (now.answered != before.answered) {
		watched->record.refused = 0;
		if (count > now.refused_in_a_row)
			count = now.refused_in_a_row;
	}
	return count > UINT32_MAX ? UINT32_MAX : count;
}

void health_refused(struct health *health, __u32 slot)
{
	const struct config_health *settings;
	enum health_verdict verdict;
	struct health_watched *watched;

	if (!health || !health->replicas[slot].watched)
		return;
	watched = &health->replicas[slot];
	settings = health_settings(health, slot);
	if (!settings)
		return;
	verdict = health_take_refusals(&watched->record, settings, take_refusals(health, slot),
				       time(NULL));
	if (verdict == HEALTH_FELL && !health_is_checked(settings))
		watched->try_again = uv_now(&health->agent->loop) + PASSIVE_MILLISECONDS;
	/* what users have met, the next check is to look at now */
	if (health_is_checked(settings) && !watched->under_way &&
	    watched->due > watched->begun + HURRIED_MILLISECONDS)
		watched->due = watched->begun + HURRIED_MILLISECONDS;
	health_take_verdict(health, slot, verdict);
	health_schedule(health);
}
