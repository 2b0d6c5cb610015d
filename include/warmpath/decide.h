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
 *	decide_replica_load(source, replica)	struct replica_load of a slot; NULL: no candidate now (state->avoided is set if that is
 *						for a moment only: the attempt is made again with state->avoids cleared if
 *						nobody else is there)
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

#include "decide_charge.h"
#include "decide_walk.h"

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

	if (state->request.pinned)
		return decide_charge_pinned(source, state->request.pinned - 1);
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
	enum decide_progress progress;

	(void)attempt;
	state->attempt++;
	progress = decide_by_policy(source);
	if (progress == DECIDE_NONE && state->avoided) {
		/* better one that may refuse than none */
		state->avoids = 0;
		state->avoided = 0;
		return 0;
	}
	if (progress != DECIDE_AGAIN)
		return 1;
	state->decision.flags |= DECISION_CONTENDED;
	return 0;
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
