/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fragments: the first one has the ports and decides; the later ones follow it through the map.
 *
 * Owns: the map `fragments`. May not know: what the first fragment's decision was made from.
 *
 * Nothing is held back: a later fragment that overtakes its first is not known yet.
 */
#ifndef WARMPATH_BPF_FRAGMENT_H
#define WARMPATH_BPF_FRAGMENT_H

#include "forward.h"
#include "packet.h"

/* An identification is used again some time later: no longer than a receiver waits for the rest (RFC 8200, section 4.5). */
#define FRAGMENT_NANOSECONDS 60000000000ULL

static __always_inline void fragment_key_of(struct fragment_key *key, const struct packet *packet)
{
	address_copy(&key->source, &packet->source);
	address_copy(&key->destination, &packet->destination);
	key->identification = packet->identification;
	/* In IPv6 the fragments of one packet may differ in what they say comes next; only the first one's counts. */
	key->protocol = packet->family == AF_INET ? packet->protocol : IPPROTO_FRAGMENT;
	key->reserved[0] = key->reserved[1] = key->reserved[2] = 0;
}

/* Remembers where the packet in scratch goes, if it is a first fragment. False: the table is full. */
static __always_inline bool fragment_remember(struct scratch *scratch, bool to_replica)
{
	struct fragment *value = &scratch->fragment;

	if (scratch->packet.fragment != FRAGMENT_FIRST)
		return true;
	fragment_key_of(&scratch->fragment_key, &scratch->packet);
	address_copy(&value->source, &scratch->translation.source);
	address_copy(&value->destination, &scratch->translation.destination);
	value->to_replica = to_replica;
	value->seen_nanoseconds = bpf_ktime_get_coarse_ns();
	return bpf_map_update_elem(&fragments, &scratch->fragment_key, value, BPF_ANY) == 0;
}

/* Where the first fragment went, in scratch->translation. Returns the entry; NULL: not known. */
static __always_inline const struct fragment *fragment_find(struct scratch *scratch)
{
	const struct fragment *entry;

	fragment_key_of(&scratch->fragment_key, &scratch->packet);
	entry = bpf_map_lookup_elem(&fragments, &scratch->fragment_key);
	if (!entry || bpf_ktime_get_coarse_ns() - entry->seen_nanoseconds > FRAGMENT_NANOSECONDS)
		return NULL;
	address_copy(&scratch->translation.source, &entry->source);
	address_copy(&scratch->translation.destination, &entry->destination);
	return entry;
}

#endif /* WARMPATH_BPF_FRAGMENT_H */
