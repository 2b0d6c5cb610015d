/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known about one packet, and what is to become of it.
 *
 * Owns: struct packet, struct translation, and the per-CPU scratch in which a program keeps them. May not know: how a packet is
 * read or written (parse.h, context_*.h).
 *
 * They live in a map rather than on the stack for two reasons: the stack has 512 bytes, and what is read back from a map is an
 * unknown number to the verifier, so that the code behind the parser is verified once, not once for every chain of headers.
 */
#ifndef WARMPATH_BPF_PACKET_H
#define WARMPATH_BPF_PACKET_H

#include "maps.h"
#include "ring.h"

/* What vmlinux.h leaves out: constants that the kernel has as macros. */
#define AF_INET		 2
#define AF_INET6	 10
#define ETH_ALEN	 6
#define IPPROTO_HOPOPTS	 0
#define IPPROTO_ROUTING	 43
#define IPPROTO_FRAGMENT 44
#define IPPROTO_ICMPV6	 58
#define IPPROTO_DSTOPTS	 60

/* Headers that have to be read lie in the first HEADERS_END bytes of a frame; a packet with more is not handled. */
#define HEADERS_END 1024

enum packet_fragment {
	FRAGMENT_NONE = 0, /* also an IPv6 fragment that is the whole packet ("atomic", RFC 6946) */
	FRAGMENT_FIRST = 1,
	FRAGMENT_LATER = 2, /* has no ports */
};

/* Offsets count from the start of the frame. */
struct packet {
	struct address source;
	struct address destination;
	__u32 network_offset;	/* of the IP header */
	__u32 transport_offset; /* of the UDP, TCP or ICMP header */
	__u32 payload_offset;	/* behind that header */
	__u32 payload_end; /* behind the last byte of this datagram's or segment's payload in this packet */
	__u32 end;	   /* behind the last byte of the IP packet; a frame may be padded */
	__be32 identification; /* of a fragment; 16 bits in IPv4 */
	__be32 traffic_class; /* as a route look-up takes it: IPv4's TOS byte, or IPv6's flow information */
	__be16 source_port;
	__be16 destination_port;
	__u8 family; /* AF_INET or AF_INET6; 0 as long as the addresses have not been read */
	__u8 protocol;
	__u8 ports_known;
	__u8 fragment; /* enum packet_fragment */
	__u8 hop_limit;
	__u8 dont_fragment; /* always 1 in IPv6 */
	__u8 tags;	    /* VLAN tags in the frame */
	__u8 tcp_flags;
	__u8 icmp_type;
	__u8 transport_length; /* of a TCP header, in bytes, as it says itself */
	__u8 flaw; /* enum parse_result: what is wrong although the ports could be read */
	__u8 reserved;
};

/* What the packet is to look like. What does not change is stated as it is. */
struct translation {
	struct address source;
	struct address destination;
	__be16 source_port;
	__be16 destination_port;
};

/* An ICMP error of our own: the IP header of either family ends where the ICMP header begins. */
struct answer {
	union {
		struct ipv6hdr ipv6;
		struct {
			__u8 unused[sizeof(struct ipv6hdr) - sizeof(struct iphdr)];
			struct iphdr ipv4;
		};
	};
	struct icmphdr icmp;
	__u8 quote[1280 - sizeof(struct ipv6hdr) - sizeof(struct icmphdr)]; /* RFC 4443, 2.4 (c) */
};

struct scratch {
	struct packet packet;
	struct packet quoted; /* in an ICMP error */
	struct translation translation;
	struct translation quoted_translation;
	struct bpf_fib_lookup next_hop;
	struct flow_key flow_key;
	struct return_flow_key return_key;
	struct fragment_key fragment_key;
	struct fragment fragment;
	struct id_block id;
	struct id_block other_id;
	__u32 id_length;
	__u8 options[64]; /* of an IPv4 header */
	__u32 option_position;
	__u32 interface; /* of the next hop */
	__u32 to_peer; /* 1: the next hop is beyond the other end of that interface, which may be given packets directly */
	struct answer answer;
	__u32 verdict;	   /* of a packet that was sent on, as the sending helper gave it */
	__u32 egress;	   /* 1: the packet is on its way out of this machine */
	__u64 nanoseconds; /* packet_now() has said so; 0: it has not been asked */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch_space SEC(".maps");

static __always_inline struct scratch *scratch_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&scratch_space, &first);
}

/*
 * The coarse monotonic clock, read once for each packet: where it is asked first. To be forgotten (nanoseconds = 0) when a packet comes in.
 */
static __always_inline __u64 packet_now(struct scratch *scratch)
{
	if (!scratch->nanoseconds)
		scratch->nanoseconds = bpf_ktime_get_coarse_ns();
	return scratch->nanoseconds;
}

static __always_inline void address_copy(struct address *to, const struct address *from)
{
	for (int i = 0; i < 4; i++)
		to->word[i] = from->word[i];
}

static __always_inline bool address_equal(const struct address *a, const struct address *b)
{
	return !((a->word[0] ^ b->word[0]) | (a->word[1] ^ b->word[1]) | (a->word[2] ^ b->word[2]) |
		 (a->word[3] ^ b->word[3]));
}

static __always_inline bool address_is_set(const struct address *address)
{
	return address->word[0] | address->word[1] | address->word[2] | address->word[3];
}

static __always_inline void address_from_ipv4(struct address *address, __be32 ipv4)
{
	address->word[0] = 0;
	address->word[1] = 0;
	address->word[2] = bpf_htonl(0xffff);
	address->word[3] = ipv4;
}

static __always_inline void address_from_ipv6(struct address *address, const struct in6_addr *ipv6)
{
	for (int i = 0; i < 4; i++)
		address->word[i] = ipv6->in6_u.u6_addr32[i];
}

#endif /* WARMPATH_BPF_PACKET_H */
