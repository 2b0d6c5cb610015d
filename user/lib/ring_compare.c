/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ring_compare.h"

#include <string.h>

/* One ring on the way round. */
struct place {
	const struct ring *ring;
	__u32 point; /* the next one */
};

/* The last key that belongs to the next point: the one before it (llm-ring), or its own hash. */
static __u64 last_key(const struct place *place)
{
	__u64 hash;

	if (place->point == place->ring->header.point_count)
		return ~0ull;
	hash = place->ring->points[place->point].hash;
	return place->ring->header.dialect == RING_LLM ? hash - 1 : hash;
}

/* Passes over points that own no key from `first` on: those of equal hashes, but for one. */
static void move_on(struct place *place, __u64 first)
{
	while (place->point < place->ring->header.point_count &&
	       (place->ring->points[place->point].hash < first ||
		(place->ring->header.dialect == RING_LLM &&
		 place->ring->points[place->point].hash == first)))
		place->point++;
}

static __u32 owner(const struct place *place)
{
	__u32 point = place->point == place->ring->header.point_count ? 0 : place->point;

	return place->ring->member_of_slot[place->ring->points[point].replica];
}

void ring_compare(const struct ring *before, const struct ring *after, ring_span_function take,
		  void *context)
{
	struct place left = {.ring = before}, right = {.ring = after};
	__u64 first = 0, last;

	do {
		move_on(&left, first);
		move_on(&right, first);
		last = last_key(&left) < last_key(&right) ? last_key(&left) : last_key(&right);
		take(context, first, last, owner(&left), owner(&right));
		first = last + 1;
	} while (last != ~0ull);
}

struct moved {
	const struct ring *before, *after;
	unsigned __int128 keys; /* up to 2^64 */
};

static void add_moved(void *context, __u64 first, __u64 last, __u32 before, __u32 after)
{
	struct moved *moved = context;

	if (strcmp(moved->before->names[before], moved->after->names[after]) != 0)
		moved->keys += (unsigned __int128)(last - first) + 1;
}

double ring_moved_share(const struct ring *before, const struct ring *after)
{
	struct moved moved = {.before = before, .after = after};

	if (before->header.point_count == 0 || after->header.point_count == 0)
		return before->header.point_count != after->header.point_count;
	ring_compare(before, after, add_moved, &moved);
	return (double)moved.keys / 0x1p64;
}
