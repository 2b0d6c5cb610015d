/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hashes of the ids that this processor saw last: conversations go on, so most requests carry one of them, and a hash costs more than
 * all the rest of a decision.
 *
 * Owns: the map, how an entry is found. May not know: how an id is hashed.
 *
 * An entry is good for ever, as an id's hash depends on nothing but the id, its length, the dialect and the secret; all of them are
 * compared, the secret by the state of the hash that it leads to. An id has one place; another one in it is written over.
 */
#ifndef WARMPATH_BPF_ID_MEMORY_H
#define WARMPATH_BPF_ID_MEMORY_H

#include <warmpath/md5.h>

#include "maps.h"

#define IDS_REMEMBERED 256 /* by each processor; a power of two */

/* An id on its way to being hashed: zero behind its last byte. Callers keep one in a per-CPU array map. */
struct id_block {
	__u64 word[ID_LENGTH_MAX / 8];
};

struct remembered_id {
	__u64 state;  /* the first word of the ring's hash_state */
	__u32 length; /* 0: nothing is remembered here */
	__u32 dialect;
	struct md5_digest hash;
	struct id_block id;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, IDS_REMEMBERED);
	__type(key, __u32);
	__type(value, struct remembered_id);
} remembered_ids SEC(".maps");

/* The only place where the id can be. Ids often differ in a few characters only, anywhere: each word counts, with a factor of its own. */
static __always_inline struct remembered_id *id_memory_place(const struct id_block *id)
{
	__u64 mixed = 0;
	__u32 place;

#pragma unroll
	for (int i = 0; i < ID_LENGTH_MAX / 8; i++)
		mixed += id->word[i] * (0x9e3779b97f4a7c15ULL * (2 * i + 1));
	mixed ^= mixed >> 32;
	place = (__u32)mixed * 0x9e3779b1u / (0x100000000ULL / IDS_REMEMBERED);
	return bpf_map_lookup_elem(&remembered_ids, &place);
}

/*
 * The hash of the id into *hash, if it is remembered: 1, else 0.
 * A global function: verified once.
 */
__noinline int id_recall(const struct ring_header *ring, const struct id_block *id, __u32 length,
			 struct md5_digest *hash)
{
	const struct remembered_id *known;
	__u64 differing;

	if (!ring || !id || !hash)
		return 0;
	known = id_memory_place(id);
	if (!known)
		return 0;
	differing = known->state ^ ring->hash_state[0];
	differing |= (known->length ^ length) | (known->dialect ^ ring->dialect);
#pragma unroll
	for (int i = 0; i < ID_LENGTH_MAX / 8; i++)
		differing |= known->id.word[i] ^ id->word[i];
	if (differing)
		return 0;
	*hash = known->hash;
	return 1;
}

/*
 * Remembers the id's hash in the place of another.
 * A global function: verified once.
 */
__noinline int id_remember(const struct ring_header *ring, const struct id_block *id, __u32 length,
			   const struct md5_digest *hash)
{
	struct remembered_id *known;

	if (!ring || !id || !hash)
		return 0;
	known = id_memory_place(id);
	if (!known)
		return 0;
	known->state = ring->hash_state[0];
	known->length = length;
	known->dialect = ring->dialect;
	known->hash = *hash;
	known->id = *id;
	return 0;
}

#endif /* WARMPATH_BPF_ID_MEMORY_H */
