/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a key finds its point on the ring: prefix index, then, for one key in ten, a bounded binary search inside a bucket. The
 * kernel and user space run these same lines over the same tables (struct ring_header says which).
 *
 * Owns: the arithmetic of index and search. May not know: where the tables are (BPF maps, or memory), hashes, replicas.
 *
 *	bucket = index[ring_bucket_number(hash, index_bits)]
 *	if ring_bucket_decides(bucket, hash, index_bits, &behind):
 *		answer: ring_wrap(first_point + behind, point_count of the ring)
 *	ring_search search = {first_point, point_count of the bucket}
 *	for at most RING_SEARCH_STEPS steps, while search.left > 0:
 *		ring_search_step(&search, points[ring_search_probe(&search)].hash, hash, dialect)
 *	answer: ring_wrap(search.first, point_count of the ring)
 *
 * The key's successor among all points is its successor within its own bucket, or, if the bucket has none, the first point
 * behind the bucket: that is where the search ends by itself.
 */
#ifndef WARMPATH_RING_H
#define WARMPATH_RING_H

#include "layout.h"

#define RING_SEARCH_STEPS 16 /* enough for RING_BUCKET_POINTS_MAX points: 2^16 - 1 */

static __always_inline __u32 ring_bucket_number(__u64 hash, __u32 index_bits)
{
	return hash >> (64 - index_bits);
}

/* The 32 bits of a hash that follow its bucket's number. */
static __always_inline __u32 ring_bucket_fraction(__u64 hash, __u32 index_bits)
{
	return hash << index_bits >> 32;
}

/*
 * Whether the bucket alone says which point is the key's: first_point (*behind is 0) or the one after it (1). It does unless it has
 * two points or more, or key and point agree in all bits looked at. The answer is computed without a branch that the
 * processor would have to guess.
 */
static __always_inline bool ring_bucket_decides(const struct ring_bucket *bucket, __u64 hash,
						__u32 index_bits, __u32 *behind)
{
	__u64 fraction = ring_bucket_fraction(hash, index_bits);
	__u64 difference = bucket->first_fraction - fraction;

	WARMPATH_BARRIER(difference);
	*behind = difference >> 63; /* 1 if the point is before the key; never in an empty bucket */
	return bucket->point_count < 2 && difference != 0;
}

/* 1 if a < b, else 0, without a branch: the borrow of a - b. */
static __always_inline __u64 ring_less(__u64 a, __u64 b)
{
	return ((~a & b) | (~(a ^ b) & (a - b))) >> 63;
}

/*
 * 1 if the successor of `key` comes after this point, else 0. llm-ring: the successor is strictly greater than the key;
 * replica-router: greater or equal. Branch-free, and kept so from the compiler: a branch here would make the verifier walk
 * 2^RING_SEARCH_STEPS paths (kernel 6.18 and later do).
 */
static __always_inline __u32 ring_point_is_before(__u64 point, __u64 key, enum ring_dialect dialect)
{
	__u64 strict = dialect & RING_LLM; /* RING_LLM is 1, RING_REPLICA_ROUTER 2 */
	__u64 before = (ring_less(key, point) ^ 1) & strict;

	before |= ring_less(point, key);
	WARMPATH_BARRIER(before);
	return before;
}

struct ring_search {
	__u32 first; /* the first point that may be the answer; if left is 0, it is the answer */
	__u32 left;  /* how many points from there on have not been decided */
};

static __always_inline __u32 ring_search_probe(const struct ring_search *search)
{
	return search->first + search->left / 2;
}

/* Returns 1 if the successor comes after the point that was looked at; 0: it is that point or one before. */
static __always_inline __u32 ring_search_step(struct ring_search *search, __u64 point, __u64 key,
					      enum ring_dialect dialect)
{
	__u32 half = search->left / 2;
	__u32 before = ring_point_is_before(point, key, dialect);

	/* before: the points behind the probe are left (half, one less if left is even); else those in front of it (half) */
	search->first += (half + 1) & -before;
	search->left = half - (~search->left & before & 1);
	return before;
}

/* Behind the last point comes the first. */
static __always_inline __u32 ring_wrap(__u32 point, __u32 point_count)
{
	return point < point_count ? point : 0;
}

#endif /* WARMPATH_RING_H */
