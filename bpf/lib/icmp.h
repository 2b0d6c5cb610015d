/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ICMP errors about packets that we translated: they quote the packet as the one who complains saw it, and have to reach the one who
 * sent it, in the words it was sent in.
 *
 *	from the client's side, about an answer:  to the replica; the quoted answer comes from the replica again
 *	from a replica's side, about a request:   to the client; the quoted request goes to the service again
 *
 * Owns: what an ICMP error is, what it quotes, the checksums in and around it. May not know: how a flow was decided.
 *
 * Everything else in ICMP (echo, neighbour discovery) is not ours.
 */
#ifndef WARMPATH_BPF_ICMP_H
#define WARMPATH_BPF_ICMP_H

#include "connection_reply.h"
#include "flow.h"
#include "forward.h"
#include "packet.h"
#include "parse.h"
#include "reply.h"
#include "request.h"
#include "route.h"
#include "service.h"

/* Destination unreachable (with too big), time exceeded, parameter problem. RFC 792, RFC 4443. */
static __always_inline bool icmp_is_error(const struct packet *packet)
{
	__u8 type = packet->icmp_type;

	if (packet->family == AF_INET)
		return packet->protocol == IPPROTO_ICMP && (type == 3 || type == 11 || type == 12);
	return packet->protocol == IPPROTO_ICMPV6 && type >= 1 && type <= 4;
}

/*
 * Reads the quoted packet into scratch->quoted, and turns it round: it then is of the same direction as the error. False: it is not one
 * with ports, or too little of it is quoted.
 */
static __always_inline bool icmp_parse_quoted(struct packet_context *context,
					      struct scratch *scratch)
{
	const struct packet *packet = &scratch->packet;
	struct packet *quoted = &scratch->quoted;
	struct address address;
	enum parse_result result;
	__be16 port;

	quoted->family = 0;
	quoted->ports_known = 0;
	quoted->flaw = PARSE_DONE;
	quoted->network_offset = packet->transport_offset + sizeof(struct icmphdr);
	if (packet->family == AF_INET)
		result = parse_ipv4(context, quoted, packet->end);
	else
		result = parse_ipv6(context, quoted, packet->end);
	if (result == PARSE_DONE)
		result = parse_transport(context, quoted, packet->end);
	WARMPATH_READ_AGAIN();
	if (result != PARSE_DONE || quoted->flaw != PARSE_DONE || !quoted->ports_known)
		return false;
	address_copy(&address, &quoted->source);
	address_copy(&quoted->source, &quoted->destination);
	address_copy(&quoted->destination, &address);
	port = quoted->source_port;
	quoted->source_port = quoted->destination_port;
	quoted->destination_port = port;
	return true;
}

/* The replica that the quoted answer's id belongs to; false: no id is quoted. */
static __always_inline bool icmp_replica_of_id(struct packet_context *context,
					       struct scratch *scratch,
					       struct route_request *request, __u32 *slot)
{
	const struct packet *quoted = &scratch->quoted;
	__u32 start = quoted->payload_offset + request->service->id_offset;
	int length;

	if (quoted->protocol != IPPROTO_UDP || !request->ring ||
	    request->service->id_from != ID_FROM_OFFSET)
		return false;
	if (start + request->service->id_length > quoted->payload_end)
		return false;
	length = id_read(context, start, request->service->id_length);
	if (length <= 0)
		return false;
	request->key = ring_hash_id(request->ring, &scratch->id, length, &request->key_low);
	return route_locate(scratch, request, slot);
}

/* To the replica in `slot`, which knows the client by that port. The same. */
static __always_inline __u32 icmp_address_replica(struct scratch *scratch, __u32 index, __u32 slot,
						  __be16 port)
{
	const struct packet *quoted = &scratch->quoted;
	const struct replica *replica = replica_get(slot);

	if (!replica || replica->service != index || !request_translate(scratch, quoted, replica))
		return OUTCOME_drop_icmp_unrelated;
	scratch->quoted_translation = scratch->translation;
	scratch->quoted_translation.source_port = port;
	address_copy(&scratch->translation.source, &scratch->packet.source);
	return OUTCOME_COUNT;
}

/* An error about an answer of the service: fills in both translations. Returns OUTCOME_COUNT, or the outcome it ends with. */
static __always_inline __u32 icmp_to_replica(struct packet_context *context,
					     struct scratch *scratch, __u32 index)
{
	const struct packet *quoted = &scratch->quoted;
	struct route_request request = {
		.ring = ring_current(index),
		.service = service_get(index),
		.service_index = index,
	};
	const struct connection *connection;
	const struct flow *flow;
	__be16 port = quoted->source_port;
	__u32 slot;

	if (!request.service)
		return OUTCOME_drop_internal;
	flow_key_of_request(&scratch->flow_key, quoted);
	if (quoted->protocol == IPPROTO_TCP && connection_service(request.service)) {
		/* a socket on this machine has the public address: the kernel finds it */
		if (replicas_are_local)
			return OUTCOME_not_ours;
		connection = connection_get(&scratch->flow_key);
		if (!connection || !(connection->flags & CONNECTION_OWNED))
			return OUTCOME_drop_icmp_unrelated;
		slot = connection->replica;
		return icmp_address_replica(scratch, index, slot, connection->translated_port);
	}
	flow = bpf_map_lookup_elem(&flows, &scratch->flow_key);
	if (flow && flow->service == index)
		port = flow->translated_port;
	else
		flow = NULL;
	if (!icmp_replica_of_id(context, scratch, &request, &slot)) {
		if (!flow)
			return OUTCOME_drop_icmp_unrelated;
		slot = flow->replica;
	}
	return icmp_address_replica(scratch, index, slot, port);
}

/* An error about a request to the replica: the same. It comes from the service, whoever on the way there sent it. */
static __always_inline __u32 icmp_to_client(struct scratch *scratch,
					    const struct replica_address *replica)
{
	struct reply reply;
	const struct packet *quoted = &scratch->quoted;
	bool found = quoted->protocol == IPPROTO_TCP &&
		     connection_of_reply(scratch, quoted, replica->replica, replica->services) &&
		     connection_get(&scratch->flow_key);

	if (!found && !reply_find(scratch, quoted, replica, &reply))
		return OUTCOME_not_ours;
	scratch->quoted_translation = scratch->translation;
	return OUTCOME_COUNT;
}

/* What is written into the ICMP message. */
struct icmp_changes {
	__sum16 checksum;	     /* of the message */
	__sum16 network_checksum;    /* of the quoted IPv4 header */
	__sum16 transport_checksum;  /* in the quoted transport header */
	bool transport_checksum_set; /* it is quoted, and there is one */
	__u32 transport_field;	     /* its offset */
};

/* Computes all of it beforehand. 0 or a negative errno. */
static __always_inline int icmp_prepare(struct packet_context *context, struct scratch *scratch,
					struct icmp_changes *changes)
{
	const struct packet *packet = &scratch->packet;
	const struct packet *quoted = &scratch->quoted;
	const struct translation *after = &scratch->quoted_translation;
	bool udp = quoted->protocol == IPPROTO_UDP;
	__u64 addresses = checksum_difference_address(&quoted->source, &after->source) +
			  checksum_difference_address(&quoted->destination, &after->destination);
	__u64 ports = checksum_difference16(quoted->source_port, after->source_port) +
		      checksum_difference16(quoted->destination_port, after->destination_port);
	__u64 message = addresses + ports;
	__sum16 before;
	int err;

	if (quoted->family == AF_INET) {
		err = context_load(context, quoted->network_offset + offsetof(struct iphdr, check),
				   &before, sizeof(before));
		if (err)
			return err;
		changes->network_checksum = checksum_adjust(before, addresses);
		message += checksum_difference16(before, changes->network_checksum);
	} else {
		message +=
			checksum_difference_address(&packet->source, &scratch->translation.source) +
			checksum_difference_address(&packet->destination,
						    &scratch->translation.destination);
	}

	changes->transport_field =
		quoted->transport_offset +
		(udp ? offsetof(struct udphdr, check) : offsetof(struct tcphdr, check));
	changes->transport_checksum_set = false;
	if (changes->transport_field + sizeof(before) <= quoted->end) {
		err = context_load(context, changes->transport_field, &before, sizeof(before));
		if (err)
			return err;
		changes->transport_checksum_set = !udp || before;
		changes->transport_checksum = udp ? checksum_adjust_udp(before, addresses + ports)
						  : checksum_adjust(before, addresses + ports);
		message += checksum_difference16(before, changes->transport_checksum);
	}

	err = context_load(context, packet->transport_offset + offsetof(struct icmphdr, checksum),
			   &before, sizeof(before));
	changes->checksum = checksum_adjust(before, message);
	return err;
}

/* Writes the quoted packet as its sender knows it: turned back. 0 or a negative errno. */
static __always_inline int icmp_write_quoted(struct packet_context *context,
					     struct scratch *scratch,
					     const struct icmp_changes *changes)
{
	const struct packet *quoted = &scratch->quoted;
	const struct translation *after = &scratch->quoted_translation;
	__be16 ports[2] = {after->destination_port, after->source_port};
	struct address addresses[2];
	__sum16 checksum;
	int err;

	if (quoted->family == AF_INET) {
		__be32 ipv4[2] = {after->destination.word[3], after->source.word[3]};

		checksum = changes->network_checksum;
		err = context_store(context, quoted->network_offset + offsetof(struct iphdr, check),
				    &checksum, sizeof(checksum));
		if (!err)
			err = context_store(context,
					    quoted->network_offset + offsetof(struct iphdr, saddr),
					    ipv4, sizeof(ipv4));
	} else {
		address_copy(&addresses[0], &after->destination);
		address_copy(&addresses[1], &after->source);
		err = context_store(context,
				    quoted->network_offset + offsetof(struct ipv6hdr, saddr),
				    addresses, sizeof(addresses));
	}
	if (!err)
		err = context_store(context, quoted->transport_offset, ports, sizeof(ports));
	if (!err && changes->transport_checksum_set) {
		checksum = changes->transport_checksum;
		err = context_store(context, changes->transport_field, &checksum, sizeof(checksum));
	}
	return err;
}

/* Both translations are known: on its way with it. */
static __always_inline __u32 icmp_send(struct packet_context *context, struct scratch *scratch,
				       bool to_replica, bool egress)
{
	struct forward_outcomes outcomes = {
		.sent = to_replica ? OUTCOME_icmp_forwarded : OUTCOME_icmp_returned,
		.by_stack = OUTCOME_icmp_by_stack,
		.local = OUTCOME_icmp_by_stack,
	};
	__u32 hop = egress ? HOP_STACK : next_hop_find(context);
	struct icmp_changes changes = {};
	__sum16 checksum;

	if (hop == HOP_LOCAL && !to_replica)
		return OUTCOME_not_ours;
	if (hop == HOP_NO_ROUTE || (hop == HOP_LOCAL && !replicas_are_local))
		return OUTCOME_drop_no_route;
	/* nobody is told anything about an error; the kernel knows that as well */
	if (hop == HOP_TOO_BIG || hop == HOP_EXPIRED)
		hop = HOP_STACK;
	if (icmp_prepare(context, scratch, &changes))
		return OUTCOME_drop_internal;
	checksum = changes.checksum;
	if (icmp_write_quoted(context, scratch, &changes) ||
	    context_store(context,
			  scratch->packet.transport_offset + offsetof(struct icmphdr, checksum),
			  &checksum, sizeof(checksum)))
		return OUTCOME_drop_rewrite_failed;
	return forward_outcome(context, hop, &outcomes);
}

/*
 * The ICMP packet in scratch. egress: on its way out of this machine. Returns the outcome.
 * A global function: verified once.
 */
__noinline int icmp_handle(struct packet_context *context, bool egress)
{
	struct scratch *scratch = scratch_get();
	const struct replica_address *replica;
	const struct packet *packet, *quoted;
	__u32 outcome;
	int service;

	if (!context || !scratch)
		return OUTCOME_drop_internal;
	packet = &scratch->packet;
	quoted = &scratch->quoted;
	if (packet->fragment != FRAGMENT_NONE || !icmp_is_error(packet) ||
	    !icmp_parse_quoted(context, scratch))
		return OUTCOME_not_ours;
	/* whoever sent the quoted packet is told */
	if (!address_equal(&packet->destination, &quoted->destination))
		return OUTCOME_not_ours;

	if (!egress) {
		service = service_at(&quoted->destination, quoted->destination_port,
				     quoted->protocol, quoted->family == AF_INET6);
		if (service != SERVICE_NONE) {
			outcome = icmp_to_replica(context, scratch, service);
			return outcome == OUTCOME_COUNT ? icmp_send(context, scratch, true, false)
							: outcome;
		}
	}
	replica = replica_at(&quoted->source, quoted->source_port);
	if (!replica)
		return OUTCOME_not_ours;
	outcome = icmp_to_client(scratch, replica);
	return outcome == OUTCOME_COUNT ? icmp_send(context, scratch, false, egress) : outcome;
}

#endif /* WARMPATH_BPF_ICMP_H */
