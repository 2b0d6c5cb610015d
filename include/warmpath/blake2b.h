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

/* The message word at this byte offset. In BPF the block must be aligned to 8 bytes (a map value is). */
static __always_inline __u64 blake2b_word(const void *block, __u64 offset)
{
#ifdef __bpf__
	typedef __u64 __attribute__((__may_alias__)) aliasing_u64;
	__u64 word = *(const aliasing_u64 *)((const __u8 *)block + offset);
#else
	__u64 word;

	memcpy(&word, (const __u8 *)block + offset, sizeof(word));
#endif
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

#define BLAKE2B_ROTATE(x, n) (((x) >> (n)) | ((x) << (64 - (n))))

/*
 * RFC 7693 section 2.7: the message schedule, as byte offsets into the block; rounds 10 and 11 repeat 0 and 1. In BPF it lies in
 * .rodata, which libbpf freezes: the verifier reads the offsets as constants and needs no bounds check.
 */
static const __u8 blake2b_schedule[12][16] = {
	{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120},
	{112, 80, 32, 64, 72, 120, 104, 48, 8, 96, 0, 16, 88, 56, 40, 24},
	{88, 64, 96, 0, 40, 16, 120, 104, 80, 112, 24, 48, 56, 8, 72, 32},
	{56, 72, 24, 8, 104, 96, 88, 112, 16, 48, 40, 80, 32, 0, 120, 64},
	{72, 0, 40, 56, 16, 32, 80, 120, 112, 8, 88, 96, 48, 64, 24, 104},
	{16, 96, 48, 80, 0, 88, 64, 24, 32, 104, 56, 40, 120, 112, 8, 72},
	{96, 40, 8, 120, 112, 104, 32, 80, 0, 56, 48, 24, 72, 16, 64, 88},
	{104, 88, 56, 112, 96, 8, 24, 72, 40, 0, 120, 32, 64, 48, 16, 80},
	{48, 120, 112, 72, 88, 24, 0, 64, 96, 16, 104, 56, 8, 32, 80, 40},
	{80, 16, 64, 32, 56, 48, 8, 40, 120, 88, 72, 112, 24, 96, 104, 0},
	{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120},
	{112, 80, 32, 64, 72, 120, 104, 48, 8, 96, 0, 16, 88, 56, 40, 24},
};

/*
 * RFC 7693 section 3.1: the mixing function G, on the words a, b, c, d of v, with the message words that the schedule has at x and
 * x + 1.
 */
static __always_inline void blake2b_mix(__u64 *v, int a, int b, int c, int d, const void *block,
					const __u8 *schedule, int x)
{
	__u64 va = v[a], vb = v[b], vc = v[c], vd = v[d];

	va += vb + blake2b_word(block, schedule[x]);
	vd = BLAKE2B_ROTATE(vd ^ va, 32);
	vc += vd;
	vb = BLAKE2B_ROTATE(vb ^ vc, 24);
	va += vb + blake2b_word(block, schedule[x + 1]);
	vd = BLAKE2B_ROTATE(vd ^ va, 16);
	vc += vd;
	vb = BLAKE2B_ROTATE(vb ^ vc, 63);
	v[a] = va;
	v[b] = vb;
	v[c] = vc;
	v[d] = vd;
}

/*
 * RFC 7693 section 3.2: the compression function F. `counted`: how many bytes of input have been read, this block's included
 * (below 2^64, so the counter's upper half is 0).
 *
 * The rounds are a loop, also in BPF. Written out they are 20 kB of machine code, which is faster by a quarter where it stays in
 * the instruction cache, slower by a quarter where it does not; the loop is 3 kB and always takes the same time.
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

#ifdef __bpf__
#pragma clang loop unroll(disable)
#endif
	for (int round = 0; round < 12; round++) {
		const __u8 *schedule = blake2b_schedule[round];

		blake2b_mix(v, 0, 4, 8, 12, block, schedule, 0);
		blake2b_mix(v, 1, 5, 9, 13, block, schedule, 2);
		blake2b_mix(v, 2, 6, 10, 14, block, schedule, 4);
		blake2b_mix(v, 3, 7, 11, 15, block, schedule, 6);
		blake2b_mix(v, 0, 5, 10, 15, block, schedule, 8);
		blake2b_mix(v, 1, 6, 11, 12, block, schedule, 10);
		blake2b_mix(v, 2, 7, 8, 13, block, schedule, 12);
		blake2b_mix(v, 3, 4, 9, 14, block, schedule, 14);
	}

	for (int i = 0; i < 8; i++)
		state[i] ^= v[i] ^ v[i + 8];
}

/*
 * The hash of an input that fits one block: one compression, whether keyed or not.
 *
 * start: what blake2b_64_start() made of the key. keyed: 1 if there was one, else 0.
 * block: BLAKE2B_BLOCK_SIZE bytes, zero behind the input; in BPF aligned to 8 bytes.
 * length: of the input: 0 to 128 without a key, 1 to 128 with one (the key's block is then the last of an empty input).
 */
static __always_inline __u64 blake2b_64_block(const __u64 start[8], __u32 keyed, const void *block,
					      __u32 length)
{
	__u64 state[8] = {start[0], start[1], start[2], start[3],
			  start[4], start[5], start[6], start[7]};
	__u64 before = keyed * BLAKE2B_BLOCK_SIZE;

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
