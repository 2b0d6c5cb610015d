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

/* A request, as the decision sees it. Its flow is in scratch->flow_key, its packet in scratch->packet. */
struct route_request {
	const struct ring_header *ring; /* the ring this packet sees */
	const struct service *service;
	__u32 service_index;
	bool keyless;  /* there was no id: `key` is of what stands for it */
	__u64 key;     /* ring key */
	__u64 key_low; /* what ring_hash_id() gives besides */
};

/*
 * Decides where a new request goes. Returns OUTCOME_COUNT, with the replica's slot in *replica; or the outcome to drop the packet
 * with.
 */
static __always_inline __u32 route_request(struct packet_context *context, struct scratch *scratch,
					   const struct route_request *request, __u32 *replica)
{
	if (request->ring->point_count == 0)
		return OUTCOME_drop_no_replica;
	if (ring_home(request->ring, request->key, replica))
		return OUTCOME_drop_internal;
	return OUTCOME_COUNT;
}

/* The request that route_request() has just decided is not sent to that replica after all (no route, no port, too big). */
static __always_inline void route_cancelled(struct scratch *scratch,
					    const struct route_request *request, __u32 replica)
{
}

/*
 * Where the request with that key is, or would be: nothing is decided, nothing accounted for. False: nowhere.
 */
static __always_inline bool route_locate(struct scratch *scratch,
					 const struct route_request *request, __u32 *replica)
{
	return request->ring->point_count && !ring_home(request->ring, request->key, replica);
}

/*
 * A datagram from a replica to the client of scratch->flow_key is on its way. Its payload lies from scratch->packet.payload_offset to
 * payload_end; an answer carries the request's id at the request's offset.
 */
static __always_inline void reply_seen(struct packet_context *context, struct scratch *scratch,
				       __u32 service_index, __u32 replica)
{
}

/* The connection of scratch->flow_key has ended: by RST, or by FIN from both sides. */
static __always_inline void connection_closed(struct scratch *scratch, const struct flow *flow)
{
}

#endif /* WARMPATH_BPF_ROUTE_H */
