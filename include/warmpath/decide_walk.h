/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding candidates: the walk along the ring from a request's key, and along the list of members by name.
 *
 * Owns: the order of candidates, on a snapshot of the loads. May not know: the lock, what is charged. What decide.h asks its includer for
 * has to be there.
 */
#ifndef WARMPATH_DECIDE_WALK_H
#define WARMPATH_DECIDE_WALK_H

#include "decide_state.h"
#include "loads.h"

#define DECIDE_ATTEMPTS_MAX 64
/* A fallback on a snapshot that has changed meanwhile is looked at so many times again: with tokens it is an honest answer. */
#define DECIDE_FALLBACK_ATTEMPTS_MAX 2

/* --- along the ring --------------------------------------------------------------------------------------- */

static __always_inline void decide_walk_start(struct decide_state *state)
{
	state->position = state->first_point;
	state->seen_count = 0;
	state->walked_count = 0;
	state->chosen = REPLICA_NONE;
	state->least = REPLICA_NONE;
	for (int i = 0; i < REPLICAS_MAX / 64; i++)
		state->seen[i] = 0;
}

/* The replica at the walk's position, and on to the next. False: met before, or not in the set (any more, or yet). */
static __always_inline struct replica_load *decide_walk_next(struct decide_source *source,
							     __u32 *replica)
{
	struct decide_state *state = source->state;
	struct replica_load *load;
	__u32 slot, word;
	__u64 bit;

	if (!decide_point(source, state->position, &slot))
		return NULL;
	state->position = state->position + 1 < state->point_count ? state->position + 1 : 0;
	word = slot / 64 % (REPLICAS_MAX / 64);
	bit = 1ULL << (slot % 64);
	if (state->seen[word] & bit)
		return NULL;
	state->seen[word] |= bit;
	state->seen_count++;
	*replica = slot;
	load = decide_replica_load(source, slot);
	return load && load->counted ? load : NULL;
}

/* Looks for the home where the key's own point is of a replica outside the set: only while the set is being changed. */
static long decide_home_step(__u32 step, void *context)
{
	struct decide_source *source = context;
	struct decide_state *state = source->state;
	__u32 replica;

	(void)step;
	if (decide_walk_next(source, &replica)) {
		state->chosen = replica;
		return 1;
	}
	return state->seen_count >= state->member_count;
}

static __always_inline __u32 decide_home(struct decide_source *source)
{
	struct decide_state *state = source->state;
	struct replica_load *load;
	__u32 replica = state->first_replica;

	if (state->point_count == 0)
		return REPLICA_NONE;
	load = decide_replica_load(source, replica);
	if (load && load->counted)
		return replica;
	decide_walk_start(state);
	decide_repeat(state->point_count, decide_home_step, source);
	return state->chosen;
}

/* The first replica behind the preferred one that takes the request at its own cost, and the least loaded of all. */
static long decide_walk_step(__u32 step, void *context)
{
	struct decide_source *source = context;
	struct decide_state *state = source->state;
	struct decision *decision = &state->decision;
	struct replica_load *found;
	__u32 replica, load;

	(void)step;
	found = decide_walk_next(source, &replica);
	if (!found)
		return state->seen_count >= state->member_count;
	load = decide_value(found, decision->metric);
	if (state->walked_count < EVENT_REPLICAS_MAX) {
		struct event_replica_load *walked = &state->walked[state->walked_count];

		walked->replica = replica;
		walked->load = load;
	}
	state->walked_count++;
	if (state->least == REPLICA_NONE || load < state->least_load) {
		state->least = replica;
		state->least_load = load;
	}
	if (replica != decision->preferred && state->attempt < DECIDE_ATTEMPTS_MAX &&
	    decide_fits(load, state->full_cost, state->sum, decision->replica_count,
			state->settings.epsilon_millionths, decision->metric)) {
		state->chosen = replica;
		return 1;
	}
	return state->seen_count >= state->member_count;
}

/* --- along the members ------------------------------------------------------------------------------------- */

/* The first member of the set at or behind an index of the list by name. */
static long decide_member_step(__u32 step, void *context)
{
	struct decide_source *source = context;
	struct decide_state *state = source->state;
	struct replica_load *load;
	__u32 replica;

	(void)step;
	if (!decide_member(source, state->position, &replica))
		return 1;
	load = decide_replica_load(source, replica);
	if (load && load->counted) {
		state->chosen = replica;
		return 1;
	}
	state->position = state->position + 1 < state->member_count ? state->position + 1 : 0;
	return 0;
}

/* The least loaded member of the set from some index of the list by name on; an idle one ends the search. */
static long decide_least_step(__u32 step, void *context)
{
	struct decide_source *source = context;
	struct decide_state *state = source->state;
	struct replica_load *found;
	__u32 replica, load;

	(void)step;
	if (!decide_member(source, state->position, &replica))
		return 1;
	state->position = state->position + 1 < state->member_count ? state->position + 1 : 0;
	found = decide_replica_load(source, replica);
	if (!found || !found->counted)
		return 0;
	load = decide_value(found, state->decision.metric);
	if (state->least == REPLICA_NONE || load < state->least_load) {
		state->least = replica;
		state->least_load = load;
	}
	return load == 0;
}

#endif /* WARMPATH_DECIDE_WALK_H */
