/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads: what a request costs, whether a replica can take it, and every way in which a load changes.
 *
 * Owns: the arithmetic of costs and caps; keeping a service's sums equal to their parts. May not know: how a candidate is found
 * (decide.h), maps, the lock (whoever calls what changes a load holds service_load.lock).
 *
 * Arithmetic
 * ----------
 * load + cost <= (1 + epsilon)(sum + cost)/N is compared as (load + cost) N 10^6 <= (10^6 + epsilon)(sum + cost), epsilon in millionths. With loads
 * at most 2^27 (REPLICA_LOAD_MAX), costs below 2^25, N at most 2^10 and epsilon at most 10^8 the left side stays below 2^58 and the right
 * side below 1.4 x 10^19 < 2^64.
 */
#ifndef WARMPATH_LOADS_H
#define WARMPATH_LOADS_H

#include "decision.h"

#define DECIDE_MILLION 1000000ULL

_Static_assert((1ULL << 27) == REPLICA_LOAD_MAX && REPLICAS_MAX <= 1024 &&
		       REQUEST_TOKENS_MAX < (1 << 24) && EPSILON_MAX <= 100000000,
	       "the ranges that the arithmetic above relies on");

static __always_inline __u32 decide_clamp_tokens(__u32 tokens)
{
	return tokens < REQUEST_TOKENS_MAX ? tokens : REQUEST_TOKENS_MAX;
}

/* What loads are counted in. */
static __always_inline enum load_metric decide_metric(const struct policy_settings *settings)
{
	if (settings->policy == POLICY_LLM_AWARE)
		return settings->token_load ? LOAD_TOKENS : LOAD_REQUESTS;
	return settings->load_metric;
}

static __always_inline __u32 decide_value(const struct replica_load *load, enum load_metric metric)
{
	return metric == LOAD_TOKENS ? (__u32)load->tokens : load->requests;
}

static __always_inline __u64 decide_sum(const struct service_load *load, enum load_metric metric)
{
	return metric == LOAD_TOKENS ? load->tokens : load->requests;
}

/*
 * Whether a replica takes a request. An idle one always does. In requests the cap is rounded up, and load + 1 <= ceil(x) is load < x.
 */
static __always_inline bool decide_fits(__u32 load, __u32 cost, __u64 sum, __u32 replica_count,
					__u32 epsilon, enum load_metric metric)
{
	__u64 right = (DECIDE_MILLION + epsilon) * (sum + cost);

	if (load == 0)
		return true;
	if (metric == LOAD_REQUESTS)
		return (__u64)load * replica_count * DECIDE_MILLION < right;
	return ((__u64)load + cost) * replica_count * DECIDE_MILLION <= right;
}

/* Tokens of work on a replica that has a placement's cache, and on one that has not. */
static __always_inline __u32 decide_tokens(const struct decision *decision, __u32 replica)
{
	__u32 prompt = decision->prompt_tokens;

	if (replica == decision->placement_replica && replica != REPLICA_NONE) {
		__u32 cached = decision->placement_prompt_tokens;

		prompt = prompt > cached ? prompt - cached : 1;
	}
	return prompt + decision->max_tokens;
}

static __always_inline __u32 decide_cost(const struct decision *decision, __u32 replica)
{
	return decision->metric == LOAD_REQUESTS ? 1 : decide_tokens(decision, replica);
}

/*
 * Charges the decision's replica. The lock is held. What does not fit under REPLICA_LOAD_MAX is left out, and the decision says what
 * was charged. A replica outside the set (that a connection is pinned to) is not part of the sums.
 */
static __always_inline void decide_charge(struct service_load *sums, struct replica_load *load,
					  struct decision *decision, __u32 tokens)
{
	__u64 room = load->tokens < REPLICA_LOAD_MAX ? REPLICA_LOAD_MAX - load->tokens : 0;

	if (tokens > room)
		tokens = room;
	if (load->requests < REPLICA_LOAD_MAX) {
		load->requests++;
		sums->requests += load->counted;
		decision->flags |= DECISION_CHARGED;
	}
	load->tokens += tokens;
	load->decisions++;
	sums->tokens += load->counted ? tokens : 0;
	sums->changes++;
	decision->charge = tokens;
	decision->number = ++sums->decisions;
}

/*
 * Gives a charge back; the lock is held. number: the decision's. A replica outside the set is not part of the sums.
 */
static __always_inline void decide_give_back(struct service_load *sums, struct replica_load *load,
					     __u64 number, __u32 requests, __u32 tokens)
{
	__u32 counted = load->counted;

	if (requests > load->requests)
		requests = load->requests;
	if (tokens > load->tokens)
		tokens = load->tokens;
	load->requests -= requests;
	load->tokens -= tokens;
	load->releases++;
	if (number <= load->mark) {
		load->marked_requests += requests;
		load->marked_tokens += tokens;
	}
	if (counted) {
		sums->requests -= requests;
		sums->tokens -= tokens;
	}
	sums->releases++;
	sums->changes++;
}

/* A replica enters the set with the load it has, or leaves it with that; the lock is held. */
static __always_inline void decide_set_member(struct service_load *sums, struct replica_load *load,
					      bool member)
{
	if (load->counted == member)
		return;
	load->counted = member;
	if (member) {
		sums->replica_count++;
		sums->requests += load->requests;
		sums->tokens += load->tokens;
	} else {
		sums->replica_count--;
		sums->requests -= load->requests;
		sums->tokens -= load->tokens;
	}
	sums->changes++;
}

/*
 * Corrects a load by what its open requests say: adds (or takes off, if negative) requests and tokens; the lock is held.
 */
static __always_inline void decide_repair(struct service_load *sums, struct replica_load *load,
					  __s64 requests, __s64 tokens)
{
	__s64 requests_now = load->requests, tokens_now = load->tokens;

	if (requests < -requests_now)
		requests = -requests_now;
	if (requests > REPLICA_LOAD_MAX - requests_now)
		requests = REPLICA_LOAD_MAX - requests_now;
	if (tokens < -tokens_now)
		tokens = -tokens_now;
	if (tokens > REPLICA_LOAD_MAX - tokens_now)
		tokens = REPLICA_LOAD_MAX - tokens_now;
	load->requests += requests;
	load->tokens += tokens;
	if (load->counted) {
		sums->requests += requests;
		sums->tokens += tokens;
	}
	sums->changes++;
}

#endif /* WARMPATH_LOADS_H */
