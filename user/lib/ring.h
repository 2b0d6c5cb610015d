/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring in user space: built from the set of replicas, byte for byte as the kernel will read it, and asked the same way.
 *
 * Owns: names, weights and virtual nodes; the order of points; index; walk, shares, mod-n. May not know: maps, sockets, files.
 *
 * A ring is a function of the set of (name, weight), the dialect, the number of virtual nodes and the key: the order in which
 * replicas are given, their slots and their addresses do not move a point.
 */
#ifndef WARMPATH_USER_RING_H
#define WARMPATH_USER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <warmpath/blake2b.h>
#include <warmpath/layout.h>
#include <warmpath/md5.h>

#include "lib/error.h"

#define RING_HASH_KEY_LENGTH_MAX BLAKE2B_KEY_LENGTH_MAX
#define RING_WEIGHT_ONE		 1000	 /* thousandths */
#define RING_WEIGHT_MAX		 1000000 /* thousandths */

/* Virtual nodes for each replica unless configured: as published for either dialect. */
#define RING_VNODES_LLM		   100
#define RING_VNODES_REPLICA_ROUTER 3

struct ring_settings {
	enum ring_dialect dialect;
	__u32 vnodes;		/* of a replica of weight 1: 1 to RING_POINTS_MAX */
	const void *hash_key;	/* dialect llm-ring only; borrowed during the call */
	size_t hash_key_length; /* 0: no key; to RING_HASH_KEY_LENGTH_MAX */
};

struct ring_replica {
	const char *name;	  /* ring_check_name(); borrowed during the call */
	__u32 slot;		  /* 0 to REPLICAS_MAX - 1, another one for each replica */
	__u32 weight_thousandths; /* 1 to RING_WEIGHT_MAX */
	__u32 vnodes; /* of this replica if not those of the settings; 0: as in the settings */
};

/* All arrays belong to the ring. `members` and `names` are in the same order: by name. */
struct ring {
	struct ring_header header;   /* generation and slot are 0: ring_maps_swap() gives them */
	struct ring_point *points;   /* header.point_count, by (hash, name) */
	struct ring_bucket *index;   /* 1 << header.index_bits */
	struct ring_member *members; /* header.member_count */
	char (*names)[REPLICA_NAME_SIZE];
	__u16 member_of_slot[REPLICAS_MAX];
	__u8 hash_key[RING_HASH_KEY_LENGTH_MAX];
	size_t hash_key_length;
};

/*
 * Builds a ring. A replica given twice, with equal slot and weight, counts once. No replica gives an empty ring,
 * which is valid. Points whose hashes are equal are ordered by name; in the dialect replica-router all 128 bits
 * are compared before that, though a point keeps the upper 64 only.
 *
 * 0; or -EINVAL (a name, weight, slot or setting is wrong), -E2BIG (too many replicas or points), -ENOMEM, with one plain
 * sentence in `error`. *ring need not be initialised, and on error holds nothing to be freed.
 */
int ring_build(struct ring *ring, const struct ring_settings *settings,
	       const struct ring_replica *replicas, size_t count, struct error *error);

void ring_free(struct ring *ring);

/*
 * 0 if a replica may have this name: 1 to 63 characters out of letters, digits, `.`, `_` and `-` (what names of hosts and pods
 * are made of); or -EINVAL with a sentence.
 */
int ring_check_name(const char *name, struct error *error);

/* "1", "0.5", "2.125": 0.001 to 1000, at most three decimals. 0, or -EINVAL with a sentence. */
int ring_parse_weight(const char *text, __u32 *thousandths, struct error *error);

/*
 * How many points a weight gives: round(vnodes * weight), ties to even as in the published code, at least 1.
 * vnodes: 1 to RING_POINTS_MAX; weight_thousandths: 1 to RING_WEIGHT_MAX.
 */
__u32 ring_weight_points(__u32 vnodes, __u32 weight_thousandths);

/* "llm-ring", "replica-router"; NULL if there is no such dialect. */
const char *ring_dialect_name(enum ring_dialect dialect);
/* 0, or -EINVAL if there is no dialect of this name. */
int ring_parse_dialect(const char *name, enum ring_dialect *dialect);
__u32 ring_default_vnodes(enum ring_dialect dialect);

/* The ring key of an id of any length (the data path: 1 to ID_LENGTH_MAX). */
__u64 ring_hash(const struct ring *ring, const void *id, size_t length);

/* The key's point: index into points; or -ENOENT if the ring is empty. */
int ring_lookup(const struct ring *ring, __u64 hash);

/* The key's home: slot of the replica; or -ENOENT if the ring is empty. */
int ring_home_slot(const struct ring *ring, __u64 hash);

/*
 * The distinct replicas met clockwise from the key, as indices into members and names; the first is the home.
 * Returns how many: min(max, member_count).
 */
size_t ring_walk(const struct ring *ring, __u64 hash, __u32 *members, size_t max);

/* Policy mod-n: index into members and names of hash mod N; or -ENOENT if the ring is empty. */
int ring_mod_n(const struct ring *ring, __u64 hash);

/* The same for an id, of all bits of its hash: in dialect replica-router 128. */
int ring_mod_n_of_id(const struct ring *ring, const void *id, size_t length);

/* The share of all keys whose home is this member: 0 to 1; the shares of all members add up to 1. */
void ring_shares(const struct ring *ring, double *shares);

/* The member of this name: index into members and names; or -ENOENT. */
int ring_find_member(const struct ring *ring, const char *name);

#endif /* WARMPATH_USER_RING_H */
