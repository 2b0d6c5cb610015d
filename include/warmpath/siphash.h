/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012), a word at a time: the MAC
 * under cookies and marks.
 *
 * Owns: the rounds. May not know: what is hashed.
 *
 * A message is fed as 64-bit words whose lowest byte comes first; siphash_end() takes what is left over (0 to 7 bytes, lowest byte first) and
 * the length of the whole message. The state is passed by value there, so that a common beginning is hashed once.
 */
#ifndef WARMPATH_SIPHASH_H
#define WARMPATH_SIPHASH_H

#include "portable.h"

struct siphash_key {
	__u64 word[2];
};

struct siphash {
	__u64 v0, v1, v2, v3;
};

#define SIPHASH_ROTATE(x, n) (((x) << (n)) | ((x) >> (64 - (n))))

static __always_inline void siphash_round(struct siphash *state)
{
	state->v0 += state->v1;
	state->v1 = SIPHASH_ROTATE(state->v1, 13) ^ state->v0;
	state->v0 = SIPHASH_ROTATE(state->v0, 32);
	state->v2 += state->v3;
	state->v3 = SIPHASH_ROTATE(state->v3, 16) ^ state->v2;
	state->v0 += state->v3;
	state->v3 = SIPHASH_ROTATE(state->v3, 21) ^ state->v0;
	state->v2 += state->v1;
	state->v1 = SIPHASH_ROTATE(state->v1, 17) ^ state->v2;
	state->v2 = SIPHASH_ROTATE(state->v2, 32);
}

static __always_inline struct siphash siphash_start(const struct siphash_key *key)
{
	struct siphash state = {
		.v0 = key->word[0] ^ 0x736f6d6570736575ULL,
		.v1 = key->word[1] ^ 0x646f72616e646f6dULL,
		.v2 = key->word[0] ^ 0x6c7967656e657261ULL,
		.v3 = key->word[1] ^ 0x7465646279746573ULL,
	};

	return state;
}

static __always_inline void siphash_word(struct siphash *state, __u64 word)
{
	state->v3 ^= word;
	siphash_round(state);
	siphash_round(state);
	state->v0 ^= word;
}

/* rest: the bytes behind the last whole word; length: of the message, in bytes. */
static __always_inline __u64 siphash_end(struct siphash state, __u64 rest, __u32 length)
{
	siphash_word(&state, (__u64)length << 56 | rest);
	state.v2 ^= 0xff;
	siphash_round(&state);
	siphash_round(&state);
	siphash_round(&state);
	siphash_round(&state);
	return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

#endif /* WARMPATH_SIPHASH_H */
