/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From bytes to struct packet: Ethernet, VLAN tags, IPv4 and IPv6 with their options and extension headers, ports.
 *
 * Owns: every bound and length check of headers. May not know: services, replicas, maps; it only reads.
 *
 * A flaw does not end the parsing where the ports can still be read (`flaw`), and what was read stays in the struct (`family`, `ports_known`):
 * so the caller can tell whether the packet would have been ours.
 */
#ifndef WARMPATH_BPF_PARSE_H
#define WARMPATH_BPF_PARSE_H

#include "packet.h"

enum parse_result {
	PARSE_DONE,
	PARSE_OTHER,	   /* nothing we would ever handle: no IP, or a protocol without ports */
	PARSE_TRUNCATED,   /* the packet ends before its headers do, or before they say it does */
	PARSE_MALFORMED,   /* headers contradict themselves */
	PARSE_UNSUPPORTED, /* valid, but not handled: too many headers, source routing, ESP */
};

#define PARSE_TAGS_MAX		  2
#define PARSE_EXTENSION_MAX	  8
#define PARSE_IPV4_OPTIONS_MAX	  40
#define PARSE_ETHERTYPE_IPV4	  0x0800
#define PARSE_ETHERTYPE_IPV6	  0x86dd
#define PARSE_ETHERTYPE_8021Q	  0x8100
#define PARSE_ETHERTYPE_8021AD	  0x88a8
#define PARSE_IPV4_DONT_FRAGMENT  0x4000
#define PARSE_IPV4_MORE		  0x2000
#define PARSE_IPV4_OFFSET	  0x1fff
#define PARSE_IPV6_OFFSET	  0xfff8
#define PARSE_IPV6_MORE		  0x0001
#define PARSE_IPV6_FLOW_INFO	  0x0fffffff
#define PARSE_OPTION_END	  0
#define PARSE_OPTION_NOTHING	  1
#define PARSE_OPTION_LOOSE_ROUTE  131
#define PARSE_OPTION_STRICT_ROUTE 137

struct parse_tag {
	__be16 control;
	__be16 ethertype;
};

/* Ethernet header and tags. Returns the type of what follows at packet->network_offset; 0 if the frame ends before. */
static __always_inline __u16 parse_link(struct packet_context *context, struct packet *packet)
{
	const struct ethhdr *ethernet = context_bytes(context, 0, sizeof(*ethernet));
	__u32 offset = sizeof(*ethernet);
	__u16 ethertype;

	if (!ethernet)
		return 0;
	ethertype = bpf_ntohs(ethernet->h_proto);
	packet->tags = 0;
#pragma unroll
	for (int i = 0; i < PARSE_TAGS_MAX; i++) {
		const struct parse_tag *tag;

		if (ethertype != PARSE_ETHERTYPE_8021Q && ethertype != PARSE_ETHERTYPE_8021AD)
			break;
		tag = context_bytes(context, offset, sizeof(*tag));
		if (!tag)
			return 0;
		ethertype = bpf_ntohs(tag->ethertype);
		offset += sizeof(*tag);
		packet->tags = i + 1;
	}
	packet->network_offset = offset;
	return ethertype;
}

/*
 * Does the IPv4 header name its own route (RFC 791, 3.1)? Such packets are not steered: the destination in the header is not
 * where they go. offset: of the options; length: 0 to 40 bytes. A global function: verified once.
 */
__noinline int parse_options_source_routed(struct packet_context *context, __u32 offset,
					   __u32 length)
{
	struct scratch *scratch = scratch_get();
	const volatile __u8 *options;
	volatile __u32 *position;

	if (!context || !scratch || !warmpath_size_within(&length, PARSE_IPV4_OPTIONS_MAX))
		return 0;
	/* Read anew in every step: a position that the verifier does not follow ends in the same state each time. */
	options = scratch->options;
	position = &scratch->option_position;
	if (context_load(context, offset, scratch->options, length))
		return 0;
	*position = 0;
	for (int i = 0; i < PARSE_IPV4_OPTIONS_MAX; i++) {
		__u32 at = *position;
		__u32 kind, step = 1;

		if (at >= length)
			break;
		kind = options[at & 63];
		if (kind == PARSE_OPTION_END)
			break;
		if (kind == PARSE_OPTION_LOOSE_ROUTE || kind == PARSE_OPTION_STRICT_ROUTE)
			return 1;
		if (kind != PARSE_OPTION_NOTHING) {
			step = options[(at + 1) & 63];
			if (step < 2)
				break;
		}
		*position = at + step;
	}
	return 0;
}

/* A packet that claims more bytes than the frame has is truncated; its ports may still say whose it is. */
static __always_inline void parse_clip(struct packet_context *context, struct packet *packet)
{
	if (context_reaches(context, packet->end))
		return;
	packet->flaw = PARSE_TRUNCATED;
	packet->end = context_length(context);
}

/*
 * The IP header at packet->network_offset. limit: offset behind the last byte there is of this packet; 0: ask the context, and a packet
 * that claims more than that is truncated. (A packet quoted in an ICMP error may be cut short; it has a limit.)
 */
static __always_inline enum parse_result parse_ipv4(struct packet_context *context,
						    struct packet *packet, __u32 limit)
{
	__u32 offset = packet->network_offset;
	const struct iphdr *ip = context_bytes(context, offset, sizeof(*ip));
	__u32 header_length, total_length;
	__u16 fragment;

	if (!ip)
		return PARSE_TRUNCATED;
	header_length = ip->ihl * 4;
	if (ip->version != 4 || header_length < sizeof(*ip))
		return PARSE_OTHER;

	address_from_ipv4(&packet->source, ip->saddr);
	address_from_ipv4(&packet->destination, ip->daddr);
	packet->family = AF_INET;
	packet->protocol = ip->protocol;
	packet->hop_limit = ip->ttl;
	packet->traffic_class = ip->tos;
	packet->identification = ip->id;
	packet->transport_offset = offset + header_length;

	total_length = bpf_ntohs(ip->tot_len);
	fragment = bpf_ntohs(ip->frag_off);
	packet->dont_fragment = !!(fragment & PARSE_IPV4_DONT_FRAGMENT);
	packet->fragment = FRAGMENT_NONE;
	if (fragment & PARSE_IPV4_OFFSET)
		packet->fragment = FRAGMENT_LATER;
	else if (fragment & PARSE_IPV4_MORE)
		packet->fragment = FRAGMENT_FIRST;

	if (limit) {
		packet->end = offset + total_length < limit ? offset + total_length : limit;
	} else {
		/* Longer than 65,535 bytes: the length is left out, and the device will cut the packet into segments. */
		if (total_length == 0 && context_segment_size(context))
			packet->end = context_length(context);
		else if (total_length < header_length)
			return PARSE_MALFORMED;
		else
			packet->end = offset + total_length;
		parse_clip(context, packet);
	}
	if (header_length > sizeof(*ip) &&
	    parse_options_source_routed(context, offset + sizeof(*ip), header_length - sizeof(*ip)))
		packet->flaw = PARSE_UNSUPPORTED;
	return PARSE_DONE;
}

struct parse_extension {
	__u8 next_header;
	__u8 length; /* in units of 8 bytes, not counting the first 8 */
	union {
		struct {
			__u8 routing_type;
			__u8 segments_left;
		};
		__be16 fragment_offset;
	};
	__be32 identification;
};

/* The chain of extension headers behind the fixed header, up to the transport header. RFC 8200, section 4. */
static __always_inline enum parse_result
parse_ipv6_extensions(struct packet_context *context, struct packet *packet, __u8 next_header)
{
	__u32 offset = packet->transport_offset;

	/* Unrolled: clang 19 would let the end of the loop fall through to its head, which 6.1 takes for endless. */
#pragma clang loop unroll(full)
	for (int i = 0; i <= PARSE_EXTENSION_MAX; i++) {
		const struct parse_extension *extension;
		__u16 fragment;

		packet->protocol = next_header;
		packet->transport_offset = offset;
		if (next_header != IPPROTO_HOPOPTS && next_header != IPPROTO_ROUTING &&
		    next_header != IPPROTO_FRAGMENT && next_header != IPPROTO_DSTOPTS)
			return PARSE_DONE;
		if (i == PARSE_EXTENSION_MAX || offset > HEADERS_END)
			return PARSE_UNSUPPORTED;
		/* options for every hop come first or not at all */
		if (next_header == IPPROTO_HOPOPTS && i > 0)
			return PARSE_UNSUPPORTED;
		if (offset + sizeof(*extension) > packet->end)
			return PARSE_TRUNCATED;
		extension = context_bytes(context, offset, sizeof(*extension));
		if (!extension)
			return PARSE_TRUNCATED;

		if (next_header == IPPROTO_FRAGMENT) {
			fragment = bpf_ntohs(extension->fragment_offset);
			packet->identification = extension->identification;
			if (fragment & PARSE_IPV6_OFFSET)
				packet->fragment = FRAGMENT_LATER;
			else if (fragment & PARSE_IPV6_MORE)
				packet->fragment = FRAGMENT_FIRST;
			offset += sizeof(*extension);
		} else {
			if (next_header == IPPROTO_ROUTING && extension->segments_left)
				packet->flaw = PARSE_UNSUPPORTED;
			offset += (extension->length + 1) * 8;
		}
		next_header = extension->next_header;
		if (packet->fragment == FRAGMENT_LATER) {
			packet->transport_offset = offset;
			packet->protocol = next_header;
			return PARSE_DONE;
		}
	}
	return PARSE_UNSUPPORTED;
}

static __always_inline enum parse_result parse_ipv6(struct packet_context *context,
						    struct packet *packet, __u32 limit)
{
	__u32 offset = packet->network_offset;
	const struct ipv6hdr *ip = context_bytes(context, offset, sizeof(*ip));
	__u32 payload_length;

	if (!ip)
		return PARSE_TRUNCATED;
	if (ip->version != 6)
		return PARSE_OTHER;

	address_from_ipv6(&packet->source, &ip->saddr);
	address_from_ipv6(&packet->destination, &ip->daddr);
	packet->family = AF_INET6;
	packet->hop_limit = ip->hop_limit;
	packet->traffic_class = *(const __be32 *)ip & bpf_htonl(PARSE_IPV6_FLOW_INFO);
	packet->transport_offset = offset + sizeof(*ip);
	packet->fragment = FRAGMENT_NONE;
	packet->dont_fragment = 1;

	payload_length = bpf_ntohs(ip->payload_len);
	packet->end = offset + sizeof(*ip) + payload_length;
	if (limit) {
		if (packet->end > limit)
			packet->end = limit;
	} else {
		if (payload_length == 0 && context_segment_size(context))
			packet->end = context_length(context);
		parse_clip(context, packet);
	}
	return parse_ipv6_extensions(context, packet, ip->nexthdr);
}

static __always_inline enum parse_result parse_udp(struct packet_context *context,
						   struct packet *packet, __u32 limit)
{
	__u32 offset = packet->transport_offset;
	const struct udphdr *udp = context_bytes(context, offset, sizeof(*udp));
	__u32 length;

	if (!udp || offset + sizeof(*udp) > packet->end)
		return PARSE_TRUNCATED;
	packet->payload_offset = offset + sizeof(*udp);
	packet->payload_end = packet->end;
	length = bpf_ntohs(udp->len);
	if (limit || packet->fragment == FRAGMENT_FIRST)
		return PARSE_DONE;
	/* the sum of many datagrams' lengths may not fit */
	if (length == 0 && context_segment_size(context))
		return PARSE_DONE;
	if (length < sizeof(*udp))
		return PARSE_MALFORMED;
	if (offset + length > packet->end)
		return PARSE_TRUNCATED;
	packet->payload_end = offset + length;
	return PARSE_DONE;
}

static __always_inline enum parse_result parse_tcp(struct packet_context *context,
						   struct packet *packet, __u32 limit)
{
	__u32 offset = packet->transport_offset;
	const struct tcphdr *tcp = context_bytes(context, offset, sizeof(*tcp));

	if (!tcp || offset + sizeof(*tcp) > packet->end)
		return limit ? PARSE_DONE : PARSE_TRUNCATED;
	packet->tcp_flags = ((const __u8 *)tcp)[13];
	packet->transport_length = tcp->doff * 4;
	packet->payload_offset = offset + packet->transport_length;
	packet->payload_end = packet->end;
	if (limit)
		return PARSE_DONE;
	if (packet->transport_length < sizeof(*tcp))
		return PARSE_MALFORMED;
	if (packet->payload_offset > packet->end)
		return PARSE_TRUNCATED;
	return PARSE_DONE;
}

/* The transport header at packet->transport_offset. */
static __always_inline enum parse_result parse_transport(struct packet_context *context,
							 struct packet *packet, __u32 limit)
{
	__u32 offset = packet->transport_offset;
	const __be16 *ports;
	const __u8 *type;

	if (packet->fragment == FRAGMENT_LATER)
		return PARSE_DONE;
	if (packet->protocol == IPPROTO_ICMP || packet->protocol == IPPROTO_ICMPV6) {
		type = context_bytes(context, offset, sizeof(*type));
		if (!type || offset + sizeof(*type) > packet->end)
			return PARSE_TRUNCATED;
		packet->icmp_type = *type;
		return PARSE_DONE;
	}
	if (packet->protocol != IPPROTO_UDP && packet->protocol != IPPROTO_TCP)
		return PARSE_UNSUPPORTED;

	ports = context_bytes(context, offset, 2 * sizeof(*ports));
	if (!ports || offset + 2 * sizeof(*ports) > packet->end)
		return PARSE_TRUNCATED;
	packet->source_port = ports[0];
	packet->destination_port = ports[1];
	packet->ports_known = 1;
	if (packet->protocol == IPPROTO_UDP)
		return parse_udp(context, packet, limit);
	return parse_tcp(context, packet, limit);
}

/* A whole frame. */
static __always_inline enum parse_result parse_frame(struct packet_context *context,
						     struct packet *packet)
{
	enum parse_result result;
	__u16 ethertype;

	packet->family = 0;
	packet->ports_known = 0;
	packet->flaw = PARSE_DONE;
	ethertype = parse_link(context, packet);
	if (ethertype == PARSE_ETHERTYPE_IPV4)
		result = parse_ipv4(context, packet, 0);
	else if (ethertype == PARSE_ETHERTYPE_IPV6)
		result = parse_ipv6(context, packet, 0);
	else
		return PARSE_OTHER;
	if (result != PARSE_DONE)
		return result;
	result = parse_transport(context, packet, 0);
	return result == PARSE_DONE ? packet->flaw : result;
}

#endif /* WARMPATH_BPF_PARSE_H */
