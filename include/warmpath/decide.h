/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decision core: the five policies, by integer arithmetic only. The kernel, `warmpath decide`, `warmpath explain`, traces and tests run
 * these lines; docs/policies.md says what they decide and why.
 *
 * Owns: walk, order of attempts, fallback. May not know: packets, hashes, where the values are: the includer defines, before
 * including this,
 *
 *	struct decide_source			ring, loads, placements of one service; has a member `struct decide_state *state`
 *	decide_service_load(source)		its struct service_load, never NULL
 *	decide_replica_load(source, replica)	struct replica_load of a slot, or NULL
 *	decide_point(source, position, &replica)	slot at a ring point, 0 .. point_count - 1; false: none there
 *	decide_member(source, index, &replica)	slot of a member of the ring, by name, 0 .. member_count - 1; false: none there
 *	decide_placement(source, &placement)	copy of what is remembered of the request's id; false: nothing
 *	decide_incarnation(source, replica)	of a slot that is REPLICA_ACTIVE; 0 of any other
 *	decide_lock(service_load), decide_unlock(service_load)
 *	decide_repeat(times, step, source)	calls step(index, source) until it returns 1, at most `times` times
 *
 * The lock, and why no decision exceeds the cap it reports
 * --------------------------------------------------------
 * service_load.lock guards the sums of a service and the loads of its replicas: whoever charges, gives back or changes the set does all of it in
 * one locked section, so that within such a section the sums are the sums of the parts. BPF allows no look-up while it holds the lock,
 * so all replicas cannot be compared in there. They need not be: whether a replica fits depends on five numbers only, its own load, the sum, N, the cost
 * and epsilon. So a candidate is chosen on a snapshot, read without the lock, which may be torn and only serves to
 * find a good candidate; then, in one locked section, the candidate's fit is computed anew from the sum, N and load of that moment,
 * and only if it holds is it charged, in the same section. What is reported (sum, replica_count, load) is copied there, too. If it does not hold, the
 * decision is made again. So a decision whose reason promises a cap has kept that cap at the moment it was charged, whatever
 * the other CPUs did.
 *
 * Nor can a CPU try for ever: its candidate stops fitting only because another one was charged in between, so others
 * have gone on; after DECIDE_ATTEMPTS_MAX times the least loaded replica is taken, and says so (fallback-least-loaded). With loads counted in
 * requests some replica always fits (if all loads were >= (1 + epsilon)(sum + 1)/N, their sum would be greater than itself), so
 * there the fallback is never the answer to a state of the loads, only to that many lost races in a row.
 */
#ifndef WARMPATH_DECIDE_H
#define WARMPATH_DECIDE_H

#include "decide_state.h"
#include "loads.h"

#define DECIDE_ATTEMPTS_MAX 64
/* A fallback on a snapshot that has changed meanwhile is looked at so many times again: with tokens it is an honest answer. */
#define DECIDE_FALLBACK_ATTEMPTS_MAX 2

/* What becomes of an attempt. */
enum decide_progress {
	DECIDE_AGAIN = 0, /* another CPU was in between */
	DECIDE_DONE = 1,
	DECIDE_NONE = 2, /* no replica is in the set */
};

/* --- walk ------------------------------------------------------------------------------------------------- */

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

/* --- one attempt of each kind of policy --------------------------------------------------------------------- */

static __always_inline void decide_report(const struct service_load *sums,
					  const struct replica_load *load,
					  struct decision *decision, __u32 replica)
{
	decision->sum = decide_sum(sums, decision->metric);
	decision->replica_count = sums->replica_count;
	decision->load = decide_value(load, decision->metric);
	decision->replica = replica;
}

/* Policies without a cap: the candidate is charged as long as it is in the set. */
static __always_inline enum decide_progress
decide_charge_candidate(struct decide_source *source, __u32 replica, enum route_reason reason)
{
	struct service_load *sums = decide_service_load(source);
	struct decision *decision = &source->state->decision;
	struct replica_load *load = decide_replica_load(source, replica);
	__u32 tokens = decide_tokens(decision, REPLICA_NONE);
	enum decide_progress progress = DECIDE_AGAIN;

	if (!load)
		return DECIDE_AGAIN;
	decide_lock(sums);
	if (load->counted) {
		decide_report(sums, load, decision, replica);
		decide_charge(sums, load, decision, tokens);
		progress = DECIDE_DONE;
	}
	decide_unlock(sums);
	decision->reason = reason;
	decision->cost = tokens;
	return progress;
}

/* The preferred replica: within `limit`, or back to the caller with the sums that it was refused with. */
static __always_inline enum decide_progress decide_try_preferred(struct decide_source *source,
								 __u32 limit)
{
	struct service_load *sums = decide_service_load(source);
	struct decide_state *state = source->state;
	struct decision *decision = &state->decision;
	struct replica_load *load = decide_replica_load(source, decision->preferred);
	__u32 tokens = decide_tokens(decision, decision->preferred);
	__u32 epsilon = state->settings.epsilon_millionths;
	__u32 cost = decision->preferred_cost;
	enum load_metric metric = decision->metric;
	__u32 count, value;
	bool fits = false, fits_cap = false;
	__u64 sum;

	if (!load)
		return DECIDE_AGAIN;
	decide_lock(sums);
	sum = decide_sum(sums, metric);
	count = sums->replica_count;
	value = decide_value(load, metric);
	state->changes = sums->changes;
	if (load->counted) {
		fits_cap = decide_fits(value, cost, sum, count, epsilon, metric);
		fits = fits_cap || decide_fits(value, cost, sum, count, limit, metric);
		if (fits)
			decide_charge(sums, load, decision, tokens);
	}
	decide_unlock(sums);

	state->sum = sum;
	decision->sum = sum;
	decision->replica_count = count;
	decision->preferred_load = value;
	if (!fits)
		return DECIDE_AGAIN;
	decision->replica = decision->preferred;
	decision->load = value;
	decision->cost = cost;
	if (decision->preferred == decision->home)
		decision->reason = fits_cap ? REASON_home : REASON_home_long;
	else
		decision->reason = fits_cap ? REASON_sticky : REASON_sticky_long;
	return DECIDE_DONE;
}

/* The replica found on the walk, if it still fits. */
static __always_inline enum decide_progress decide_try_overflow(struct decide_source *source)
{
	struct service_load *sums = decide_service_load(source);
	struct decide_state *state = source->state;
	struct decision *decision = &state->decision;
	struct replica_load *load = decide_replica_load(source, state->chosen);
	__u32 tokens = decide_tokens(decision, state->chosen);
	enum load_metric metric = decision->metric;
	enum decide_progress progress = DECIDE_AGAIN;

	if (!load)
		return DECIDE_AGAIN;
	decide_lock(sums);
	if (load->counted &&
	    decide_fits(decide_value(load, metric), state->full_cost, decide_sum(sums, metric),
			sums->replica_count, state->settings.epsilon_millionths, metric)) {
		decide_report(sums, load, decision, state->chosen);
		decide_charge(sums, load, decision, tokens);
		progress = DECIDE_DONE;
	}
	decide_unlock(sums);
	decision->cost = state->full_cost;
	decision->reason = REASON_overflow;
	return progress;
}

/* Nobody fits. Charged if the loads are still those that say so, or if that could not be had often enough. */
static __always_inline enum decide_progress decide_try_fallback(struct decide_source *source)
{
	struct service_load *sums = decide_service_load(source);
	struct decide_state *state = source->state;
	struct decision *decision = &state->decision;
	struct replica_load *load = decide_replica_load(source, state->least);
	__u32 tokens = decide_tokens(decision, state->least);
	__u32 attempts = decision->metric == LOAD_TOKENS ? DECIDE_FALLBACK_ATTEMPTS_MAX
							 : DECIDE_ATTEMPTS_MAX;
	enum decide_progress progress = DECIDE_AGAIN;

	if (!load)
		return DECIDE_AGAIN;
	decide_lock(sums);
	if (load->counted && (sums->changes == state->changes || state->attempt >= attempts)) {
		decide_report(sums, load, decision, state->least);
		decide_charge(sums, load, decision, tokens);
		progress = DECIDE_DONE;
	}
	decide_unlock(sums);
	decision->cost = decide_cost(decision, state->least);
	decision->reason = REASON_fallback_least_loaded;
	return progress;
}

/*
 * The placement of the request's id, if its replica is in the set and still lives the life in which it served it. Then that replica is
 * the preferred one.
 */
static __always_inline bool decide_recall(struct decide_source *source)
{
	struct decision *decision = &source->state->decision;
	struct placement placement;
	struct replica_load *load;
	__u32 incarnation;

	if (!decide_placement(source, &placement))
		return false;
	incarnation = decide_incarnation(source, placement.replica);
	if (incarnation == 0 || incarnation != placement.incarnation)
		return false;
	load = decide_replica_load(source, placement.replica);
	if (!load || !load->counted)
		return false;
	decision->placement_replica = placement.replica;
	decision->placement_prompt_tokens = placement.prompt_tokens;
	decision->preferred = placement.replica;
	return true;
}

/* bounded and llm-aware: bounded is llm-aware without placements and with full costs everywhere. */
static __always_inline enum decide_progress decide_within_cap(struct decide_source *source)
{
	struct decide_state *state = source->state;
	struct decision *decision = &state->decision;
	struct policy_settings *settings = &state->settings;
	__u32 limit = settings->epsilon_millionths;
	bool cache_likely = false;

	decision->placement_replica = REPLICA_NONE;
	decision->placement_prompt_tokens = 0;
	decision->flags &= ~DECISION_LONG_APPLIED;
	decision->flags |= DECISION_HAS_CAP;
	decision->home = decide_home(source);
	if (decision->home == REPLICA_NONE)
		return DECIDE_NONE;
	decision->preferred = decision->home;
	if (settings->policy == POLICY_LLM_AWARE) {
		cache_likely = !settings->placement_memory || decide_recall(source);
		if (settings->long_stickiness && cache_likely &&
		    decision->prompt_tokens >= settings->long_threshold_tokens) {
			limit = settings->long_epsilon_millionths;
			decision->flags |= DECISION_LONG_APPLIED;
		}
	}
	decision->preferred_cost = decide_cost(decision, decision->preferred);
	state->full_cost = decide_cost(decision, REPLICA_NONE);
	state->walked_count = 0;
	if (decide_try_preferred(source, limit) == DECIDE_DONE)
		return DECIDE_DONE;

	decide_walk_start(state);
	decide_repeat(state->point_count, decide_walk_step, source);
	if (state->chosen != REPLICA_NONE)
		return decide_try_overflow(source);
	if (state->least != REPLICA_NONE)
		return decide_try_fallback(source);
	return DECIDE_NONE;
}

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

static __always_inline enum decide_progress decide_by_index(struct decide_source *source,
							    __u32 index, enum route_reason reason)
{
	struct decide_state *state = source->state;
	struct replica_load *load;
	__u32 replica;

	if (!decide_member(source, index, &replica))
		return DECIDE_NONE;
	load = decide_replica_load(source, replica);
	if (!load || !load->counted) {
		state->position = index;
		state->chosen = REPLICA_NONE;
		decide_repeat(state->member_count, decide_member_step, source);
		replica = state->chosen;
	}
	if (replica == REPLICA_NONE)
		return DECIDE_NONE;
	if (reason == REASON_home)
		state->decision.home = replica;
	return decide_charge_candidate(source, replica, reason);
}

/* H(id) mod N, of 128 bits where the hash has so many. */
static __always_inline __u32 decide_hash_modulo(const struct decide_request *request,
						enum ring_dialect dialect, __u32 count)
{
	__u64 low = request->id_hash_low, remainder = request->id_hash % count;

	if (dialect == RING_REPLICA_ROUTER) {
		remainder = (remainder << 32 | low >> 32) % count;
		remainder = (remainder << 32 | (low & 0xffffffff)) % count;
	}
	return remainder;
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

static __always_inline enum decide_progress decide_least_loaded(struct decide_source *source,
								__u32 index)
{
	struct decide_state *state = source->state;

	state->position = index;
	state->least = REPLICA_NONE;
	decide_repeat(state->member_count, decide_least_step, source);
	if (state->least == REPLICA_NONE)
		return DECIDE_NONE;
	return decide_charge_candidate(source, state->least, REASON_least_loaded);
}

static __always_inline enum decide_progress decide_by_policy(struct decide_source *source)
{
	struct decide_state *state = source->state;
	enum routing_policy policy = state->settings.policy;
	struct service_load *sums = decide_service_load(source);
	__u32 count = state->member_count;

	if (count == 0)
		return DECIDE_NONE;
	if (policy == POLICY_ROUND_ROBIN) {
		__u64 turn = __sync_fetch_and_add(&sums->round_robin_next, 1);

		return decide_by_index(source, turn % count, REASON_round_robin);
	}
	if (policy == POLICY_MOD_N)
		return decide_by_index(source,
				       decide_hash_modulo(&state->request, state->dialect, count),
				       REASON_home);
	if (policy == POLICY_CONSISTENT) {
		state->decision.home = decide_home(source);
		if (state->decision.home == REPLICA_NONE)
			return DECIDE_NONE;
		return decide_charge_candidate(source, state->decision.home, REASON_home);
	}
	if (state->request.anonymous) {
		__u64 turn = __sync_fetch_and_add(&sums->round_robin_next, 1);

		return decide_least_loaded(source, turn % count);
	}
	return decide_within_cap(source);
}

/* One attempt; 1 ends the row of them. */
static __noinline long decide_attempt(__u32 attempt, void *context)
{
	struct decide_source *source = context;
	struct decide_state *state = source->state;
	struct decision *decision = &state->decision;

	state->attempt++;
	if (attempt > 0)
		decision->flags |= DECISION_CONTENDED;
	return decide_by_policy(source) != DECIDE_AGAIN;
}

/*
 * Decides on source->state's request and charges the replica. The answer is source->state->decision; its reason is REASON_no_replica, and
 * nothing is charged, if no replica is in the set.
 */
static __always_inline void decide(struct decide_source *source)
{
	struct decide_state *state = source->state;
	struct decision *decision = &state->decision;

	__builtin_memset(decision, 0, sizeof(*decision));
	decision->replica = REPLICA_NONE;
	decision->home = REPLICA_NONE;
	decision->preferred = REPLICA_NONE;
	decision->placement_replica = REPLICA_NONE;
	decision->metric = decide_metric(&state->settings);
	decision->prompt_tokens = decide_clamp_tokens(state->request.prompt_tokens);
	decision->max_tokens = decide_clamp_tokens(state->request.max_tokens);
	state->walked_count = 0;
	state->attempt = 0;
	decide_repeat(DECIDE_ATTEMPTS_MAX, decide_attempt, source);
	if (decision->number == 0) {
		decision->reason = REASON_no_replica;
		decision->replica = REPLICA_NONE;
		decision->cost = 0;
	}
}

#endif /* WARMPATH_DECIDE_H */
