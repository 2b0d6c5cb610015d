/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's answers to look-ups of routes, kept for a moment: one costs more than all else that a packet of a known connection needs.
 *
 * Owns: the map, and how long an answer is good. May not know: what is looked up, and what follows from it.
 *
 * What is asked about is all that the kernel decides by (addresses, ports, interface, traffic class), so an answer is another than the
 * kernel would give only if route or neighbour have changed within the moment, or what the agent says of the interface. Only complete
 * answers are kept: a neighbour that is to be resolved, a packet that is too large, a route that forbids are looked up each time.
 */
#ifndef WARMPATH_BPF_NEXT_HOP_MEMORY_H
#define WARMPATH_BPF_NEXT_HOP_MEMORY_H

#include "packet.h"

#define NEXT_HOPS_REMEMBERED 256 /* by each processor; a power of two */

/* Set before loading. In nanoseconds; 0: nothing is kept. */
const volatile __u64 next_hop_memory = 100000000;

#define NEXT_HOP_QUESTION_WORDS \
	13 /* of struct bpf_fib_lookup, up to the link addresses; the last, where VLANs would be, is 0 */
struct remembered_next_hop {
	__u32 question[NEXT_HOP_QUESTION_WORDS]; /* without the packet's size */
	__u32 interface;
	__u64 asked_nanoseconds; /* coarse clock */
	__u16 mtu;
	__u8 link_addresses[2 * ETH_ALEN]; /* source, destination */
	__u16 to_peer;			   /* as in struct scratch */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NEXT_HOPS_REMEMBERED);
	__type(key, __u32);
	__type(value, struct remembered_next_hop);
} remembered_next_hops SEC(".maps");

/* The only place where the answer to a question can be. question: its tot_len is 0. */
static __always_inline struct remembered_next_hop *
next_hop_place(const struct bpf_fib_lookup *question)
{
	const __u32 *word = (const __u32 *)question;
	__u32 mixed = word[0] ^ word[1] ^ word[2], place;

	/* IPv4 addresses stand in the first words of their fields, those of IPv6 hosts differ in the last */
	mixed ^= question->ipv6_src[0] ^ question->ipv6_src[3];
	mixed ^= question->ipv6_dst[0] ^ question->ipv6_dst[3];
	place = mixed * 0x9e3779b1u / (0x100000000ULL / NEXT_HOPS_REMEMBERED);
	return bpf_map_lookup_elem(&remembered_next_hops, &place);
}

/*
 * Fills in the kernel's answer to `look_up`, whose tot_len is 0, for a packet of `size` bytes. False: it has to be asked; then *place is
 * where next_hop_remember() may put what it says.
 */
static __always_inline bool next_hop_recall(struct bpf_fib_lookup *look_up, __u16 size, __u64 now,
					    struct remembered_next_hop **place)
{
	const __u32 *word = (const __u32 *)look_up;
	struct remembered_next_hop *known = next_hop_place(look_up);
	__u32 differing = 0;

	*place = known;
	if (!known || now - known->asked_nanoseconds >= next_hop_memory || size > known->mtu)
		return false;
#pragma unroll
	for (int i = 0; i < NEXT_HOP_QUESTION_WORDS; i++)
		differing |= word[i] ^ known->question[i];
	if (differing)
		return false;
	look_up->ifindex = known->interface;
	__builtin_memcpy(look_up->smac, known->link_addresses, ETH_ALEN);
	__builtin_memcpy(look_up->dmac, known->link_addresses + ETH_ALEN, ETH_ALEN);
	return true;
}

/* Writes the question down before the kernel is asked, which answers in its place. Good for nothing until the answer is there. */
static __always_inline void next_hop_note(struct remembered_next_hop *place,
					  const struct bpf_fib_lookup *look_up)
{
	const __u32 *word = (const __u32 *)look_up;

	place->mtu = 0;
#pragma unroll
	for (int i = 0; i < NEXT_HOP_QUESTION_WORDS; i++)
		place->question[i] = word[i];
}

/* The kernel's complete answer, and what follows from it for the interface. */
static __always_inline void next_hop_remember(struct remembered_next_hop *place,
					      const struct bpf_fib_lookup *answer, __u16 to_peer,
					      __u64 now)
{
	place->to_peer = to_peer;
	place->interface = answer->ifindex;
	place->asked_nanoseconds = now;
	__builtin_memcpy(place->link_addresses, answer->smac, ETH_ALEN);
	__builtin_memcpy(place->link_addresses + ETH_ALEN, answer->dmac, ETH_ALEN);
	place->mtu = answer->mtu_result;
}

#endif /* WARMPATH_BPF_NEXT_HOP_MEMORY_H */
