/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The router's initial sequence number: proof that a client has completed a handshake of which nothing was kept.
 *
 * Owns: format and check (docs/handoff.md, section 2). May not know: packets, maps, where keys and time come from.
 *
 *    31 30  29 ........ 22  21 ........ 0
 *    slot   packed options  low 22 bits of H1
 *    `-- xor low 10 of H0 --'
 *
 * H0 and H1 are SipHash-2-4 of messages of different length with a common beginning: connection and the client's initial sequence number; and
 * the same with slot and options.
 */
#ifndef WARMPATH_COOKIE_H
#define WARMPATH_COOKIE_H

#include "layout.h"
#include "siphash.h"
#include "tcp_options.h"

#define COOKIE_MAC_BITS	 22
#define COOKIE_SLOT_BITS 2
#define COOKIE_MASK_BITS 10

enum cookie_verdict {
	COOKIE_BAD = 0,
	COOKIE_GOOD = 1,
	COOKIE_EXPIRED = 2, /* ours, but too old */
};

/* What a cookie is about. */
struct cookie_subject {
	struct address client;
	struct address service;
	__be16 client_port;
	__be16 service_port;
	__u32 client_sequence; /* the client's initial sequence number */
};

/* Number of the time slot (137 s) of a time in nanoseconds of CLOCK_TAI. */
static __always_inline __u32 cookie_slot(__u64 nanoseconds)
{
	return nanoseconds >> 37;
}

static __always_inline __u64 cookie_word(__be32 low, __be32 high)
{
	return (__u64)high << 32 | low;
}

static __always_inline struct siphash cookie_begin(const struct siphash_key *key,
						   const struct cookie_subject *subject)
{
	struct siphash state = siphash_start(key);
	const struct address *client = &subject->client, *service = &subject->service;

	siphash_word(&state, cookie_word(client->word[0], client->word[1]));
	siphash_word(&state, cookie_word(client->word[2], client->word[3]));
	siphash_word(&state, cookie_word(service->word[0], service->word[1]));
	siphash_word(&state, cookie_word(service->word[2], service->word[3]));
	siphash_word(&state, (__u64)subject->client_sequence << 32 |
				     (__u64)subject->service_port << 16 | subject->client_port);
	return state;
}

#define COOKIE_COMMON_LENGTH 40

static __always_inline __u32 cookie_mac(struct siphash state, __u32 slot, __u8 options)
{
	siphash_word(&state, (__u64)slot << 8 | options);
	return siphash_end(state, 0, COOKIE_COMMON_LENGTH + 8) & ((1u << COOKIE_MAC_BITS) - 1);
}

static __always_inline __u32 cookie_mask(struct siphash state)
{
	return siphash_end(state, 0, COOKIE_COMMON_LENGTH) & ((1u << COOKIE_MASK_BITS) - 1);
}

/* slot: now, cookie_slot(). options: tcp_options_pack(). Any 32-bit number may come out. */
static __always_inline __u32 cookie_make(const struct siphash_key *key,
					 const struct cookie_subject *subject, __u32 slot,
					 __u8 options)
{
	struct siphash state = cookie_begin(key, subject);
	__u32 head = (slot & ((1u << COOKIE_SLOT_BITS) - 1)) << 8 | options;

	return (head ^ cookie_mask(state)) << COOKIE_MAC_BITS | cookie_mac(state, slot, options);
}

/*
 * Is `cookie` one that was made with this key? Good from one slot before `slot` to one after it (a neighbouring router's clock may be ahead).
 * *options is set where the verdict is not COOKIE_BAD.
 */
static __always_inline enum cookie_verdict cookie_check(const struct siphash_key *key,
							const struct cookie_subject *subject,
							__u32 cookie, __u32 slot, __u8 *options)
{
	struct siphash state = cookie_begin(key, subject);
	__u32 head = cookie >> COOKIE_MAC_BITS ^ cookie_mask(state);
	__u32 age = (slot - (head >> 8)) & ((1u << COOKIE_SLOT_BITS) - 1);
	__u32 made = age == 3 ? slot + 1 : slot - age;

	if ((cookie & ((1u << COOKIE_MAC_BITS) - 1)) != cookie_mac(state, made, head & 0xff))
		return COOKIE_BAD;
	*options = head & 0xff;
	return age == 2 ? COOKIE_EXPIRED : COOKIE_GOOD;
}

#endif /* WARMPATH_COOKIE_H */
