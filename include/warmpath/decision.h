/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is asked of the decision core, what it answers, and what of it goes through the ring buffer `events`.
 *
 * Owns: reasons, requests, decisions and completions as data. May not know: how a decision is made (decide.h), maps, packets.
 */
#ifndef WARMPATH_DECISION_H
#define WARMPATH_DECISION_H

#include "layout.h"

/* Why a replica was chosen (semantics of the policies: docs/policies.md). X(name, text) */
#define WARMPATH_ROUTE_REASONS(X)                         \
	X(no_replica, "no-replica")                       \
	X(round_robin, "round-robin")                     \
	X(home, "home")                                   \
	X(overflow, "overflow")                           \
	X(fallback_least_loaded, "fallback-least-loaded") \
	X(home_long, "home-long")                         \
	X(sticky, "sticky")                               \
	X(sticky_long, "sticky-long")                     \
	X(least_loaded, "least-loaded")                   \
	X(pinned, "pinned")

enum route_reason {
#define X(name, text) REASON_##name,
	WARMPATH_ROUTE_REASONS(X)
#undef X
		REASON_COUNT,
};

/* One request, as far as the policies are concerned. */
struct decide_request {
	__u64 id_hash;	   /* ring key of the id */
	__u64 id_hash_low; /* dialect replica-router: the lower half of the id's MD5; else 0 */
	__u32 prompt_tokens;
	__u32 max_tokens;
	__u32 anonymous; /* 1: without an id: id_hash is of its content, or of the client's address */
	__u32 pinned; /* 1 + the slot of the replica that its connection cannot leave; 0: it goes where the policy says */
};
_Static_assert(sizeof(struct decide_request) == 32, "layout");

#define DECISION_LONG_APPLIED \
	1		     /* limit of the preferred replica: long_epsilon instead of epsilon */
#define DECISION_HAS_CAP   2 /* the policy has a cap */
#define DECISION_CONTENDED 4 /* made again at least once, as another CPU had changed the loads */
#define DECISION_CHARGED   8 /* counted in the loads */

/*
 * The answer. Loads, costs and sums are in `metric`, and are those before this request was charged; sum, replica_count and load
 * are of the locked moment in which it was charged. So the cap that the chosen replica had to keep is
 * (1 + epsilon) x (sum + cost) / replica_count, and load + cost kept it (unless the reason says otherwise).
 */
struct decision {
	__u64 number;  /* in the service, from 1; 0: nothing was charged */
	__u64 sum;     /* of the loads of all counted replicas */
	__u32 replica; /* slot, or REPLICA_NONE */
	enum route_reason reason;
	enum load_metric metric;
	__u32 replica_count;	       /* N of the cap */
	__u32 load;		       /* of `replica` */
	__u32 cost;		       /* on `replica`; without a cap: the full cost in tokens */
	__u32 charge;		       /* tokens charged */
	__u32 home;		       /* slot, or REPLICA_NONE where the policy has no home */
	__u32 preferred;	       /* slot tried first, or REPLICA_NONE */
	__u32 preferred_load;	       /* when it was tried */
	__u32 preferred_cost;	       /* cost on it; `total` of the trace is sum + this */
	__u32 placement_replica;       /* slot, or REPLICA_NONE: no valid placement */
	__u32 placement_prompt_tokens; /* served there */
	__u32 prompt_tokens;	       /* of the request, after clamping */
	__u32 max_tokens;	       /* the same */
	__u32 flags;		       /* DECISION_* */
};
_Static_assert(sizeof(struct decision) == 80, "layout");

/* --- events ----------------------------------------------------------------------------------------------- */

enum event_kind {
	EVENT_DECISION = 1,
	EVENT_COMPLETION = 2,
	EVENT_REFUSAL = 3,
	EVENT_MOVE = 4,
};

/* Replicas whose loads a decision event carries, at most: those walked over first, then others by name. */
#define EVENT_REPLICAS_MAX 64

struct event_header {
	enum event_kind kind;
	__u32 service;
	__u64 nanoseconds; /* coarse monotonic clock */
	__u64 id_hash;
	struct flow_key flow;
};
_Static_assert(sizeof(struct event_header) == 64, "layout");

struct event_replica_load {
	__u32 replica; /* slot */
	__u32 load;    /* in the decision's metric, before the charge */
};

/* Sent with as many `loads` as load_count says: event_decision_size(). */
struct event_decision {
	struct event_header header;
	struct policy_settings settings; /* those it was made with */
	struct decision decision;
	__u32 walked_count; /* the first of `loads`: replicas met on the walk, in its order */
	__u32 load_count;
	__u8 id_length; /* 0: the id is not known (from the address), or there is none */
	__u8 anonymous; /* 1: there is none */
	__u8 reserved[6];
	char id[ID_LENGTH_MAX];
	struct event_replica_load loads[EVENT_REPLICAS_MAX];
};
_Static_assert(sizeof(struct event_decision) == 64 + 32 + 80 + 16 + 128 + 512, "layout");

enum completion_status {
	COMPLETION_SUCCESS = 1,	   /* answered in full: the placement was written */
	COMPLETION_FAILED = 2,	   /* the connection was reset, or ended without an answer */
	COMPLETION_TIMED_OUT = 3,  /* no answer in the service's request_timeout */
	COMPLETION_SUPERSEDED = 4, /* the client sent the request again */
	COMPLETION_ABANDONED = 5,  /* closed by the agent: its service or replica is gone */
};

/* Self-contained: says everything about the end of a request to somebody who has none of the router's maps. */
struct event_completion {
	struct event_header header;
	__u64 number;  /* of the decision */
	__u32 replica; /* slot */
	__u32 incarnation;
	char replica_name[REPLICA_NAME_SIZE];
	__u32 prompt_tokens;
	__u32 charge; /* tokens given back */
	enum completion_status status;
	__u32 reserved;
	__u64 decided_nanoseconds;
};
_Static_assert(sizeof(struct event_completion) == 64 + 16 + 64 + 16 + 8, "layout");

enum refusal_cause {
	REFUSAL_RESET =
		1, /* a connection was handed to it, and it answered with a reset: its server does not listen */
	REFUSAL_ABORTED =
		2, /* it has reset a connection whose request it had accepted: its server may have ended */
};

/*
 * A replica has not served a request. Always written, whatever the trace settings say, but for one replica not more than ten times a
 * second; all are counted in `replica_contacts` (contact.h). Its client has been told already.
 */
struct event_refusal {
	struct event_header header; /* id_hash: 0 if the request is not known any more */
	__u32 replica;		    /* slot */
	__u32 incarnation;
	char replica_name[REPLICA_NAME_SIZE];
	enum refusal_cause cause;
	__u32 refused_in_a_row; /* this one counted; 0 with REFUSAL_ABORTED after it has answered others */
};
_Static_assert(sizeof(struct event_refusal) == 64 + 8 + 64 + 8, "layout");

/*
 * A connection has moved to another replica, and its socket at the former one is to be closed by a reset from there: XDP sends one packet
 * for one, and that one is the request on its way. Always written; not in shape node-local, where the new socket takes the place of the
 * old one. Ports are in network byte order, sequence numbers in host byte order.
 */
struct event_move {
	struct event_header header; /* id_hash: 0 */
	struct address replica_address;
	__u32 replica; /* the former one's slot */
	__be16 replica_port;
	__be16 client_port;    /* as the former replica knows it */
	__u32 sequence;	       /* what its socket expects next */
	__u32 acknowledgement; /* of all that it has sent */
};
_Static_assert(sizeof(struct event_move) == 64 + 16 + 16, "layout");

#endif /* WARMPATH_DECISION_H */
