/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The mark on a segment from router to replica: "this one may become a socket", or "there may be no socket yet".
 *
 * Owns: format and check (docs/handoff.md, section 4). May not know: how a packet is read or written, maps.
 *
 * A mark is an urgent pointer that is not zero in a segment without the URG flag:
 *
 *            15 14    13  12 11  10 .. 7  6     5    4 3         2 1 0
 *    START   version  1   size   scale    SACK  ECN  round trip  MAC, its high 3 bits
 *    FOLLOW  version  0   0
 *
 * The rest of a START's MAC is the IPv4 identification (16 bits) or the IPv6 flow label (20 bits).
 */
#ifndef WARMPATH_MARK_H
#define WARMPATH_MARK_H

#include "layout.h"
#include "siphash.h"
#include "tcp_options.h"

#define MARK_VERSION 1
/* Never on the wire: a replica's own segment, on its second way in. */
#define MARK_VERSION_AGAIN 3

#define MARK_VERSION_SHIFT    14
#define MARK_START	      0x2000
#define MARK_OPTIONS_SHIFT    5
#define MARK_ROUND_TRIP_SHIFT 3
#define MARK_MAC_MASK	      0x0007
#define MARK_MAC_HIGH_BITS    3
#define MARK_MAC_LOW_BITS_4   16
#define MARK_MAC_LOW_BITS_6   20

#define MARK_FOLLOW (MARK_VERSION << MARK_VERSION_SHIFT)

/* What a START's MAC is about: everything as it is on the wire between router and replica. */
struct mark_subject {
	struct address client;
	struct address replica;
	__be16 client_port;
	__be16 replica_port;
	__u32 sequence;
	__u32 acknowledgement;
};

static __always_inline __u32 mark_version(__u16 mark)
{
	return mark >> MARK_VERSION_SHIFT;
}

static __always_inline bool mark_is_start(__u16 mark)
{
	return mark & MARK_START;
}

static __always_inline __u8 mark_options(__u16 mark)
{
	return mark >> MARK_OPTIONS_SHIFT;
}

/* The urgent pointer of a START, but for its part of the MAC. round_trip: class, 0 .. 3. */
static __always_inline __u16 mark_start(__u8 options, __u8 round_trip)
{
	return MARK_VERSION << MARK_VERSION_SHIFT | MARK_START | options << MARK_OPTIONS_SHIFT |
	       (round_trip & 3) << MARK_ROUND_TRIP_SHIFT;
}

/* --- round-trip classes ------------------------------------------------------------------------------------ */

/* From a time in milliseconds to a class. */
static __always_inline __u8 mark_round_trip_class(__u32 milliseconds)
{
	return milliseconds < 16 ? 0 : milliseconds < 64 ? 1 : milliseconds < 256 ? 2 : 3;
}

/* What a new socket is told to have measured: 0 (the kernel makes 1 ms of it), 32, 128, 512 ms. */
static __always_inline __u32 mark_round_trip(__u16 mark)
{
	__u32 class = mark >> MARK_ROUND_TRIP_SHIFT & 3;

	return class ? 8u << (class * 2) : 0;
}

/* --- MAC --------------------------------------------------------------------------------------------------- */

static __always_inline __u32 mark_mac(const struct siphash_key *key,
				      const struct mark_subject *subject, __u16 mark, bool ipv6)
{
	struct siphash state = siphash_start(key);
	const struct address *client = &subject->client, *replica = &subject->replica;
	__u32 bits = MARK_MAC_HIGH_BITS + (ipv6 ? MARK_MAC_LOW_BITS_6 : MARK_MAC_LOW_BITS_4);

	/* the version a replica uses for itself counts as the one on the wire */
	mark &= (1u << MARK_VERSION_SHIFT) - 1 - MARK_MAC_MASK;
	mark |= MARK_VERSION << MARK_VERSION_SHIFT;
	siphash_word(&state, (__u64)client->word[1] << 32 | client->word[0]);
	siphash_word(&state, (__u64)client->word[3] << 32 | client->word[2]);
	siphash_word(&state, (__u64)replica->word[1] << 32 | replica->word[0]);
	siphash_word(&state, (__u64)replica->word[3] << 32 | replica->word[2]);
	siphash_word(&state, (__u64)subject->acknowledgement << 32 | subject->sequence);
	return siphash_end(state,
			   (__u64)mark << 32 | (__u32)subject->replica_port << 16 |
				   subject->client_port,
			   46) &
	       ((1u << bits) - 1);
}

/* The complete urgent pointer of a START; *low is for the identification or the flow label. */
static __always_inline __u16 mark_sign(const struct siphash_key *key,
				       const struct mark_subject *subject, __u16 mark, bool ipv6,
				       __u32 *low)
{
	__u32 mac = mark_mac(key, subject, mark, ipv6);
	__u32 low_bits = ipv6 ? MARK_MAC_LOW_BITS_6 : MARK_MAC_LOW_BITS_4;

	*low = mac & ((1u << low_bits) - 1);
	return mark | mac >> low_bits;
}

/* Is the MAC of a START right? low: identification or flow label. */
static __always_inline bool mark_check(const struct siphash_key *key,
				       const struct mark_subject *subject, __u16 mark, bool ipv6,
				       __u32 low)
{
	__u32 low_bits = ipv6 ? MARK_MAC_LOW_BITS_6 : MARK_MAC_LOW_BITS_4;

	return mark_mac(key, subject, mark, ipv6) == ((mark & MARK_MAC_MASK) << low_bits | low);
}

#endif /* WARMPATH_MARK_H */
