/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MD5 (RFC 1321), read as a big-endian number: the hash of ring points and ids in the dialect `replica-router`. It spreads keys; it
 * protects nothing.
 *
 * Owns: the compression function, padding, reading the digest. May not know: rings, packets, maps.
 */
#ifndef WARMPATH_MD5_H
#define WARMPATH_MD5_H

#include "portable.h"

#define MD5_BLOCK_SIZE	    64
#define MD5_ID_LENGTH_MAX   128
#define MD5_ID_BLOCKS_MAX   3 /* 128 bytes, the mark 0x80 and eight bytes of length */
#define MD5_LENGTH_POSITION 56

struct md5_digest {
	__u64 high; /* the first eight bytes of the digest, big-endian */
	__u64 low;  /* the last eight */
};

/* RFC 1321 section 3.4 */
#define MD5_F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define MD5_G(x, y, z) ((y) ^ ((z) & ((x) ^ (y))))
#define MD5_H(x, y, z) ((x) ^ (y) ^ (z))
#define MD5_I(x, y, z) ((y) ^ ((x) | ~(z)))

#define MD5_STEP(function, a, b, c, d, word, shift, constant)        \
	do {                                                         \
		(a) += function(b, c, d) + words[word] + (constant); \
		(a) = ((a) << (shift)) | ((a) >> (32 - (shift)));    \
		(a) += (b);                                          \
	} while (0)

static __always_inline void md5_start(__u32 state[4])
{
	state[0] = 0x67452301;
	state[1] = 0xefcdab89;
	state[2] = 0x98badcfe;
	state[3] = 0x10325476;
}

static __always_inline void md5_compress(__u32 state[4], const __u32 words[16])
{
	__u32 a = state[0], b = state[1], c = state[2], d = state[3];

	WARMPATH_BARRIER(words);
	MD5_STEP(MD5_F, a, b, c, d, 0, 7, 0xd76aa478);
	MD5_STEP(MD5_F, d, a, b, c, 1, 12, 0xe8c7b756);
	MD5_STEP(MD5_F, c, d, a, b, 2, 17, 0x242070db);
	MD5_STEP(MD5_F, b, c, d, a, 3, 22, 0xc1bdceee);
	MD5_STEP(MD5_F, a, b, c, d, 4, 7, 0xf57c0faf);
	MD5_STEP(MD5_F, d, a, b, c, 5, 12, 0x4787c62a);
	MD5_STEP(MD5_F, c, d, a, b, 6, 17, 0xa8304613);
	MD5_STEP(MD5_F, b, c, d, a, 7, 22, 0xfd469501);
	MD5_STEP(MD5_F, a, b, c, d, 8, 7, 0x698098d8);
	MD5_STEP(MD5_F, d, a, b, c, 9, 12, 0x8b44f7af);
	MD5_STEP(MD5_F, c, d, a, b, 10, 17, 0xffff5bb1);
	MD5_STEP(MD5_F, b, c, d, a, 11, 22, 0x895cd7be);
	MD5_STEP(MD5_F, a, b, c, d, 12, 7, 0x6b901122);
	MD5_STEP(MD5_F, d, a, b, c, 13, 12, 0xfd987193);
	MD5_STEP(MD5_F, c, d, a, b, 14, 17, 0xa679438e);
	MD5_STEP(MD5_F, b, c, d, a, 15, 22, 0x49b40821);
	WARMPATH_READ_AGAIN();
	MD5_STEP(MD5_G, a, b, c, d, 1, 5, 0xf61e2562);
	MD5_STEP(MD5_G, d, a, b, c, 6, 9, 0xc040b340);
	MD5_STEP(MD5_G, c, d, a, b, 11, 14, 0x265e5a51);
	MD5_STEP(MD5_G, b, c, d, a, 0, 20, 0xe9b6c7aa);
	MD5_STEP(MD5_G, a, b, c, d, 5, 5, 0xd62f105d);
	MD5_STEP(MD5_G, d, a, b, c, 10, 9, 0x02441453);
	MD5_STEP(MD5_G, c, d, a, b, 15, 14, 0xd8a1e681);
	MD5_STEP(MD5_G, b, c, d, a, 4, 20, 0xe7d3fbc8);
	MD5_STEP(MD5_G, a, b, c, d, 9, 5, 0x21e1cde6);
	MD5_STEP(MD5_G, d, a, b, c, 14, 9, 0xc33707d6);
	MD5_STEP(MD5_G, c, d, a, b, 3, 14, 0xf4d50d87);
	MD5_STEP(MD5_G, b, c, d, a, 8, 20, 0x455a14ed);
	MD5_STEP(MD5_G, a, b, c, d, 13, 5, 0xa9e3e905);
	MD5_STEP(MD5_G, d, a, b, c, 2, 9, 0xfcefa3f8);
	MD5_STEP(MD5_G, c, d, a, b, 7, 14, 0x676f02d9);
	MD5_STEP(MD5_G, b, c, d, a, 12, 20, 0x8d2a4c8a);
	WARMPATH_READ_AGAIN();
	MD5_STEP(MD5_H, a, b, c, d, 5, 4, 0xfffa3942);
	MD5_STEP(MD5_H, d, a, b, c, 8, 11, 0x8771f681);
	MD5_STEP(MD5_H, c, d, a, b, 11, 16, 0x6d9d6122);
	MD5_STEP(MD5_H, b, c, d, a, 14, 23, 0xfde5380c);
	MD5_STEP(MD5_H, a, b, c, d, 1, 4, 0xa4beea44);
	MD5_STEP(MD5_H, d, a, b, c, 4, 11, 0x4bdecfa9);
	MD5_STEP(MD5_H, c, d, a, b, 7, 16, 0xf6bb4b60);
	MD5_STEP(MD5_H, b, c, d, a, 10, 23, 0xbebfbc70);
	MD5_STEP(MD5_H, a, b, c, d, 13, 4, 0x289b7ec6);
	MD5_STEP(MD5_H, d, a, b, c, 0, 11, 0xeaa127fa);
	MD5_STEP(MD5_H, c, d, a, b, 3, 16, 0xd4ef3085);
	MD5_STEP(MD5_H, b, c, d, a, 6, 23, 0x04881d05);
	MD5_STEP(MD5_H, a, b, c, d, 9, 4, 0xd9d4d039);
	MD5_STEP(MD5_H, d, a, b, c, 12, 11, 0xe6db99e5);
	MD5_STEP(MD5_H, c, d, a, b, 15, 16, 0x1fa27cf8);
	MD5_STEP(MD5_H, b, c, d, a, 2, 23, 0xc4ac5665);
	WARMPATH_READ_AGAIN();
	MD5_STEP(MD5_I, a, b, c, d, 0, 6, 0xf4292244);
	MD5_STEP(MD5_I, d, a, b, c, 7, 10, 0x432aff97);
	MD5_STEP(MD5_I, c, d, a, b, 14, 15, 0xab9423a7);
	MD5_STEP(MD5_I, b, c, d, a, 5, 21, 0xfc93a039);
	MD5_STEP(MD5_I, a, b, c, d, 12, 6, 0x655b59c3);
	MD5_STEP(MD5_I, d, a, b, c, 3, 10, 0x8f0ccc92);
	MD5_STEP(MD5_I, c, d, a, b, 10, 15, 0xffeff47d);
	MD5_STEP(MD5_I, b, c, d, a, 1, 21, 0x85845dd1);
	MD5_STEP(MD5_I, a, b, c, d, 8, 6, 0x6fa87e4f);
	MD5_STEP(MD5_I, d, a, b, c, 15, 10, 0xfe2ce6e0);
	MD5_STEP(MD5_I, c, d, a, b, 6, 15, 0xa3014314);
	MD5_STEP(MD5_I, b, c, d, a, 13, 21, 0x4e0811a1);
	MD5_STEP(MD5_I, a, b, c, d, 4, 6, 0xf7537e82);
	MD5_STEP(MD5_I, d, a, b, c, 11, 10, 0xbd3af235);
	MD5_STEP(MD5_I, c, d, a, b, 2, 15, 0x2ad7d2bb);
	MD5_STEP(MD5_I, b, c, d, a, 9, 21, 0xeb86d391);

	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

static __always_inline __u32 md5_little_endian(__u32 word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap32(word);
#endif
	return word;
}

static __always_inline struct md5_digest md5_read_digest(const __u32 state[4])
{
	struct md5_digest digest = {
		.high = (__u64)__builtin_bswap32(state[0]) << 32 | __builtin_bswap32(state[1]),
		.low = (__u64)__builtin_bswap32(state[2]) << 32 | __builtin_bswap32(state[3]),
	};

	return digest;
}

/* 1 if a equals b, else 0. Both below 2^31. */
static __always_inline __u32 md5_equal(__u32 a, __u32 b)
{
	__u32 equal = ((a ^ b) - 1) >> 31;

	WARMPATH_BARRIER(equal);
	return equal;
}

/*
 * The hash of an id of at most MD5_ID_LENGTH_MAX bytes: one to three compressions (55 and 119 bytes are the last
 * that take one and two).
 *
 * id: MD5_ID_LENGTH_MAX bytes, zero behind the id; in BPF aligned to 4 bytes. length: 0 to MD5_ID_LENGTH_MAX.
 */
static __always_inline struct md5_digest md5_id(const void *id, __u32 length)
{
	typedef __u32 __attribute__((__may_alias__)) aliasing_u32;
	__u32 blocks = (length + 8) / MD5_BLOCK_SIZE + 1;
	__u32 words[16], state[4];

	md5_start(state);
	for (__u32 block = 0; block < MD5_ID_BLOCKS_MAX; block++) {
		if (block >= blocks)
			break;
		for (__u32 i = 0; i < 16; i++)
			words[i] = 0;
		if (block < MD5_ID_LENGTH_MAX / MD5_BLOCK_SIZE) {
			const aliasing_u32 *input = (const aliasing_u32 *)id + block * 16;

			for (__u32 i = 0; i < 16; i++)
				words[i] = md5_little_endian(input[i]);
		}
		/* without branches, which would have the verifier walk the compression again for each way through them */
		words[length / 4 % 16] |= md5_equal(block, length / MD5_BLOCK_SIZE)
					  << (length % 4 * 8 + 7);
		words[MD5_LENGTH_POSITION / 4] |= -md5_equal(block, blocks - 1) & (length * 8);
		md5_compress(state, words);
	}
	return md5_read_digest(state);
}

#ifndef __bpf__

/* The hash of an input of any length. */
static inline struct md5_digest md5(const void *input, size_t length)
{
	const __u8 *next = input;
	size_t left = length;
	__u64 bits = htole64((__u64)length * 8);
	__u8 block[MD5_BLOCK_SIZE];
	__u32 words[16], state[4];
	bool marked = false, done = false;

	md5_start(state);
	while (!done) {
		size_t taken = left < MD5_BLOCK_SIZE ? left : MD5_BLOCK_SIZE;

		memset(block, 0, sizeof(block));
		if (taken > 0)
			memcpy(block, next, taken);
		next += taken;
		left -= taken;
		if (taken < MD5_BLOCK_SIZE && !marked) {
			block[taken] = 0x80;
			marked = true;
			taken++;
		}
		if (marked && taken <= MD5_LENGTH_POSITION) {
			memcpy(block + MD5_LENGTH_POSITION, &bits, sizeof(bits));
			done = true;
		}
		memcpy(words, block, sizeof(words));
		for (int i = 0; i < 16; i++)
			words[i] = md5_little_endian(words[i]);
		md5_compress(state, words);
	}
	return md5_read_digest(state);
}

#endif /* !__bpf__ */

#endif /* WARMPATH_MD5_H */
