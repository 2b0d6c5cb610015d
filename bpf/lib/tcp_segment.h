/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The TCP header of the packet in hand: reading its numbers and options, and making another segment of the packet, to its sender or
 * on its way.
 *
 * Owns: struct tcp_segment, the per-CPU memory it lies in, header layout, lengths, checksums of segments that are written anew. May not
 * know: connections, cookies, what a segment is for.
 */
#ifndef WARMPATH_BPF_TCP_SEGMENT_H
#define WARMPATH_BPF_TCP_SEGMENT_H

#include <linux/errno.h>

#include <warmpath/tcp_options.h>

#include "exit.h"
#include "packet.h"

#define TCP_FLAG_FIN 0x01
#define TCP_FLAG_SYN 0x02
#define TCP_FLAG_RST 0x04
#define TCP_FLAG_PSH 0x08
#define TCP_FLAG_ACK 0x10
#define TCP_FLAG_URG 0x20
#define TCP_FLAG_ECE 0x40
#define TCP_FLAG_CWR 0x80

#define TCP_HEADER_LENGTH  20
#define TCP_HEADER_MAX	   60
#define TCP_OUR_HOP_LIMIT  64
#define TCP_OUR_WINDOW	   64240 /* as Linux' own SYN-ACKs */
#define TCP_SUM_CHUNK	   512	 /* bpf_csum_diff() takes no more */
#define TCP_SUM_CHUNKS_MAX 8	 /* of the payload of one segment that we write: 4 KiB */

/* Sequence numbers in host byte order. */
struct tcp_segment {
	__u32 sequence;
	__u32 acknowledgement;
	__u32 length; /* of the payload */
	__u32 end;    /* the sequence number behind it, SYN and FIN counted */
	__u16 window; /* as it stands */
	__u16 urgent;
	__u8 flags;
	__u8 reserved[3];
};

/* What a segment of ours is to say. */
struct tcp_writing {
	__u32 sequence;
	__u32 acknowledgement;
	__u32 length; /* of the payload */
	__u16 window;
	__u8 flags;
	__u8 back;    /* 1: to the sender of the packet in hand, 0: on its way */
	__u8 partial; /* the checksum is left to the sending device */
	__u8 reserved[3];
	__u32 header_length; /* TCP_HEADER_LENGTH and the options, which lie in header[] already */
	__u8 header[64];
};

struct tcp_space {
	struct tcp_segment segment;
	struct tcp_options_walk options; /* of the packet in hand, after tcp_read_options() */
	struct tcp_writing writing;
	__u8 network[60]; /* the IP header being written */
	__u8 reserved[4];
	__u8 chunk[TCP_SUM_CHUNK];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tcp_space);
} tcp_spaces SEC(".maps");

static __always_inline struct tcp_space *tcp_space_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&tcp_spaces, &first);
}

/* Is `a` before `b` (RFC 9293, 3.4)? */
static __always_inline bool tcp_before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

/* --- reading ----------------------------------------------------------------------------------------------- */

static __always_inline int tcp_read(struct packet_context *context, const struct packet *packet,
				    struct tcp_segment *segment)
{
	const struct tcphdr *tcp = context_bytes(context, packet->transport_offset, sizeof(*tcp));

	if (!tcp)
		return -EFAULT;
	segment->sequence = bpf_ntohl(tcp->seq);
	segment->acknowledgement = bpf_ntohl(tcp->ack_seq);
	segment->window = bpf_ntohs(tcp->window);
	segment->urgent = bpf_ntohs(tcp->urg_ptr);
	segment->flags = packet->tcp_flags;
	segment->length = packet->payload_end - packet->payload_offset;
	segment->end = segment->sequence + segment->length + !!(segment->flags & TCP_FLAG_FIN) +
		       !!(segment->flags & TCP_FLAG_SYN);
	return 0;
}

/*
 * Reads the options of the packet in hand into tcp_space.options.found. 0 or a negative errno: they are malformed, and all are as if absent.
 * A global function: verified once.
 */
__noinline int tcp_read_options(struct packet_context *context)
{
	struct scratch *scratch = scratch_get();
	struct tcp_space *space = tcp_space_get();
	const __u32 *options;
	__u32 length;
	int err;

	if (!context || !scratch || !space)
		return -ENOENT;
	length = scratch->packet.transport_length - TCP_HEADER_LENGTH;
	options = length == TCP_TIMESTAMPS_LENGTH
			  ? context_bytes(context,
					  scratch->packet.transport_offset + TCP_HEADER_LENGTH,
					  TCP_TIMESTAMPS_LENGTH)
			  : NULL;
	if (options) {
		for (int i = 0; i < TCP_TIMESTAMPS_LENGTH / 4; i++)
			((__u32 *)space->options.bytes)[i] = options[i];
	} else if (length > 0) {
		if (!warmpath_size_within(&length, TCP_OPTIONS_MAX))
			return -EINVAL;
		if (context_load(context, scratch->packet.transport_offset + TCP_HEADER_LENGTH,
				 space->options.bytes, length))
			return -EFAULT;
	}
	err = tcp_options_read(&space->options, length);
	if (err)
		tcp_options_read(&space->options, 0);
	return err;
}

/* --- writing ----------------------------------------------------------------------------------------------- */

static __always_inline void tcp_put16(__u8 *at, __u16 value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static __always_inline void tcp_put32(__u8 *at, __u32 value)
{
	tcp_put16(at, value >> 16);
	tcp_put16(at + 2, value);
}

/* Starts a segment with the options that every segment of the connection has: timestamps, if the packet in hand has them. */
static __always_inline void tcp_write_start(struct tcp_space *space, bool back, __u8 flags)
{
	struct tcp_writing *writing = &space->writing;
	__u8 *options = writing->header + TCP_HEADER_LENGTH;

	writing->back = back;
	writing->flags = flags;
	writing->length = 0;
	writing->window = TCP_OUR_WINDOW >> HANDOFF_WINDOW_SCALE;
	writing->header_length = TCP_HEADER_LENGTH;
	if (!space->options.found.timestamps || (flags & TCP_FLAG_RST))
		return;
	/*
	 * To the sender: the last value it has accepted, so that it accepts this one as well (RFC 7323, 5), and as an echo its own. On
	 * the way: as the client sent them.
	 */
	options[0] = options[1] = TCP_OPTION_NOTHING;
	options[2] = TCP_OPTION_TIMESTAMPS;
	options[3] = 10;
	tcp_put32(options + 4, back ? space->options.found.timestamp_echo
				    : space->options.found.timestamp_value);
	tcp_put32(options + 8, back ? space->options.found.timestamp_value
				    : space->options.found.timestamp_echo);
	writing->header_length += 12;
}

static __always_inline int tcp_write_ipv4(struct packet_context *context, struct scratch *scratch,
					  struct tcp_space *space)
{
	const struct packet *packet = &scratch->packet;
	__u32 length = packet->transport_offset - packet->network_offset;
	struct iphdr *ip = (struct iphdr *)space->network;
	__be32 address;

	WARMPATH_BARRIER(length);
	if (length < sizeof(*ip) || length > sizeof(space->network))
		return -EINVAL;
	if (context_load(context, packet->network_offset, space->network, length))
		return -EFAULT;
	ip->tot_len = bpf_htons(length + space->writing.header_length + space->writing.length);
	ip->check = 0;
	if (space->writing.back) {
		address = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = address;
		ip->ttl = TCP_OUR_HOP_LIMIT;
		ip->tos = 0;
		ip->id = 0;
		ip->frag_off = bpf_htons(0x4000);
		/* options were for the way here: nothing but padding now */
		__builtin_memset(space->network + sizeof(*ip), 1,
				 sizeof(space->network) - sizeof(*ip));
	}
	ip->check = ~checksum_fold16(bpf_csum_diff(NULL, 0, (__be32 *)space->network, length, 0));
	return context_store(context, packet->network_offset, space->network, length);
}

static __always_inline int tcp_write_ipv6(struct packet_context *context, struct scratch *scratch,
					  struct tcp_space *space)
{
	const struct packet *packet = &scratch->packet;
	struct ipv6hdr *ip = (struct ipv6hdr *)space->network;
	struct in6_addr address;

	if (packet->transport_offset != packet->network_offset + sizeof(*ip))
		return -EINVAL;
	if (context_load(context, packet->network_offset, ip, sizeof(*ip)))
		return -EFAULT;
	ip->payload_len = bpf_htons(space->writing.header_length + space->writing.length);
	if (space->writing.back) {
		address = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = address;
		ip->hop_limit = TCP_OUR_HOP_LIMIT;
		*(__be32 *)ip = bpf_htonl(6u << 28);
	}
	return context_store(context, packet->network_offset, ip, sizeof(*ip));
}

/*
 * Gives the packet in hand the size and the network header of the segment in tcp_space.writing. Then the payload is to be stored, if
 * there is one, and tcp_write_end() called. 0 or a negative errno: the packet has to be dropped, or -ENOSPC: it cannot become so
 * long, but may become a shorter one.
 * A global function: verified once.
 */
__noinline int tcp_write_begin(struct packet_context *context)
{
	struct scratch *scratch = scratch_get();
	struct tcp_space *space = tcp_space_get();
	struct packet *packet;
	__u32 end;
	int err;

	if (!context || !scratch || !space)
		return -ENOENT;
	packet = &scratch->packet;
	end = packet->transport_offset + space->writing.header_length + space->writing.length;
	space->writing.partial = context_checksum_is_partial(
		context, packet->transport_offset + offsetof(struct tcphdr, check));
	err = context_resize_content(context, packet->transport_offset, end);
	if (err)
		return err;
	packet->payload_offset = packet->transport_offset + space->writing.header_length;
	packet->payload_end = end;
	packet->end = end;
	packet->transport_length = space->writing.header_length;
	packet->tcp_flags = space->writing.flags;
	if (packet->family == AF_INET)
		return tcp_write_ipv4(context, scratch, space);
	return tcp_write_ipv6(context, scratch, space);
}

struct tcp_summing {
	struct packet_context *context;
	struct tcp_space *space;
	__u32 offset;
	__u32 rest;
	__u32 sum;
	int err;
};

/* One chunk of the payload. */
static long tcp_sum_step(__u32 index, void *argument)
{
	struct tcp_summing *summing = argument;
	__u8 *chunk = summing->space->chunk;
	__u32 size = summing->rest, last;

	if (size > TCP_SUM_CHUNK)
		size = TCP_SUM_CHUNK;
	WARMPATH_BARRIER(size);
	if (!warmpath_size_within(&size, TCP_SUM_CHUNK))
		return 1;
	last = (size - 1) & ~3u & (TCP_SUM_CHUNK - 1);
	*(__u32 *)(chunk + last) = 0;
	if (context_load(summing->context, summing->offset, chunk, size)) {
		summing->err = -EFAULT;
		return 1;
	}
	last += 4;
	WARMPATH_BARRIER(last);
	if (last > TCP_SUM_CHUNK)
		return 1;
	summing->sum = bpf_csum_diff(NULL, 0, (__be32 *)chunk, last, summing->sum);
	summing->offset += size;
	summing->rest -= size;
	return 0;
}

/*
 * Writes the TCP header of the segment in tcp_space.writing, checksum included. 0 or a negative errno: the packet has to be dropped.
 * A global function: verified once.
 */
__noinline int tcp_write_end(struct packet_context *context)
{
	struct scratch *scratch = scratch_get();
	struct tcp_space *space = tcp_space_get();
	struct tcp_writing *writing;
	struct packet *packet;
	struct tcp_summing summing = {};
	__u32 length, pseudo = 0;
	__be16 port;
	struct tcphdr *tcp;

	if (!context || !scratch || !space)
		return -ENOENT;
	packet = &scratch->packet;
	writing = &space->writing;
	tcp = (struct tcphdr *)writing->header;
	length = writing->header_length;
	WARMPATH_BARRIER(length);
	if (length < TCP_HEADER_LENGTH || length > TCP_HEADER_MAX)
		return -EINVAL;

	tcp->source = writing->back ? packet->destination_port : packet->source_port;
	tcp->dest = writing->back ? packet->source_port : packet->destination_port;
	if (writing->back) {
		port = packet->source_port;
		packet->source_port = packet->destination_port;
		packet->destination_port = port;
	}
	tcp->seq = bpf_htonl(writing->sequence);
	tcp->ack_seq = bpf_htonl(writing->acknowledgement);
	writing->header[12] = length / 4 << 4;
	writing->header[13] = writing->flags;
	tcp->window = bpf_htons(writing->window);
	tcp->check = 0;
	tcp->urg_ptr = 0;

	/* it does not matter which address comes first, and the 0xffff of a mapped one is a zero of these sums */
	pseudo = bpf_csum_diff(NULL, 0, (__be32 *)&packet->source, sizeof(struct address), 0);
	pseudo = bpf_csum_diff(NULL, 0, (__be32 *)&packet->destination, sizeof(struct address),
			       pseudo);
	pseudo = checksum_fold32((__u64)pseudo + bpf_htons(IPPROTO_TCP) +
				 bpf_htons(length + writing->length));

	summing.context = context;
	summing.space = space;
	summing.offset = packet->payload_offset;
	summing.rest = writing->length;
	summing.sum = bpf_csum_diff(NULL, 0, (__be32 *)writing->header, length, pseudo);
	if (writing->length)
		bpf_loop(TCP_SUM_CHUNKS_MAX, tcp_sum_step, &summing, 0);
	if (summing.err || summing.rest)
		return -EFAULT;
	tcp->check = writing->partial ? checksum_fold16(pseudo) : ~checksum_fold16(summing.sum);
	return context_store(context, packet->transport_offset, writing->header, length);
}

/* Sends the packet in hand back to where it came from. Returns `outcome`, or that of a failure. */
static __always_inline __u32 tcp_send_back(struct packet_context *context, struct scratch *scratch,
					   __u32 outcome)
{
	int result =
		scratch->egress
			? context_turn_round(context)
			: context_send_back(context, context_has_peer(context_interface(context)));

	if (result < 0)
		return OUTCOME_drop_rewrite_failed;
	scratch->verdict = result;
	return outcome;
}

/*
 * Sends the packet in hand, made into the segment in tcp_space.writing, back to where it came from. For segments without payload.
 * Returns `outcome`, or that of a failure.
 */
static __always_inline __u32 tcp_answer(struct packet_context *context, struct scratch *scratch,
					__u32 outcome)
{
	if (tcp_write_begin(context) || tcp_write_end(context))
		return OUTCOME_drop_rewrite_failed;
	return tcp_send_back(context, scratch, outcome);
}

/* A reset for the packet in hand, as a host without such a connection sends it (RFC 9293, 3.10.7.1). */
static __always_inline __u32 tcp_reset(struct packet_context *context, struct scratch *scratch,
				       struct tcp_space *space, __u32 outcome)
{
	const struct tcp_segment *segment = &space->segment;
	bool acknowledges = segment->flags & TCP_FLAG_ACK;

	tcp_write_start(space, true, TCP_FLAG_RST | (acknowledges ? 0 : TCP_FLAG_ACK));
	space->writing.sequence = acknowledges ? segment->acknowledgement : 0;
	space->writing.acknowledgement = acknowledges ? 0 : segment->end;
	space->writing.window = 0;
	return tcp_answer(context, scratch, outcome);
}

#endif /* WARMPATH_BPF_TCP_SEGMENT_H */
