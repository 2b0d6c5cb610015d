/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring as the data path sees it: the header of the current generation, an id's hash, a key's point and home.
 *
 * Owns: reading the ring's maps. May not know: packets, policies, what a replica is beyond its slot.
 *
 * A program takes the header once per packet (ring_current) and hands it to all other functions here, and so sees one
 * generation throughout. Every table may be missing (a service without a ring, an agent killed in mid-swap): that is an
 * error returned, never a crash or a wrong answer.
 */
#ifndef WARMPATH_BPF_RING_H
#define WARMPATH_BPF_RING_H

#include <linux/errno.h>
#include <warmpath/blake2b.h>
#include <warmpath/md5.h>
#include <warmpath/ring.h>

#include "id_memory.h"
#include "maps.h"

/* The header of the service's current ring; NULL if it has none. */
static __always_inline const struct ring_header *ring_current(__u32 service)
{
	__u32 first = 0;
	void *table = bpf_map_lookup_elem(&rings, &service);

	if (!table)
		return NULL;
	return bpf_map_lookup_elem(table, &first);
}

/*
 * Global functions: the verifier walks their some thousand instructions once, however many ways lead to a call, and their
 * stack frames (about 150 bytes each) exist only while they run.
 */
__noinline __u64 ring_hash_blake2b(const struct ring_header *ring, const struct id_block *id,
				   __u32 length)
{
	if (!ring || !id || length > ID_LENGTH_MAX)
		return 0;
	return blake2b_64_block(ring->hash_state, ring->hash_keyed, id->word, length);
}

__noinline int ring_hash_md5(const struct id_block *id, __u32 length, struct md5_digest *digest)
{
	if (!id || !digest || length > ID_LENGTH_MAX)
		return -EINVAL;
	*digest = md5_id(id->word, length);
	return 0;
}

/* The hash of an id, computed. Of BLAKE2b all is in digest->high. */
static __always_inline void ring_hash_anew(const struct ring_header *ring,
					   const struct id_block *id, __u32 length,
					   struct md5_digest *digest)
{
	if (ring->dialect == RING_REPLICA_ROUTER)
		ring_hash_md5(id, length, digest);
	else
		digest->high = ring_hash_blake2b(ring, id, length);
}

/*
 * The ring key of an id. length: 1 to ID_LENGTH_MAX bytes (more: 0 is returned; an id is never longer).
 * low: the lower half of the id's MD5, which policy mod-n counts with in dialect replica-router; else 0.
 */
static __always_inline __u64 ring_hash_id(const struct ring_header *ring, const struct id_block *id,
					  __u32 length, __u64 *low)
{
	struct md5_digest digest = {};

	if (!id_recall(ring, id, length, &digest)) {
		ring_hash_anew(ring, id, length, &digest);
		id_remember(ring, id, length, &digest);
	}
	*low = digest.low;
	return digest.high;
}

/* Point `index` of the ring, 0 to point_count - 1; NULL if there is none. The walk from a key is ring_find()'s point and those after it. */
static __always_inline const struct ring_point *ring_point(const struct ring_header *ring,
							   __u32 index)
{
	__u32 slot = ring->slot;
	void *points;

	if (index >= ring->point_count)
		return NULL;
	points = bpf_map_lookup_elem(&ring_points, &slot);
	if (!points)
		return NULL;
	return bpf_map_lookup_elem(points, &index);
}

/* The bucket that covers the key; NULL if the ring is empty or its index missing. */
static __always_inline const struct ring_bucket *ring_key_bucket(const struct ring_header *ring,
								 __u64 hash)
{
	__u32 number = ring_bucket_number(hash, ring->index_bits & 31);
	__u32 slot = ring->slot;
	const struct ring_bucket *bucket;
	void *index;

	if (ring->point_count == 0)
		return NULL;
	if (ring->index_bits > RING_INDEX_BITS_SMALL) {
		index = bpf_map_lookup_elem(&ring_index_large, &slot);
		return index ? bpf_map_lookup_elem(index, &number) : NULL;
	}
	index = bpf_map_lookup_elem(&ring_index, &slot);
	if (!index)
		return NULL;
	bucket = bpf_map_lookup_elem(index, &number);
	WARMPATH_BARRIER(
		bucket); /* keeps the two calls apart: one for both tables would not be inlined */
	return bucket;
}

/* The search among a bucket's points. 0, or -ENOENT if the points are missing. */
static __always_inline int ring_search_points(const struct ring_header *ring,
					      const struct ring_bucket *bucket, __u64 hash,
					      __u32 *point_index)
{
	struct ring_search search = {bucket->first_point, bucket->point_count};
	enum ring_dialect dialect = ring->dialect;
	__u32 slot = ring->slot;
	void *points = bpf_map_lookup_elem(&ring_points, &slot);

	if (!points)
		return -ENOENT;
	for (int step = 0; step < RING_SEARCH_STEPS; step++) {
		const struct ring_point *point;
		__u32 probe;

		if (search.left == 0)
			break;
		probe = ring_search_probe(&search);
		point = bpf_map_lookup_elem(points, &probe);
		if (!point)
			return -ENOENT;
		ring_search_step(&search, point->hash, hash, dialect);
	}
	*point_index = ring_wrap(search.first, ring->point_count);
	return 0;
}

/*
 * The key's point, where its walk starts, and its home, the slot of the replica that owns that point.
 * 0; or -ENOENT if the ring is empty or one of its tables missing.
 */
static __always_inline int ring_look_up(const struct ring_header *ring, __u64 hash,
					__u32 *point_index, __u32 *replica)
{
	const struct ring_bucket *bucket = ring_key_bucket(ring, hash);
	const struct ring_point *point;
	__u32 behind;

	if (!bucket)
		return -ENOENT;
	if (ring_bucket_decides(bucket, hash, ring->index_bits & 31, &behind)) {
		*point_index = ring_wrap(bucket->first_point + behind, ring->point_count);
		*replica = bucket->replica ^ ((bucket->replica ^ bucket->next_replica) & -behind);
		return 0;
	}
	if (ring_search_points(ring, bucket, hash, point_index))
		return -ENOENT;
	point = ring_point(ring, *point_index);
	if (!point)
		return -ENOENT;
	*replica = (__u16)point->replica;
	return 0;
}

/* The key's point alone; errors as ring_look_up(). */
static __always_inline int ring_find(const struct ring_header *ring, __u64 hash, __u32 *point_index)
{
	__u32 replica;

	return ring_look_up(ring, hash, point_index, &replica);
}

__noinline int ring_find_home(const struct ring_header *ring, __u64 hash, __u32 *replica)
{
	__u32 point_index;

	if (!ring || !replica)
		return -EINVAL;
	return ring_look_up(ring, hash, &point_index, replica);
}

/*
 * The key's home alone; errors as ring_look_up(). By a call, for where it is not every packet's way: the verifier then walks the
 * search once and not in each place.
 */
static __always_inline int ring_home(const struct ring_header *ring, __u64 hash, __u32 *replica)
{
	__u32 home = 0;
	int err = ring_find_home(ring, hash, &home);

	*replica = home;
	return err;
}

#endif /* WARMPATH_BPF_RING_H */
