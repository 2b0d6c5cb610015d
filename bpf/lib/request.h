/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Client to replica.
 *
 * Owns: the order of things for a packet to a service: its flow, its id, the decision, the next hop, what is remembered, the rewriting. May
 * not know: how any of these is done.
 */
#ifndef WARMPATH_BPF_REQUEST_H
#define WARMPATH_BPF_REQUEST_H

#include "answer.h"
#include "flow.h"
#include "forward.h"
#include "fragment.h"
#include "id.h"
#include "packet.h"
#include "route.h"
#include "service.h"

/* Can an answer go to that address at all? */
static __always_inline bool request_source_is_valid(const struct packet *packet)
{
	__u32 first = bpf_ntohl(packet->source.word[0]);
	__u32 last = bpf_ntohl(packet->source.word[3]);

	if (packet->family == AF_INET) {
		__u32 network = last >> 24;

		/* "this network", loopback, multicast and the reserved block with the broadcast address (RFC 6890) */
		return network != 0 && network != 127 && network < 224;
	}
	/* multicast; unspecified and loopback; link-local leaves the link only if the replica is right here */
	if (first >> 24 == 0xff)
		return false;
	if (!(packet->source.word[0] | packet->source.word[1] | packet->source.word[2]) &&
	    last <= 1)
		return false;
	return first >> 22 != 0xfe80 >> 6 || replicas_are_local;
}

/* Fills in where the packet goes: to that replica, from the client as it is. False: the replica has no address in the family. */
static __always_inline bool request_translate(struct scratch *scratch, const struct packet *packet,
					      const struct replica *replica)
{
	const struct address *address = replica_address_in(replica, packet->family);

	if (!address)
		return false;
	address_copy(&scratch->translation.source, &packet->source);
	address_copy(&scratch->translation.destination, address);
	scratch->translation.source_port = packet->source_port;
	scratch->translation.destination_port = replica->port;
	return true;
}

static __always_inline __u32 request_send(struct packet_context *context, struct scratch *scratch,
					  __u32 hop)
{
	struct forward_outcomes outcomes = {
		.sent = OUTCOME_forwarded,
		.by_stack = OUTCOME_forwarded_by_stack,
		.local = OUTCOME_delivered_locally,
	};

	if (!fragment_remember(scratch, true))
		return OUTCOME_drop_fragment_table_full;
	return forward_outcome(context, hop, &outcomes);
}

/*
 * Reads the id of a datagram and takes its hash into request->key. Returns OUTCOME_COUNT, or the outcome to drop the packet with.
 */
static __always_inline __u32 request_read_id(struct packet_context *context,
					     struct scratch *scratch, struct route_request *request)
{
	const struct packet *packet = &scratch->packet;
	__u32 start = packet->payload_offset + request->service->id_offset;
	__u32 size = request->service->id_length;
	__u32 segment = context_segment_size(context);
	int length;

	if (start + size > packet->payload_end)
		return OUTCOME_drop_id_outside_packet;
	if (segment && id_batch_is_mixed(context, start, size, segment))
		count(NOTE_note_batch_mixed);
	length = id_read(context, start, size);
	if (length == -EINVAL)
		return OUTCOME_drop_id_invalid;
	request->keyless = length == 0;
	if (length == 0) {
		length = id_substitute(context, scratch, start + size);
		count(NOTE_note_keyless);
	}
	if (length < 0)
		return OUTCOME_drop_internal;
	scratch->id_length = length;
	request->key = ring_hash_id(request->ring, &scratch->id, length, &request->key_low);
	return OUTCOME_COUNT;
}

/* Is the packet with that outcome on its way to the replica? */
static __always_inline bool request_was_sent(__u32 outcome)
{
	return outcome == OUTCOME_forwarded || outcome == OUTCOME_forwarded_by_stack ||
	       outcome == OUTCOME_delivered_locally;
}

/* The outcome of a packet that does not go on to that next hop; OUTCOME_COUNT: it does. */
static __always_inline __u32 request_hop_outcome(struct packet_context *context, __u32 hop)
{
	if (hop == HOP_NO_ROUTE || (hop == HOP_LOCAL && !replicas_are_local))
		return OUTCOME_drop_no_route;
	if (hop == HOP_TOO_BIG || hop == HOP_EXPIRED)
		return answer_send(context, hop);
	return OUTCOME_COUNT;
}

/*
 * Looks up the way to the replica in `slot`. Returns OUTCOME_COUNT with *hop, and nothing was modified; or the outcome that the
 * packet ends with.
 */
static __always_inline __u32 request_find_way(struct packet_context *context,
					      struct scratch *scratch, __u32 slot, __u32 *hop)
{
	const struct replica *replica = replica_get(slot);

	if (!replica || !request_translate(scratch, &scratch->packet, replica))
		return OUTCOME_drop_internal;
	*hop = next_hop_find(context);
	return request_hop_outcome(context, *hop);
}

/* A later fragment of a packet to a replica. */
static __always_inline __u32 request_fragment(struct packet_context *context,
					      struct scratch *scratch)
{
	__u32 hop = next_hop_find(context);
	__u32 outcome;

	/* nobody is told anything about a later fragment; the kernel knows that as well */
	if (hop == HOP_EXPIRED || (hop == HOP_TOO_BIG && scratch->packet.family == AF_INET))
		hop = HOP_STACK;
	outcome = request_hop_outcome(context, hop);
	return outcome == OUTCOME_COUNT ? request_send(context, scratch, hop) : outcome;
}

/* A datagram with an id at an offset: every one is decided by itself. */
static __always_inline __u32 request_by_offset(struct packet_context *context,
					       struct scratch *scratch,
					       struct route_request *request)
{
	__u32 outcome, slot, hop;
	struct flow *flow;

	outcome = request_read_id(context, scratch, request);
	if (outcome != OUTCOME_COUNT)
		return outcome;
	outcome = route_request(context, scratch, request, &slot);
	if (outcome != OUTCOME_COUNT)
		return outcome;

	outcome = request_find_way(context, scratch, slot, &hop);
	if (outcome == OUTCOME_COUNT) {
		flow = bpf_map_lookup_elem(&flows, &scratch->flow_key);
		if (flow && flow->replica == slot && flow->service == request->service_index &&
		    flow_is_fresh(scratch, flow))
			scratch->translation.source_port = flow->translated_port;
		else
			outcome = flow_remember(request->service_index, slot, FLOW_DATAGRAMS,
						flow ? flow->translated_port
						     : scratch->packet.source_port);
	}
	if (outcome == OUTCOME_COUNT)
		outcome = request_send(context, scratch, hop);
	if (!request_was_sent(outcome))
		route_cancelled(scratch, request, slot);
	return outcome;
}

/*
 * May a packet of this flow go on to the flow's replica? A new connection (SYN) and a datagram only as long as that keeps its flows; a
 * segment of an old connection in any case, as no other replica knows it.
 */
static __always_inline bool request_keeps_replica(struct scratch *scratch, const struct flow *flow,
						  const struct route_request *request)
{
	const struct packet *packet = &scratch->packet;
	const struct replica *replica;
	__u64 idle;

	if (flow->service != request->service_index)
		return false;
	replica = replica_get(flow->replica);
	if (!replica || replica->service != request->service_index)
		return false;
	if (packet->protocol == IPPROTO_UDP) {
		idle = packet_now(scratch) - flow->return_checked_nanoseconds;
		return replica_keeps_flows(replica) &&
		       idle < request->service->request_timeout_milliseconds * 1000000ULL;
	}
	if ((packet->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		return replica_keeps_flows(replica) && flow->state != FLOW_CLOSED;
	return replica->state != REPLICA_UNUSED;
}

/* The state in which a flow begins that is decided now; 0: this packet cannot begin one. */
static __always_inline __u32 request_first_state(const struct packet *packet)
{
	__u8 flags = packet->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN);

	if (packet->protocol == IPPROTO_UDP)
		return FLOW_DATAGRAMS;
	if (flags == TCP_SYN)
		return FLOW_OPENING;
	if (flags & (TCP_SYN | TCP_RST))
		return 0;
	return FLOW_ESTABLISHED;
}

/* The low half of the destination is the ring key: decided once for each connection, or client of datagrams. */
static __always_inline __u32 request_by_address(struct packet_context *context,
						struct scratch *scratch,
						struct route_request *request)
{
	const struct packet *packet = &scratch->packet;
	struct flow *flow = bpf_map_lookup_elem(&flows, &scratch->flow_key);
	bool keep = flow && request_keeps_replica(scratch, flow, request), decided = false;
	__be16 port = packet->source_port;
	__u32 outcome, slot, hop, state;

	if (keep) {
		slot = flow->replica;
		state = flow->state;
		port = flow->translated_port;
	} else {
		state = request_first_state(packet);
		if (!state)
			return OUTCOME_drop_no_flow;
		request->key = (__u64)bpf_ntohl(packet->destination.word[2]) << 32 |
			       bpf_ntohl(packet->destination.word[3]);
		/* in mid-stream it is not decided but found where it is */
		decided = state != FLOW_ESTABLISHED;
		if (decided)
			outcome = route_request(context, scratch, request, &slot);
		else
			outcome = route_adopt(scratch, request, &slot);
		if (outcome != OUTCOME_COUNT)
			return outcome;
	}

	outcome = request_find_way(context, scratch, slot, &hop);
	if (outcome == OUTCOME_COUNT) {
		if (keep && flow_is_fresh(scratch, flow))
			scratch->translation.source_port = port;
		else
			outcome = flow_remember(request->service_index, slot, state, port);
	}
	if (outcome == OUTCOME_COUNT) {
		if (keep && packet->protocol == IPPROTO_TCP) {
			if (flow_follow(flow, packet->tcp_flags, FLOW_FIN_FROM_CLIENT))
				connection_closed(scratch, flow);
		} else if (!keep && state == FLOW_ESTABLISHED) {
			count(NOTE_note_flow_adopted);
		}
		outcome = request_send(context, scratch, hop);
	}
	if (decided && !request_was_sent(outcome))
		route_cancelled(scratch, request, slot);
	return outcome;
}

/* A packet to the service with that index. */
static __always_inline __u32 request_handle(struct packet_context *context, struct scratch *scratch,
					    __u32 index)
{
	struct route_request request = {
		.ring = ring_current(index),
		.service = service_get(index),
		.service_index = index,
	};

	if (!request.service || request.service->state != SERVICE_ACTIVE)
		return OUTCOME_drop_internal;
	if (!request_source_is_valid(&scratch->packet))
		return OUTCOME_drop_source_invalid;
	if (!request.ring)
		return OUTCOME_drop_no_replica;
	flow_key_of_request(&scratch->flow_key, &scratch->packet);
	if (request.service->id_from == ID_FROM_ADDRESS)
		return request_by_address(context, scratch, &request);
	if (scratch->packet.protocol == IPPROTO_UDP)
		return request_by_offset(context, scratch, &request);
	return OUTCOME_drop_internal;
}

#endif /* WARMPATH_BPF_REQUEST_H */
