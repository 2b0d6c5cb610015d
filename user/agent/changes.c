/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/changes.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/control.h"
#include "agent/history.h"
#include "agent/rings.h"
#include "lib/address.h"
#include "lib/ring_compare.h"

struct changes {
	struct replica before[REPLICAS_MAX];
	/* of the services that somebody watches */
	struct ring rings[SERVICES_MAX];
	bool built[SERVICES_MAX];
};

struct changes *changes_begin(struct agent *agent, const struct routing *next)
{
	struct changes *changes = calloc(1, sizeof(*changes));
	struct error error;

	if (!changes)
		return NULL;
	memcpy(changes->before, agent->routing.replicas, sizeof(changes->before));
	for (__u32 i = 0; i < SERVICES_MAX; i++) {
		if (next->settings[i] && agent->routing.settings[i] &&
		    control_changes_are_followed(agent->control, i))
			changes->built[i] = rings_build(&changes->rings[i], &agent->routing, i,
							NULL, &error) == 0;
	}
	return changes;
}

void changes_drop(struct changes *changes)
{
	for (__u32 i = 0; changes && i < SERVICES_MAX; i++)
		if (changes->built[i])
			ring_free(&changes->rings[i]);
	free(changes);
}

/* One word for what has become of the replica; NULL: nothing. */
static const char *change_of(const struct replica *before, const struct replica *after)
{
	bool was = replica_in_set(before), is = replica_in_set(after);

	if (!was || !is)
		return was ? "removed" : is ? "added" : NULL;
	if (before->state != after->state)
		return replica_state_name(after->state);
	if (before->weight_thousandths != after->weight_thousandths)
		return "weighted";
	if (before->port != after->port || !address_equal(&before->ipv4, &after->ipv4) ||
	    !address_equal(&before->ipv6, &after->ipv6))
		return "moved";
	if (before->incarnation != after->incarnation)
		return "restarted";
	return before->share_thousandths != after->share_thousandths ? "slow-start" : NULL;
}

static void publish(struct agent *agent, __u32 slot, const struct replica *before,
		    const char *change, double moved)
{
	const struct replica *after = &agent->routing.replicas[slot];
	const struct replica *replica = replica_in_set(after) ? after : before;
	const struct ring_header *header = &agent->rings.ring[replica->service].header;
	struct timespec now;
	json_t *message;

	clock_gettime(CLOCK_REALTIME, &now);
	message = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:I, s:i, s:f, s:f}", "event",
			    "change", "service", agent->routing.services[replica->service].name,
			    "replica", replica->name, "change", change, "state",
			    replica_in_set(after) ? replica_state_name(after->state) : "removed",
			    "weight", replica->weight_thousandths / 1000.0, "slow_start",
			    after->share_thousandths ? after->share_thousandths / 1000.0 : 1.0,
			    "generation", (json_int_t)header->generation, "on_ring",
			    (int)header->member_count, "moved", moved, "time",
			    round((now.tv_sec + now.tv_nsec / 1e9) * 1e3) / 1e3);
	if (message)
		control_publish_change(agent->control, replica->service, message);
}

void changes_publish(struct agent *agent, struct changes *changes)
{
	double moved[SERVICES_MAX] = {0};

	for (__u32 i = 0; changes && i < SERVICES_MAX; i++)
		if (changes->built[i] && agent->rings.built[i])
			moved[i] = ring_moved_share(&changes->rings[i], &agent->rings.ring[i]);
	for (__u32 slot = 0; changes && slot < REPLICAS_MAX; slot++) {
		const struct replica *before = &changes->before[slot];
		const struct replica *after = &agent->routing.replicas[slot];
		const char *change = change_of(before, after);
		__u32 service = replica_in_set(after) ? after->service : before->service;

		if (agent->history &&
		    (strcmp(before->name, after->name) != 0 || before->service != after->service))
			history_reset_replica(agent->history, slot);
		if (change && changes->built[service])
			publish(agent, slot, before, change, moved[service]);
	}
	changes_drop(changes);
}
