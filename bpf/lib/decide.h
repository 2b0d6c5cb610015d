/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decision core (include/warmpath/decide.h) over the data path's maps.
 *
 * Owns: where the core finds ring, loads and placements; its working space; the settings of a decision. May not know: packets, open
 * requests, events.
 */
#ifndef WARMPATH_BPF_DECIDE_H
#define WARMPATH_BPF_DECIDE_H

#include <linux/errno.h>
#include <warmpath/decide_state.h>

#include "contact_map.h"
#include "maps.h"
#include "ring.h"

/* Not pinned: each program has its own. One entry a CPU is enough, as no program that uses it interrupts another. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct decide_state);
} decide_states SEC(".maps");

static __always_inline struct decide_state *decide_state_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&decide_states, &first);
}

/* Lives on the caller's stack, so that the verifier keeps the types of the pointers in it. */
struct decide_source {
	struct decide_state *state;
	struct service_load *sums;
	void *points;	  /* inner map of ring_points */
	void *members;	  /* inner map of ring_members */
	void *placements; /* inner map of placements; NULL: the service has none */
};

static __always_inline struct service_load *decide_service_load(const struct decide_source *source)
{
	return source->sums;
}

static __always_inline struct replica_load *decide_replica_load(const struct decide_source *source,
								__u32 replica)
{
	struct decide_state *state = source->state;

	if (state->avoids && contact_is_refusing(replica, state->nanoseconds)) {
		state->avoided = 1;
		return NULL;
	}
	return bpf_map_lookup_elem(&replica_loads, &replica);
}

static __always_inline bool decide_point(const struct decide_source *source, __u32 position,
					 __u32 *replica)
{
	const struct ring_point *point = bpf_map_lookup_elem(source->points, &position);

	if (!point)
		return false;
	*replica = point->replica;
	return true;
}

static __always_inline bool decide_member(const struct decide_source *source, __u32 index,
					  __u32 *replica)
{
	const struct ring_member *member = bpf_map_lookup_elem(source->members, &index);

	if (!member)
		return false;
	*replica = member->replica;
	return true;
}

static __always_inline bool decide_placement(const struct decide_source *source,
					     struct placement *placement)
{
	const struct placement *found;

	if (!source->placements)
		return false;
	found = bpf_map_lookup_elem(source->placements, &source->state->request.id_hash);
	if (!found)
		return false;
	*placement = *found;
	return true;
}

static __always_inline __u32 decide_incarnation(const struct decide_source *source, __u32 replica)
{
	const struct replica *entry = bpf_map_lookup_elem(&replicas, &replica);

	return entry && entry->state == REPLICA_ACTIVE ? entry->incarnation : 0;
}

static __always_inline void decide_lock(struct service_load *sums)
{
	bpf_spin_lock(&sums->lock);
}

static __always_inline void decide_unlock(struct service_load *sums)
{
	bpf_spin_unlock(&sums->lock);
}

static __always_inline void decide_repeat(__u32 times, long (*step)(__u32 index, void *context),
					  struct decide_source *source)
{
	bpf_loop(times, step, source, 0);
}

#include <warmpath/decide.h>

/*
 * Points a source at the service's tables and its state at the ring. The caller fills state->request and state->nanoseconds.
 * 0; or -ENOENT if a table is missing (a fault of the agent).
 */
static __always_inline int decide_open(struct decide_source *source, struct decide_state *state,
				       const struct ring_header *ring,
				       const struct service *service, __u32 service_index)
{
	__u32 slot = ring->slot;

	source->state = state;
	/* a connection that cannot move is nobody else's */
	state->avoids = !state->request.pinned;
	state->avoided = 0;
	source->placements = NULL;
	source->sums = bpf_map_lookup_elem(&service_loads, &service_index);
	source->points = bpf_map_lookup_elem(&ring_points, &slot);
	source->members = bpf_map_lookup_elem(&ring_members, &slot);
	if (!source->sums || !source->points || !source->members)
		return -ENOENT;
	state->settings = service->policy;
	state->point_count = ring->point_count;
	state->member_count = ring->member_count;
	state->dialect = ring->dialect;
	if (service->policy.policy == POLICY_LLM_AWARE && service->policy.placement_memory)
		source->placements = bpf_map_lookup_elem(&placements, &service_index);
	if (ring->point_count > 0 &&
	    ring_look_up(ring, state->request.id_hash, &state->first_point, &state->first_replica))
		return -ENOENT;
	return 0;
}

#endif /* WARMPATH_BPF_DECIDE_H */
