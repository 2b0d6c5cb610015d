/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building the ring from the set of replicas.
 */
#include "lib/ring.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warmpath/ring.h>

/*
 * The index has two to four buckets for each point (fewer beyond 2^19 points): then at most one key in ten falls into a bucket of
 * two points or more and needs a look at them (struct ring_bucket). More buckets would only miss the processor's cache more often.
 */
#define INDEX_BITS_MORE 1

/* A point while it is being sorted: with the whole hash, and the replica as its rank by name. */
struct labelled_point {
	struct md5_digest hash; /* BLAKE2b-64: low is 0 */
	__u32 member;
};

int ring_check_name(const char *name, struct error *error)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t length = strlen(name);
	size_t good = strspn(name, allowed);

	if (length == 0)
		return error_set(error, -EINVAL,
				 "a replica's name is empty: give it 1 to %d characters",
				 REPLICA_NAME_SIZE - 1);
	if (length >= REPLICA_NAME_SIZE)
		return error_set(
			error, -EINVAL,
			"the replica name \"%.20s...\" has %zu characters; at most %d are allowed",
			name, length, REPLICA_NAME_SIZE - 1);
	if (name[good] != '\0')
		return error_set(error, -EINVAL,
				 "the replica name \"%s\" has a character (number %zu) that is not "
				 "a letter, a digit, or one of . _ -",
				 name, good + 1);
	return 0;
}

int ring_parse_weight(const char *text, __u32 *thousandths, struct error *error)
{
	__u64 value = 0;
	int digits = 0, decimals = -1;

	for (const char *c = text; *c != '\0'; c++) {
		if (*c == '.' && decimals < 0 && digits > 0) {
			decimals = 0;
			continue;
		}
		if (*c < '0' || *c > '9' || decimals == 3 || value > RING_WEIGHT_MAX)
			goto wrong;
		value = value * 10 + (*c - '0');
		digits++;
		if (decimals >= 0)
			decimals++;
	}
	if (digits == 0 || decimals == 0)
		goto wrong;
	for (; decimals < 3; decimals++) {
		if (decimals < 0)
			decimals = 0;
		value *= 10;
	}
	if (value < 1 || value > RING_WEIGHT_MAX)
		goto wrong;
	*thousandths = value;
	return 0;
wrong:
	return error_set(
		error, -EINVAL,
		"the weight \"%s\" is not a number from 0.001 to 1000 with at most three decimals",
		text);
}

/*
 * In double precision like the published code, so that weights that look like ties (0.575 x 100) round the same way.
 */
__u32 ring_weight_points(__u32 vnodes, __u32 weight_thousandths)
{
	double points = nearbyint(vnodes * (weight_thousandths / 1000.0));

	return points < 1 ? 1 : (__u32)points;
}

static int check_settings(const struct ring_settings *settings, struct error *error)
{
	if (!ring_dialect_name(settings->dialect))
		return error_set(
			error, -EINVAL,
			"there is no ring dialect number %d: use llm-ring or replica-router",
			settings->dialect);
	if (settings->vnodes < 1 || settings->vnodes > RING_POINTS_MAX)
		return error_set(error, -EINVAL,
				 "%u virtual nodes for each replica are not possible: give 1 to %u",
				 settings->vnodes, RING_POINTS_MAX);
	if (settings->hash_key_length > RING_HASH_KEY_LENGTH_MAX)
		return error_set(error, -EINVAL,
				 "the hash key has %zu bytes; at most %d are allowed",
				 settings->hash_key_length, RING_HASH_KEY_LENGTH_MAX);
	if (settings->hash_key_length > 0 && settings->dialect != RING_LLM)
		return error_set(error, -EINVAL,
				 "a hash key is only possible with the ring dialect llm-ring");
	return 0;
}

static int check_replica(const struct ring_replica *replica, struct error *error)
{
	int err = ring_check_name(replica->name, error);

	if (err)
		return err;
	if (replica->weight_thousandths < 1 || replica->weight_thousandths > RING_WEIGHT_MAX)
		return error_set(
			error, -EINVAL,
			"the weight of replica %s is %u thousandths; 0.001 to 1000 is allowed",
			replica->name, replica->weight_thousandths);
	if (replica->vnodes > RING_POINTS_MAX)
		return error_set(error, -EINVAL,
				 "%u virtual nodes for replica %s are not possible: give 1 to %u",
				 replica->vnodes, replica->name, RING_POINTS_MAX);
	if (replica->slot >= REPLICAS_MAX)
		return error_set(error, -EINVAL, "replica %s has slot %u; the last one is %u",
				 replica->name, replica->slot, REPLICAS_MAX - 1);
	return 0;
}

static int compare_replicas(const void *a, const void *b)
{
	const struct ring_replica *const *first = a;
	const struct ring_replica *const *second = b;

	return strcmp((*first)->name, (*second)->name);
}

static int check_slots(const struct ring_replica **set, size_t count, struct error *error)
{
	const struct ring_replica *user_of_slot[REPLICAS_MAX] = {NULL};

	for (size_t i = 0; i < count; i++) {
		const struct ring_replica **user = &user_of_slot[set[i]->slot];

		if (*user)
			return error_set(error, -EINVAL,
					 "replicas %s and %s have the same slot, %u", (*user)->name,
					 set[i]->name, set[i]->slot);
		*user = set[i];
	}
	return 0;
}

/* Sorts by name and takes out what was given twice. Returns how many are left, or a negative errno. */
static int make_set(const struct ring_replica **set, const struct ring_replica *replicas,
		    size_t count, struct error *error)
{
	size_t kept = 0;
	int err;

	for (size_t i = 0; i < count; i++) {
		err = check_replica(&replicas[i], error);
		if (err)
			return err;
		set[i] = &replicas[i];
	}
	if (count > 0)
		qsort(set, count, sizeof(set[0]), compare_replicas);
	for (size_t i = 0; i < count; i++) {
		const struct ring_replica *before = kept > 0 ? set[kept - 1] : NULL;

		if (!before || strcmp(before->name, set[i]->name) != 0)
			set[kept++] = set[i];
		else if (before->slot != set[i]->slot || before->vnodes != set[i]->vnodes ||
			 before->weight_thousandths != set[i]->weight_thousandths)
			return error_set(error, -EINVAL,
					 "replica %s is given twice, with different settings",
					 set[i]->name);
	}
	if (kept > REPLICAS_MAX)
		return error_set(error, -E2BIG,
				 "there are more than %d replicas: that is the limit",
				 REPLICAS_MAX);
	err = check_slots(set, kept, error);
	return err ? err : (int)kept;
}

static __u32 replica_points(const struct ring_settings *settings,
			    const struct ring_replica *replica)
{
	return ring_weight_points(replica->vnodes > 0 ? replica->vnodes : settings->vnodes,
				  replica->weight_thousandths);
}

static int count_points(const struct ring_settings *settings, const struct ring_replica **set,
			size_t count, struct error *error)
{
	__u64 total = 0;

	for (size_t i = 0; i < count; i++)
		total += replica_points(settings, set[i]);
	if (total > RING_POINTS_MAX)
		return error_set(
			error, -E2BIG,
			"the ring would have %llu points and at most %u are possible: lower "
			"the number of virtual nodes or the weights",
			(unsigned long long)total, RING_POINTS_MAX);
	return total;
}

static struct md5_digest hash_label(const struct ring *ring, const char *label, size_t length)
{
	struct md5_digest hash = {0};

	if (ring->header.dialect == RING_REPLICA_ROUTER)
		return md5(label, length);
	hash.high = ring_hash(ring, label, length);
	return hash;
}

static int compare_points(const void *a, const void *b)
{
	const struct labelled_point *first = a;
	const struct labelled_point *second = b;

	if (first->hash.high != second->hash.high)
		return first->hash.high < second->hash.high ? -1 : 1;
	if (first->hash.low != second->hash.low)
		return first->hash.low < second->hash.low ? -1 : 1;
	return first->member < second->member ? -1 : first->member > second->member;
}

static int fill_points(struct ring *ring, const struct ring_settings *settings,
		       const struct ring_replica **set)
{
	struct labelled_point *sorted;
	__u32 filled = 0;

	sorted = calloc(ring->header.point_count + 1, sizeof(sorted[0]));
	if (!sorted)
		return -ENOMEM;
	for (__u32 member = 0; member < ring->header.member_count; member++) {
		__u32 points = replica_points(settings, set[member]);

		for (__u32 i = 0; i < points; i++) {
			char label[REPLICA_NAME_SIZE + sizeof("#4294967295")];
			int length = snprintf(label, sizeof(label), "%s#%u", set[member]->name, i);

			sorted[filled].hash = hash_label(ring, label, length);
			sorted[filled++].member = member;
		}
	}
	qsort(sorted, filled, sizeof(sorted[0]), compare_points);
	for (__u32 i = 0; i < filled; i++) {
		ring->points[i].hash = sorted[i].hash.high;
		ring->points[i].replica = ring->members[sorted[i].member].replica;
	}
	free(sorted);
	return 0;
}

/* Needs at least one point. */
static int fill_index(struct ring *ring, struct error *error)
{
	const struct ring_header *header = &ring->header;
	__u32 count = header->point_count, point = 0;

	for (__u32 bucket = 0; bucket < 1u << header->index_bits; bucket++) {
		__u32 first = point;

		while (point < header->point_count &&
		       ring_bucket_number(ring->points[point].hash, header->index_bits) == bucket)
			point++;
		if (point - first > RING_BUCKET_POINTS_MAX)
			return error_set(
				error, -E2BIG,
				"%u of the ring's points have hashes with the same first %u bits, "
				"which the index cannot hold: use other replica names",
				point - first, header->index_bits);
		ring->index[bucket] = (struct ring_bucket){
			.first_point = first,
			.first_fraction = UINT32_MAX,
			.point_count = point - first,
			.replica = ring->points[ring_wrap(first, count)].replica,
			.next_replica =
				ring->points[ring_wrap(ring_wrap(first, count) + 1, count)].replica,
		};
		if (point > first)
			ring->index[bucket].first_fraction =
				ring_bucket_fraction(ring->points[first].hash, header->index_bits);
	}
	return 0;
}

static __u32 choose_index_bits(__u32 points)
{
	__u32 bits = 1;

	while (bits < RING_INDEX_BITS_MAX && 1u << bits < points)
		bits++;
	bits += INDEX_BITS_MORE;
	return bits < RING_INDEX_BITS_MAX ? bits : RING_INDEX_BITS_MAX;
}

static int allocate(struct ring *ring)
{
	const struct ring_header *header = &ring->header;

	/* at least one entry each, as no map can have none */
	ring->points = calloc(header->point_count + 1, sizeof(ring->points[0]));
	ring->index = calloc(1u << header->index_bits, sizeof(ring->index[0]));
	ring->members = calloc(header->member_count + 1, sizeof(ring->members[0]));
	ring->names = calloc(header->member_count + 1, sizeof(ring->names[0]));
	return ring->points && ring->index && ring->members && ring->names ? 0 : -ENOMEM;
}

static void set_hash(struct ring *ring, const struct ring_settings *settings)
{
	if (settings->dialect != RING_LLM)
		return;
	if (settings->hash_key_length > 0)
		memcpy(ring->hash_key, settings->hash_key, settings->hash_key_length);
	ring->hash_key_length = settings->hash_key_length;
	ring->header.hash_keyed = settings->hash_key_length > 0;
	blake2b_64_start(ring->header.hash_state, ring->hash_key, ring->hash_key_length);
}

int ring_build(struct ring *ring, const struct ring_settings *settings,
	       const struct ring_replica *replicas, size_t count, struct error *error)
{
	const struct ring_replica **set = NULL;
	int members, points, err;

	memset(ring, 0, sizeof(*ring));
	err = check_settings(settings, error);
	if (err)
		return err;
	set = calloc(count + 1, sizeof(set[0]));
	if (!set) {
		err = -ENOMEM;
		goto out;
	}
	members = make_set(set, replicas, count, error);
	if (members < 0) {
		err = members;
		goto out;
	}
	points = count_points(settings, set, members, error);
	if (points < 0) {
		err = points;
		goto out;
	}

	ring->header.dialect = settings->dialect;
	ring->header.point_count = points;
	ring->header.member_count = members;
	ring->header.index_bits = choose_index_bits(points);
	set_hash(ring, settings);
	err = allocate(ring);
	if (err)
		goto out;
	for (int i = 0; i < members; i++) {
		ring->members[i].replica = set[i]->slot;
		ring->member_of_slot[set[i]->slot] = i;
		memcpy(ring->names[i], set[i]->name, strlen(set[i]->name) + 1);
	}
	err = fill_points(ring, settings, set);
	if (!err && points > 0)
		err = fill_index(ring, error);
out:
	if (err == -ENOMEM)
		error_set(error, err, "there is not enough memory to build the ring");
	if (err)
		ring_free(ring);
	free(set);
	return err;
}

void ring_free(struct ring *ring)
{
	free(ring->points);
	free(ring->index);
	free(ring->members);
	free(ring->names);
	explicit_bzero(ring, sizeof(*ring));
}
