/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The working space of one decision: what the caller gives, the answer, and what the core keeps in between.
 *
 * Owns: the struct. May not know: how a decision is made (decide.h).
 */
#ifndef WARMPATH_DECIDE_STATE_H
#define WARMPATH_DECIDE_STATE_H

#include "decision.h"

/* Large, so callers keep it off the BPF stack. */
struct decide_state {
	/* given by the caller */
	struct policy_settings settings;
	struct decide_request request;
	__u32 point_count;   /* of the ring */
	__u32 member_count;  /* distinct replicas on the ring */
	__u32 first_point;   /* where the walk from the request's key starts */
	__u32 first_replica; /* slot: whose point that is */
	enum ring_dialect dialect;

	/* the data path's */
	__u32 traced;	   /* this decision goes into `events` */
	__u32 avoids;	   /* replicas that have just refused a connection are left out ... */
	__u32 avoided;	   /* ... and one was */
	__u64 nanoseconds; /* of the decision, coarse monotonic clock */

	/* the answer */
	struct decision decision;
	/* replicas met on the walk, in its order, and their loads then; of the last attempt */
	__u32 walked_count; /* may be greater than EVENT_REPLICAS_MAX: only so many are kept */
	struct event_replica_load walked[EVENT_REPLICAS_MAX];

	/* the attempt under way */
	__u32 attempt; /* from 1 */
	__u32 position;
	__u32 seen_count;
	__u32 chosen;
	__u32 chosen_load;
	__u32 least;
	__u32 least_load;
	__u32 full_cost; /* prompt + answer tokens, or 1 if requests are counted */
	__u64 sum;
	__u64 changes;
	__u64 seen[REPLICAS_MAX / 64];
};

#endif /* WARMPATH_DECIDE_STATE_H */
