/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A packet of a connection is handled in steps, each a global function that the entry calls in turn: so their stack frames do not add
 * up, and the verifier walks each once.
 *
 * Owns: the names of the steps, what one leaves to the next. May not know: what the steps do.
 */
#ifndef WARMPATH_BPF_CONNECTION_STEP_H
#define WARMPATH_BPF_CONNECTION_STEP_H

#include <warmpath/decision.h>

#include "connection_maps.h"
#include "exit.h"

/* What a step returns: an outcome (the packet has ended), or the step that is next. */
enum connection_step {
	STEP_ACCEPT = OUTCOME_COUNT + 1, /* a SYN */
	STEP_FIRST,	  /* the first request of a connection that has proved its cookie */
	STEP_NEXT,	  /* another request on a connection */
	STEP_HELD_AGAIN,  /* a held request that is to be decided once more */
	STEP_PIECE,	  /* a segment while a head is held */
	STEP_HASH,	  /* a request whose head was read */
	STEP_DECIDE,	  /* a request whose key and sizes are known */
	STEP_PLACE,	  /* a request that was decided */
	STEP_SEND,	  /* to the owner */
	STEP_SEND_HELD,	  /* to the owner: held bytes in the segment's place */
	STEP_REFUSE,	  /* with an HTTP error */
	STEP_REFUSED,	  /* a segment of a client that has been refused */
	STEP_ACKNOWLEDGE, /* plan->acknowledgement */
	STEP_RESET,	  /* the sender */
};

struct connection_plan {
	/* a connection that has no entry yet; entered from here: Linux 6.1 takes no value for a map from a global function's argument */
	struct connection fresh;
	__u32 kind;		       /* STEP_SEND: enum connection_mark */
	__u32 outcome;		       /* STEP_RESET: what it counts as */
	__u32 status;		       /* STEP_REFUSE: of HTTP */
	__u32 options;		       /* STEP_FIRST: packed, from the cookie */
	__u32 acknowledgement;	       /* STEP_ACKNOWLEDGE */
	__u32 slot;		       /* STEP_PLACE: the replica's */
	__u8 is_fresh;		       /* the connection is `fresh`, not in the map */
	__u8 is_held;		       /* the head lies in held_heads */
	__u8 may_move;		       /* another replica than the owner may be chosen */
	__u8 is_keyless;	       /* STEP_DECIDE: there was no id */
	struct decide_request request; /* STEP_DECIDE */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct connection_plan);
} connection_plans SEC(".maps");

static __always_inline struct connection_plan *connection_plan_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&connection_plans, &first);
}

static __always_inline __u32 connection_plan_reset(struct connection_plan *plan, __u32 outcome)
{
	plan->outcome = outcome;
	return STEP_RESET;
}

static __always_inline __u32 connection_plan_send(struct connection_plan *plan, __u32 step,
						  __u32 kind)
{
	plan->kind = kind;
	return step;
}

static __always_inline __u32 connection_plan_refusal(struct connection_plan *plan, __u32 status)
{
	plan->status = status;
	return STEP_REFUSE;
}

#endif /* WARMPATH_BPF_CONNECTION_STEP_H */
