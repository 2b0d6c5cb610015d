/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A replica as a state machine: slots, choice of slot, prefix reuse, RAM cache, queue, and a work loop that all slots share.
 *
 * Owns: which request runs when, what it finds in the cache, when each token is there. May not know: HTTP, the clock (the caller says what
 * time it is, so the same code serves in real time and in a simulation), where requests come from.
 *
 * How the real server does it is in docs/experiments.md, "the replica". Time is in nanoseconds from any start.
 */
#ifndef TOOLS_REPLICA_H
#define TOOLS_REPLICA_H

#include "cost.h"
#include "text.h"

#define REPLICA_NEVER	  UINT64_MAX
#define REPLICA_SLOTS_MAX 64

struct replica_settings {
	uint32_t slots;		 /* 1 .. REPLICA_SLOTS_MAX (-np) */
	uint32_t context_tokens; /* of each slot */
	uint32_t batch_tokens;	 /* prompt tokens in one step, of all slots together (-b: 2,048) */
	double slot_similarity; /* share of the new prompt that makes a slot preferred; 0: never (-sps: 0.1) */
	uint64_t cache_ram_bytes; /* --cache-ram; 0: off */
	bool cache_idle_slots;	  /* idle slots are copied to the RAM cache at each new task */
	bool unified;		  /* and emptied then (-kvu) */
};

/* llama-server's own: -np not given (4 slots, unified), 0.1, 8,192 MiB. */
struct replica_settings replica_defaults(void);

struct replica;

enum replica_request_state {
	REQUEST_QUEUED,
	REQUEST_PROMPT,	  /* in a slot, prompt being processed */
	REQUEST_DECODING, /* the first token is there */
	REQUEST_DONE,
};

struct replica_request {
	/* set by the caller before submitting */
	struct span
		whole; /* prompt and answer; the replica holds its own reference while it needs it */
	uint32_t prompt_tokens; /* how much of it is prompt, 1 or more */
	uint32_t
		answer_tokens; /* how much is answer; 0 asks for the prompt to be cached, and gets one token all the same */
	bool cache_prompt; /* may reuse what the slot holds */
	bool each_token; /* the observer wants every token; else decode steps are taken many at a time */
	int32_t slot_wanted; /* -1: any */
	void *owner;	     /* the caller's own */
	/* set by the replica */
	enum replica_request_state state;
	uint32_t slot;
	uint32_t cached;    /* cache_n */
	uint32_t processed; /* of the prompt so far; at the end prompt_n */
	uint32_t predicted; /* tokens of the answer so far */
	bool cancelled;
	uint64_t submitted, started, first_token, finished;
	struct replica_request *next; /* in the queue */
};

/*
 * The times at which things happened are those of the model, not of the call. Any may be NULL. They may not call the replica, but to
 * read.
 */
struct replica_observer {
	void (*started)(struct replica_request *request, uint64_t when); /* has a slot */
	void (*progress)(struct replica_request *request,
			 uint64_t when); /* request->processed has grown */
	void (*token)(struct replica_request *request,
		      uint64_t when); /* request->predicted has grown by one */
	/* complete, or cancelled: the replica has forgotten the request when this is called */
	void (*finished)(struct replica_request *request, uint64_t when);
};

struct replica_counters {
	uint64_t prompt_tokens, cached_tokens, predicted_tokens;
	uint64_t prompt_nanoseconds, predicted_nanoseconds, busy_nanoseconds;
	uint64_t decode_calls, busy_slots; /* the latter summed over decode calls */
	uint32_t tokens_most;		   /* the longest sequence held */
	uint64_t requests;
};

/* NULL if there is no memory. The settings are valid (the caller checks what people type). */
struct replica *replica_new(const struct replica_settings *settings, const struct cost_model *model,
			    const struct replica_observer *observer);
/* Requests that are still in it are dropped without a word. */
void replica_free(struct replica *replica);

/*
 * Puts a request in the queue (after the time that cost_arrival says; the caller waits). -E2BIG: the prompt does not fit the
 * context; -EINVAL: an empty prompt. An answer that would not fit is cut.
 */
int replica_submit(struct replica *replica, struct replica_request *request, uint64_t now);
/* The client is gone. In the queue: at once. In a slot: at the end of the current step. */
void replica_cancel(struct replica *replica, struct replica_request *request, uint64_t now);

/* When replica_advance is next due; REPLICA_NEVER: idle. */
uint64_t replica_next(const struct replica *replica);
/* Does all that is due at `now`. */
void replica_advance(struct replica *replica, uint64_t now);

const struct replica_settings *replica_settings(const struct replica *replica);
const struct replica_counters *replica_counters(const struct replica *replica);
uint32_t replica_queued(const struct replica *replica);
uint32_t replica_processing(const struct replica *replica);
/* Of the RAM cache, for the tests of its limit: nothing else shows what it holds. */
uint64_t replica_cache_bytes(const struct replica *replica);
uint32_t replica_cache_entries(const struct replica *replica);

/* The request in a slot (NULL: idle) and what an idle slot holds. */
const struct replica_request *replica_slot_request(const struct replica *replica, uint32_t slot);
struct span replica_slot_content(const struct replica *replica, uint32_t slot);
/* Replaces what an idle slot holds (the replica takes its own reference; text NULL empties it). -EBUSY: not idle. */
int replica_slot_set(struct replica *replica, uint32_t slot, struct span content);

#endif /* TOOLS_REPLICA_H */
