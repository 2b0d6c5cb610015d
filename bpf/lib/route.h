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
#include "requests.h"
#include "ring.h"
#include "service.h"

/* A request, as the decision sees it. Its flow is in scratch->flow_key, its packet in scratch->packet. */
struct route_request {
	const struct ring_header *ring; /* the ring this packet sees */
	const struct service *service;
	__u32 service_index;
	bool keyless;  /* there was no id: `key` is of what stands for it */
	__u64 key;     /* ring key */
	__u64 key_low; /* what ring_hash_id() gives besides */

	/* all that is to be decided on, where it is known already; else NULL: `key`, and sizes that are read from the packet */
	const struct decide_request *known;
};

/*
 * Names the request in request_keys. id_hash: the key of its id; 0 if the flow says all, or there is no id: an answer without an id
 * then belongs to the client's last request without one.
 */
static __always_inline bool route_name_request(const struct scratch *scratch, __u64 id_hash)
{
	struct open_request_key *key = request_key_space();

	if (!key)
		return false;
	key->flow = scratch->flow_key;
	key->id_hash = id_hash;
	return true;
}

/* A big-endian number of tokens in the payload; `otherwise` if it has no place there, or the packet ends before. */
static __always_inline __u32 route_tokens_at(struct packet_context *context,
					     const struct packet *packet, __u16 offset,
					     __u32 otherwise)
{
	__u32 start = packet->payload_offset + offset;
	__be32 tokens;

	if (offset == OFFSET_NONE || start + sizeof(tokens) > packet->payload_end ||
	    context_load(context, start, &tokens, sizeof(tokens)))
		return otherwise;
	return bpf_ntohl(tokens);
}

/* Where the content begins: behind the id, if the payload has one. */
static __always_inline __u32 route_content_offset(const struct packet *packet,
						  const struct service *service)
{
	if (service->id_from != ID_FROM_OFFSET)
		return packet->payload_offset;
	return packet->payload_offset + service->id_offset + service->id_length;
}

/* The sizes of the request: as it says, or by its length, four bytes a token; at least one. A SYN says nothing. */
static __always_inline void route_sizes(struct packet_context *context, const struct packet *packet,
					const struct route_request *request,
					struct decide_request *sizes)
{
	const struct service *service = request->service;
	__u32 content = route_content_offset(packet, service);
	__u32 bytes = packet->payload_end > content ? packet->payload_end - content : 0;
	__u32 estimate = bytes >= 4 ? bytes / 4 : 1;

	sizes->prompt_tokens = estimate;
	sizes->max_tokens = service->policy.default_max_tokens;
	if (service->id_from == ID_FROM_OFFSET) {
		sizes->prompt_tokens =
			route_tokens_at(context, packet, service->prompt_tokens_offset, estimate);
		sizes->max_tokens = route_tokens_at(context, packet, service->max_tokens_offset,
						    sizes->max_tokens);
	}
	sizes->anonymous = request->keyless;
}

/*
 * Decides where a new request goes, and charges it. Returns OUTCOME_COUNT, with the replica's slot in *replica; or the outcome to drop the
 * packet with.
 */
static __always_inline __u32 route_request(struct packet_context *context, struct scratch *scratch,
					   const struct route_request *request, __u32 *replica)
{
	struct decide_state *state = decide_state_get();
	/* a connection's request is known by its connection */
	bool by_id =
		request->service->id_from == ID_FROM_OFFSET && !request->keyless && !request->known;
	bool has_id = request->service->id_from != ID_FROM_ADDRESS && !request->keyless;

	if (!state || !route_name_request(scratch, by_id ? request->key : 0))
		return OUTCOME_drop_internal;
	if (request->known) {
		state->request = *request->known;
	} else {
		state->request.id_hash = request->key;
		state->request.id_hash_low = request->key_low;
		state->request.pinned = 0;
		route_sizes(context, &scratch->packet, request, &state->request);
	}
	state->nanoseconds = packet_now(scratch);
	if (request_open(request->service_index, request->ring, &scratch->id,
			 has_id ? scratch->id_length : 0))
		return OUTCOME_drop_internal;
	if (state->decision.number == 0)
		return OUTCOME_drop_no_replica;
	*replica = state->decision.replica;
	return OUTCOME_COUNT;
}

/*
 * The request that route_request() has just decided is not sent to that replica after all (no route, no port, too big). Its key is still in
 * request_keys.
 */
static __always_inline void route_cancelled(struct scratch *scratch,
					    const struct route_request *request, __u32 replica)
{
	request_close(0, replica, COMPLETION_ABANDONED, false);
}

/*
 * A connection in mid-stream whose flow is gone: the replica that its open request is at, or else the home, where it most likely is. It is
 * not charged.
 */
static __always_inline __u32 route_adopt(struct scratch *scratch,
					 const struct route_request *request, __u32 *replica)
{
	const struct open_request *open;
	struct open_request_key *key = request_key_space();

	if (!key || !route_name_request(scratch, 0))
		return OUTCOME_drop_internal;
	if (request->ring->point_count == 0)
		return OUTCOME_drop_no_replica;
	open = bpf_map_lookup_elem(&requests, key);
	if (open && open->service == request->service_index) {
		*replica = open->replica;
		return OUTCOME_COUNT;
	}
	return ring_home(request->ring, request->key, replica) ? OUTCOME_drop_internal
							       : OUTCOME_COUNT;
}

/*
 * Where the request with that key is or was: nothing is decided, nothing accounted for. False: not known by its id alone (the flow knows
 * where the client was sent to last).
 */
static __always_inline bool route_locate(struct scratch *scratch,
					 const struct route_request *request, __u32 *replica)
{
	struct open_request_key *key = request_key_space();
	enum routing_policy policy = request->service->policy.policy;
	__u32 service = request->service_index;
	const struct open_request *open;
	const struct placement *placement;
	__u64 id = request->key;
	void *table;

	if (!key || !route_name_request(scratch, request->key))
		return false;
	open = bpf_map_lookup_elem(&requests, key);
	if (open) {
		*replica = open->replica;
		return true;
	}
	if (policy == POLICY_LLM_AWARE) {
		table = bpf_map_lookup_elem(&placements, &service);
		placement = table ? bpf_map_lookup_elem(table, &id) : NULL;
		if (placement) {
			*replica = placement->replica;
			return true;
		}
	}
	return policy == POLICY_CONSISTENT && request->ring->point_count &&
	       !ring_home(request->ring, request->key, replica);
}

/*
 * A datagram from a replica to the client of scratch->flow_key is on its way. Its payload lies from scratch->packet.payload_offset to
 * payload_end; an answer carries the request's id at the request's offset, and ends that request.
 */
static __always_inline void reply_seen(struct packet_context *context, struct scratch *scratch,
				       __u32 service_index, __u32 replica)
{
	const struct service *service = service_get(service_index);
	const struct ring_header *ring = ring_current(service_index);
	const struct packet *packet = &scratch->packet;
	__u32 start, size;
	__u64 id_hash = 0, low;
	int length = 0;

	if (!service || !ring)
		return;
	if (service->id_from == ID_FROM_OFFSET) {
		start = packet->payload_offset + service->id_offset;
		size = service->id_length;
		if (start + size <= packet->payload_end)
			length = id_read(context, start, size);
		if (length < 0)
			return;
		if (length > 0)
			id_hash = ring_hash_id(ring, &scratch->id, length, &low);
	}
	if (route_name_request(scratch, id_hash))
		request_close(0, replica, COMPLETION_SUCCESS, false);
}

/*
 * The connection of scratch->flow_key has ended: by RST, or by FIN from both sides. It was a success if the replica had sent data and then
 * its FIN.
 */
static __always_inline void connection_closed(struct scratch *scratch, const struct flow *flow)
{
	__u32 wanted = FLOW_FIN_FROM_REPLICA | FLOW_FIN_ANSWERED;
	bool success = (flow->fin_seen & wanted) == wanted;

	if (route_name_request(scratch, 0))
		request_close(0, REPLICA_NONE, success ? COMPLETION_SUCCESS : COMPLETION_FAILED,
			      false);
}

#endif /* WARMPATH_BPF_ROUTE_H */
