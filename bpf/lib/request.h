/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Client to replica.
 *
 * Owns: the order of things for a packet to a service: its flow, its id, the decision, the next hop, what is remembered, the rewriting. May
 * not know: how any of these is done.
 */
#ifndef WARMPATH_BPF_REQUEST_H
#define WARMPATH_BPF_REQUEST_H

#include "flow.h"
#include "forward.h"
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
static __always_inline bool request_translate(struct scratch *scratch,
					      const struct replica *replica)
{
	const struct address *address = replica_address_in(replica, scratch->packet.family);

	if (!address)
		return false;
	address_copy(&scratch->translation.source, &scratch->packet.source);
	address_copy(&scratch->translation.destination, address);
	scratch->translation.source_port = scratch->packet.source_port;
	scratch->translation.destination_port = replica->port;
	return true;
}

/* What becomes of a packet that cannot be sent to the next hop; OUTCOME_COUNT: it can. */
static __always_inline __u32 request_hop_refused(struct packet_context *context, __u32 hop)
{
	if (hop == HOP_NO_ROUTE || (hop == HOP_LOCAL && !replicas_are_local))
		return OUTCOME_drop_no_route;
	return OUTCOME_COUNT;
}

static __always_inline __u32 request_send(struct packet_context *context, __u32 hop)
{
	struct forward_outcomes outcomes = {
		.sent = OUTCOME_forwarded,
		.by_stack = OUTCOME_forwarded_by_stack,
		.local = OUTCOME_delivered_locally,
	};

	return forward_outcome(context, hop, &outcomes);
}

/*
 * Reads the id of a datagram and takes its hash into request->key. Returns OUTCOME_COUNT, or the outcome to drop the packet with.
 */
static __always_inline __u32 request_read_id(struct packet_context *context,
					     struct scratch *scratch, const struct service *service,
					     const struct ring_header *ring,
					     struct route_request *request)
{
	const struct packet *packet = &scratch->packet;
	__u32 start = packet->payload_offset + service->id_offset;
	__u32 size = service->id_length;
	int length;

	if (start + size > packet->payload_end)
		return OUTCOME_drop_id_outside_packet;
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
	request->key = ring_hash_id(ring, &scratch->id, length);
	return OUTCOME_COUNT;
}

/* A datagram with an id at an offset: every one is decided by itself. */
static __always_inline __u32 request_by_offset(struct packet_context *context,
					       struct scratch *scratch, __u32 index,
					       const struct service *service)
{
	const struct ring_header *ring = ring_current(index);
	struct route_request request = {.service = index};
	const struct replica *replica;
	__u32 outcome, slot, hop;
	struct flow *flow;

	if (!ring)
		return OUTCOME_drop_no_replica;
	outcome = request_read_id(context, scratch, service, ring, &request);
	if (outcome != OUTCOME_COUNT)
		return outcome;
	outcome = route_request(ring, &request, &slot);
	if (outcome != OUTCOME_COUNT)
		return outcome;
	replica = replica_get(slot);
	if (!replica || !request_translate(scratch, replica))
		return OUTCOME_drop_internal;

	hop = next_hop_find(context);
	outcome = request_hop_refused(context, hop);
	if (outcome != OUTCOME_COUNT)
		return outcome;

	flow_key_of_request(&scratch->flow_key, &scratch->packet);
	flow = bpf_map_lookup_elem(&flows, &scratch->flow_key);
	if (flow && flow->replica == slot && flow->service == index &&
	    bpf_ktime_get_coarse_ns() - flow->return_checked_nanoseconds < FLOW_CHECK_NANOSECONDS) {
		scratch->translation.source_port = flow->translated_port;
	} else {
		__be16 port = flow ? flow->translated_port : scratch->packet.source_port;

		outcome = flow_establish(index, slot, FLOW_DATAGRAMS, port);
		if (outcome != OUTCOME_COUNT)
			return outcome;
	}
	return request_send(context, hop);
}

/* A packet to the service with that index. */
static __always_inline __u32 request_handle(struct packet_context *context, struct scratch *scratch,
					    __u32 index)
{
	const struct service *service = service_get(index);

	if (!service || service->state != SERVICE_ACTIVE)
		return OUTCOME_drop_internal;
	if (!request_source_is_valid(&scratch->packet))
		return OUTCOME_drop_source_invalid;
	if (service->id_from == ID_FROM_OFFSET && scratch->packet.protocol == IPPROTO_UDP)
		return request_by_offset(context, scratch, index, service);
	return OUTCOME_not_ours;
}

#endif /* WARMPATH_BPF_REQUEST_H */
