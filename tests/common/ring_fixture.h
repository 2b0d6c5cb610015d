/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings for tests: replicas by number, keys by number.
 */
#ifndef WARMPATH_TESTS_RING_FIXTURE_H
#define WARMPATH_TESTS_RING_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ring.h"

/* `count` replicas, weight 1, named by `format` with numbers from `first`; slots are scattered, so that slot, number and rank differ. */
struct replica_list {
	struct ring_replica replicas[REPLICAS_MAX + 2];
	char names[REPLICAS_MAX + 2][REPLICA_NAME_SIZE];
	size_t count;
};

__attribute__((__format__(__printf__, 2, 0))) static inline struct replica_list *
make_replicas(size_t count, const char *format, int first)
{
	struct replica_list *list = calloc(1, sizeof(*list));

	assert_non_null(list);
	list->count = count;
	for (size_t i = 0; i < count; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(list->names[i], sizeof(list->names[i]), format, (int)i + first);
#pragma GCC diagnostic pop
		list->replicas[i].name = list->names[i];
		list->replicas[i].slot =
			(i * 317 + 11) % REPLICAS_MAX; /* 317 is odd: no slot twice */
		list->replicas[i].weight_thousandths = RING_WEIGHT_ONE;
	}
	return list;
}

static inline struct ring_settings llm_settings(__u32 vnodes)
{
	return (struct ring_settings){.dialect = RING_LLM, .vnodes = vnodes};
}

static inline struct ring_settings replica_router_settings(__u32 vnodes)
{
	return (struct ring_settings){.dialect = RING_REPLICA_ROUTER, .vnodes = vnodes};
}

static inline void build(struct ring *ring, const struct ring_settings *settings,
			 const struct replica_list *list)
{
	struct error error;

	if (ring_build(ring, settings, list->replicas, list->count, &error))
		fail_msg("%s", error.text);
}

static inline __u64 key_of(const struct ring *ring, const char *id)
{
	return ring_hash(ring, id, strlen(id));
}

static inline const char *home_of(const struct ring *ring, const char *id)
{
	__u32 member;

	return ring_walk(ring, key_of(ring, id), &member, 1) == 1 ? ring->names[member] : "(none)";
}

/* Pseudo-random numbers that are the same on every run (xorshift64). */
static inline __u64 next_random(__u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* An id that walks the first, the third and the second member by name, as that of the published traces. Valid until the next call. */
static inline const char *id_that_walks_021(const struct ring *ring)
{
	static char id[32];
	__u32 walk[3];

	for (int i = 0; i < 10000; i++) {
		snprintf(id, sizeof(id), "conversation-%d", i);
		if (ring_walk(ring, key_of(ring, id), walk, 3) == 3 && walk[0] == 0 && walk[1] == 2)
			return id;
	}
	fail();
	return id;
}

#endif /* WARMPATH_TESTS_RING_FIXTURE_H */
