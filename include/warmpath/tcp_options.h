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

static __always_inline __u32 tcp_option_word(const __u8 *options, __u32 at)
{
	return (__u32)options[at & 63] << 24 | (__u32)options[(at + 1) & 63] << 16 |
	       (__u32)options[(at + 2) & 63] << 8 | options[(at + 3) & 63];
}

/*
 * Reads `length` (0 .. TCP_OPTIONS_MAX) bytes of options; `options` has TCP_OPTIONS_SIZE bytes. Unknown options are skipped, of equal
 * ones the last counts, as in Linux. 0; -EINVAL: an option's length is impossible, and nothing in `found` is to be relied upon.
 */
static __always_inline int tcp_options_read(const __u8 *options, __u32 length,
					    struct tcp_options *found)
{
	__u32 at = 0;

	found->timestamp_value = 0;
	found->timestamp_echo = 0;
	found->segment_size = 0;
	found->scale = TCP_SCALE_NONE;
	found->sack_permitted = 0;
	found->timestamps = 0;

	for (int i = 0; i < TCP_OPTIONS_MAX; i++) {
		__u32 kind, size;

		if (at >= length)
			return 0;
		kind = options[at & 63];
		if (kind == TCP_OPTION_END)
			return 0;
		if (kind == TCP_OPTION_NOTHING) {
			at++;
			continue;
		}
		size = options[(at + 1) & 63];
		if (size < 2 || at + size > length)
			return -EINVAL;
		if (kind == TCP_OPTION_TIMESTAMPS && size == 10) {
			found->timestamp_value = tcp_option_word(options, at + 2);
			found->timestamp_echo = tcp_option_word(options, at + 6);
			found->timestamps = 1;
		} else if (kind == TCP_OPTION_SEGMENT_SIZE && size == 4) {
			found->segment_size =
				(__u16)options[(at + 2) & 63] << 8 | options[(at + 3) & 63];
		} else if (kind == TCP_OPTION_SCALE && size == 3) {
			__u8 scale = options[(at + 2) & 63];

			/* RFC 7323, 2.3: more than 14 counts as 14 */
			found->scale = scale > TCP_SCALE_MAX ? TCP_SCALE_MAX : scale;
		} else if (kind == TCP_OPTION_SACK_PERMITTED && size == 2) {
			found->sack_permitted = 1;
		}
		at += size;
	}
	return 0;
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
