/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bpf/lib/ring.h alone: answers the question in the packet (ring_lookup.h).
 */
#include "lib/ring.h"

#include "../tests/datapath/ring_lookup.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct id_block);
} id_blocks SEC(".maps");

static __always_inline int answer(const struct ring_header *ring, struct lookup *lookup)
{
	const struct ring_point *point;
	int err;

	err = ring_find(ring, lookup->hash, &lookup->point);
	if (err)
		return err;
	err = ring_home(ring, lookup->hash, &lookup->replica);
	if (err)
		return err;
	point = ring_point(ring, lookup->point);
	if (!point)
		return -ENOENT;
	lookup->replica_of_point = point->replica;
	return 0;
}

SEC("xdp")
int ring_lookup(struct xdp_md *context)
{
	struct lookup *lookup = (void *)(long)context->data;
	const struct ring_header *ring;
	struct id_block *id;
	__u32 first = 0;

	if ((void *)(lookup + 1) > (void *)(long)context->data_end)
		return XDP_ABORTED;
	id = bpf_map_lookup_elem(&id_blocks, &first);
	if (!id)
		return XDP_ABORTED;
	ring = ring_current(lookup->service);
	if (!ring) {
		lookup->status = LOOKUP_NO_RING;
		return XDP_PASS;
	}
	lookup->generation = ring->generation;
	if (lookup->id_length > 0) {
		__u64 low;

		__builtin_memcpy(id->word, lookup->id, sizeof(id->word));
		lookup->hash = ring_hash_id(ring, id, lookup->id_length, &low);
	}
	lookup->error = answer(ring, lookup);
	lookup->status = lookup->error ? LOOKUP_FAILED : LOOKUP_DONE;
	return XDP_PASS;
}

/* Many keys of one generation in one packet: what a swap in between would tear. */
SEC("xdp")
int ring_lookup_many(struct xdp_md *context)
{
	struct lookup *lookup = (void *)(long)context->data;
	const struct ring_header *ring;
	__u64 hash;

	if ((void *)(lookup + 1) > (void *)(long)context->data_end)
		return XDP_ABORTED;
	ring = ring_current(lookup->service);
	if (!ring) {
		lookup->status = LOOKUP_NO_RING;
		return XDP_PASS;
	}
	lookup->generation = ring->generation;
	lookup->status = LOOKUP_DONE;
	hash = lookup->hash;
	for (int i = 0; i < LOOKUP_KEYS; i++, hash += LOOKUP_STEP) {
		lookup->error = ring_home(ring, hash, &lookup->homes[i]);
		if (lookup->error) {
			lookup->status = LOOKUP_FAILED;
			break;
		}
	}
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
