/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replica to client, where the connection is routed by what it carries.
 *
 * Owns: whose answer it is, whether its sender still owns the connection, the states of a connection as answers change them. May not know:
 * how HTTP is read (http_answer.h), how packets are written.
 */
#ifndef WARMPATH_BPF_CONNECTION_REPLY_H
#define WARMPATH_BPF_CONNECTION_REPLY_H

#include "connection_request.h"
#include "reply.h"

/* What a replica's segments may open the client's window to while an answer is on its way: as much as a new owner's socket takes. */
#define CONNECTION_WINDOW_LIMIT (65536 >> HANDOFF_WINDOW_SCALE)

/* How far the numbers of a replica's segment may be from those seen last: twice the largest window that our scale allows. */
#define CONNECTION_REACH (1u << 24)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct http_window);
} http_windows SEC(".maps");

/*
 * The payload in hand may come before bytes that it should follow: lost on the way here, or overtaken. While the head of the answer is not
 * complete, such a segment is left out; what has gone by by the time the head is complete is body, and only has to be counted.
 */
static __always_inline enum http_follow_event
connection_follow_payload(struct packet_context *context, struct scratch *scratch,
			  const struct tcp_segment *segment, struct connection *entry,
			  struct http_window *window)
{
	struct http_follower *answer = &entry->answer;
	enum http_follow_event event;

	if (answer->state < HTTP_FOLLOW_COUNTED &&
	    tcp_before(answer->next_sequence, segment->sequence))
		return HTTP_FOLLOW_GOING_ON;
	event = http_follow(answer, window, context, scratch->packet.payload_offset,
			    segment->length, segment->sequence);
	if (answer->state != HTTP_FOLLOW_COUNTED ||
	    !tcp_before(answer->next_sequence, entry->replica_next))
		return event;
	http_follow_gap(answer, entry->replica_next - answer->next_sequence);
	return answer->state == HTTP_FOLLOW_DONE ? HTTP_FOLLOW_COMPLETE : event;
}

/* Where only the end of the connection is the end of the answer: a success if there was any. */
static __always_inline void connection_follow_opaque(const struct tcp_segment *segment,
						     struct connection *entry)
{
	entry->answer.bytes += segment->length;
	if (segment->flags & TCP_FLAG_FIN)
		connection_end_request(entry, entry->answer.bytes ? COMPLETION_SUCCESS
								  : COMPLETION_FAILED);
}

/* Follows the answer in the payload in hand, and the end of the connection. */
static __always_inline void connection_follow(struct packet_context *context,
					      struct scratch *scratch,
					      const struct tcp_segment *segment,
					      struct connection *entry)
{
	__u32 first = 0;
	struct http_window *window = bpf_map_lookup_elem(&http_windows, &first);

	enum http_follow_event event = HTTP_FOLLOW_GOING_ON;

	if (entry->pinned == PIN_PROTOCOL) {
		connection_follow_opaque(segment, entry);
		return;
	}
	if (!window)
		return;
	if (segment->length)
		event = connection_follow_payload(context, scratch, segment, entry, window);
	if ((segment->flags & TCP_FLAG_FIN) && event != HTTP_FOLLOW_COMPLETE)
		event = http_follow_end(&entry->answer, segment->sequence + segment->length);
	if (event == HTTP_FOLLOW_COMPLETE)
		contact_status(entry->replica, entry->answer.status);
	if (event == HTTP_FOLLOW_COMPLETE)
		connection_end_request(entry, entry->answer.status / 100 == 2 ? COMPLETION_SUCCESS
									      : COMPLETION_FAILED);
	else if (event == HTTP_FOLLOW_CUT_OFF)
		connection_end_request(entry, COMPLETION_FAILED);
}

/*
 * The packet in hand is the owner's reset of a connection that was handed to it and not answered: the client gets a 503 in its place.
 */
static __always_inline __u32 connection_refused(struct packet_context *context,
						struct scratch *scratch, struct tcp_space *space,
						struct connection *entry)
{
	__u32 acknowledgement = entry->start_acknowledgement;
	__u32 hop;
	int result;

	count(NOTE_note_replica_refused);
	connection_report(entry->replica, REFUSAL_RESET);
	connection_end_request(entry, COMPLETION_FAILED);
	if (entry->pinned == PIN_PROTOCOL) {
		/* what the client would understand is not known: the reset goes on to it */
		connection_close(entry);
		return OUTCOME_COUNT;
	}
	error_enter(entry, 503, acknowledgement);
	bpf_map_delete_elem(&held_heads, &scratch->flow_key);
	/* a reset carries no timestamps, a segment has to: the client's last value as echo, and what it has accepted last */
	space->options.found.timestamps = !!(entry->flags & CONNECTION_TIMESTAMPS);
	space->options.found.timestamp_value = entry->timestamp_value;
	space->options.found.timestamp_echo = entry->timestamp_echo;
	tcp_write_start(space, true, 0);
	space->writing.back = 0;
	space->writing.sequence = acknowledgement;
	space->writing.acknowledgement = entry->client_next;
	result = error_write(context, entry->refusal, error_length(entry));
	if (result == -ENOSPC) {
		/* the packet cannot become so long, and is still the reset that it was: that goes on to the client */
		connection_close(entry);
		return OUTCOME_COUNT;
	}
	if (result)
		return OUTCOME_drop_rewrite_failed;
	if (scratch->egress) {
		scratch->verdict = CONTEXT_PASS;
		return OUTCOME_answered_unavailable;
	}
	hop = next_hop_find(context);
	result = forward_packet(context, hop);
	if (result < 0)
		return OUTCOME_drop_rewrite_failed;
	if (result == 0)
		scratch->verdict = CONTEXT_PASS;
	return OUTCOME_answered_unavailable;
}

/* An acknowledgement of the owner, short of the end of what is held: goes back as the next segment of that. */
static __always_inline __u32 connection_send_held(struct packet_context *context,
						  struct scratch *scratch, struct tcp_space *space,
						  struct connection *entry)
{
	__u32 sent = space->segment.acknowledgement;

	/* it is late, and a newer one has been here; or that one is on its way: should it be lost, the client's repetition sends it again */
	if (tcp_before(sent, entry->replica_acknowledged) || sent == entry->held_sent)
		return OUTCOME_absorbed_acknowledgement;
	entry->held_sent = sent;
	tcp_read_options(context);
	tcp_write_start(space, true, TCP_FLAG_ACK);
	/* in the client's name: its own clock stands where it stood in its last segment */
	if (space->options.found.timestamps)
		tcp_put32(space->writing.header + TCP_HEADER_LENGTH + 4, entry->timestamp_value);
	space->writing.acknowledgement = space->segment.end;
	space->writing.window = entry->client_window;
	if (head_write(context, sent,
		       head_limit(entry->service, space, scratch->packet.family == AF_INET6)))
		return OUTCOME_drop_rewrite_failed;
	return tcp_send_back(context, scratch, OUTCOME_held_sent);
}

/*
 * Can the segment of a replica be of this connection at all, or of one that the client has directly with the replica, from the same port? A
 * replica sends no SYN on a connection that was handed to it, and its numbers are near those that have been seen.
 */
static __always_inline bool connection_fits_reply(const struct connection *entry,
						  const struct tcp_segment *segment)
{
	if (segment->flags & TCP_FLAG_SYN)
		return false;
	if (segment->sequence - entry->replica_next + CONNECTION_REACH > 2 * CONNECTION_REACH)
		return false;
	return !(segment->flags & TCP_FLAG_ACK) ||
	       entry->client_next - segment->acknowledgement <= CONNECTION_REACH;
}

/* Is the packet in hand from the connection's owner? */
static __always_inline bool connection_is_owner(const struct scratch *scratch,
						const struct connection *entry)
{
	const struct replica *replica;
	const struct address *address;

	if (!(entry->flags & CONNECTION_OWNED))
		return false;
	replica = replica_get(entry->replica);
	if (!replica || replica->port != scratch->packet.source_port)
		return false;
	address = replica_address_in(replica, scratch->packet.family);
	return address && address_equal(address, &scratch->packet.source);
}

/*
 * Cuts the window that the owner offers to what a new owner would offer, once it has the whole request: the next request may go to one.
 */
static __always_inline int connection_cut_window(struct packet_context *context,
						 const struct packet *packet,
						 const struct tcp_segment *segment,
						 const struct connection *entry)
{
	if (!(entry->flags & CONNECTION_END_KNOWN) || entry->pinned ||
	    segment->window <= CONNECTION_WINDOW_LIMIT ||
	    tcp_packed_scale(entry->options) == TCP_SCALE_NONE ||
	    entry->replica_acknowledged != entry->request_end)
		return 0;
	return context_change_tcp(context, packet, offsetof(struct tcphdr, window),
				  bpf_htons(segment->window), bpf_htons(CONNECTION_WINDOW_LIMIT));
}

/* A segment of the owner goes by. OUTCOME_COUNT: it is to be sent on. */
static __always_inline __u32 connection_answer(struct packet_context *context,
					       struct scratch *scratch, struct tcp_space *space,
					       struct connection *entry)
{
	struct tcp_segment *segment = &space->segment;
	const struct held_head *held;
	__u32 length;

	if (entry->state == CONNECTION_HANDING) {
		if (segment->flags & TCP_FLAG_RST)
			return segment->sequence == entry->start_acknowledgement
				       ? connection_refused(context, scratch, space, entry)
				       : OUTCOME_drop_stale_answer;
		if (!tcp_before(entry->start_sequence, segment->acknowledgement) ||
		    segment->sequence - entry->start_acknowledgement > CONNECTION_LENGTH_MAX)
			return OUTCOME_drop_stale_answer;
		entry->state = CONNECTION_SERVED;
		contact_answered(entry->replica);
	}
	if (segment->flags & TCP_FLAG_RST) {
		if ((entry->flags & CONNECTION_CHARGED) &&
		    (entry->pinned != PIN_PROTOCOL || !entry->answer.bytes))
			connection_report(entry->replica, REFUSAL_ABORTED);
		connection_close(entry);
		return OUTCOME_COUNT;
	}
	if (tcp_before(entry->replica_acknowledged, segment->acknowledgement))
		entry->replica_acknowledged = segment->acknowledgement;
	if (tcp_before(entry->replica_next, segment->end))
		entry->replica_next = segment->end;
	if (entry->flags & CONNECTION_HELD) {
		held = held_head_get(&scratch->flow_key);
		length = held ? held->length : 0;
		if (entry->replica_acknowledged - entry->start_sequence < length) {
			if (segment->length == 0 && !(segment->flags & TCP_FLAG_FIN))
				return connection_send_held(context, scratch, space, entry);
		} else {
			connection_clear_flags(entry, CONNECTION_HELD);
			bpf_map_delete_elem(&held_heads, &scratch->flow_key);
		}
	}
	if (segment->length || (segment->flags & TCP_FLAG_FIN))
		connection_follow(context, scratch, segment, entry);
	if (segment->flags & TCP_FLAG_FIN) {
		connection_set_flags(entry, CONNECTION_FIN_FROM_REPLICA);
		if (connection_has_ended(entry->flags))
			connection_close(entry);
	}
	return OUTCOME_COUNT;
}

/*
 * The connection that a TCP segment from the replica in `slot` would belong to, into scratch->flow_key; and its translation. False: it can
 * be none of ours.
 */
static __always_inline bool connection_of_reply(struct scratch *scratch,
						const struct packet *packet, __u32 slot,
						__u32 services)
{
	const struct replica *replica = replica_get(slot);
	struct reply reply = {};
	const struct address *address;
	const struct service *service;

	if (!replica)
		return false;
	service = service_get(replica->service);
	if (!service)
		return false;
	address = service_public_address(service, packet->family);
	if (services != 1 || !address) {
		if (!reply_translate_by_flow(scratch, packet, &reply))
			return false;
		service = service_get(reply.service_index);
		if (!service || !connection_service(service))
			return false;
	} else {
		if (!connection_service(service))
			return false;
		reply_translate(scratch, packet, address, service->public_port,
				packet->destination_port);
	}
	reply_flow_key(scratch);
	/* the segment may be one that an ICMP error quotes */
	scratch->flow_key.protocol = IPPROTO_TCP;
	return true;
}

/*
 * A TCP segment from the replica in `slot`, whose address `services` services use. OUTCOME_COUNT: it belongs to no connection of ours.
 * A global function: verified once.
 */
__noinline int connection_reply(struct packet_context *context, __u32 slot, __u32 services)
{
	struct forward_outcomes outcomes = {
		.sent = OUTCOME_returned,
		.by_stack = OUTCOME_returned_by_stack,
		.local = OUTCOME_not_ours,
	};
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct connection *entry;
	__u32 outcome, hop;

	if (!context || !space || !scratch)
		return OUTCOME_drop_internal;
	if (!connection_of_reply(scratch, &scratch->packet, slot, services))
		return OUTCOME_COUNT;
	entry = connection_get(&scratch->flow_key);
	if (!entry)
		return OUTCOME_COUNT;
	if (tcp_read(context, &scratch->packet, &space->segment))
		return OUTCOME_drop_truncated;
	/* nor may the return entry of the connection count for it */
	if (!connection_fits_reply(entry, &space->segment))
		return OUTCOME_not_ours;
	if (!connection_is_owner(scratch, entry)) {
		if (space->segment.flags & TCP_FLAG_RST)
			return OUTCOME_absorbed_reset;
		return tcp_reset(context, scratch, space, OUTCOME_reset_stale_socket);
	}
	hop = next_hop_find(context);
	if (hop == HOP_LOCAL)
		return OUTCOME_not_ours;
	if (hop == HOP_TOO_BIG || hop == HOP_EXPIRED)
		return OUTCOME_passed_to_stack;
	if (hop == HOP_NO_ROUTE)
		return OUTCOME_drop_no_route;
	outcome = connection_answer(context, scratch, space, entry);
	if (outcome != OUTCOME_COUNT)
		return outcome;
	if (connection_cut_window(context, &scratch->packet, &space->segment, entry))
		return OUTCOME_drop_rewrite_failed;
	return forward_outcome(context, hop, &outcomes);
}

/*
 * A TCP segment of a server on this machine, from a service's public address.
 * A global function: verified once.
 */
__noinline int connection_reply_local(struct packet_context *context)
{
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	const struct packet *packet;
	struct connection *entry;
	__u32 outcome;

	if (!context || !space || !scratch)
		return OUTCOME_drop_internal;
	packet = &scratch->packet;
	reply_translate(scratch, packet, &packet->source, packet->source_port,
			packet->destination_port);
	reply_flow_key(scratch);
	entry = connection_get(&scratch->flow_key);
	if (!entry)
		return OUTCOME_not_ours;
	if (tcp_read(context, packet, &space->segment))
		return OUTCOME_drop_truncated;
	outcome = connection_answer(context, scratch, space, entry);
	if (outcome != OUTCOME_COUNT)
		return outcome;
	if (connection_cut_window(context, packet, &space->segment, entry))
		return OUTCOME_drop_rewrite_failed;
	return OUTCOME_returned_by_stack;
}

#endif /* WARMPATH_BPF_CONNECTION_REPLY_H */
