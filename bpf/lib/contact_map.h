/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The map of what replicas do with connections that are handed to them.
 *
 * Owns: its type and name; whether a replica has just refused. May not know: who fills it (contact.h), what is decided by it.
 */
#ifndef WARMPATH_BPF_CONTACT_MAP_H
#define WARMPATH_BPF_CONTACT_MAP_H

#include <warmpath/contact.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REPLICAS_MAX);
	__type(key, __u32);
	__type(value, struct replica_contact);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} replica_contacts SEC(".maps");

static __always_inline struct replica_contact *contact_get(__u32 replica)
{
	return bpf_map_lookup_elem(&replica_contacts, &replica);
}

/* Has the replica refused the last connection, and just now? Then no other is tried on it for a moment. */
static __always_inline bool contact_is_refusing(__u32 replica, __u64 now)
{
	const struct replica_contact *contact = contact_get(replica);

	return contact && contact->refused_in_a_row &&
	       now - contact->refused_nanoseconds < CONTACT_AVOIDED_NANOSECONDS;
}

#endif /* WARMPATH_BPF_CONTACT_MAP_H */
