/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What replicas do with the connections that are handed to them, as seen on the way: who answers, who refuses.
 *
 * Owns: the values of the map `replica_contacts`, the event of a refusal and how often it is told. May not know: packets, entries, what
 * follows from a refusal.
 */
#ifndef WARMPATH_BPF_CONTACT_H
#define WARMPATH_BPF_CONTACT_H

#include "contact_map.h"
#include "requests.h"

/* One event about a replica in this time, at most, in nanoseconds: a replica that is down may be asked a million times a second. */
#define CONTACT_EVENT_INTERVAL 100000000LL

static __always_inline void contact_handed(__u32 replica)
{
	struct replica_contact *contact = contact_get(replica);

	if (contact)
		__sync_fetch_and_add(&contact->handed, 1);
}

static __always_inline void contact_repeated(__u32 replica)
{
	struct replica_contact *contact = contact_get(replica);

	if (contact)
		__sync_fetch_and_add(&contact->repeated, 1);
}

static __always_inline void contact_answered(__u32 replica)
{
	struct replica_contact *contact = contact_get(replica);

	if (!contact)
		return;
	__sync_fetch_and_add(&contact->answered, 1);
	contact->answered_nanoseconds = bpf_ktime_get_coarse_ns();
	contact->refused_in_a_row = 0;
}

/* An answer has gone by to its end. status: of HTTP. */
static __always_inline void contact_status(__u32 replica, __u32 status)
{
	struct replica_contact *contact = status >= 500 ? contact_get(replica) : NULL;

	if (contact)
		__sync_fetch_and_add(&contact->errors, 1);
}

/*
 * The replica has reset a connection with a request that was not answered, whose key is in request_keys. cause: enum refusal_cause.
 * A global function: verified once.
 */
__noinline int contact_refused(__u32 slot, __u32 cause)
{
	const struct open_request_key *key = request_key_space();
	struct replica_contact *contact = contact_get(slot);
	const struct replica *replica = bpf_map_lookup_elem(&replicas, &slot);
	const struct open_request *open;
	struct event_refusal *event;
	__u64 now = bpf_ktime_get_coarse_ns(), told;

	if (!contact || !replica || !key)
		return -ENOENT;
	if (cause == REFUSAL_ABORTED) {
		__sync_fetch_and_add(&contact->aborted, 1);
	} else {
		__sync_fetch_and_add(&contact->refused, 1);
		__sync_fetch_and_add(&contact->refused_in_a_row, 1);
		contact->refused_nanoseconds = now;
	}
	told = contact->told_nanoseconds;
	if ((__s64)(now - told) < CONTACT_EVENT_INTERVAL ||
	    __sync_val_compare_and_swap(&contact->told_nanoseconds, told, now) != told)
		return 0;
	open = bpf_map_lookup_elem(&requests, key);
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count(NOTE_note_event_dropped);
		return 0;
	}
	event->header.kind = EVENT_REFUSAL;
	event->header.service = replica->service;
	event->header.nanoseconds = now;
	event->header.id_hash = open ? open->id_hash : 0;
	event->header.flow = key->flow;
	event->replica = slot;
	event->incarnation = replica->incarnation;
	__builtin_memcpy(event->replica_name, replica->name, sizeof(event->replica_name));
	event->cause = cause;
	event->refused_in_a_row = contact->refused_in_a_row;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

#endif /* WARMPATH_BPF_CONTACT_H */
