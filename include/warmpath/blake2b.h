/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BLAKE2b with an 8-byte digest (RFC 7693), keyed or not, read as a big-endian number: the hash of ring points and ids in the
 * dialect `llm-ring` (docs/design.md, "The ring in maps").
 *
 * Owns: the compression function and the two ways it is used. May not know: rings, packets, maps.
 *
 * An id fits one block, so the kernel needs exactly one compression per id, with a key as well: what the key's own
 * block does to the state is the same for every id, and is computed once, in user space (blake2b_64_start).
 */
#ifndef WARMPATH_BLAKE2B_H
#define WARMPATH_BLAKE2B_H

#include "portable.h"

#define BLAKE2B_BLOCK_SIZE     128
#define BLAKE2B_KEY_LENGTH_MAX 64

#define BLAKE2B_IV_0 0x6a09e667f3bcc908ULL
#define BLAKE2B_IV_1 0xbb67ae8584caa73bULL
#define BLAKE2B_IV_2 0x3c6ef372fe94f82bULL
#define BLAKE2B_IV_3 0xa54ff53a5f1d36f1ULL
#define BLAKE2B_IV_4 0x510e527fade682d1ULL
#define BLAKE2B_IV_5 0x9b05688c2b3e6c1fULL
#define BLAKE2B_IV_6 0x1f83d9abfb41bd6bULL
#define BLAKE2B_IV_7 0x5be0cd19137e2179ULL

/* Message word `index` of a block. In BPF the block must be aligned to 8 bytes (a map value is). */
static __always_inline __u64 blake2b_word(const void *block, __u32 index)
{
#ifdef __bpf__
	typedef __u64 __attribute__((__may_alias__)) aliasing_u64;
	__u64 word = ((const aliasing_u64 *)block)[index];
#else
	__u64 word;

	memcpy(&word, (const __u8 *)block + index * 8, sizeof(word));
#endif
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

#define BLAKE2B_ROTATE(x, n) (((x) >> (n)) | ((x) << (64 - (n))))

/* RFC 7693 section 3.1: the mixing function G, with message words x and y. */
#define BLAKE2B_MIX(a, b, c, d, x, y)                   \
	do {                                            \
		v[a] += v[b] + blake2b_word(block, x);  \
		v[d] = BLAKE2B_ROTATE(v[d] ^ v[a], 32); \
		v[c] += v[d];                           \
		v[b] = BLAKE2B_ROTATE(v[b] ^ v[c], 24); \
		v[a] += v[b] + blake2b_word(block, y);  \
		v[d] = BLAKE2B_ROTATE(v[d] ^ v[a], 16); \
		v[c] += v[d];                           \
		v[b] = BLAKE2B_ROTATE(v[b] ^ v[c], 63); \
	} while (0)

#define BLAKE2B_ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15) \
	do {                                                                                \
		BLAKE2B_MIX(0, 4, 8, 12, s0, s1);                                           \
		BLAKE2B_MIX(1, 5, 9, 13, s2, s3);                                           \
		BLAKE2B_MIX(2, 6, 10, 14, s4, s5);                                          \
		BLAKE2B_MIX(3, 7, 11, 15, s6, s7);                                          \
		BLAKE2B_MIX(0, 5, 10, 15, s8, s9);                                          \
		BLAKE2B_MIX(1, 6, 11, 12, s10, s11);                                        \
		BLAKE2B_MIX(2, 7, 8, 13, s12, s13);                                         \
		BLAKE2B_MIX(3, 4, 9, 14, s14, s15);                                         \
		WARMPATH_READ_AGAIN();                                                      \
	} while (0)

/*
 * RFC 7693 section 3.2: the compression function F. `counted`: how many bytes of input have been read, this block's included
 * (below 2^64, so the counter's upper half is 0). Written out round by round, because BPF has no fast indexed
 * access to a stack array, and so that what the caller does not use of the result is not computed.
 */
static __always_inline void blake2b_compress(__u64 state[8], const void *block, __u64 counted,
					     bool last)
{
	__u64 v[16] = {
		state[0],     state[1],	    state[2],	  state[3],	state[4],     state[5],
		state[6],     state[7],	    BLAKE2B_IV_0, BLAKE2B_IV_1, BLAKE2B_IV_2, BLAKE2B_IV_3,
		BLAKE2B_IV_4, BLAKE2B_IV_5, BLAKE2B_IV_6, BLAKE2B_IV_7,
	};

	v[12] ^= counted;
	if (last)
		v[14] = ~v[14];

	/* section 2.7: the message schedule; rounds 10 and 11 repeat 0 and 1 */
	BLAKE2B_ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	BLAKE2B_ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
	BLAKE2B_ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
	BLAKE2B_ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
	BLAKE2B_ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
	BLAKE2B_ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
	BLAKE2B_ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
	BLAKE2B_ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
	BLAKE2B_ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
	BLAKE2B_ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
	BLAKE2B_ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	BLAKE2B_ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);

	for (int i = 0; i < 8; i++)
		state[i] ^= v[i] ^ v[i + 8];
}

/*
 * The hash of an input that fits one block: one compression, whether keyed or not.
 *
 * start: what blake2b_64_start() made of the key. keyed: whether there was one.
 * block: BLAKE2B_BLOCK_SIZE bytes, zero behind the input; in BPF aligned to 8 bytes.
 * length: of the input: 0 to 128 without a key, 1 to 128 with one (the key's block is then the last of an empty input).
 */
static __always_inline __u64 blake2b_64_block(const __u64 start[8], bool keyed, const void *block,
					      __u32 length)
{
	__u64 state[8] = {start[0], start[1], start[2], start[3],
			  start[4], start[5], start[6], start[7]};
	__u64 before = keyed ? BLAKE2B_BLOCK_SIZE : 0;

	blake2b_compress(state, block, before + length, true);
	return __builtin_bswap64(state[0]); /* the digest's bytes are the word's, lowest first */
}

#ifndef __bpf__

/* The chaining value before the first block (RFC 7693 section 2.5): 8 bytes of digest, no tree. */
static inline void blake2b_64_parameters(__u64 state[8], size_t key_length)
{
	static const __u64 initial[8] = {BLAKE2B_IV_0, BLAKE2B_IV_1, BLAKE2B_IV_2, BLAKE2B_IV_3,
					 BLAKE2B_IV_4, BLAKE2B_IV_5, BLAKE2B_IV_6, BLAKE2B_IV_7};

	memcpy(state, initial, sizeof(initial));
	state[0] ^= 0x01010000ULL ^ ((__u64)key_length << 8) ^ 8;
}

/*
 * The state to start an input's first block from: after the key's block, if there is a key.
 * key_length: 0 (no key) to BLAKE2B_KEY_LENGTH_MAX.
 */
static inline void blake2b_64_start(__u64 state[8], const void *key, size_t key_length)
{
	__u8 block[BLAKE2B_BLOCK_SIZE] = {0};

	blake2b_64_parameters(state, key_length);
	if (key_length > 0) {
		memcpy(block, key, key_length);
		blake2b_compress(state, block, BLAKE2B_BLOCK_SIZE, false);
		explicit_bzero(block, sizeof(block));
	}
}

/* The hash of an input of any length. key_length: 0 (no key) to BLAKE2B_KEY_LENGTH_MAX. */
static inline __u64 blake2b_64(const void *input, size_t length, const void *key, size_t key_length)
{
	const __u8 *next = input;
	__u8 block[BLAKE2B_BLOCK_SIZE];
	__u64 counted = 0;
	__u64 state[8];

	if (key_length > 0 && length == 0) {
		memset(block, 0, sizeof(block));
		memcpy(block, key, key_length);
		blake2b_64_parameters(state, key_length);
		blake2b_compress(state, block, BLAKE2B_BLOCK_SIZE, true);
		explicit_bzero(block, sizeof(block));
		return __builtin_bswap64(state[0]);
	}

	blake2b_64_start(state, key, key_length);
	if (key_length > 0)
		counted = BLAKE2B_BLOCK_SIZE;
	for (; length > BLAKE2B_BLOCK_SIZE; length -= BLAKE2B_BLOCK_SIZE) {
		counted += BLAKE2B_BLOCK_SIZE;
		blake2b_compress(state, next, counted, false);
		next += BLAKE2B_BLOCK_SIZE;
	}
	memset(block, 0, sizeof(block));
	if (length > 0)
		memcpy(block, next, length);
	blake2b_compress(state, block, counted + length, true);
	return __builtin_bswap64(state[0]);
}

#endif /* !__bpf__ */

#endif /* WARMPATH_BLAKE2B_H */
