/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packet as a tc program holds it: an skb. Offers the same functions as context_xdp.h.
 *
 * Owns: reading and writing bytes, resizing, sending. May not know: what the bytes mean to us.
 *
 * An skb's checksum may be finished (NONE, UNNECESSARY), a sum over all bytes that the device gave (COMPLETE), or left to the
 * sending device, with only the pseudo header's sum in the field (PARTIAL). A program cannot see which, so:
 *
 *   - a transport checksum is only changed by bpf_l4_csum_replace(), which knows: addresses as part of the pseudo header
 *     (always due), ports not (PARTIAL: the device sums them anyway);
 *   - the sum over all bytes has to follow every change that another change does not cancel out. IPv4: addresses and hop limit
 *     are cancelled by the header's own checksum; the transport checksum's change is accounted for by the helper. IPv6: the helper
 *     accounts for the transport checksum as if it were IPv4, so the addresses have to be accounted for as well, which the store
 *     helper does when told to. Ports are cancelled by the transport checksum, if there is one.
 */
#ifndef WARMPATH_BPF_CONTEXT_TC_H
#define WARMPATH_BPF_CONTEXT_TC_H

#include <linux/errno.h>

#include "checksum.h"
#include "context.h"
#include "packet.h"

#define packet_context __sk_buff

#define TC_ACT_UNSPEC	(-1) /* the next program decides */
#define TC_ACT_SHOT	2
#define TC_ACT_REDIRECT 7

#define PACKET_HOST 0

#define CONTEXT_PASS TC_ACT_UNSPEC
#define CONTEXT_DROP TC_ACT_SHOT

CONTEXT_FIELD(context_data, data)
CONTEXT_FIELD(context_data_end, data_end)

/* `size` bytes at `offset`, or NULL if they are not in the directly readable part of the frame. */
static __always_inline void *context_bytes(struct packet_context *context, __u32 offset, __u32 size)
{
	void *data = context_data(context);
	void *end = context_data_end(context);

	/* compared and added in one register: 6.1 forgets what it knew of a value that was spilled in between */
	WARMPATH_BARRIER(offset);
	if (offset > HEADERS_END)
		return NULL;
	data += offset;
	if (data + size > end)
		return NULL;
	return data;
}

/* Makes more headers directly readable; false if there are none. A driver may leave all but a few bytes in pages. */
static __always_inline bool context_pull(struct packet_context *context)
{
	__u32 linear = context_data_end(context) - context_data(context);
	__u32 wanted = context->len < HEADERS_END ? context->len : HEADERS_END;

	if (linear >= wanted)
		return false;
	return bpf_skb_pull_data(context, wanted) == 0;
}

static __always_inline __u32 context_length(struct packet_context *context)
{
	return context->len;
}

/* Does the frame have at least `end` bytes? */
static __always_inline bool context_reaches(struct packet_context *context, __u32 end)
{
	return end <= context->len;
}

/* Payload bytes of one segment of a packet that the device is yet to cut into segments; 0: an ordinary packet. */
static __always_inline __u32 context_segment_size(struct packet_context *context)
{
	return context->gso_size;
}

static __always_inline __u32 context_interface(struct packet_context *context)
{
	return context->ifindex;
}

static __always_inline int context_load(struct packet_context *context, __u32 offset, void *buffer,
					__u32 size)
{
	return bpf_skb_load_bytes(context, offset, buffer, size);
}

/* Writes bytes whose checksums the caller has seen to. */
static __always_inline int context_store(struct packet_context *context, __u32 offset, void *bytes,
					 __u32 size)
{
	return bpf_skb_store_bytes(context, offset, bytes, size, BPF_F_RECOMPUTE_CSUM);
}

/* From the time to live to the end of the fixed header: what a translation changes, in one piece. */
struct context_ipv4_part {
	__u8 ttl;
	__u8 protocol;
	__sum16 check;
	__be32 source;
	__be32 destination;
};

static __always_inline int context_rewrite_ipv4(struct packet_context *context,
						const struct packet *packet,
						const struct translation *translation,
						__u64 difference, bool forward)
{
	struct iphdr *ip = context_bytes(context, packet->network_offset, sizeof(*ip));
	struct context_ipv4_part part = {
		.ttl = packet->hop_limit - forward,
		.source = translation->source.word[3],
		.destination = translation->destination.word[3],
	};

	if (!ip)
		return -EFAULT;
	difference +=
		checksum_difference16(bpf_htons(packet->hop_limit << 8), bpf_htons(part.ttl << 8));
	part.protocol = ip->protocol;
	part.check = checksum_adjust(ip->check, difference);
	return bpf_skb_store_bytes(context, packet->network_offset + offsetof(struct iphdr, ttl),
				   &part, sizeof(part), 0);
}

/* From the hop limit to the end of the fixed header; the first byte only pads. */
struct context_ipv6_part {
	__u8 padding[3];
	__u8 hop_limit;
	struct address source;
	struct address destination;
};

static __always_inline int context_rewrite_ipv6(struct packet_context *context,
						const struct packet *packet,
						const struct translation *translation, bool forward)
{
	struct context_ipv6_part part = {.hop_limit = packet->hop_limit - forward};

	address_copy(&part.source, &translation->source);
	address_copy(&part.destination, &translation->destination);
	return bpf_skb_store_bytes(
		context, packet->network_offset + offsetof(struct ipv6hdr, hop_limit),
		&part.hop_limit, sizeof(part) - sizeof(part.padding), BPF_F_RECOMPUTE_CSUM);
}

static __always_inline int context_rewrite_transport(struct packet_context *context,
						     const struct packet *packet,
						     const struct translation *translation,
						     __u64 difference)
{
	bool udp = packet->protocol == IPPROTO_UDP;
	__u32 field = packet->transport_offset +
		      (udp ? offsetof(struct udphdr, check) : offsetof(struct tcphdr, check));
	__u64 mangled = udp ? BPF_F_MARK_MANGLED_0 : 0;
	__be16 ports[2] = {translation->source_port, translation->destination_port};
	__sum16 *checksum = context_bytes(context, field, sizeof(*checksum));
	bool summed;
	int err;

	if (!checksum)
		return -EFAULT;
	summed = !udp || *checksum;
	err = bpf_l4_csum_replace(context, field, 0, checksum_fold32(difference),
				  BPF_F_PSEUDO_HDR | mangled);
	if (err)
		return err;
	if (ports[0] == packet->source_port && ports[1] == packet->destination_port)
		return 0;
	difference = checksum_difference16(packet->source_port, ports[0]) +
		     checksum_difference16(packet->destination_port, ports[1]);
	err = bpf_l4_csum_replace(context, field, 0, checksum_fold32(difference), mangled);
	if (err)
		return err;
	return bpf_skb_store_bytes(context, packet->transport_offset, ports, sizeof(ports),
				   summed ? 0 : BPF_F_RECOMPUTE_CSUM);
}

/*
 * Writes the translation into the packet, with all checksums; `forward` also takes one from the hop limit.
 * 0 or a negative errno; the packet may then be half-written and has to be dropped.
 */
static __always_inline int context_rewrite(struct packet_context *context,
					   const struct packet *packet,
					   const struct translation *translation, bool forward)
{
	__u64 difference =
		checksum_difference_address(&packet->source, &translation->source) +
		checksum_difference_address(&packet->destination, &translation->destination);
	int err;

	if (packet->family == AF_INET)
		err = context_rewrite_ipv4(context, packet, translation, difference, forward);
	else
		err = context_rewrite_ipv6(context, packet, translation, forward);
	if (err || !packet->ports_known)
		return err;
	return context_rewrite_transport(context, packet, translation, difference);
}

/*
 * Is a sum still to be put into the transport checksum field by the sending device (PARTIAL)? Then the helper does not change the field
 * for a port's sake.
 */
static __always_inline bool context_checksum_is_partial(struct packet_context *context, __u32 field)
{
	const __sum16 *checksum = context_bytes(context, field, sizeof(*checksum));
	__sum16 before;
	bool partial;

	if (!checksum)
		return false;
	before = *checksum;
	if (bpf_l4_csum_replace(context, field, 0, bpf_htons(1), sizeof(*checksum)))
		return false;
	checksum = context_bytes(context, field, sizeof(*checksum));
	partial = checksum && *checksum == before;
	if (!partial)
		bpf_skb_store_bytes(context, field, &before, sizeof(before), 0);
	return partial;
}

/* Makes the frame `size` bytes longer, at its front. All offsets have changed by that. 0 or a negative errno. */
static __always_inline int context_open_front(struct packet_context *context, __u32 size)
{
	return bpf_skb_change_head(context, size, 0);
}

/*
 * Makes the frame `length` bytes long, at its end. 0 or a negative errno. A device's sum over all bytes (COMPLETE) is of no use for what is
 * written anew, and the kernel drops it when the length changes: so it does in any case.
 */
static __always_inline int context_resize(struct packet_context *context, __u32 length)
{
	int err = context->len == length ? bpf_skb_change_tail(context, length + 1, 0) : 0;

	return err ? err : bpf_skb_change_tail(context, length, 0);
}

/* The same for new content behind the first `head` bytes, which stay. */
static __always_inline int context_resize_content(struct packet_context *context, __u32 head,
						  __u32 length)
{
	return context_resize(context, length);
}

/* The mark of packets that the router itself has made, between ingress and egress of one interface. */
#define CONTEXT_MADE_HERE 0x7761726d

/*
 * Was the packet made by the router itself, on its way in? On its way out it then is nobody's answer. Asked once: takes the mark off.
 */
static __always_inline bool context_was_made_here(struct packet_context *context)
{
	if (context->mark != CONTEXT_MADE_HERE)
		return false;
	context->mark = 0;
	return true;
}

/*
 * Is `interface` one end of a veth whose other end, in another namespace, may be given packets directly? They then are there within this very
 * run of the kernel's receive path, and not once more through a queue (bpf_redirect_peer(), Linux 5.10). The agent knows.
 */
static __always_inline bool context_has_peer(__u32 interface)
{
	struct redirect_device *device = bpf_map_lookup_elem(&redirect_devices, &interface);

	return device && device->peer;
}

/*
 * Sends the frame, complete, out of `interface`. to_peer: directly to its other end, which only a packet on its way in can be. Negative: not done.
 */
static __always_inline int context_send(struct packet_context *context, __u32 interface,
					bool to_peer)
{
	if (!to_peer)
		return bpf_redirect(interface, 0);
	/* the veth would take it off: it means nothing in another namespace */
	context->mark = 0;
	return bpf_redirect_peer(interface, 0);
}

/* Sends the frame back to where it came from. to_peer: as in context_send(). Negative: not done. */
static __always_inline int context_send_back(struct packet_context *context, bool to_peer)
{
	struct ethhdr *ethernet = context_bytes(context, 0, sizeof(*ethernet));
	__u8 addresses[2 * ETH_ALEN];
	int err;

	if (!ethernet)
		return -EFAULT;
	__builtin_memcpy(addresses, ethernet->h_source, ETH_ALEN);
	__builtin_memcpy(addresses + ETH_ALEN, ethernet->h_dest, ETH_ALEN);
	err = bpf_skb_store_bytes(context, 0, addresses, sizeof(addresses), 0);
	if (err)
		return err;
	/* where replicas are local, it goes by the program that follows their answers */
	if (replicas_are_local)
		context->mark = CONTEXT_MADE_HERE;
	return context_send(context, context_interface(context), to_peer);
}

/* Is the packet for this machine, and for it alone? Not if it was broadcast, or overheard. */
static __always_inline bool context_is_for_us(struct packet_context *context)
{
	return context->pkt_type == PACKET_HOST;
}

/* May the program itself send this packet to that interface? The kernel's queues take anything. */
static __always_inline bool context_may_redirect(struct packet_context *context, __u32 interface)
{
	return true;
}

/* Has a VLAN tag been taken out of the frame, to be put back when it is sent? The kernel does so with the outer one. */
static __always_inline bool context_has_tag_aside(struct packet_context *context)
{
	return context->vlan_present;
}

/* Sends the packet out of `interface` between the given link addresses. to_peer: as in context_send(). Negative: not done. */
static __always_inline int context_redirect(struct packet_context *context, __u32 interface,
					    const __u8 *source, const __u8 *destination,
					    bool to_peer)
{
	__u8 addresses[2 * ETH_ALEN];
	int err;

	__builtin_memcpy(addresses, destination, ETH_ALEN);
	__builtin_memcpy(addresses + ETH_ALEN, source, ETH_ALEN);
	err = bpf_skb_store_bytes(context, 0, addresses, sizeof(addresses), 0);
	if (err)
		return err;
	return context_send(context, interface, to_peer);
}

/* The kernel can resolve the neighbour for us, but would write a link header without VLAN tags. */
static __always_inline bool context_may_resolve(const struct packet *packet)
{
	return packet->tags == 0;
}

static __always_inline int context_redirect_neighbour(struct packet_context *context,
						      __u32 interface,
						      const struct bpf_fib_lookup *next_hop)
{
	struct bpf_redir_neigh neighbour = {.nh_family = next_hop->family};

	if (next_hop->family == AF_INET) {
		neighbour.ipv4_nh = next_hop->ipv4_dst;
	} else {
		for (int i = 0; i < 4; i++)
			neighbour.ipv6_nh[i] = next_hop->ipv6_dst[i];
	}
	return bpf_redirect_neigh(interface, &neighbour, sizeof(neighbour), 0);
}

/* Gives a packet on its way out to this machine instead, as if it had come in. Negative: not done. */
static __always_inline int context_turn_round(struct packet_context *context)
{
	int err = context_send_back(context, false);

	context->mark = 0;
	return err < 0 ? err : bpf_redirect(context->ifindex, BPF_F_INGRESS);
}

/* --- single fields of packets that go on ------------------------------------------------------------------ */

/* Replaces 16 bits at `offset` of a TCP header, checksum included. */
static __always_inline int context_change_tcp(struct packet_context *context,
					      const struct packet *packet, __u32 offset,
					      __be16 before, __be16 after)
{
	__u32 start = packet->transport_offset;
	int err = bpf_l4_csum_replace(context, start + offsetof(struct tcphdr, check), before,
				      after, sizeof(after));

	return err ?: bpf_skb_store_bytes(context, start + offset, &after, sizeof(after), 0);
}

/* The same for an IPv4 header. */
static __always_inline int context_change_ipv4(struct packet_context *context,
					       const struct packet *packet, __u32 offset,
					       __be16 before, __be16 after)
{
	__u32 start = packet->network_offset;
	int err = bpf_l3_csum_replace(context, start + offsetof(struct iphdr, check), before, after,
				      sizeof(after));

	return err ?: bpf_skb_store_bytes(context, start + offset, &after, sizeof(after), 0);
}

/* Replaces the first word of an IPv6 header: version, traffic class, flow label. */
static __always_inline int context_change_ipv6(struct packet_context *context,
					       const struct packet *packet, __be32 word)
{
	return bpf_skb_store_bytes(context, packet->network_offset, &word, sizeof(word),
				   BPF_F_RECOMPUTE_CSUM);
}

#endif /* WARMPATH_BPF_CONTEXT_TC_H */
