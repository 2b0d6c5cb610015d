/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replica to client: the public address comes back.
 *
 * Owns: finding out whose reply a packet from a replica is. May not know: how it was decided that the replica answers this client.
 *
 * A replica's own traffic (a health check it answers, an administrator's connection) comes from the same address and port. What
 * belongs to no flow and is not for somebody behind this machine is left alone.
 */
#ifndef WARMPATH_BPF_REPLY_H
#define WARMPATH_BPF_REPLY_H

#include "flow.h"
#include "forward.h"
#include "fragment.h"
#include "packet.h"
#include "route.h"
#include "service.h"

static __always_inline void reply_translate(struct scratch *scratch, const struct packet *packet,
					    const struct address *service, __be16 service_port,
					    __be16 client_port)
{
	address_copy(&scratch->translation.source, service);
	address_copy(&scratch->translation.destination, &packet->destination);
	scratch->translation.source_port = service_port;
	scratch->translation.destination_port = client_port;
}

/* Who answers whom. */
struct reply {
	__u32 service_index;
	__u32 replica;		   /* slot */
	struct return_flow *entry; /* NULL: found without one */
};

/* Fills in the only public address of the replica's service: of its first user's, if there are several. */
static __always_inline bool reply_translate_by_service(struct scratch *scratch,
						       const struct packet *packet,
						       const struct replica_address *source,
						       struct reply *reply)
{
	const struct replica *replica = replica_get(source->replica);
	const struct service *service;
	const struct address *address;

	if (!replica)
		return false;
	service = service_get(replica->service);
	if (!service || service->id_from != ID_FROM_OFFSET)
		return false;
	address = service_public_address(service, packet->family);
	if (!address)
		return false;
	reply_translate(scratch, packet, address, service->public_port, packet->destination_port);
	reply->replica = source->replica;
	reply->service_index = replica->service;
	return true;
}

/* The same by the flow's return entry. */
static __always_inline bool
reply_translate_by_flow(struct scratch *scratch, const struct packet *packet, struct reply *reply)
{
	struct return_flow *entry;

	return_key_of_reply(&scratch->return_key, packet);
	entry = bpf_map_lookup_elem(&return_flows, &scratch->return_key);
	if (!entry)
		return false;
	reply_translate(scratch, packet, &entry->service, entry->service_port, entry->client_port);
	reply->replica = entry->replica;
	reply->service_index = entry->service_index;
	reply->entry = entry;
	return true;
}

/* The client's side of the translation, which is what a flow is known by. */
static __always_inline void reply_flow_key(struct scratch *scratch)
{
	struct flow_key *key = &scratch->flow_key;

	address_copy(&key->client, &scratch->translation.destination);
	address_copy(&key->service, &scratch->translation.source);
	key->client_port = scratch->translation.destination_port;
	key->service_port = scratch->translation.source_port;
	key->protocol = scratch->packet.protocol;
	key->reserved[0] = key->reserved[1] = key->reserved[2] = 0;
}

/*
 * A reply without a return entry, although several services use the replica now: its request came when only the first did, which
 * then is a service this client has sent datagrams to.
 */
static __always_inline bool reply_translate_by_past(struct scratch *scratch,
						    const struct packet *packet,
						    const struct replica_address *source,
						    struct reply *reply)
{
	if (!reply_translate_by_service(scratch, packet, source, reply))
		return false;
	reply_flow_key(scratch);
	/* the packet may be one that an ICMP error quotes */
	scratch->flow_key.protocol = packet->protocol;
	return bpf_map_lookup_elem(&flows, &scratch->flow_key) != NULL;
}

/* Whose reply the packet from the replica at `source` is, into scratch->translation. False: nobody's that is known. */
static __always_inline bool reply_find(struct scratch *scratch, const struct packet *packet,
				       const struct replica_address *source, struct reply *reply)
{
	if (packet->protocol == IPPROTO_UDP && source->services == 1 &&
	    reply_translate_by_service(scratch, packet, source, reply))
		return true;
	if (reply_translate_by_flow(scratch, packet, reply))
		return true;
	return packet->protocol == IPPROTO_UDP && source->services != 1 &&
	       reply_translate_by_past(scratch, packet, source, reply);
}

/* What a reply that is going to be sent says about its flow. */
static __always_inline void reply_follow(struct packet_context *context, struct scratch *scratch,
					 const struct reply *reply)
{
	const struct packet *packet = &scratch->packet;
	struct return_flow *entry = reply->entry;
	struct flow *flow;

	if (packet->protocol == IPPROTO_UDP) {
		reply_flow_key(scratch);
		reply_seen(context, scratch, reply->service_index, reply->replica);
		return;
	}
	if (entry && (packet->tcp_flags & TCP_SYN))
		entry->answered = 0; /* the entry may be an earlier connection's */
	else if (entry && !entry->answered && packet->payload_end > packet->payload_offset)
		entry->answered = 1;
	if (!(packet->tcp_flags & (TCP_FIN | TCP_RST)))
		return;
	reply_flow_key(scratch);
	flow = bpf_map_lookup_elem(&flows, &scratch->flow_key);
	if (!flow)
		return;
	if (entry && entry->answered && (packet->tcp_flags & TCP_FIN))
		__sync_fetch_and_or(&flow->fin_seen, FLOW_FIN_ANSWERED);
	if (flow_follow(flow, packet->tcp_flags, FLOW_FIN_FROM_REPLICA))
		connection_closed(scratch, flow);
}

/* A later fragment of a reply. */
static __always_inline __u32 reply_fragment(struct packet_context *context, struct scratch *scratch,
					    bool egress)
{
	struct forward_outcomes outcomes = {
		.sent = OUTCOME_returned,
		.by_stack = OUTCOME_returned_by_stack,
		.local = OUTCOME_not_ours,
	};
	__u32 hop = egress ? HOP_STACK : next_hop_find(context);

	if (hop == HOP_LOCAL)
		return OUTCOME_not_ours;
	if (hop == HOP_TOO_BIG || hop == HOP_EXPIRED)
		return OUTCOME_passed_to_stack;
	if (hop == HOP_NO_ROUTE)
		return OUTCOME_drop_no_route;
	return forward_outcome(context, hop, &outcomes);
}

/*
 * A packet from the replica at `source`. egress: on its way out of this machine, which has already routed it.
 */
static __always_inline __u32 reply_handle(struct packet_context *context, struct scratch *scratch,
					  const struct replica_address *source, bool egress)
{
	struct forward_outcomes outcomes = {
		.sent = OUTCOME_returned,
		.by_stack = OUTCOME_returned_by_stack,
		.local = OUTCOME_not_ours,
	};
	const struct packet *packet = &scratch->packet;
	bool udp = packet->protocol == IPPROTO_UDP;
	struct reply reply = {};
	bool known = reply_find(scratch, packet, source, &reply);
	__u32 hop = HOP_STACK;

	if (!known) {
		if (!udp)
			return OUTCOME_not_ours;
		reply_translate(scratch, packet, &packet->source, packet->source_port,
				packet->destination_port);
	}
	if (!egress)
		hop = next_hop_find(context);
	if (hop == HOP_LOCAL)
		return OUTCOME_not_ours;
	if (!known)
		return OUTCOME_drop_no_service_address;
	if (hop == HOP_TOO_BIG || hop == HOP_EXPIRED)
		return OUTCOME_passed_to_stack;
	if (hop == HOP_NO_ROUTE)
		return OUTCOME_drop_no_route;
	if (!fragment_remember(scratch, false))
		return OUTCOME_drop_fragment_table_full;
	reply_follow(context, scratch, &reply);
	return forward_outcome(context, hop, &outcomes);
}

#endif /* WARMPATH_BPF_REPLY_H */
