/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking the ring: hash, look-up, walk, shares, mod-n. Building it is ring_build.c.
 */
#include "lib/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <warmpath/ring.h>

static const struct {
	enum ring_dialect dialect;
	const char *name;
	__u32 vnodes;
} dialects[] = {
	{RING_LLM, "llm-ring", RING_VNODES_LLM},
	{RING_REPLICA_ROUTER, "replica-router", RING_VNODES_REPLICA_ROUTER},
};

#define DIALECT_COUNT (sizeof(dialects) / sizeof(dialects[0]))

const char *ring_dialect_name(enum ring_dialect dialect)
{
	for (size_t i = 0; i < DIALECT_COUNT; i++)
		if (dialects[i].dialect == dialect)
			return dialects[i].name;
	return NULL;
}

int ring_parse_dialect(const char *name, enum ring_dialect *dialect)
{
	for (size_t i = 0; i < DIALECT_COUNT; i++) {
		if (strcmp(dialects[i].name, name) == 0) {
			*dialect = dialects[i].dialect;
			return 0;
		}
	}
	return -EINVAL;
}

__u32 ring_default_vnodes(enum ring_dialect dialect)
{
	for (size_t i = 0; i < DIALECT_COUNT; i++)
		if (dialects[i].dialect == dialect)
			return dialects[i].vnodes;
	return RING_VNODES_LLM;
}

__u64 ring_hash(const struct ring *ring, const void *id, size_t length)
{
	if (ring->header.dialect == RING_REPLICA_ROUTER)
		return md5(id, length).high;
	return blake2b_64(id, length, ring->hash_key, ring->hash_key_length);
}

int ring_lookup(const struct ring *ring, __u64 hash)
{
	const struct ring_header *header = &ring->header;
	const struct ring_bucket *bucket;
	struct ring_search search;
	__u32 behind;

	if (header->point_count == 0)
		return -ENOENT;
	bucket = &ring->index[ring_bucket_number(hash, header->index_bits)];
	if (ring_bucket_decides(bucket, hash, header->index_bits, &behind))
		return ring_wrap(bucket->first_point + behind, header->point_count);
	search.first = bucket->first_point;
	search.left = bucket->point_count;
	while (search.left > 0)
		ring_search_step(&search, ring->points[ring_search_probe(&search)].hash, hash,
				 header->dialect);
	return ring_wrap(search.first, header->point_count);
}

int ring_home_slot(const struct ring *ring, __u64 hash)
{
	int point = ring_lookup(ring, hash);

	return point < 0 ? point : (int)ring->points[point].replica;
}

size_t ring_walk(const struct ring *ring, __u64 hash, __u32 *members, size_t max)
{
	bool seen[REPLICAS_MAX] = {false};
	size_t found = 0;
	int point = ring_lookup(ring, hash);

	if (point < 0)
		return 0;
	if (max > ring->header.member_count)
		max = ring->header.member_count;
	while (found < max) {
		__u32 member = ring->member_of_slot[ring->points[point].replica];

		if (!seen[member]) {
			seen[member] = true;
			members[found++] = member;
		}
		point = ring_wrap(point + 1, ring->header.point_count);
	}
	return found;
}

int ring_mod_n(const struct ring *ring, __u64 hash)
{
	if (ring->header.member_count == 0)
		return -ENOENT;
	return hash % ring->header.member_count;
}

int ring_mod_n_of_id(const struct ring *ring, const void *id, size_t length)
{
	struct md5_digest digest;

	if (ring->header.member_count == 0)
		return -ENOENT;
	if (ring->header.dialect != RING_REPLICA_ROUTER)
		return ring_mod_n(ring, ring_hash(ring, id, length));
	digest = md5(id, length);
	return ((unsigned __int128)digest.high << 64 | digest.low) % ring->header.member_count;
}

void ring_shares(const struct ring *ring, double *shares)
{
	const unsigned __int128 whole = (unsigned __int128)1 << 64;
	unsigned __int128 arcs[REPLICAS_MAX] = {0};
	__u32 count = ring->header.point_count;

	/* a point owns what lies between its predecessor and itself; the first one, what lies behind the last one as well */
	for (__u32 i = 0; i < count; i++) {
		__u32 member = ring->member_of_slot[ring->points[i].replica];

		if (i == 0)
			arcs[member] += whole - ring->points[count - 1].hash + ring->points[0].hash;
		else
			arcs[member] += ring->points[i].hash - ring->points[i - 1].hash;
	}
	for (__u32 i = 0; i < ring->header.member_count; i++)
		shares[i] = (double)arcs[i] / (double)whole;
}

static int compare_name(const void *key, const void *name)
{
	return strcmp(key, name);
}

int ring_find_member(const struct ring *ring, const char *name)
{
	const char *found = NULL;

	if (ring->header.member_count > 0)
		found = bsearch(name, ring->names, ring->header.member_count,
				sizeof(ring->names[0]), compare_name);
	return found ? (int)((found - ring->names[0]) / REPLICA_NAME_SIZE) : -ENOENT;
}
