/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packet as an XDP program holds it. Offers the same functions as context_tc.h; everything else is written against those.
 *
 * Owns: reading and writing bytes, resizing, sending. May not know: what the bytes mean to us.
 *
 * All functions that modify either do so completely or say so by a negative errno.
 */
#ifndef WARMPATH_BPF_CONTEXT_XDP_H
#define WARMPATH_BPF_CONTEXT_XDP_H

#include <linux/errno.h>

#include "checksum.h"
#include "context.h"
#include "packet.h"

#define packet_context xdp_md

#define CONTEXT_PASS XDP_PASS
#define CONTEXT_DROP XDP_DROP

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

/* Makes more headers directly readable; false if there are none. XDP has them all in the first buffer. */
static __always_inline bool context_pull(struct packet_context *context)
{
	return false;
}

static __always_inline __u32 context_length(struct packet_context *context)
{
	return bpf_xdp_get_buff_len(context);
}

/* Does the frame have at least `end` bytes? */
static __always_inline bool context_reaches(struct packet_context *context, __u32 end)
{
	__u32 linear = context_data_end(context) - context_data(context);

	return end <= linear || end <= context_length(context);
}

/* Payload bytes of one segment of a packet that the device is yet to cut into segments; 0: an ordinary packet. */
static __always_inline __u32 context_segment_size(struct packet_context *context)
{
	return 0;
}

static __always_inline __u32 context_interface(struct packet_context *context)
{
	return context->ingress_ifindex;
}

static __always_inline int context_load(struct packet_context *context, __u32 offset, void *buffer,
					__u32 size)
{
	return bpf_xdp_load_bytes(context, offset, buffer, size);
}

/* Writes bytes whose checksums the caller has seen to. */
static __always_inline int context_store(struct packet_context *context, __u32 offset, void *bytes,
					 __u32 size)
{
	return bpf_xdp_store_bytes(context, offset, bytes, size);
}

static __always_inline int context_rewrite_ipv4(struct packet_context *context,
						const struct packet *packet,
						const struct translation *translation,
						__u64 difference, bool forward)
{
	struct iphdr *ip = context_bytes(context, packet->network_offset, sizeof(*ip));
	__u8 hop_limit = packet->hop_limit - forward;

	if (!ip)
		return -EFAULT;
	/* the time to live is the upper byte of its 16-bit word */
	difference +=
		checksum_difference16(bpf_htons(packet->hop_limit << 8), bpf_htons(hop_limit << 8));
	ip->ttl = hop_limit;
	ip->check = checksum_adjust(ip->check, difference);
	ip->saddr = translation->source.word[3];
	ip->daddr = translation->destination.word[3];
	return 0;
}

static __always_inline int context_rewrite_ipv6(struct packet_context *context,
						const struct packet *packet,
						const struct translation *translation, bool forward)
{
	struct ipv6hdr *ip = context_bytes(context, packet->network_offset, sizeof(*ip));

	if (!ip)
		return -EFAULT;
	ip->hop_limit = packet->hop_limit - forward;
	for (int i = 0; i < 4; i++) {
		ip->saddr.in6_u.u6_addr32[i] = translation->source.word[i];
		ip->daddr.in6_u.u6_addr32[i] = translation->destination.word[i];
	}
	return 0;
}

/*
 * Writes the translation into the packet, with all checksums; `forward` also takes one from the hop limit.
 * 0; or -EFAULT, and nothing was written.
 */
static __always_inline int context_rewrite(struct packet_context *context,
					   const struct packet *packet,
					   const struct translation *translation, bool forward)
{
	__u64 difference =
		checksum_difference_address(&packet->source, &translation->source) +
		checksum_difference_address(&packet->destination, &translation->destination);
	__be16 *ports = NULL;
	__sum16 *checksum = NULL;
	int err;

	if (packet->ports_known) {
		__u32 field = packet->protocol == IPPROTO_UDP ? offsetof(struct udphdr, check)
							      : offsetof(struct tcphdr, check);

		ports = context_bytes(context, packet->transport_offset, 2 * sizeof(*ports));
		checksum =
			context_bytes(context, packet->transport_offset + field, sizeof(*checksum));
		if (!ports || !checksum)
			return -EFAULT;
	}

	if (packet->family == AF_INET)
		err = context_rewrite_ipv4(context, packet, translation, difference, forward);
	else
		err = context_rewrite_ipv6(context, packet, translation, forward);
	if (err || !ports || !checksum)
		return err;

	difference +=
		checksum_difference16(packet->source_port, translation->source_port) +
		checksum_difference16(packet->destination_port, translation->destination_port);
	ports[0] = translation->source_port;
	ports[1] = translation->destination_port;
	if (packet->protocol == IPPROTO_UDP)
		*checksum = checksum_adjust_udp(*checksum, difference);
	else
		*checksum = checksum_adjust(*checksum, difference);
	return 0;
}

/* Is a sum still to be put into the transport checksum field by the sending device? XDP packets are as they were on the wire. */
static __always_inline bool context_checksum_is_partial(struct packet_context *context, __u32 field)
{
	return false;
}

/* Makes the frame `size` bytes longer, at its front. All offsets have changed by that. 0 or a negative errno. */
static __always_inline int context_open_front(struct packet_context *context, __u32 size)
{
	return bpf_xdp_adjust_head(context, -(int)size);
}

/* Makes the frame `length` bytes long, at its end. 0 or a negative errno. */
static __always_inline int context_resize(struct packet_context *context, __u32 length)
{
	return bpf_xdp_adjust_tail(context, (int)length - (int)context_length(context));
}

#define CONTEXT_HEAD_MAX \
	160 /* link, network and transport header: two tags, and options in both of the others */
#define CONTEXT_HEADROOM_MAX \
	192 /* drivers leave 192 to 256 bytes in front of a frame, of which the kernel wants 40 */

/* Memory for a move of headers; not pinned. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, CONTEXT_HEAD_MAX);
} context_heads SEC(".maps");

/*
 * Makes the frame `length` bytes long, for new content behind its first `head` bytes. 0 or a negative errno; the frame may then be larger than
 * before. Where there is no room behind the frame (a small packet of a virtual device), the headers move to the room in front of it.
 */
static __always_inline int context_resize_content(struct packet_context *context, __u32 head,
						  __u32 length)
{
	__s32 more = length - context_length(context);
	__u32 first = 0;
	void *bytes;
	int err;

	if (!bpf_xdp_adjust_tail(context, more))
		return 0;
	bytes = bpf_map_lookup_elem(&context_heads, &first);
	if (!bytes || more <= 0 || more > CONTEXT_HEADROOM_MAX)
		return -ENOSPC;
	if (!warmpath_size_within(&head, CONTEXT_HEAD_MAX))
		return -EINVAL;
	err = bpf_xdp_load_bytes(context, 0, bytes, head);
	err = err ?: bpf_xdp_adjust_head(context, -more);
	return err ?: bpf_xdp_store_bytes(context, 0, bytes, head);
}

/* May XDP itself send this packet to that interface? Otherwise the kernel's own forwarding has to. */
static __always_inline bool context_may_redirect(struct packet_context *context, __u32 interface)
{
	struct redirect_device *device = bpf_map_lookup_elem(&redirect_devices, &interface);

	if (!device || !device->usable)
		return false;
	/* A frame in several buffers: many drivers cannot send one, and would drop it without a word. */
	return context_length(context) == context_data_end(context) - context_data(context);
}

/*
 * Sends the frame back to where it came from. Negative: not done. By redirection where that is possible: a veth whose other end has no XDP
 * program leaves what is sent with XDP_TX lying in its queue.
 */
static __always_inline int context_send_back(struct packet_context *context, bool to_peer)
{
	struct ethhdr *ethernet = context_bytes(context, 0, sizeof(*ethernet));
	__u32 interface = context_interface(context);
	__u8 address[ETH_ALEN];

	if (!ethernet)
		return -EFAULT;
	__builtin_memcpy(address, ethernet->h_dest, ETH_ALEN);
	__builtin_memcpy(ethernet->h_dest, ethernet->h_source, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, address, ETH_ALEN);
	return context_may_redirect(context, interface) ? bpf_redirect(interface, 0) : XDP_TX;
}

/* XDP sees nothing on its way out. */
static __always_inline bool context_was_made_here(struct packet_context *context)
{
	return false;
}

/* Is the frame for this machine, and for it alone? XDP sees all that the device hands up, also by mistake or when it listens to everything. */
static __always_inline bool context_is_for_us(struct packet_context *context)
{
	const struct ethhdr *ethernet = context_bytes(context, 0, sizeof(*ethernet));

	return ethernet && !(ethernet->h_dest[0] & 1);
}

/* Has a VLAN tag been taken out of the frame? XDP sees frames with all their tags. */
static __always_inline bool context_has_tag_aside(struct packet_context *context)
{
	return false;
}

/* XDP's own way to a veth's other end has no queue between them either. */
static __always_inline bool context_has_peer(__u32 interface)
{
	return false;
}

/* Sends the packet out of `interface` between the given link addresses. Negative: not done, nothing written. */
static __always_inline int context_redirect(struct packet_context *context, __u32 interface,
					    const __u8 *source, const __u8 *destination,
					    bool to_peer)
{
	struct ethhdr *ethernet = context_bytes(context, 0, sizeof(*ethernet));

	if (!ethernet)
		return -EFAULT;
	__builtin_memcpy(ethernet->h_dest, destination, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, source, ETH_ALEN);
	return bpf_redirect(interface, 0);
}

/* XDP cannot have a neighbour resolved for it. */
static __always_inline bool context_may_resolve(const struct packet *packet)
{
	return false;
}

static __always_inline int context_redirect_neighbour(struct packet_context *context,
						      __u32 interface,
						      const struct bpf_fib_lookup *next_hop)
{
	return -EOPNOTSUPP;
}

/* XDP sees nothing on its way out. */
static __always_inline int context_turn_round(struct packet_context *context)
{
	return -EOPNOTSUPP;
}

/* --- single fields of packets that go on ------------------------------------------------------------------ */

/* Replaces 16 bits at `offset` of a TCP header, checksum included. */
static __always_inline int context_change_tcp(struct packet_context *context,
					      const struct packet *packet, __u32 offset,
					      __be16 before, __be16 after)
{
	__u32 start = packet->transport_offset;
	__be16 *field = context_bytes(context, start + offset, sizeof(*field));
	__sum16 *check =
		context_bytes(context, start + offsetof(struct tcphdr, check), sizeof(*check));

	if (!field || !check)
		return -EFAULT;
	*field = after;
	*check = checksum_adjust(*check, checksum_difference16(before, after));
	return 0;
}

/* The same for an IPv4 header. */
static __always_inline int context_change_ipv4(struct packet_context *context,
					       const struct packet *packet, __u32 offset,
					       __be16 before, __be16 after)
{
	__u32 start = packet->network_offset;
	__be16 *field = context_bytes(context, start + offset, sizeof(*field));
	__sum16 *check =
		context_bytes(context, start + offsetof(struct iphdr, check), sizeof(*check));

	if (!field || !check)
		return -EFAULT;
	*field = after;
	*check = checksum_adjust(*check, checksum_difference16(before, after));
	return 0;
}

/* Replaces the first word of an IPv6 header: version, traffic class, flow label. */
static __always_inline int context_change_ipv6(struct packet_context *context,
					       const struct packet *packet, __be32 word)
{
	__be32 *first = context_bytes(context, packet->network_offset, sizeof(*first));

	if (!first)
		return -EFAULT;
	*first = word;
	return 0;
}

#endif /* WARMPATH_BPF_CONTEXT_XDP_H */
