/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A client's segment on its way to the owner of its connection: translated, marked where that is due.
 *
 * Owns: the mark in the packet, what is updated in the entry when a segment goes by. May not know: why the segment is for that
 * replica.
 */
#ifndef WARMPATH_BPF_CONNECTION_SEND_H
#define WARMPATH_BPF_CONNECTION_SEND_H

#include <warmpath/mark.h>

#include "connection_maps.h"
#include "request.h"
#include "tcp_segment.h"

#define CONNECTION_DONT_FRAGMENT 0x4000

enum connection_mark {
	CONNECTION_UNMARKED = 0,
	CONNECTION_START = 1,
	CONNECTION_FOLLOW = 2,
};

/* Can the owner of the connection still be sent anything? One that was removed serves what it has begun. */
static __always_inline bool connection_owner_exists(const struct connection *entry)
{
	const struct replica *replica = replica_get(entry->replica);

	return replica && replica->service == entry->service && replica->state != REPLICA_UNUSED;
}

/* Can an answer of the owner to a request that it has not acknowledged still be hoped for? */
static __always_inline bool connection_owner_may_answer(const struct connection *entry)
{
	const struct replica *replica = replica_get(entry->replica);

	return replica && replica->service == entry->service &&
	       replica->incarnation == entry->incarnation &&
	       (replica->state == REPLICA_ACTIVE || replica->state == REPLICA_DRAINING);
}

/* The rest of a START's MAC goes where nothing reads it: identification (then the packet may not be fragmented), or flow label. */
static __always_inline int connection_mark_network(struct packet_context *context,
						   const struct packet *packet, __u32 low)
{
	if (packet->family == AF_INET) {
		const struct iphdr *ip =
			context_bytes(context, packet->network_offset, sizeof(*ip));
		__be16 identification, fragment;
		int err;

		if (!ip)
			return -EFAULT;
		identification = ip->id;
		fragment = ip->frag_off;
		err = context_change_ipv4(context, packet, offsetof(struct iphdr, id),
					  identification, bpf_htons(low));
		if (err || (fragment & bpf_htons(CONNECTION_DONT_FRAGMENT)))
			return err;
		return context_change_ipv4(context, packet, offsetof(struct iphdr, frag_off),
					   fragment, bpf_htons(CONNECTION_DONT_FRAGMENT));
	} else {
		const struct ipv6hdr *ip =
			context_bytes(context, packet->network_offset, sizeof(*ip));
		__be32 label = bpf_htonl((1u << MARK_MAC_LOW_BITS_6) - 1);

		if (!ip)
			return -EFAULT;
		return context_change_ipv6(context, packet,
					   (*(const __be32 *)ip & ~label) | bpf_htonl(low));
	}
}

/* The urgent pointer, and no URG flag beside it. */
static __always_inline int connection_set_pointer(struct packet_context *context,
						  const struct packet *packet,
						  const struct tcp_segment *segment, __u16 pointer)
{
	const __be16 *field;
	__be16 before, after;
	int err;

	err = context_change_tcp(context, packet, offsetof(struct tcphdr, urg_ptr),
				 bpf_htons(segment->urgent), bpf_htons(pointer));
	if (err || !(segment->flags & TCP_FLAG_URG))
		return err;
	/* as it stands there: bits beside the flags that we know may be set, and stay */
	field = context_bytes(context, packet->transport_offset + 12, sizeof(*field));
	if (!field)
		return -EFAULT;
	before = *field;
	after = before & ~bpf_htons(TCP_FLAG_URG);
	return context_change_tcp(context, packet, 12, before, after);
}

/*
 * Marks the packet in hand, whose translation is in scratch, but not written yet. kind: enum connection_mark.
 * A global function: verified once.
 */
__noinline int connection_write_mark(struct packet_context *context, __u32 kind, __u32 options,
				     __u32 round_trip)
{
	const struct handoff_keys *keys = handoff_keys_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct mark_subject subject;
	__u32 low = 0;
	__u16 mark;
	bool ipv6;
	int err;

	if (!context || !space || !scratch || !keys || keys->count == 0)
		return -ENOENT;
	if (kind != CONNECTION_START)
		return connection_set_pointer(context, &scratch->packet, &space->segment,
					      kind == CONNECTION_FOLLOW ? MARK_FOLLOW : 0);
	ipv6 = scratch->packet.family == AF_INET6;
	address_copy(&subject.client, &scratch->translation.source);
	address_copy(&subject.replica, &scratch->translation.destination);
	subject.client_port = scratch->translation.source_port;
	subject.replica_port = scratch->translation.destination_port;
	subject.sequence = space->segment.sequence;
	subject.acknowledgement = space->segment.acknowledgement;
	mark = mark_sign(&keys->mark[0], &subject, mark_start(options, round_trip), ipv6, &low);
	err = connection_set_pointer(context, &scratch->packet, &space->segment, mark);
	return err ? err : connection_mark_network(context, &scratch->packet, low);
}

/* What the entry has to know of a client's segment that is sent on. */
static __always_inline void connection_note_segment(struct connection *entry,
						    const struct tcp_segment *segment)
{
	/* anybody may have sent a reset, with any number */
	if (segment->flags & TCP_FLAG_RST)
		return;
	if (tcp_before(entry->client_next, segment->end))
		entry->client_next = segment->end;
	if (segment->flags & TCP_FLAG_FIN)
		connection_set_flags(entry, CONNECTION_FIN_FROM_CLIENT);
}

/*
 * Sees to it that replies of the owner, to which the translation in scratch leads, find back. first: the owner is new to the
 * connection, so the port towards it may still be chosen. OUTCOME_COUNT, or the outcome to drop the packet with.
 */
static __always_inline __u32 connection_claim(struct scratch *scratch, struct connection *entry,
					      bool first)
{
	__u64 now = packet_now(scratch);
	int claimed;

	entry->seen_nanoseconds = now;
	if (first) {
		connection_clear_flags(entry, CONNECTION_RETURN_ENTRY);
		if (!return_flow_needed(scratch, entry->service))
			return OUTCOME_COUNT;
		connection_set_flags(entry, CONNECTION_RETURN_ENTRY);
	} else if (!(entry->flags & CONNECTION_RETURN_ENTRY) ||
		   now - entry->checked_nanoseconds < FLOW_CHECK_NANOSECONDS) {
		return OUTCOME_COUNT;
	}
	claimed =
		return_flow_claim(scratch, entry->service, entry->replica, entry->translated_port);
	if (claimed < 0)
		return claimed == -EADDRINUSE ? OUTCOME_drop_port_exhausted
					      : OUTCOME_drop_flow_table_full;
	if (scratch->translation.source_port != entry->translated_port) {
		/* only a socket that is still to be made can get another port */
		if (!first)
			return OUTCOME_drop_port_exhausted;
		entry->translated_port = scratch->translation.source_port;
		count(NOTE_note_port_translated);
	} else if (claimed && !first) {
		count(NOTE_note_return_restored);
	}
	entry->checked_nanoseconds = now;
	return OUTCOME_COUNT;
}

/* Marks the packet in hand as `kind` says, and sees to it that nothing else looks like a mark. */
static __always_inline int connection_mark(struct packet_context *context,
					   const struct tcp_segment *segment,
					   const struct connection *entry, __u32 kind)
{
	/* a pointer without the flag means something to the replica: only we may set one */
	if (kind == CONNECTION_UNMARKED && (!segment->urgent || (segment->flags & TCP_FLAG_URG)))
		return 0;
	return connection_write_mark(context, kind, entry->options, entry->round_trip);
}

/*
 * Leaves the packet in hand to this machine, where the owner is. It stays as it is: the owner's socket gets the public address and port, wherever
 * the server listens.
 */
static __always_inline __u32 connection_deliver(struct packet_context *context,
						struct scratch *scratch, struct tcp_space *space,
						struct connection *entry, __u32 kind)
{
	address_copy(&scratch->translation.source, &scratch->packet.source);
	address_copy(&scratch->translation.destination, &scratch->packet.destination);
	scratch->translation.source_port = scratch->packet.source_port;
	scratch->translation.destination_port = scratch->packet.destination_port;
	entry->seen_nanoseconds = packet_now(scratch);
	connection_note_segment(entry, &space->segment);
	if (connection_mark(context, &space->segment, entry, kind))
		return OUTCOME_drop_rewrite_failed;
	return OUTCOME_delivered_locally;
}

/*
 * Sends the packet in hand to the owner. kind: enum connection_mark.
 */
static __always_inline __u32 connection_send(struct packet_context *context,
					     struct scratch *scratch, struct tcp_space *space,
					     struct connection *entry, __u32 kind)
{
	__u32 outcome, hop;

	if (!connection_owner_exists(entry))
		return tcp_reset(context, scratch, space, OUTCOME_reset_replica_gone);
	if (replicas_are_local)
		return connection_deliver(context, scratch, space, entry, kind);
	outcome = request_find_way(context, scratch, entry->replica, &hop);
	if (outcome != OUTCOME_COUNT)
		return outcome;
	scratch->translation.source_port = entry->translated_port;
	outcome = connection_claim(scratch, entry, kind == CONNECTION_START);
	if (outcome != OUTCOME_COUNT)
		return outcome;
	connection_note_segment(entry, &space->segment);
	if (connection_mark(context, &space->segment, entry, kind))
		return OUTCOME_drop_rewrite_failed;
	return request_send(context, scratch, hop);
}

#endif /* WARMPATH_BPF_CONNECTION_SEND_H */
