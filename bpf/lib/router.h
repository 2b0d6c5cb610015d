/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One packet, from the first look to the exit.
 *
 * Owns: the order of the questions asked of a packet. May not know: how they are answered; whether it runs as XDP or tc.
 *
 *	to a service?  -> request.h, or connection_request.h where the id is in what a connection carries
 *	from a replica? -> connection_reply.h, or reply.h
 *	neither: untouched
 */
#ifndef WARMPATH_BPF_ROUTER_H
#define WARMPATH_BPF_ROUTER_H

#include "connection_reply.h"
#include "connection_request.h"
#include "exit.h"
#include "fragment.h"
#include "icmp.h"
#include "packet.h"
#include "parse.h"
#include "reply.h"
#include "request.h"
#include "service.h"

static __always_inline enum parse_result router_parse(struct packet_context *context,
						      struct packet *packet)
{
	enum parse_result result = PARSE_OTHER;

	for (int attempt = 0; attempt < 2; attempt++) {
		result = parse_frame(context, packet);
		if (result != PARSE_TRUNCATED || !context_pull(context))
			break;
	}
	/* what is read from the struct from here on is unknown to the verifier, whatever the headers were (packet.h) */
	WARMPATH_READ_AGAIN();
	return result;
}

/* A packet whose headers could not be read to the end: dropped if it is certainly for a service, else the kernel's. */
static __always_inline __u32 router_refuse(const struct packet *packet, enum parse_result result)
{
	bool ipv6 = packet->family == AF_INET6;
	int service;

	if (!packet->family)
		return OUTCOME_not_ours;
	if (packet->ports_known)
		service = service_at(&packet->destination, packet->destination_port,
				     packet->protocol, ipv6);
	else
		service = service_at(&packet->destination, 0, 0, ipv6);
	if (service == SERVICE_NONE)
		return OUTCOME_not_ours;
	if (result == PARSE_TRUNCATED)
		return OUTCOME_drop_truncated;
	if (result == PARSE_MALFORMED)
		return OUTCOME_drop_header_malformed;
	return OUTCOME_drop_header_unsupported;
}

/* A fragment without ports. */
static __always_inline __u32 router_fragment(struct packet_context *context,
					     struct scratch *scratch, bool egress)
{
	const struct packet *packet = &scratch->packet;
	const struct fragment *first = fragment_find(scratch);

	if (!first) {
		if (!egress && service_at(&packet->destination, 0, 0, packet->family == AF_INET6) !=
				       SERVICE_NONE)
			return OUTCOME_drop_fragment_unknown;
		return OUTCOME_not_ours;
	}
	if (!first->to_replica)
		return reply_fragment(context, scratch, egress);
	return egress ? OUTCOME_not_ours : request_fragment(context, scratch);
}

/* A packet to the service with that index. */
static __always_inline __u32 router_request(struct packet_context *context, struct scratch *scratch,
					    __u32 index)
{
	const struct service *service = service_get(index);

	if (service && scratch->packet.protocol == IPPROTO_TCP && connection_service(service))
		return connection_handle(context, scratch, index, service);
	return request_handle(context, scratch, index);
}

/* A packet from a replica. */
static __always_inline __u32 router_reply(struct packet_context *context, struct scratch *scratch,
					  const struct replica_address *source, bool egress)
{
	__u32 outcome = OUTCOME_COUNT;

	if (scratch->packet.protocol == IPPROTO_TCP)
		outcome = connection_reply(context, source->replica, source->services);
	if (outcome != OUTCOME_COUNT)
		return outcome;
	return reply_handle(context, scratch, source, egress);
}

static __always_inline __u32 router_handle(struct packet_context *context, struct scratch *scratch)
{
	struct packet *packet = &scratch->packet;
	enum parse_result result = router_parse(context, packet);
	const struct replica_address *replica;
	int service;

	scratch->egress = 0;
	scratch->nanoseconds = 0;
	if (result == PARSE_OTHER || !context_is_for_us(context))
		return OUTCOME_not_ours;
	if (result != PARSE_DONE)
		return router_refuse(packet, result);
	if (packet->fragment == FRAGMENT_LATER)
		return router_fragment(context, scratch, false);
	if (!packet->ports_known)
		return icmp_handle(context, false);

	service = service_at(&packet->destination, packet->destination_port, packet->protocol,
			     packet->family == AF_INET6);
	if (service != SERVICE_NONE)
		return router_request(context, scratch, service);
	replica = replica_at(&packet->source, packet->source_port);
	if (replica)
		return router_reply(context, scratch, replica, false);
	return OUTCOME_not_ours;
}

/* The same for what leaves this machine: only replies of replicas that run on it. */
static __always_inline __u32 router_handle_egress(struct packet_context *context,
						  struct scratch *scratch)
{
	struct packet *packet = &scratch->packet;
	const struct replica_address *replica;
	const struct service *service;
	enum parse_result result;
	int index;

	if (context_was_made_here(context))
		return OUTCOME_not_ours;
	result = router_parse(context, packet);
	scratch->egress = 1;
	scratch->nanoseconds = 0;
	if (result != PARSE_DONE)
		return OUTCOME_not_ours;
	if (packet->fragment == FRAGMENT_LATER)
		return router_fragment(context, scratch, true);
	if (!packet->ports_known)
		return icmp_handle(context, true);
	/* connections that were handed over here have the public address already */
	index = service_at(&packet->source, packet->source_port, packet->protocol,
			   packet->family == AF_INET6);
	if (index != SERVICE_NONE && packet->protocol == IPPROTO_TCP) {
		service = service_get(index);
		if (service && connection_service(service))
			return connection_reply_local(context);
	}
	replica = replica_at(&packet->source, packet->source_port);
	if (replica)
		return router_reply(context, scratch, replica, true);
	return OUTCOME_not_ours;
}

#endif /* WARMPATH_BPF_ROUTER_H */
