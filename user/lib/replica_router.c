/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/replica_router.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct replica_router {
	struct ring ring;
	struct ring_replica *replicas; /* owns the names; in order of insertion */
	size_t count;
};

static int rebuild(struct replica_router *router, const struct ring_replica *replicas, size_t count,
		   struct error *error)
{
	const struct ring_settings settings = {
		.dialect = RING_REPLICA_ROUTER,
		.vnodes = REPLICA_ROUTER_VNODES,
	};
	struct ring ring;
	int err = ring_build(&ring, &settings, replicas, count, error);

	if (err)
		return err;
	ring_free(&router->ring);
	router->ring = ring;
	return 0;
}

struct replica_router *replica_router_new(void)
{
	struct replica_router *router = calloc(1, sizeof(*router));
	struct error error;

	if (router && rebuild(router, NULL, 0, &error)) {
		free(router);
		return NULL;
	}
	return router;
}

void replica_router_free(struct replica_router *router)
{
	if (!router)
		return;
	for (size_t i = 0; i < router->count; i++)
		free((char *)router->replicas[i].name);
	free(router->replicas);
	ring_free(&router->ring);
	free(router);
}

static size_t find(const struct replica_router *router, const char *replica)
{
	size_t i = 0;

	while (i < router->count && strcmp(router->replicas[i].name, replica) != 0)
		i++;
	return i;
}

/* The lowest slot that no replica has; REPLICAS_MAX if all are taken, which ring_build() refuses. */
static __u32 free_slot(const struct replica_router *router)
{
	bool taken[REPLICAS_MAX] = {false};
	__u32 slot = 0;

	for (size_t i = 0; i < router->count; i++)
		taken[router->replicas[i].slot] = true;
	while (slot < REPLICAS_MAX && taken[slot])
		slot++;
	return slot;
}

static int more_points(struct replica_router *router, struct ring_replica *replica, __u32 vnodes,
		       struct error *error)
{
	__u32 before = replica->vnodes;
	int err;

	if (vnodes <= before)
		return 0;
	replica->vnodes = vnodes;
	err = rebuild(router, router->replicas, router->count, error);
	if (err)
		replica->vnodes = before;
	return err;
}

int replica_router_add(struct replica_router *router, const char *replica, __u32 vnodes,
		       struct error *error)
{
	size_t at = find(router, replica);
	struct ring_replica *grown;
	char *name;
	int err;

	if (vnodes < 1)
		return error_set(error, -EINVAL, "replica %s needs at least one virtual node",
				 replica);
	if (at < router->count)
		return more_points(router, &router->replicas[at], vnodes, error);
	if (router->count == REPLICAS_MAX)
		return error_set(error, -E2BIG, "there are %d replicas already: that is the limit",
				 REPLICAS_MAX);

	grown = realloc(router->replicas, (router->count + 1) * sizeof(*grown));
	if (grown)
		router->replicas = grown;
	name = grown ? strdup(replica) : NULL;
	if (!name)
		return error_set(error, -ENOMEM, "there is not enough memory for another replica");
	router->replicas[at] = (struct ring_replica){
		.name = name,
		.slot = free_slot(router),
		.weight_thousandths = RING_WEIGHT_ONE,
		.vnodes = vnodes,
	};
	err = rebuild(router, router->replicas, router->count + 1, error);
	if (err)
		free(name);
	else
		router->count++;
	return err;
}

int replica_router_remove(struct replica_router *router, const char *replica, struct error *error)
{
	size_t at = find(router, replica);
	size_t last = router->count - 1;
	struct ring_replica gone;
	int err;

	if (at == router->count)
		return 0;
	gone = router->replicas[at];
	router->replicas[at] = router->replicas[last];
	router->replicas[last] = gone;
	err = rebuild(router, router->replicas, last, error);
	if (!err) {
		free((char *)gone.name);
		router->count = last;
	}
	return err;
}

const char *replica_router_route(const struct replica_router *router, const char *conversation)
{
	const char *replica;

	return replica_router_walk(router, conversation, &replica, 1) == 1 ? replica : NULL;
}

size_t replica_router_walk(const struct replica_router *router, const char *conversation,
			   const char **replicas, size_t max)
{
	__u32 members[REPLICAS_MAX];
	__u64 hash = ring_hash(&router->ring, conversation, strlen(conversation));
	size_t found =
		ring_walk(&router->ring, hash, members, max < REPLICAS_MAX ? max : REPLICAS_MAX);

	for (size_t i = 0; i < found; i++)
		replicas[i] = router->ring.names[members[i]];
	return found;
}
