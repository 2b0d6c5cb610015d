/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happens to a connection in the course of its life, whichever side it comes from: its request ends, it is pinned, it ends.
 *
 * Owns: giving back the charge of a connection's request, the end of a connection. May not know: which segment means what.
 */
#ifndef WARMPATH_BPF_CONNECTION_LIFE_H
#define WARMPATH_BPF_CONNECTION_LIFE_H

#include "connection_send.h"
#include "contact.h"

static __always_inline void connection_pin(struct connection *entry, enum connection_pin why)
{
	if (entry->pinned)
		return;
	entry->pinned = why;
	count(NOTE_note_connection_pinned);
}

/* Does the segment belong to the incarnation of the entry? Its acknowledgement is of something that was sent since its request. */
static __always_inline bool connection_contains(const struct connection *entry,
						const struct tcp_segment *segment)
{
	return segment->acknowledgement - entry->start_acknowledgement <=
	       entry->replica_next - entry->start_acknowledgement;
}

static __always_inline bool connection_has_ended(__u32 flags)
{
	return (flags & (CONNECTION_FIN_FROM_CLIENT | CONNECTION_FIN_FROM_REPLICA)) ==
	       (CONNECTION_FIN_FROM_CLIENT | CONNECTION_FIN_FROM_REPLICA);
}

/* The owner has reset the connection with its request unanswered. cause: enum refusal_cause. A global function: verified once. */
__noinline int connection_report(__u32 replica, __u32 cause)
{
	struct scratch *scratch = scratch_get();

	if (!scratch || !route_name_request(scratch, 0))
		return 0;
	return contact_refused(replica, cause);
}

/*
 * Gives back what was charged for the open request of the connection in scratch->flow_key. status: enum completion_status. Its entry
 * stays for the connection's next request.
 */
static __always_inline void connection_give_back(enum completion_status status)
{
	struct scratch *scratch = scratch_get();

	if (scratch && route_name_request(scratch, 0))
		request_close(0, REPLICA_NONE, status, true);
}

/*
 * The connection in scratch->flow_key has no further requests.
 * A global function: verified once.
 */
__noinline int connection_forget_request(void)
{
	struct scratch *scratch = scratch_get();

	if (!scratch || !route_name_request(scratch, 0))
		return 0;
	return request_forget();
}

static __always_inline void connection_end_request(struct connection *entry,
						   enum completion_status status)
{
	if (!(entry->flags & CONNECTION_CHARGED))
		return;
	if (__sync_fetch_and_and(&entry->flags, ~CONNECTION_CHARGED) & CONNECTION_CHARGED)
		connection_give_back(status);
}

/*
 * The connection is over, and with it a request that is still open. The entry stays, to recognise replays of its first segment.
 */
static __always_inline void connection_close(struct connection *entry)
{
	connection_end_request(entry, COMPLETION_FAILED);
	if (entry->state == CONNECTION_CLOSED)
		return;
	entry->state = CONNECTION_CLOSED;
	connection_forget_request();
	count(NOTE_note_flow_closed);
}

static __always_inline __u32 connection_forward(struct packet_context *context,
						struct scratch *scratch, struct tcp_space *space,
						struct connection *entry, __u32 kind)
{
	__u32 outcome = connection_send(context, scratch, space, entry, kind);

	if (outcome == OUTCOME_reset_replica_gone || connection_has_ended(entry->flags))
		connection_close(entry);
	return outcome;
}

/*
 * Tells the agent of the socket that the connection leaves behind at its owner. sequence: what that expects next. In shape node-local the
 * socket of the next owner takes its place.
 */
static __always_inline void connection_tell_left(const struct scratch *scratch,
						 const struct connection *entry, __u32 sequence,
						 __u32 acknowledgement)
{
	const struct replica *replica = replica_get(entry->replica);
	const struct address *address;
	struct event_move *event;

	if (replicas_are_local || !replica)
		return;
	address = replica_address_in(replica, scratch->packet.family);
	if (!address)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count(NOTE_note_event_dropped);
		return;
	}
	event->header.kind = EVENT_MOVE;
	event->header.service = entry->service;
	event->header.nanoseconds = bpf_ktime_get_coarse_ns();
	event->header.id_hash = 0;
	event->header.flow = scratch->flow_key;
	address_copy(&event->replica_address, address);
	event->replica = entry->replica;
	event->replica_port = replica->port;
	event->client_port = entry->translated_port;
	event->sequence = sequence;
	event->acknowledgement = acknowledgement;
	bpf_ringbuf_submit(event, 0);
}

#endif /* WARMPATH_BPF_CONNECTION_LIFE_H */
