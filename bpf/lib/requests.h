/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a charge: a request is decided and charged, remembered in `requests`, and given back when it ends, once.
 *
 * Owns: the map `requests`; who may give a charge back; the writing of placements. May not know: packets, how it is decided.
 *
 * Several may want to end the same request at once: the answer, a repeated request, a reset, the agent's timeout. Whoever changes `number` in the
 * entry from the decision's number to REQUEST_ENDED gives the charge back; the others find it changed. Entries of an LRU map are used again
 * without a grace period, so the number that is compared is the one read when the entry was found: it belongs to one decision only.
 *
 * A connection's entry outlives its request (request_close, keep): to write the next one into it costs a fourth of taking it away and making
 * another. Whoever changes `number` from REQUEST_ENDED to REQUEST_CLAIMED may write the rest of it, and the number last.
 *
 * An entry that the LRU evicts takes its charge with it: the agent finds that (user/agent/reconcile.c).
 */
#ifndef WARMPATH_BPF_REQUESTS_H
#define WARMPATH_BPF_REQUESTS_H

#include "events.h"

static __always_inline void request_remember(const struct open_request *request, __u64 now)
{
	__u32 service_index = request->service, slot = request->replica;
	const struct service *service = bpf_map_lookup_elem(&services, &service_index);
	const struct replica *replica = bpf_map_lookup_elem(&replicas, &slot);
	struct placement placement = {
		.replica = slot,
		.prompt_tokens = request->prompt_tokens,
		.served_nanoseconds = now,
	};
	struct placement *known;
	__u64 key = request->id_hash;
	void *table;

	if (!service || service->policy.policy != POLICY_LLM_AWARE ||
	    !service->policy.placement_memory)
		return;
	/*
	 * The incarnation is the replica's now, not the one at the decision: what has answered is what is alive. A replica that was
	 * restarted meanwhile has lost the request with its cache, and does not answer it.
	 */
	if (!replica || replica->state != REPLICA_ACTIVE || replica->service != service_index)
		return;
	placement.incarnation = replica->incarnation;
	table = bpf_map_lookup_elem(&placements, &service_index);
	if (!table)
		return;
	/* served there once more: a third of the cost of a new entry. What is written says how much of a cache to hope for, no more. */
	known = bpf_map_lookup_elem(table, &key);
	if (known && known->replica == slot && known->incarnation == placement.incarnation) {
		known->prompt_tokens = placement.prompt_tokens;
		known->served_nanoseconds = now;
	} else if (bpf_map_update_elem(table, &key, &placement, BPF_ANY)) {
		return;
	}
	count(NOTE_note_placement_written);
}

static __always_inline void request_give_back(const struct open_request *request, __u64 number)
{
	__u32 service = request->service, replica = request->replica;
	struct service_load *sums = bpf_map_lookup_elem(&service_loads, &service);
	struct replica_load *load = bpf_map_lookup_elem(&replica_loads, &replica);
	__u32 requests = request->request_charge, tokens = request->charge;

	if (!sums || !load)
		return;
	decide_lock(sums);
	decide_give_back(sums, load, number, requests, tokens);
	decide_unlock(sums);
}

static __always_inline void request_count_end(enum completion_status status)
{
	if (status == COMPLETION_SUCCESS)
		count(NOTE_note_request_completed);
	else if (status == COMPLETION_TIMED_OUT)
		count(NOTE_note_request_timed_out);
	else if (status == COMPLETION_SUPERSEDED)
		count(NOTE_note_request_superseded);
	else if (status == COMPLETION_FAILED)
		count(NOTE_note_request_failed);
	/* of one that was abandoned, the packet's outcome says why */
}

/*
 * Ends the request of an entry found under `key`, if it has not ended yet: gives the charge back, writes the placement on success, tells
 * user space. wanted: the number of the decision, or 0 for whichever is in the entry. False: somebody else has ended it. The
 * entry stays.
 */
static __always_inline bool request_end(const struct open_request_key *key,
					struct open_request *entry, __u64 wanted,
					enum completion_status status)
{
	__u64 number = entry->number, now;
	struct open_request copy = *entry;

	if (number == REQUEST_ENDED || number == REQUEST_CLAIMED ||
	    (wanted != 0 && number != wanted))
		return false;
	if (__sync_val_compare_and_swap(&entry->number, number, REQUEST_ENDED) != number)
		return false;
	now = bpf_ktime_get_coarse_ns();
	request_give_back(&copy, number);
	if (status == COMPLETION_SUCCESS && copy.remembered)
		request_remember(&copy, now);
	request_count_end(status);
	if (copy.traced)
		event_emit_completion(key, &copy, number, status, now);
	return true;
}

/* The key of the request in question; not pinned. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct open_request_key);
} request_keys SEC(".maps");

static __always_inline struct open_request_key *request_key_space(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&request_keys, &first);
}

/*
 * Global functions: the verifier walks each once, whatever leads to it, and the stack frames of the steps are not on top of each
 * other. All work on the request under the key in request_keys.
 */

/*
 * Takes the ended entry found under `key` away; whoever has claimed it does so alone. False: it is open, or another one has claimed it.
 * It may have been taken away and used for another key since it was found: then what is under this key is not claimed, and stays.
 */
static __always_inline bool request_take_away(const struct open_request_key *key,
					      struct open_request *entry)
{
	const struct open_request *claimed;

	if (__sync_val_compare_and_swap(&entry->number, REQUEST_ENDED, REQUEST_CLAIMED) !=
	    REQUEST_ENDED)
		return false;
	claimed = bpf_map_lookup_elem(&requests, key);
	if (claimed && claimed->number == REQUEST_CLAIMED && !bpf_map_delete_elem(&requests, key))
		return true;
	__sync_val_compare_and_swap(&entry->number, REQUEST_CLAIMED, REQUEST_ENDED);
	return false;
}

/*
 * Ends the request, if there is one. wanted: the number of its decision, 0: any. replica: the slot it must be at, REPLICA_NONE: any. keep:
 * its entry stays, ended, for the next request under this key; else it is taken away. 1; or 0 if nothing was ended.
 */
__noinline int request_close(__u64 wanted, __u32 replica, __u32 status, __u32 keep)
{
	struct open_request_key *key = request_key_space();
	struct open_request *entry;
	bool ended;

	if (!key)
		return 0;
	entry = bpf_map_lookup_elem(&requests, key);
	if (!entry || (replica != REPLICA_NONE && entry->replica != replica))
		return 0;
	ended = request_end(key, entry, wanted, status);
	if (!keep)
		request_take_away(key, entry);
	return ended;
}

/*
 * Takes away the entry of a request that has ended. 1; or 0 if it is open, or there is none.
 * A global function: verified once.
 */
__noinline int request_forget(void)
{
	struct open_request_key *key = request_key_space();
	struct open_request *entry;

	if (!key)
		return 0;
	entry = bpf_map_lookup_elem(&requests, key);
	return entry && request_take_away(key, entry);
}

/* The decision on the request in decide_states. 0, or -ENOENT if a map or table is missing. */
__noinline int request_decide(__u32 service_index, const struct ring_header *ring)
{
	struct decide_state *state = decide_state_get();
	const struct service *service = bpf_map_lookup_elem(&services, &service_index);
	struct decide_source source;

	if (!state || !service || !ring)
		return -ENOENT;
	if (decide_open(&source, state, ring, service, service_index))
		return -ENOENT;
	decide(&source);
	return 0;
}

/* Writes the request into the entry of one that has ended. False: it is open, somebody else is writing, or the entry was evicted meanwhile. */
static __always_inline bool request_write_again(struct open_request *entry,
						const struct open_request *request)
{
	if (__sync_val_compare_and_swap(&entry->number, REQUEST_ENDED, REQUEST_CLAIMED) !=
	    REQUEST_ENDED)
		return false;
	entry->service = request->service;
	entry->replica = request->replica;
	entry->incarnation = request->incarnation;
	entry->prompt_tokens = request->prompt_tokens;
	entry->charge = request->charge;
	entry->request_charge = request->request_charge;
	entry->remembered = request->remembered;
	entry->traced = request->traced;
	entry->id_hash = request->id_hash;
	entry->decided_nanoseconds = request->decided_nanoseconds;
	/* with all that stands above before it, on every processor */
	return __sync_val_compare_and_swap(&entry->number, REQUEST_CLAIMED, request->number) ==
	       REQUEST_CLAIMED;
}

/*
 * Remembers what was decided and charged. kept: an entry under the key that may be written again, or NULL. 0; or -EEXIST, unless that is the
 * `last` attempt: there is an entry under the key that is not to be had. Nobody writes a new one over it, as its charge would be lost.
 * Without an entry the request goes on uncharged.
 */
__noinline int request_write(struct open_request *kept, __u32 service, __u32 last)
{
	struct open_request_key *key = request_key_space();
	struct decide_state *state = decide_state_get();
	struct open_request request = {};
	const struct replica *replica;
	struct decision *decision;
	__u32 slot;
	long err;

	if (!key || !state)
		return -ENOENT;
	decision = &state->decision;
	slot = decision->replica;
	replica = bpf_map_lookup_elem(&replicas, &slot);
	request.number = decision->number;
	request.service = service;
	request.replica = slot;
	request.incarnation = replica ? replica->incarnation : 0;
	request.prompt_tokens = decision->prompt_tokens;
	request.charge = decision->charge;
	request.request_charge = !!(decision->flags & DECISION_CHARGED);
	request.remembered = !state->request.anonymous;
	request.traced = state->traced;
	request.id_hash = state->request.id_hash;
	request.decided_nanoseconds = state->nanoseconds;
	if (kept && request_write_again(kept, &request))
		return 0;
	err = bpf_map_update_elem(&requests, key, &request, BPF_NOEXIST);
	if (err == -EEXIST && !last)
		return -EEXIST;
	if (err) {
		request_give_back(&request, request.number);
		count(NOTE_note_request_untracked);
	}
	return 0;
}

/* Tells user space what was decided. */
__noinline int request_trace(__u32 service, const struct ring_header *ring,
			     const struct id_block *id, __u32 id_length)
{
	struct open_request_key *key = request_key_space();
	struct decide_state *state = decide_state_get();

	if (!key || !state || !ring || !id)
		return -ENOENT;
	event_emit_decision(state, ring, service, key, id, id_length, state->nanoseconds);
	return 0;
}

/*
 * Decides on the request in decide_states, at the time that stands there, and opens it under the key in request_keys. The answer is the
 * decision in decide_states.
 *
 * id, id_length: for the trace; id_length is 0 if the request has no id.
 * 0; or -ENOENT if a map or table is missing (a fault of the agent).
 */
static __always_inline int request_open(__u32 service, const struct ring_header *ring,
					const struct id_block *id, __u32 id_length)
{
	struct decide_state *state = decide_state_get();
	struct open_request_key *key = request_key_space();
	struct open_request *kept;
	int err;

	if (!state || !key)
		return -ENOENT;
	kept = bpf_map_lookup_elem(&requests, key);
	/* one that is open under the key comes once more */
	if (kept && kept->number != REQUEST_ENDED)
		request_close(0, REPLICA_NONE, COMPLETION_SUPERSEDED, true);
	err = request_decide(service, ring);
	if (err || state->decision.number == 0)
		return err;
	if (state->decision.flags & DECISION_CONTENDED)
		count(NOTE_note_decision_contended);
	state->traced = events_take_turn(state->nanoseconds);
	/* two CPUs may have begun with the same request at once: then the one that came first is superseded here */
	if (request_write(kept, service, false) == -EEXIST) {
		request_close(0, REPLICA_NONE, COMPLETION_SUPERSEDED, false);
		request_write(NULL, service, true);
	}
	if (state->traced)
		request_trace(service, ring, id, id_length);
	return 0;
}

#endif /* WARMPATH_BPF_REQUESTS_H */
