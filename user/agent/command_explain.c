/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explain: what would be decided on a request now, and why. Everything is read from the live maps; nothing is changed.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/events.h"
#include "lib/control.h"
#include "lib/explanation.h"
#include "lib/placement_tables.h"

/* Copies of the maps, for the core to charge. */
struct copies {
	struct service_load sums;
	struct replica_load loads[REPLICAS_MAX];
	__u32 incarnations[REPLICAS_MAX];
	struct placement placement;
	bool placed;
	struct decide_state state;
	struct event_decision event;
	struct explanation explanation;
};

static int read_sizes(const json_t *message, const struct service *service,
		      struct decide_request *request, struct error *error)
{
	json_int_t prompt = 1, most = service->policy.default_max_tokens;
	int result = control_number(message, "prompt_tokens", false, 0, REQUEST_TOKENS_MAX, &prompt,
				    error);

	if (!result)
		result = control_number(message, "max_tokens", false, 0, REQUEST_TOKENS_MAX, &most,
					error);
	request->prompt_tokens = prompt;
	request->max_tokens = most;
	return result;
}

static int read_placement(const struct agent *agent, __u32 service, __u64 hash,
			  struct copies *copies)
{
	int table = placement_table_open(agent->datapath.placements, service);

	if (table == -ENOENT)
		return 0;
	if (table < 0)
		return table;
	copies->placed = bpf_map_lookup_elem(table, &hash, &copies->placement) == 0;
	close(table);
	return 0;
}

static int copy_maps(const struct agent *agent, __u32 service, const struct ring *ring, __u64 hash,
		     struct copies *copies, struct error *error)
{
	int result = read_placement(agent, service, hash, copies);

	if (!result && bpf_map_lookup_elem(agent->datapath.service_loads, &service, &copies->sums))
		result = -errno;
	for (__u32 i = 0; !result && i < ring->header.member_count; i++) {
		__u32 slot = ring->members[i].replica;

		if (bpf_map_lookup_elem(agent->datapath.replica_loads, &slot, &copies->loads[slot]))
			result = -errno;
	}
	for (__u32 slot = 0; slot < REPLICAS_MAX; slot++)
		if (agent->routing.replicas[slot].state == REPLICA_ACTIVE)
			copies->incarnations[slot] = agent->routing.replicas[slot].incarnation;
	if (result)
		return error_set(error, result, "the loads cannot be read: %s", strerror(-result));
	return 0;
}

static void decide_on_copies(struct copies *copies, const struct ring *ring,
			     const struct service *service, const char *id)
{
	struct decide_tables tables = {
		.points = ring->points,
		.members = ring->members,
		.service_load = &copies->sums,
		.loads = copies->loads,
		.incarnations = copies->incarnations,
		.placement = copies->placed ? &copies->placement : NULL,
	};
	struct decide_state *state = &copies->state;

	state->settings = service->policy;
	state->point_count = ring->header.point_count;
	state->member_count = ring->header.member_count;
	state->dialect = ring->header.dialect;
	state->first_point = ring_lookup(ring, state->request.id_hash);
	decide_run(&tables, state);
	explanation_make_event(&copies->event, &tables, state, id, strlen(id));
}

static int explain(struct agent *agent, __u32 index, const json_t *message, const char *id,
		   struct copies *copies, struct error *error)
{
	const struct service *service = &agent->routing.services[index];
	const struct ring *ring = &agent->rings.ring[index];
	struct decide_request *request = &copies->state.request;
	int result = read_sizes(message, service, request, error);

	if (result)
		return result;
	request->id_hash = ring_hash(ring, id, strlen(id));
	if (ring->header.dialect == RING_REPLICA_ROUTER)
		request->id_hash_low = md5(id, strlen(id)).low;
	if (ring->header.point_count > 0) {
		result = copy_maps(agent, index, ring, request->id_hash, copies, error);
		if (result)
			return result;
		decide_on_copies(copies, ring, service, id);
	}
	if (copies->state.decision.number == 0)
		return error_set(error, -ENOENT, "no replica is active in service %s",
				 service->name);
	return explain_event(&copies->explanation, &copies->event, sizeof(copies->event), error);
}

int command_explain(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	char id[ID_LENGTH_MAX + 1];
	struct copies *copies;
	const char *name;
	int service, result = command_read_id(message, id, error);

	if (!result)
		result = control_text(message, "service", false, &name, error);
	if (result)
		return result;
	service = routing_find_service(&agent->routing, name, error);
	if (service < 0)
		return service;
	copies = calloc(1, sizeof(*copies));
	if (!copies)
		return error_set(error, -ENOMEM, "not enough memory");
	result = explain(agent, service, message, id, copies, error);
	if (!result)
		json_object_set_new(answer, "decision",
				    events_explanation(agent, service, &copies->explanation));
	free(copies);
	return result;
}
