/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The replica's side of a handoff on the router's own machine (shape node-local): on tc ingress, behind the router's program.
 *
 * Segments still carry the public address and port. Where the server listens is in the tables, and may be on loopback: the connection gets
 * the segment's addresses. Needs Linux 6.9 (bpf_sk_assign_tcp_reqsk).
 */
#include <warmpath/portable.h>

#include "lib/connection_maps.h"
#include "lib/handoff_segment.h"
#include "lib/maps.h"

/* The address and port of the connection's owner. False: there is none, or none in the segment's family. */
static __always_inline bool handoff_listener_address(const struct handoff_segment *segment,
						     struct bpf_sock_tuple *tuple)
{
	const struct mark_subject *subject = &segment->subject;
	struct flow_key key = {
		.client = subject->client,
		.service = subject->replica,
		.client_port = subject->client_port,
		.service_port = subject->replica_port,
		.protocol = IPPROTO_TCP,
	};
	const struct connection *connection = connection_get(&key);
	const struct replica *replica;
	__u32 slot;

	if (!connection || !(connection->flags & CONNECTION_OWNED))
		return false;
	slot = connection->replica;
	replica = bpf_map_lookup_elem(&replicas, &slot);
	if (!replica)
		return false;
	if (segment->ipv6) {
		for (int i = 0; i < 4; i++)
			tuple->ipv6.daddr[i] = replica->ipv6.word[i];
		tuple->ipv6.dport = replica->port;
		return replica->ipv6.word[0] | replica->ipv6.word[1] | replica->ipv6.word[2] |
		       replica->ipv6.word[3];
	}
	tuple->ipv4.daddr = replica->ipv4.word[3];
	tuple->ipv4.dport = replica->port;
	return replica->ipv4.word[3];
}

#include "lib/handoff.h"

SEC("tc")
int warmpath_handoff_tc(struct __sk_buff *skb)
{
	return handoff_handle(skb);
}

char LICENSE[] SEC("license") = "GPL";
