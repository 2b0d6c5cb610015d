/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The published ReplicaRouter exercise as a library: add, remove, route, walk, in the dialect replica-router (MD5, first point
 * greater or equal). For programs that want the router's answer without a kernel.
 *
 * Owns: the changing set of replicas. May not know: how a ring is built or searched (ring.h).
 *
 *	struct replica_router *router = replica_router_new();
 *
 *	replica_router_add(router, "R1", REPLICA_ROUTER_VNODES, &error);
 *	replica_router_route(router, "conv1");		-> "R1"
 *	replica_router_free(router);
 */
#ifndef WARMPATH_USER_REPLICA_ROUTER_H
#define WARMPATH_USER_REPLICA_ROUTER_H

#include <stddef.h>

#include "lib/ring.h"

#define REPLICA_ROUTER_VNODES \
	RING_VNODES_REPLICA_ROUTER /* as published, unless one says otherwise */

struct replica_router;

/* NULL: out of memory. Free it with replica_router_free(). */
struct replica_router *replica_router_new(void);
void replica_router_free(struct replica_router *router);

/*
 * Puts a replica on the ring with `vnodes` points. Adding it again changes nothing, unless with more points than it has: then
 * it gets those, too. 0; or a negative errno with a sentence in `error`, and the router is as it was.
 */
int replica_router_add(struct replica_router *router, const char *replica, __u32 vnodes,
		       struct error *error);

/*
 * Takes a replica off the ring; one that is not on it is no error, as published. 0; or -ENOMEM with a sentence, and the router
 * is as it was.
 */
int replica_router_remove(struct replica_router *router, const char *replica, struct error *error);

/* The conversation's replica; NULL if there is none. Valid until the next change. */
const char *replica_router_route(const struct replica_router *router, const char *conversation);

/*
 * The distinct replicas clockwise from the conversation's place; the first is what replica_router_route() says.
 * Returns how many were written: min(max, number of replicas). The names are valid until the next change.
 */
size_t replica_router_walk(const struct replica_router *router, const char *conversation,
			   const char **replicas, size_t max);

#endif /* WARMPATH_USER_REPLICA_ROUTER_H */
