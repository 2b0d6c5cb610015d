/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A marked segment in an skb: reading it, changing the mark, taking it off, copying it into a reset.
 *
 * Owns: offsets and checksums of these. May not know: sockets, keys, what is decided about the segment.
 *
 * Checksums are changed by the kernel's helpers only: an skb's may be finished, a device's sum, or yet to be filled in, and
 * a program cannot see which.
 */
#ifndef WARMPATH_BPF_HANDOFF_SEGMENT_H
#define WARMPATH_BPF_HANDOFF_SEGMENT_H

#include <linux/errno.h>

#include <warmpath/mark.h>

#define TC_ACT_UNSPEC (-1) /* the next program decides */
#define TC_ACT_SHOT   2

#define HANDOFF_TYPE_IPV4 0x0800
#define HANDOFF_TYPE_IPV6 0x86dd
#define HANDOFF_FRAGMENT  0x3fff /* IPv4: more fragments, or not the first */

/* The 16 bits of a TCP header from the data offset on, in host order. */
#define HANDOFF_FLAG_RST	0x0004
#define HANDOFF_OFFSET_SHIFT	12
#define HANDOFF_OFFSET_MASK	0xf000
#define HANDOFF_TCP_WORD_OFFSET 12

struct handoff_segment {
	struct mark_subject subject;
	__u32 network_offset;
	__u32 transport_offset;
	__u32 end;	   /* of the datagram: the frame may be longer */
	__u32 mac_low;	   /* identification or flow label */
	__be32 first_word; /* IPv6: version, class, label */
	__be16 identification;
	__u16 mark;
	__u16 flags; /* data offset and flags, host order */
	__u8 header_length;
	bool ipv6;
};

/*
 * One field of the context, by an instruction of its own: clang 19 otherwise merges loads of two branches into one from a computed
 * address, which the verifier refuses.
 */
#define HANDOFF_CONTEXT_POINTER(skb, field)                                       \
	({                                                                        \
		void *pointer;                                                    \
		asm volatile("%0 = *(u32 *)(%1 + %2)"                             \
			     : "=r"(pointer)                                      \
			     : "r"(skb), "i"(offsetof(struct __sk_buff, field))); \
		pointer;                                                          \
	})

static __always_inline void *handoff_bytes(struct __sk_buff *skb, __u32 offset, __u32 size)
{
	void *data = HANDOFF_CONTEXT_POINTER(skb, data);
	void *end = HANDOFF_CONTEXT_POINTER(skb, data_end);

	if (offset > 256)
		return NULL;
	data += offset;
	return data + size > end ? NULL : data;
}

/* The IPv4 header at `offset`. */
static __always_inline int handoff_read_ipv4(struct __sk_buff *skb, __u32 offset,
					     struct handoff_segment *segment)
{
	const struct iphdr *ip = handoff_bytes(skb, offset, sizeof(*ip));

	if (!ip)
		return -EAGAIN;
	if (ip->version != 4 || ip->protocol != IPPROTO_TCP || ip->ihl < 5 ||
	    (ip->frag_off & bpf_htons(HANDOFF_FRAGMENT)))
		return -ENOENT;
	segment->network_offset = offset;
	segment->end = ip->tot_len ? offset + bpf_ntohs(ip->tot_len) : skb->len;
	segment->transport_offset = offset + ip->ihl * 4;
	segment->identification = ip->id;
	segment->mac_low = bpf_ntohs(ip->id);
	segment->subject.client.word[2] = bpf_htonl(0xffff);
	segment->subject.client.word[3] = ip->saddr;
	segment->subject.replica.word[2] = bpf_htonl(0xffff);
	segment->subject.replica.word[3] = ip->daddr;
	return 0;
}

static __always_inline int handoff_read_ipv6(struct __sk_buff *skb, __u32 offset,
					     struct handoff_segment *segment)
{
	const struct ipv6hdr *ip = handoff_bytes(skb, offset, sizeof(*ip));

	if (!ip)
		return -EAGAIN;
	if (ip->version != 6 || ip->nexthdr != IPPROTO_TCP)
		return -ENOENT;
	segment->ipv6 = true;
	segment->network_offset = offset;
	segment->transport_offset = offset + sizeof(*ip);
	/* 0: more than fits into the field, as a device or receive offload may make */
	segment->end =
		ip->payload_len ? segment->transport_offset + bpf_ntohs(ip->payload_len) : skb->len;
	segment->first_word = *(const __be32 *)ip;
	segment->mac_low = bpf_ntohl(segment->first_word) & ((1u << MARK_MAC_LOW_BITS_6) - 1);
	for (int i = 0; i < 4; i++) {
		segment->subject.client.word[i] = ip->saddr.in6_u.u6_addr32[i];
		segment->subject.replica.word[i] = ip->daddr.in6_u.u6_addr32[i];
	}
	return 0;
}

/*
 * Is it a TCP segment that could be marked? Sets the network part. Tunnels have no link header: then the type that one would have is not
 * where it would be.
 */
static __always_inline int handoff_read_network(struct __sk_buff *skb,
						struct handoff_segment *segment)
{
	const struct ethhdr *link = handoff_bytes(skb, 0, sizeof(*link));
	__u32 offset = 0;

	if (!link)
		return -EAGAIN;
	if (link->h_proto == skb->protocol)
		offset = sizeof(*link);
	if (skb->protocol == bpf_htons(HANDOFF_TYPE_IPV4))
		return handoff_read_ipv4(skb, offset, segment);
	if (skb->protocol == bpf_htons(HANDOFF_TYPE_IPV6))
		return handoff_read_ipv6(skb, offset, segment);
	return -ENOENT;
}

/*
 * Reads a marked segment. 0; -ENOENT: not marked, none of ours; -EAGAIN: more bytes have to be made readable; -EINVAL: marked, but
 * malformed.
 */
static __always_inline int handoff_read_once(struct __sk_buff *skb, struct handoff_segment *segment)
{
	int err = handoff_read_network(skb, segment);
	const struct tcphdr *tcp;

	if (err)
		return err;
	tcp = handoff_bytes(skb, segment->transport_offset, sizeof(*tcp));
	if (!tcp)
		return -EAGAIN;
	if (!tcp->urg_ptr || tcp->urg || tcp->syn || tcp->rst || !tcp->ack)
		return -ENOENT;
	segment->mark = bpf_ntohs(tcp->urg_ptr);
	if (!mark_version(segment->mark))
		return -ENOENT;
	segment->header_length = tcp->doff * 4;
	if (segment->header_length < sizeof(*tcp) ||
	    segment->transport_offset + segment->header_length > skb->len ||
	    segment->transport_offset + segment->header_length > segment->end)
		return -EINVAL;
	segment->flags = bpf_ntohs(*(const __be16 *)((const __u8 *)tcp + HANDOFF_TCP_WORD_OFFSET));
	segment->subject.client_port = tcp->source;
	segment->subject.replica_port = tcp->dest;
	segment->subject.sequence = bpf_ntohl(tcp->seq);
	segment->subject.acknowledgement = bpf_ntohl(tcp->ack_seq);
	return 0;
}

static __always_inline int handoff_read(struct __sk_buff *skb, struct handoff_segment *segment)
{
	int err = handoff_read_once(skb, segment);
	__u32 wanted;

	if (err != -EAGAIN)
		return err;
	/* a driver may leave all but a few bytes in pages */
	wanted = sizeof(struct ethhdr) + 60 + sizeof(struct tcphdr);
	if (wanted > skb->len)
		wanted = skb->len;
	if (bpf_skb_pull_data(skb, wanted))
		return -ENOENT;
	err = handoff_read_once(skb, segment);
	return err == -EAGAIN ? -ENOENT : err;
}

static __always_inline int handoff_read_options(struct __sk_buff *skb,
						const struct handoff_segment *segment,
						struct tcp_options_walk *walk)
{
	__u32 length = segment->header_length - sizeof(struct tcphdr);

	WARMPATH_BARRIER(length);
	if (length > TCP_OPTIONS_MAX)
		return -EINVAL;
	if (length > 0 && bpf_skb_load_bytes(skb, segment->transport_offset + sizeof(struct tcphdr),
					     walk->bytes, length))
		return -EFAULT;
	return tcp_options_read(walk, length);
}

/* --- changing it ------------------------------------------------------------------------------------------- */

/* Replaces 16 bits of the TCP header, checksum included. offset: in that header. */
static __always_inline int handoff_store16(struct __sk_buff *skb,
					   const struct handoff_segment *segment, __u32 offset,
					   __be16 before, __be16 after)
{
	int err =
		bpf_l4_csum_replace(skb, segment->transport_offset + offsetof(struct tcphdr, check),
				    before, after, sizeof(after));

	return err ? err
		   : bpf_skb_store_bytes(skb, segment->transport_offset + offset, &after,
					 sizeof(after), 0);
}

static __always_inline int handoff_store32(struct __sk_buff *skb,
					   const struct handoff_segment *segment, __u32 offset,
					   __be32 before, __be32 after)
{
	int err =
		bpf_l4_csum_replace(skb, segment->transport_offset + offsetof(struct tcphdr, check),
				    before, after, sizeof(after));

	return err ? err
		   : bpf_skb_store_bytes(skb, segment->transport_offset + offset, &after,
					 sizeof(after), 0);
}

static __always_inline int handoff_set_mark(struct __sk_buff *skb,
					    const struct handoff_segment *segment, __u16 mark)
{
	return handoff_store16(skb, segment, offsetof(struct tcphdr, urg_ptr),
			       bpf_htons(segment->mark), bpf_htons(mark));
}

/* Zeroes the mark, and what carried the rest of the MAC. */
static __always_inline int handoff_unmark(struct __sk_buff *skb,
					  const struct handoff_segment *segment)
{
	__u32 offset = segment->network_offset;
	__be32 first_word = segment->first_word & ~bpf_htonl((1u << MARK_MAC_LOW_BITS_6) - 1);
	__be16 zero = 0;
	int err;

	err = handoff_set_mark(skb, segment, 0);
	if (err || !mark_is_start(segment->mark))
		return err;
	if (segment->ipv6)
		return bpf_skb_store_bytes(skb, offset, &first_word, sizeof(first_word),
					   BPF_F_RECOMPUTE_CSUM);
	err = bpf_l3_csum_replace(skb, offset + offsetof(struct iphdr, check),
				  segment->identification, 0, sizeof(zero));
	return err ? err
		   : bpf_skb_store_bytes(skb, offset + offsetof(struct iphdr, id), &zero,
					 sizeof(zero), 0);
}

/*
 * Sends this host a reset that looks as if it came from the client, made of a copy of the segment: sequence number `next`, and a header of 20 bytes, so
 * that the timestamps are not looked at (an old socket may have seen later ones). The segment itself is as before. 0 or a negative errno;
 * the segment has then to be dropped.
 */
static __always_inline int handoff_send_reset(struct __sk_buff *skb,
					      const struct handoff_segment *segment, __u32 next)
{
	__be32 sequence = bpf_htonl(segment->subject.sequence), expected = bpf_htonl(next);
	__be16 flags = bpf_htons(segment->flags);
	__be16 reset =
		bpf_htons((segment->flags & ~HANDOFF_OFFSET_MASK) |
			  sizeof(struct tcphdr) / 4 << HANDOFF_OFFSET_SHIFT | HANDOFF_FLAG_RST);
	/* a router's program on this machine lets it pass for that */
	__be16 mark = bpf_htons(segment->mark);
	__be16 again = mark | bpf_htons(MARK_VERSION_AGAIN << MARK_VERSION_SHIFT);
	__u32 word = HANDOFF_TCP_WORD_OFFSET, pointer = offsetof(struct tcphdr, urg_ptr);
	int err;

	err = handoff_store16(skb, segment, pointer, mark, again);
	err = err ?: handoff_store16(skb, segment, word, flags, reset);
	err = err
		      ?: handoff_store32(skb, segment, offsetof(struct tcphdr, seq), sequence,
					 expected);
	err = err ?: bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
	err = err
		      ?: handoff_store32(skb, segment, offsetof(struct tcphdr, seq), expected,
					 sequence);
	err = err ?: handoff_store16(skb, segment, word, reset, flags);
	return err ?: handoff_store16(skb, segment, pointer, again, mark);
}

#endif /* WARMPATH_BPF_HANDOFF_SEGMENT_H */
