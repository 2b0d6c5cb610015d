/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which replica a request goes to, and when what was charged for it is given back.
 *
 * Owns: the decision, and the three moments in the life of a request that it may account for: routed, not sent after all, answered. May not
 * know: how packets are parsed, rewritten or sent; flows (an existing connection is not decided again).
 */
#ifndef WARMPATH_BPF_ROUTE_H
#define WARMPATH_BPF_ROUTE_H

#include "id.h"
#include "packet.h"
#include "ring.h"

/* A request, as the decision sees it. */
struct route_request {
	__u32 service; /* index */
	__u64 key;     /* ring key of the id, or of what stands for it */
	bool keyless;  /* there was no id */
};

/*
 * Decides where a new request goes. Returns OUTCOME_COUNT, with the replica's slot in *replica; or the outcome to drop the packet
 * with.
 */
static __always_inline __u32 route_request(const struct ring_header *ring,
					   const struct route_request *request, __u32 *replica)
{
	if (ring->point_count == 0)
		return OUTCOME_drop_no_replica;
	if (ring_home(ring, request->key, replica))
		return OUTCOME_drop_internal;
	return OUTCOME_COUNT;
}

#endif /* WARMPATH_BPF_ROUTE_H */
