/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP options: reading what a segment carries, and the one byte in which a connection's negotiated options travel.
 *
 * Owns: the walk over options (RFC 9293, 3.1; RFC 7323; RFC 2018), the classes of maximum segment sizes, the packed byte. May not know:
 * where the bytes came from, cookies, marks.
 */
#ifndef WARMPATH_TCP_OPTIONS_H
#define WARMPATH_TCP_OPTIONS_H

#include <linux/errno.h>

#include "portable.h"

#define TCP_OPTIONS_MAX 40
#define TCP_OPTIONS_SIZE \
	64 /* of a buffer: a power of two, so that an index is masked; zero behind the options */

#define TCP_OPTION_END		  0
#define TCP_OPTION_NOTHING	  1
#define TCP_OPTION_SEGMENT_SIZE	  2
#define TCP_OPTION_SCALE	  3
#define TCP_OPTION_SACK_PERMITTED 4
#define TCP_OPTION_TIMESTAMPS	  8

#define TCP_SCALE_MAX  14
#define TCP_SCALE_NONE 15 /* window scaling was not offered */

/*
 * The scale of the windows that replicas announce. It is in the router's SYN-ACK, before there is a replica, and so the same at all of
 * them: a part of the protocol (MARK_VERSION). 7 is what Linux chooses with its default tcp_rmem; windows up to 8 MB.
 */
#define HANDOFF_WINDOW_SCALE 7

struct tcp_options {
	__u32 timestamp_value; /* with `timestamps` */
	__u32 timestamp_echo;
	__u16 segment_size; /* 0: not stated */
	__u8 scale;	    /* 0 .. TCP_SCALE_MAX, or TCP_SCALE_NONE */
	__u8 sack_permitted;
	__u8 timestamps;
	__u8 reserved[3];
};

/*
 * Options in memory, and a walk over them as far as it has come. In BPF it lies in a map: what is loaded from there is an unknown number to the
 * verifier, so that its own walk ends after one round.
 */
struct tcp_options_walk {
	__u8 bytes[TCP_OPTIONS_SIZE]; /* what is behind the options has no influence */
	struct tcp_options found;
	__u32 at;
	__u32 length;
	__s32 result;
	__u32 reserved;
};

static __always_inline __u32 tcp_option_byte(const struct tcp_options_walk *walk, __u32 offset)
{
	__u32 at = (walk->at + offset) & (TCP_OPTIONS_SIZE - 1);

	WARMPATH_BARRIER(at);
	return walk->bytes[at];
}

static __always_inline __u32 tcp_option_word(const struct tcp_options_walk *walk, __u32 offset)
{
	return tcp_option_byte(walk, offset) << 24 | tcp_option_byte(walk, offset + 1) << 16 |
	       tcp_option_byte(walk, offset + 2) << 8 | tcp_option_byte(walk, offset + 3);
}

#define TCP_TIMESTAMPS_LENGTH 12 /* of timestamps alone, with two fillers in front */
#define TCP_OPTIONS_TIMESTAMPS_ALONE \
	(TCP_OPTION_NOTHING << 24 | TCP_OPTION_NOTHING << 16 | TCP_OPTION_TIMESTAMPS << 8 | 10)

/* One option. context: where the pointer to the walk is. Returns 1 when the walk is over. */
static __attribute__((unused)) long tcp_options_step(__u32 index, void *context)
{
	struct tcp_options_walk *walk = *(struct tcp_options_walk **)context;
	struct tcp_options *found = &walk->found;
	__u32 kind, size;

	(void)index;
	if (walk->at >= walk->length)
		return 1;
	kind = tcp_option_byte(walk, 0);
	if (kind == TCP_OPTION_END)
		return 1;
	if (kind == TCP_OPTION_NOTHING) {
		walk->at++;
		return 0;
	}
	size = tcp_option_byte(walk, 1);
	if (size < 2 || walk->at + size > walk->length) {
		walk->result = -EINVAL;
		return 1;
	}
	if (kind == TCP_OPTION_TIMESTAMPS && size == 10) {
		found->timestamp_value = tcp_option_word(walk, 2);
		found->timestamp_echo = tcp_option_word(walk, 6);
		found->timestamps = 1;
	} else if (kind == TCP_OPTION_SEGMENT_SIZE && size == 4) {
		found->segment_size = tcp_option_word(walk, 0);
	} else if (kind == TCP_OPTION_SCALE && size == 3) {
		__u32 scale = tcp_option_byte(walk, 2);

		/* RFC 7323, 2.3: more than 14 counts as 14 */
		found->scale = scale > TCP_SCALE_MAX ? TCP_SCALE_MAX : scale;
	} else if (kind == TCP_OPTION_SACK_PERMITTED && size == 2) {
		found->sack_permitted = 1;
	}
	walk->at += size;
	return 0;
}

/*
 * Reads the first `length` (0 .. TCP_OPTIONS_MAX) of walk->bytes into walk->found. Unknown options are skipped, of equal ones the last
 * counts, as in Linux. 0; -EINVAL: an option's length is impossible, and nothing of what was found is to be relied upon.
 */
static __always_inline int tcp_options_read(struct tcp_options_walk *walk, __u32 length)
{
	__builtin_memset(&walk->found, 0, sizeof(walk->found));
	walk->found.scale = TCP_SCALE_NONE;
	walk->at = 0;
	walk->length = length;
	walk->result = 0;
	if (length == 0)
		return 0;
	/* all that segments of most connections carry: two fillers, timestamps (RFC 7323, appendix A) */
	if (length == TCP_TIMESTAMPS_LENGTH &&
	    tcp_option_word(walk, 0) == TCP_OPTIONS_TIMESTAMPS_ALONE) {
		walk->found.timestamp_value = tcp_option_word(walk, 4);
		walk->found.timestamp_echo = tcp_option_word(walk, 8);
		walk->found.timestamps = 1;
		return 0;
	}
#ifdef __bpf__
	bpf_loop(TCP_OPTIONS_MAX, tcp_options_step, &walk, 0);
#else
	for (__u32 i = 0; i < TCP_OPTIONS_MAX && !tcp_options_step(i, &walk);)
		i++;
#endif
	return walk->result;
}

/* --- the packed byte -------------------------------------------------------------------------------------- */

/*
 * 7 6: class of the client's maximum segment size; 5 .. 2: its window scale or TCP_SCALE_NONE; 1: SACK permitted; 0: ECN.
 * Timestamps need no bit: once negotiated they are in every segment (RFC 7323, 3.2).
 */
#define TCP_PACKED_SACK 0x02
#define TCP_PACKED_ECN	0x01

static __always_inline __u16 tcp_segment_size_of(__u32 class, bool ipv6)
{
	/* 536 and 1220: what has to be assumed of a client that says nothing (RFC 9293, 3.7.1), and the least that
	 * Linux makes a socket with */
	switch (class & 3) {
	case 0:
		return ipv6 ? 1220 : 536;
	case 1:
		return ipv6 ? 1340 : 1360; /* tunnels */
	case 2:
		return ipv6 ? 1440 : 1460; /* Ethernet */
	default:
		return ipv6 ? 8940 : 8960; /* jumbo frames */
	}
}

/* The largest class that the client can take. */
static __always_inline __u8 tcp_segment_size_class(__u16 size, bool ipv6)
{
	if (size >= tcp_segment_size_of(3, ipv6))
		return 3;
	if (size >= tcp_segment_size_of(2, ipv6))
		return 2;
	return size >= tcp_segment_size_of(1, ipv6);
}

static __always_inline __u8 tcp_options_pack(const struct tcp_options *options, bool ecn, bool ipv6)
{
	return tcp_segment_size_class(options->segment_size, ipv6) << 6 |
	       (options->scale & 15) << 2 | (options->sack_permitted ? TCP_PACKED_SACK : 0) |
	       (ecn ? TCP_PACKED_ECN : 0);
}

static __always_inline __u8 tcp_packed_scale(__u8 packed)
{
	return packed >> 2 & 15;
}

static __always_inline __u16 tcp_packed_segment_size(__u8 packed, bool ipv6)
{
	return tcp_segment_size_of(packed >> 6, ipv6);
}

#endif /* WARMPATH_TCP_OPTIONS_H */
