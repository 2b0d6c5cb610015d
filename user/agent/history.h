/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last decisions, and what they come to: by conversation, why each moved; by service and replica, how often what.
 *
 * Owns: the memory of HISTORY_DECISIONS decisions (at most 7 MB), totals since the agent's start. May not know: maps, sockets, JSON.
 *
 * It knows what the data path traces: where more is decided than trace.decisions_per_second, a sample.
 */
#ifndef WARMPATH_AGENT_HISTORY_H
#define WARMPATH_AGENT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <warmpath/decision.h>

#define HISTORY_DECISIONS 8192

/* Why a conversation is served by another replica than the time before. X(name, text) */
#define WARMPATH_MOVE_CAUSES(X)                                                                \
	X(none, "")                                                                            \
	X(gone, "left")		  /* the replica before takes no new conversations any more */ \
	X(refused, "refused")	  /* the replica before has just refused a connection */       \
	X(restarted, "restarted") /* it has lost its cache, so the conversation goes home */   \
	X(unanswered,                                                                          \
	  "unanswered") /* the request before had no answer (yet), so nothing is cached */     \
	X(overloaded, "overloaded") /* the preferred one was at its cap */                     \
	X(ring, "ring")		    /* the ring has another home for it */                     \
	X(returned, "returned")	    /* home again, where there is room again */                \
	X(policy, "policy")	    /* the policy does not keep conversations, or was changed */

enum move_cause {
#define X(name, text) MOVE_##name,
	WARMPATH_MOVE_CAUSES(X)
#undef X
		MOVE_CAUSE_COUNT,
};

struct history_entry {
	struct event_decision
		*event; /* NULL: forgotten; of event_decision_size(load_count) bytes */
	size_t size;
	char replica_name[REPLICA_NAME_SIZE]; /* at that time */
	char from_name
		[REPLICA_NAME_SIZE]; /* where it moved from; "": it did not move, or it is not known */
	enum replica_state from_state; /* of that replica at that time */
	enum move_cause cause;
	enum completion_status status; /* 0: not completed, as far as known */
	double seconds;		       /* from the decision to its completion */
	__u64 sequence;		       /* from 1 */
	__u64 next_in_bucket;	       /* sequence of an older one, maybe overwritten since */
};

/* Since the agent's start. */
struct history_totals {
	__u64 traced;
	__u64 reasons[REASON_COUNT];
	__u64 moves[MOVE_CAUSE_COUNT];
	__u64 completions[COMPLETION_ABANDONED + 1];
	__u64 refusals;
};

struct history_replica {
	__u64 prompt_tokens; /* of the decisions for it */
	__u64 cached_tokens; /* of them those that it had served of the conversation before: an estimate of hits */
	__u64 moves_in;
	__u64 moves_out;
	__u64 refusals;
};

struct history;

/* NULL without memory. history_free() takes NULL. */
struct history *history_new(void);
void history_free(struct history *history);

/*
 * Takes a decision's event of `size` bytes, checked by explain_event(). `replicas` are the slots as they are now. Returns the entry, which
 * stays until HISTORY_DECISIONS more have come; NULL without memory.
 */
const struct history_entry *history_decision(struct history *history,
					     const struct event_decision *event, size_t size,
					     const struct replica *replicas);
/* How a decision ended; returns its entry, or NULL if that is not remembered. */
const struct history_entry *history_completion(struct history *history,
					       const struct event_completion *event);
void history_refusal(struct history *history, const struct event_refusal *event);

/* A conversation's entry before `before` (NULL: its last one), or NULL if there is none. */
const struct history_entry *history_of(const struct history *history, __u32 service, __u64 id_hash,
				       const struct history_entry *before);

/* The entry before `before` (NULL: the last one) of any conversation, or NULL if there is none. */
const struct history_entry *history_newest(const struct history *history,
					   const struct history_entry *before);

/* Forgets the entries of a conversation; returns how many. */
unsigned int history_forget(struct history *history, __u32 service, __u64 id_hash);

/* A slot has another replica now: its totals begin anew. */
void history_reset_replica(struct history *history, __u32 slot);

const struct history_totals *history_totals(const struct history *history, __u32 service);
const struct history_replica *history_replica(const struct history *history, __u32 slot);

const char *move_cause_text(enum move_cause cause);

/* "llm-0 is draining", one clause that says why it moved; "" if it did not. */
void history_explain_move(const struct history_entry *entry, char *text, size_t size);

#endif /* WARMPATH_AGENT_HISTORY_H */
