/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attempts: a candidate is looked at once more in a locked section, and charged there if it still holds.
 *
 * Owns: those locked sections, and what a decision reports of them. May not know: how candidates are found (decide_walk.h), which one is
 * tried when (decide.h, which also says why it is done so).
 */
#ifndef WARMPATH_DECIDE_CHARGE_H
#define WARMPATH_DECIDE_CHARGE_H

#include "decide_walk.h"

/* What becomes of an attempt. */
enum decide_progress {
	DECIDE_AGAIN = 0, /* another CPU was in between */
	DECIDE_DONE = 1,
	DECIDE_NONE = 2, /* no replica is in the set */
};

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

/* The replica that the request's connection cannot leave, in the set or not. */
static __always_inline enum decide_progress decide_charge_pinned(struct decide_source *source,
								 __u32 replica)
{
	struct service_load *sums = decide_service_load(source);
	struct decision *decision = &source->state->decision;
	struct replica_load *load = decide_replica_load(source, replica);
	__u32 tokens = decide_tokens(decision, REPLICA_NONE);

	if (!load)
		return DECIDE_NONE;
	decide_lock(sums);
	decide_report(sums, load, decision, replica);
	decide_charge(sums, load, decision, tokens);
	decide_unlock(sums);
	decision->reason = REASON_pinned;
	decision->cost = tokens;
	return DECIDE_DONE;
}

#endif /* WARMPATH_DECIDE_CHARGE_H */
