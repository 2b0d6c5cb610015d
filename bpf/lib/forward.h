/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a translation that is decided to a packet on its way: next hop, size, hop limit, then everything is written at once.
 *
 * Owns: the route look-up and what follows from its answer. May not know: why the translation is as it is.
 *
 * next_hop_find() only looks. forward_packet() writes, in one go, and then nothing can go wrong but the helpers themselves.
 */
#ifndef WARMPATH_BPF_FORWARD_H
#define WARMPATH_BPF_FORWARD_H

#include "exit.h"
#include "next_hop_memory.h"
#include "packet.h"

enum next_hop {
	HOP_REDIRECT,  /* known, link addresses included */
	HOP_NEIGHBOUR, /* known, but its link address is not: the kernel can resolve and send */
	HOP_STACK,     /* the kernel's own forwarding has to go on from here */
	HOP_LOCAL,     /* not forwarded: for this machine, or there is no route */
	HOP_TOO_BIG,   /* scratch->next_hop.mtu_result is what would fit */
	HOP_EXPIRED,   /* the hop limit is used up */
	HOP_NO_ROUTE,  /* a route forbids it, or forwarding is off */
};

/* The size that has to fit into the link, in bytes from the IP header on: of one segment, if the device is to cut the packet. */
static __always_inline __u16 forward_size(struct packet_context *context,
					  const struct packet *packet)
{
	__u32 segment = context_segment_size(context);

	if (segment && packet->fragment == FRAGMENT_NONE)
		return packet->payload_offset - packet->network_offset + segment;
	return packet->end - packet->network_offset;
}

/*
 * Asks the kernel, or what it said a moment ago. look_up: complete but for the size. Sets scratch->to_peer. Returns BPF_FIB_LKUP_RET_*.
 */
static __always_inline long next_hop_ask(struct packet_context *context, struct scratch *scratch,
					 struct bpf_fib_lookup *look_up, __u16 size)
{
	struct remembered_next_hop *place = NULL;
	__u64 now = 0;
	long result;

	if (next_hop_memory) {
		now = packet_now(scratch);
		if (next_hop_recall(look_up, size, now, &place)) {
			scratch->to_peer = place->to_peer;
			return BPF_FIB_LKUP_RET_SUCCESS;
		}
		if (place)
			next_hop_note(place, look_up);
	}
	look_up->tot_len = size;
	result = bpf_fib_lookup(context, look_up, sizeof(*look_up), 0);
	scratch->to_peer = 0;
	if (result != BPF_FIB_LKUP_RET_SUCCESS)
		return result;
	scratch->to_peer = context_has_peer(look_up->ifindex);
	if (place)
		next_hop_remember(place, look_up, scratch->to_peer, now);
	return result;
}

/*
 * Looks up where the packet in scratch goes once translated. Nothing is modified.
 * A global function: verified once.
 */
__noinline int next_hop_find(struct packet_context *context)
{
	struct scratch *scratch = scratch_get();
	const struct packet *packet;
	const struct translation *translation;
	struct bpf_fib_lookup *look_up;
	long result;

	if (!context || !scratch)
		return HOP_NO_ROUTE;
	packet = &scratch->packet;
	translation = &scratch->translation;
	look_up = &scratch->next_hop;

	__builtin_memset(look_up, 0, sizeof(*look_up));
	look_up->family = packet->family;
	look_up->l4_protocol = packet->protocol;
	look_up->ifindex = context_interface(context);
	if (packet->fragment != FRAGMENT_LATER) {
		look_up->sport = translation->source_port;
		look_up->dport = translation->destination_port;
	}
	if (packet->family == AF_INET) {
		look_up->tos = packet->traffic_class;
		look_up->ipv4_src = translation->source.word[3];
		look_up->ipv4_dst = translation->destination.word[3];
	} else {
		look_up->flowinfo = packet->traffic_class;
		for (int i = 0; i < 4; i++) {
			look_up->ipv6_src[i] = translation->source.word[i];
			look_up->ipv6_dst[i] = translation->destination.word[i];
		}
	}

	result = next_hop_ask(context, scratch, look_up, forward_size(context, packet));
	scratch->interface = look_up->ifindex;
	switch (result) {
	case BPF_FIB_LKUP_RET_SUCCESS:
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		break;
	case BPF_FIB_LKUP_RET_NOT_FWDED:
		return HOP_LOCAL;
	case BPF_FIB_LKUP_RET_FWD_DISABLED:
		/* of a tagged packet we looked up the wrong interface: the kernel knows the VLAN's */
		if (packet->tags || context_has_tag_aside(context))
			return HOP_STACK;
		return replicas_are_local ? HOP_LOCAL : HOP_NO_ROUTE;
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return HOP_NO_ROUTE;
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		if (packet->hop_limit <= 1)
			return HOP_EXPIRED;
		/* the kernel may cut it into fragments */
		return packet->dont_fragment ? HOP_TOO_BIG : HOP_STACK;
	default:
		return HOP_STACK;
	}
	if (packet->hop_limit <= 1)
		return HOP_EXPIRED;
	if (!context_may_redirect(context, scratch->interface))
		return HOP_STACK;
	if (result == BPF_FIB_LKUP_RET_SUCCESS)
		return HOP_REDIRECT;
	return context_may_resolve(packet) ? HOP_NEIGHBOUR : HOP_STACK;
}

/* The three outcomes of a packet that was translated: sent on, left to the kernel, delivered here. */
struct forward_outcomes {
	__u32 sent;
	__u32 by_stack;
	__u32 local;
};

/*
 * Writes scratch->translation into the packet and sends it to the next hop (HOP_REDIRECT to HOP_LOCAL) that next_hop_find()
 * gave. Returns 1: sent, 0: left to the kernel, negative errno: it has to be dropped.
 * A global function: verified once.
 */
__noinline int forward_packet(struct packet_context *context, __u32 hop)
{
	struct scratch *scratch = scratch_get();
	bool send = hop == HOP_REDIRECT || hop == HOP_NEIGHBOUR;
	int err;

	if (!context || !scratch)
		return -ENOENT;
	err = context_rewrite(context, &scratch->packet, &scratch->translation, send);
	if (err || !send)
		return err;
	if (hop == HOP_NEIGHBOUR)
		err = context_redirect_neighbour(context, scratch->interface, &scratch->next_hop);
	else
		err = context_redirect(context, scratch->interface, scratch->next_hop.smac,
				       scratch->next_hop.dmac,
				       scratch->to_peer && !scratch->egress);
	if (err < 0)
		return err;
	scratch->verdict = err;
	return 1;
}

static __always_inline __u32 forward_outcome(struct packet_context *context, __u32 hop,
					     const struct forward_outcomes *outcomes)
{
	int result = forward_packet(context, hop);

	if (result < 0)
		return OUTCOME_drop_rewrite_failed;
	if (result > 0)
		return outcomes->sent;
	return hop == HOP_LOCAL ? outcomes->local : outcomes->by_stack;
}

#endif /* WARMPATH_BPF_FORWARD_H */
