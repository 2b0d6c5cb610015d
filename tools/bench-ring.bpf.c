/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What bench-ring measures: one program for each step, each the one before plus that step.
 */
#include "lib/ring.h"

#define REFERENCE_INDEX_BITS 16

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct id_block);
} id_blocks SEC(".maps");

/* set by bench-ring between runs */
__u32 service = 0;
__u32 id_length = 16;

/* how often a look-up found nothing: must stay 0 */
__u64 failures = 0;

SEC("xdp")
int bench_floor(struct xdp_md *context)
{
	return XDP_PASS;
}

static __always_inline __u64 random_key(void)
{
	return (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
}

static __always_inline int give_up(void)
{
	__sync_fetch_and_add(&failures, 1);
	return XDP_ABORTED;
}

/* A key, and nothing done with it. */
SEC("xdp")
int bench_key(struct xdp_md *context)
{
	__u64 key = random_key();

	WARMPATH_BARRIER(key);
	return XDP_PASS;
}

/* The same, and its point and home: header, index, points. */
SEC("xdp")
int bench_home(struct xdp_md *context)
{
	const struct ring_header *ring;
	__u64 key = random_key();
	__u32 point, replica;

	ring = ring_current(service);
	if (!ring || ring_look_up(ring, key, &point, &replica))
		return give_up();
	WARMPATH_BARRIER(point);
	WARMPATH_BARRIER(replica);
	return XDP_PASS;
}

/*
 * What the ring's layout is compared with: a fixed index of 2^16 buckets and a linear scan, both tables behind outer maps, too, but
 * of one size fixed when the program is loaded, so that the kernel inlines the look-ups.
 */
struct reference_bucket {
	__u32 first_point;
	__u32 point_count;
};

struct reference_index {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << REFERENCE_INDEX_BITS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct reference_bucket));
};

#define REFERENCE(points)                                                                          \
	struct reference_points_##points {                                                         \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(max_entries, points);                                                       \
		__uint(key_size, sizeof(__u32));                                                   \
		__uint(value_size, sizeof(struct ring_point));                                     \
	} reference_points_##points SEC(".maps");                                                  \
	struct reference_index reference_index_##points SEC(".maps");                              \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                          \
		__uint(max_entries, 1);                                                            \
		__type(key, __u32);                                                                \
		__array(values, struct reference_points_##points);                                 \
	} reference_outer_points_##points SEC(".maps") = {.values = {&reference_points_##points}}; \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                          \
		__uint(max_entries, 1);                                                            \
		__type(key, __u32);                                                                \
		__array(values, struct reference_index);                                           \
	} reference_outer_index_##points SEC(".maps") = {.values = {&reference_index_##points}};   \
                                                                                                   \
	SEC("xdp")                                                                                 \
	int bench_reference_##points(struct xdp_md *context)                                       \
	{                                                                                          \
		return reference_look_up(&reference_outer_points_##points,                         \
					 &reference_outer_index_##points, points);                 \
	}

static __always_inline int reference_look_up(void *outer_points, void *outer_index, __u32 count)
{
	struct reference_bucket *bucket;
	struct ring_point *point;
	__u32 zero = 0, number, at, replica;
	__u64 key = random_key();
	void *points = bpf_map_lookup_elem(outer_points, &zero);
	void *index = bpf_map_lookup_elem(outer_index, &zero);

	if (!points || !index)
		return give_up();
	number = key >> (64 - REFERENCE_INDEX_BITS);
	bucket = bpf_map_lookup_elem(index, &number);
	if (!bucket)
		return give_up();
	at = bucket->first_point;
	for (int step = 0; step < 64; step++) {
		__u32 wrapped = at < count ? at : 0;

		point = bpf_map_lookup_elem(points, &wrapped);
		if (!point)
			return give_up();
		if (point->hash > key || wrapped != at) {
			replica = point->replica;
			WARMPATH_BARRIER(replica);
			return XDP_PASS;
		}
		at++;
	}
	return give_up();
}

REFERENCE(1200)
REFERENCE(15000)
REFERENCE(150000)
REFERENCE(1000000)

static __always_inline struct id_block *random_id(void)
{
	__u32 first = 0;
	struct id_block *id = bpf_map_lookup_elem(&id_blocks, &first);

	if (id)
		id->word[0] = random_key();
	return id;
}

/* An id in the scratch buffer and the ring's header, and nothing done with them. */
SEC("xdp")
int bench_id(struct xdp_md *context)
{
	const struct ring_header *ring = ring_current(service);

	if (!ring || !random_id())
		return give_up();
	return XDP_PASS;
}

/* The same, and the id's hash. */
SEC("xdp")
int bench_hash(struct xdp_md *context)
{
	const struct ring_header *ring = ring_current(service);
	struct id_block *id = random_id();
	struct md5_digest hash = {};

	if (!ring || !id)
		return give_up();
	ring_hash_anew(ring, id, id_length, &hash);
	WARMPATH_BARRIER(hash.high);
	return XDP_PASS;
}

/* The hash of one of the ids that were seen last. */
SEC("xdp")
int bench_recall(struct xdp_md *context)
{
	const struct ring_header *ring = ring_current(service);
	struct id_block *id = random_id();
	__u64 hash, low;

	if (!ring || !id)
		return give_up();
	id->word[0] &= IDS_REMEMBERED / 4 - 1;
	hash = ring_hash_id(ring, id, id_length, &low);
	WARMPATH_BARRIER(hash);
	return XDP_PASS;
}

/* The same, and the hash's home: from an id to its replica. */
SEC("xdp")
int bench_id_home(struct xdp_md *context)
{
	const struct ring_header *ring = ring_current(service);
	struct id_block *id = random_id();
	struct md5_digest hash = {};
	__u32 point, replica;

	if (!ring || !id)
		return give_up();
	ring_hash_anew(ring, id, id_length, &hash);
	if (ring_look_up(ring, hash.high, &point, &replica))
		return give_up();
	WARMPATH_BARRIER(point);
	WARMPATH_BARRIER(replica);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
