/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A request that was decided becomes its connection's current one.
 *
 * Owns: what an entry says of its request, whether the connection moves. May not know: how it was decided, how segments are sent.
 */
#ifndef WARMPATH_BPF_CONNECTION_PLACE_H
#define WARMPATH_BPF_CONNECTION_PLACE_H

#define http_load_bytes(context, offset, to, length) context_load(context, offset, to, length)
#include <warmpath/http_answer.h>

#include "connection_head.h"
#include "connection_life.h"
#include "connection_step.h"

#define CONNECTION_LENGTH_MAX (1u << 30) /* of a body whose end is still told by sequence numbers */

/* The request whose head was read becomes the connection's current one. sequence: of its first byte. */
static __always_inline void connection_start_request(struct connection *entry,
						     const struct tcp_space *space,
						     const struct http_request *request,
						     __u32 sequence, bool stays)
{
	const struct tcp_segment *segment = &space->segment;
	const struct service *service = service_get(entry->service);
	__u32 known = CONNECTION_CHARGED;

	entry->start_sequence = sequence;
	entry->start_acknowledgement = segment->acknowledgement;
	/* a replica that stays may have sent more than the client has acknowledged */
	if (!stays || tcp_before(entry->replica_next, segment->acknowledgement))
		entry->replica_next = segment->acknowledgement;
	entry->replica_acknowledged = sequence;
	entry->client_window = segment->window;
	entry->timestamp_value = space->options.found.timestamp_value;
	entry->timestamp_echo = space->options.found.timestamp_echo;
	if (tcp_before(entry->client_next, segment->end))
		entry->client_next = segment->end;
	if (request->method == HTTP_METHOD_HEAD)
		known |= CONNECTION_NO_BODY;
	if (space->options.found.timestamps)
		known |= CONNECTION_TIMESTAMPS;
	if (service && connection_is_opaque(service))
		connection_pin(entry, PIN_PROTOCOL);
	if (!request->doubts && !(request->flags & HTTP_CHUNKED) &&
	    request->content_length < CONNECTION_LENGTH_MAX) {
		entry->request_end = sequence + request->head_length + request->content_length;
		known |= CONNECTION_END_KNOWN;
	} else {
		connection_pin(entry, PIN_REQUEST_END);
	}
	connection_clear_flags(entry, (CONNECTION_END_KNOWN | CONNECTION_NO_BODY) & ~known);
	connection_set_flags(entry, known);
	if (request->flags & HTTP_PIPELINED)
		connection_pin(entry, PIN_PIPELINED);
	http_follow_answer(&entry->answer, http_follow_flags(request), entry->replica_next);
}

/*
 * Makes the request that was decided the connection's current one.
 * A global function: verified once.
 */
__noinline int connection_place(struct packet_context *context, struct connection *entry)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	const struct http_head *head = http_head_get();
	const struct held_head *held = NULL;
	const struct replica *replica;
	bool owned, stays;
	__u32 sequence, slot;

	if (!context || !entry || !space || !scratch || !head || !plan)
		return OUTCOME_drop_internal;
	sequence = space->segment.sequence;
	if (plan->is_held) {
		held = held_head_get(&scratch->flow_key);
		if (!held) {
			/* evicted since its last piece was read */
			connection_give_back(COMPLETION_FAILED);
			connection_close(entry);
			return connection_plan_reset(plan, OUTCOME_reset_held_lost);
		}
		sequence = held->sequence;
	}
	owned = entry->flags & CONNECTION_OWNED;

	slot = plan->slot;
	replica = replica_get(slot);
	if (!replica)
		return OUTCOME_drop_internal;

	stays = owned && (!plan->may_move ||
			  (slot == entry->replica && entry->incarnation == replica->incarnation));
	connection_start_request(entry, space, &head->request, sequence, stays);
	if (stays) {
		count(NOTE_note_request_stayed);
		if (!plan->may_move)
			count(NOTE_note_request_pinned);
		entry->state = CONNECTION_SERVED;
	} else {
		count(NOTE_note_request_handed);
		contact_handed(slot);
		if (owned) {
			count(NOTE_note_connection_moved);
			connection_tell_left(scratch, entry, sequence,
					     space->segment.acknowledgement);
		}
		entry->replica = slot;
		entry->incarnation = replica->incarnation;
		entry->state = CONNECTION_HANDING;
		connection_set_flags(entry, CONNECTION_OWNED);
	}
	if (held)
		connection_set_flags(entry, CONNECTION_HELD);
	/* written although the segment has not been sent: its repetition finds the decision */
	if (plan->is_fresh &&
	    bpf_map_update_elem(&connections, &scratch->flow_key, &plan->fresh, BPF_ANY)) {
		connection_end_request(entry, COMPLETION_FAILED);
		return OUTCOME_drop_flow_table_full;
	}
	return connection_plan_send(plan, held ? STEP_SEND_HELD : STEP_SEND,
				    stays ? CONNECTION_UNMARKED : CONNECTION_START);
}

#endif /* WARMPATH_BPF_CONNECTION_PLACE_H */
