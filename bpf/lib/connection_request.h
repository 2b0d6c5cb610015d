/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Client to replica, where the connection is routed by what it carries (docs/handoff.md).
 *
 * Owns: the states of a connection as the client's segments change them. May not know: how anything is read, decided or written.
 */
#ifndef WARMPATH_BPF_CONNECTION_REQUEST_H
#define WARMPATH_BPF_CONNECTION_REQUEST_H

#define http_load_bytes(context, offset, to, length) context_load(context, offset, to, length)
#include <warmpath/http_answer.h>

#include "connection_decide.h"
#include "connection_error.h"
#include "connection_head.h"
#include "connection_send.h"
#include "connection_step.h"
#include "tcp_accept.h"

#define CONNECTION_LENGTH_MAX (1u << 30) /* of a body whose end is still told by sequence numbers */

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

/*
 * Gives back what was charged for the open request of the connection in scratch->flow_key. status: enum completion_status.
 * A global function: verified once.
 */
__noinline int connection_give_back(__u32 status)
{
	struct scratch *scratch = scratch_get();

	if (!scratch || !route_name_request(scratch, 0))
		return 0;
	return request_close(0, REPLICA_NONE, status);
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
	count(NOTE_note_flow_closed);
}

static __always_inline __u32 connection_forward(struct packet_context *context,
						struct scratch *scratch, struct tcp_space *space,
						struct connection *entry, __u32 kind)
{
	__u32 outcome = connection_send(context, scratch, space, entry, kind);

	if (connection_has_ended(entry->flags))
		connection_close(entry);
	return outcome;
}

/* --- step: what is this segment? -------------------------------------------------------------------------------- */

/* A segment of a connection that there is no entry for. */
static __always_inline __u32 judge_unknown(struct packet_context *context, struct tcp_space *space,
					   struct connection_plan *plan)
{
	__u32 verdict;

	if (space->segment.length == 0 || (space->segment.flags & TCP_FLAG_RST))
		return tcp_before_request(context);
	verdict = tcp_cookie_check(space->segment.sequence - 1, space->segment.acknowledgement - 1);
	if ((verdict & 0xff) == COOKIE_GOOD) {
		plan->options = verdict >> 8;
		return STEP_FIRST;
	}
	if ((verdict & 0xff) == COOKIE_EXPIRED)
		return connection_plan_reset(plan, OUTCOME_reset_cookie_expired);
	return tcp_stranger(context);
}

/* A segment whose numbers are not those of the entry: of a new connection on the old addresses and ports, a replay, or just late. */
static __always_inline __u32 judge_foreign(struct packet_context *context, struct scratch *scratch,
					   struct tcp_space *space, struct connection_plan *plan,
					   struct connection *entry)
{
	const struct tcp_segment *segment = &space->segment;
	bool closed = entry->state == CONNECTION_CLOSED, same;
	__u32 verdict;

	if (closed && segment->length == 0)
		return tcp_before_request(context);
	verdict = tcp_cookie_check(segment->sequence - 1, segment->acknowledgement - 1);
	same = segment->sequence - 1 == entry->client_initial &&
	       segment->acknowledgement - 1 == entry->cookie;
	if ((verdict & 0xff) == COOKIE_BAD || same) {
		if (closed && same)
			return OUTCOME_drop_cookie_replayed;
		if (closed && !connection_contains(entry, segment))
			return tcp_stranger(context);
		if (entry->flags & CONNECTION_OWNED)
			return connection_forward(context, scratch, space, entry,
						  CONNECTION_UNMARKED);
		return OUTCOME_absorbed_acknowledgement;
	}
	if (segment->length == 0)
		return tcp_before_request(context);
	if ((verdict & 0xff) == COOKIE_EXPIRED)
		return connection_plan_reset(plan, OUTCOME_reset_cookie_expired);
	bpf_map_delete_elem(&held_heads, &scratch->flow_key);
	connection_close(entry);
	plan->options = verdict >> 8;
	return STEP_FIRST;
}

/* RST from the client. Its number says whether it can be the client's own. */
static __always_inline __u32 judge_reset(struct packet_context *context, struct scratch *scratch,
					 struct tcp_space *space, struct connection *entry)
{
	__u32 sequence = space->segment.sequence;
	__u32 outcome = OUTCOME_absorbed_reset;

	if (entry->flags & CONNECTION_OWNED)
		outcome = connection_send(context, scratch, space, entry,
					  entry->state == CONNECTION_HANDING ? CONNECTION_FOLLOW
									     : CONNECTION_UNMARKED);
	if (!tcp_before(sequence, entry->replica_acknowledged) &&
	    !tcp_before(entry->client_next, sequence))
		connection_close(entry);
	return outcome;
}

/*
 * Bytes of the request are held, and not all acknowledged by the owner: is the segment a repetition of them? Then the step to take, else 0.
 */
static __always_inline __u32 judge_held(struct scratch *scratch, struct connection_plan *plan,
					struct connection *entry, const struct tcp_segment *segment)
{
	const struct held_head *held = held_head_get(&scratch->flow_key);
	__u32 length;

	if (!held) {
		connection_close(entry);
		return connection_plan_reset(plan, OUTCOME_reset_held_lost);
	}
	length = held->length;
	if (segment->sequence - held->sequence >= length)
		return 0;
	if (entry->state == CONNECTION_HANDING) {
		count(NOTE_note_start_repeated);
		return connection_plan_send(plan, STEP_SEND_HELD, CONNECTION_START);
	}
	if (entry->replica_acknowledged - held->sequence >= length)
		return 0;
	return connection_plan_send(plan, STEP_SEND_HELD, CONNECTION_UNMARKED);
}

/* In HANDING: which segment may make the socket, and which may not. */
static __always_inline __u32 judge_handing(struct packet_context *context, struct scratch *scratch,
					   struct tcp_space *space, struct connection_plan *plan,
					   struct connection *entry)
{
	const struct tcp_segment *segment = &space->segment;
	bool start = segment->length && segment->sequence == entry->start_sequence;
	__u32 step;

	if ((entry->flags & CONNECTION_HELD) && segment->length) {
		step = judge_held(scratch, plan, entry, segment);
		if (step)
			return step;
	}
	if (start)
		count(NOTE_note_start_repeated);
	return connection_forward(context, scratch, space, entry,
				  start ? CONNECTION_START : CONNECTION_FOLLOW);
}

/* In SERVED: a request's or answer's traffic, or the next request. */
static __always_inline __u32 judge_served(struct packet_context *context, struct scratch *scratch,
					  struct tcp_space *space, struct connection_plan *plan,
					  struct connection *entry)
{
	const struct tcp_segment *segment = &space->segment;
	const struct http_follower *answer = &entry->answer;
	__u32 flags = entry->flags, step;

	if (segment->length && (flags & CONNECTION_HELD)) {
		step = judge_held(scratch, plan, entry, segment);
		if (step)
			return step;
	}
	if (segment->length == 0 || entry->pinned || !(flags & CONNECTION_END_KNOWN) ||
	    !tcp_before(entry->request_end, segment->sequence + segment->length))
		return connection_forward(context, scratch, space, entry, CONNECTION_UNMARKED);

	/* bytes behind the request's end */
	if (answer->state == HTTP_FOLLOW_DONE && http_follow_keeps_alive(answer) &&
	    tcp_before(entry->request_end, segment->sequence)) {
		/* of the next request, but its beginning is missing: it comes again, and so does this */
		plan->acknowledgement = entry->request_end;
		return STEP_ACKNOWLEDGE;
	}
	if (segment->sequence != entry->request_end || answer->state != HTTP_FOLLOW_DONE ||
	    !http_follow_keeps_alive(answer)) {
		connection_pin(entry, PIN_PIPELINED);
		return connection_forward(context, scratch, space, entry, CONNECTION_UNMARKED);
	}
	plan->may_move = segment->acknowledgement == answer->next_sequence &&
			 entry->replica_acknowledged == segment->sequence &&
			 !(flags & (CONNECTION_FIN_FROM_CLIENT | CONNECTION_FIN_FROM_REPLICA));
	return STEP_NEXT;
}

/*
 * A TCP segment to a service. What needs nothing more than the entry ends here.
 * A global function: verified once.
 */
__noinline int connection_judge(struct packet_context *context)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct connection *entry;
	__u8 flags;

	if (!context || !space || !scratch || !plan)
		return OUTCOME_drop_internal;
	if (tcp_read(context, &scratch->packet, &space->segment))
		return OUTCOME_drop_truncated;
	/* a mark has no place behind extension headers, and nobody uses them with TCP */
	if (scratch->packet.family == AF_INET6 &&
	    scratch->packet.transport_offset !=
		    scratch->packet.network_offset + sizeof(struct ipv6hdr))
		return OUTCOME_drop_header_unsupported;
	flags = space->segment.flags;
	/* a segment on its second way in, behind us (handoff.h): it has been here, and its mark is checked there */
	if (replicas_are_local && mark_version(space->segment.urgent) == MARK_VERSION_AGAIN &&
	    !(flags & (TCP_FLAG_SYN | TCP_FLAG_URG)))
		return OUTCOME_delivered_locally;
	if (flags & TCP_FLAG_SYN)
		return flags & (TCP_FLAG_ACK | TCP_FLAG_RST | TCP_FLAG_FIN)
			       ? OUTCOME_drop_header_malformed
			       : STEP_ACCEPT;
	if (!(flags & (TCP_FLAG_ACK | TCP_FLAG_RST)))
		return OUTCOME_drop_header_malformed;

	flow_key_of_request(&scratch->flow_key, &scratch->packet);
	plan->is_fresh = 0;
	plan->is_held = 0;
	entry = connection_get(&scratch->flow_key);
	if (!entry)
		return judge_unknown(context, space, plan);
	if (flags & TCP_FLAG_RST)
		return judge_reset(context, scratch, space, entry);
	if ((entry->state == CONNECTION_CLOSED && space->segment.length) ||
	    !connection_contains(entry, &space->segment))
		return judge_foreign(context, scratch, space, plan, entry);
	switch (entry->state) {
	case CONNECTION_HOLDING:
		return STEP_PIECE;
	case CONNECTION_HANDING:
		return judge_handing(context, scratch, space, plan, entry);
	case CONNECTION_REFUSED:
		return STEP_REFUSED;
	case CONNECTION_SERVED:
		return judge_served(context, scratch, space, plan, entry);
	default:
		return connection_forward(context, scratch, space, entry, CONNECTION_UNMARKED);
	}
}

/* --- step: the head of a request -------------------------------------------------------------------------------- */

/* Is the head whose reading gave `verdict` worth waiting for more of it? */
static __always_inline bool head_waits(const struct http_head *head, int verdict, bool last)
{
	if (verdict == HTTP_HEAD_MORE)
		return true;
	/* without an id the start of the body decides; who expects 100-continue sends none before he gets that */
	return verdict == HTTP_HEAD_COMPLETE && !last && head->request.id == HTTP_ID_NONE &&
	       head->request.key_missing && !(head->request.flags & HTTP_EXPECT_CONTINUE);
}

static __always_inline void connection_begin(struct connection *entry, struct tcp_space *space,
					     struct scratch *scratch, __u32 service, __u32 options)
{
	__builtin_memset(entry, 0, sizeof(*entry));
	entry->service = service;
	entry->options = options;
	entry->client_initial = space->segment.sequence - 1;
	entry->cookie = space->segment.acknowledgement - 1;
	entry->client_next = space->segment.end;
	entry->translated_port = scratch->packet.source_port;
	entry->start_acknowledgement = space->segment.acknowledgement;
	entry->replica_next = space->segment.acknowledgement;
	if (space->options.found.timestamps)
		entry->round_trip =
			mark_round_trip_class(tcp_clock_milliseconds(bpf_ktime_get_tai_ns()) -
					      space->options.found.timestamp_echo);
	count(NOTE_note_connection_opened);
}

/*
 * The segment in hand begins a request: the first of its connection, or another one.
 * A global function: verified once.
 */
__noinline int connection_read_head(struct packet_context *context, __u32 service, __u32 first)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct http_head *head = http_head_get();
	struct connection *entry;
	bool last;
	int verdict;

	if (!context || !space || !scratch || !head || !plan)
		return OUTCOME_drop_internal;
	tcp_read_options(context);
	plan->is_fresh = !!first;
	entry = connection_planned(plan, &scratch->flow_key);
	if (!entry)
		return OUTCOME_drop_internal;
	if (first) {
		plan->may_move = 1;
		connection_begin(entry, space, scratch, service, plan->options);
	}
	last = space->segment.flags & TCP_FLAG_FIN;
	verdict = head_read(context, service, false, last);
	if (verdict < 0)
		return OUTCOME_drop_internal;
	if (verdict == HTTP_HEAD_MALFORMED)
		return connection_plan_refusal(plan, 400);
	if (!head_waits(head, verdict, last) || head_hold(context, true))
		return STEP_HASH;
	count(NOTE_note_head_held);
	entry->state = CONNECTION_HOLDING;
	entry->client_next = space->segment.end;
	if (first && bpf_map_update_elem(&connections, &scratch->flow_key, entry, BPF_ANY))
		return OUTCOME_drop_flow_table_full;
	plan->acknowledgement = space->segment.end;
	return STEP_ACKNOWLEDGE;
}

/*
 * A segment while a head is held.
 * A global function: verified once.
 */
__noinline int connection_read_piece(struct packet_context *context, __u32 service)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct http_head *head = http_head_get();
	const struct held_head *held;
	struct connection *entry;
	__u32 next;
	bool last;
	int verdict;

	if (!context || !space || !scratch || !head || !plan)
		return OUTCOME_drop_internal;
	entry = connection_get(&scratch->flow_key);
	held = held_head_get(&scratch->flow_key);
	if (!entry)
		return OUTCOME_drop_internal;
	if (!held) {
		connection_close(entry);
		return connection_plan_reset(plan, OUTCOME_reset_held_lost);
	}
	last = space->segment.flags & TCP_FLAG_FIN;
	next = held->sequence + held->length;
	plan->acknowledgement = next;
	if (space->segment.sequence != next)
		return STEP_ACKNOWLEDGE;
	if (space->segment.length == 0 && !last)
		return OUTCOME_absorbed_acknowledgement;
	tcp_read_options(context);
	if (space->segment.length && head_hold(context, false))
		return OUTCOME_drop_internal;
	verdict = head_read(context, service, true, last);
	if (verdict < 0)
		return OUTCOME_drop_internal;
	plan->is_held = 1;
	if (verdict == HTTP_HEAD_MALFORMED)
		return connection_plan_refusal(plan, 400);
	plan->may_move = entry->pinned == PIN_NONE;
	if (held->length >= HTTP_HEAD_SIZE || !head_waits(head, verdict, last))
		return STEP_HASH;
	entry->client_next = space->segment.end;
	plan->acknowledgement = space->segment.end;
	return STEP_ACKNOWLEDGE;
}

/* --- step: the decision ----------------------------------------------------------------------------------------- */

/* The request whose head was read becomes the connection's current one. sequence: of its first byte. */
static __always_inline void connection_start_request(struct connection *entry,
						     const struct tcp_space *space,
						     const struct http_request *request,
						     __u32 sequence)
{
	const struct tcp_segment *segment = &space->segment;
	__u32 known =
		(entry->flags & ~(CONNECTION_END_KNOWN | CONNECTION_NO_BODY)) | CONNECTION_CHARGED;

	entry->start_sequence = sequence;
	entry->start_acknowledgement = segment->acknowledgement;
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
	if (!request->doubts && !(request->flags & HTTP_CHUNKED) &&
	    request->content_length < CONNECTION_LENGTH_MAX) {
		entry->request_end = sequence + request->head_length + request->content_length;
		known |= CONNECTION_END_KNOWN;
	} else {
		connection_pin(entry, PIN_REQUEST_END);
	}
	entry->flags = known;
	if (request->flags & HTTP_PIPELINED)
		connection_pin(entry, PIN_PIPELINED);
	http_follow_answer(&entry->answer, http_follow_flags(request), segment->acknowledgement);
}

/*
 * Makes the request that was decided the connection's current one.
 * A global function: verified once.
 */
__noinline int connection_place(struct packet_context *context)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	const struct http_head *head = http_head_get();
	const struct held_head *held = NULL;
	const struct replica *replica;
	struct connection *entry;
	bool owned, stays;
	__u32 sequence, slot;

	if (!context || !space || !scratch || !head || !plan)
		return OUTCOME_drop_internal;
	entry = connection_planned(plan, &scratch->flow_key);
	if (!entry)
		return OUTCOME_drop_internal;
	sequence = space->segment.sequence;
	if (plan->is_held) {
		held = held_head_get(&scratch->flow_key);
		if (!held)
			return OUTCOME_drop_internal;
		sequence = held->sequence;
	}
	owned = entry->flags & CONNECTION_OWNED;

	slot = owned && !plan->may_move ? entry->replica : plan->slot;
	replica = replica_get(slot);
	if (!replica)
		return OUTCOME_drop_internal;

	stays = owned && (!plan->may_move ||
			  (slot == entry->replica && entry->incarnation == replica->incarnation));
	connection_start_request(entry, space, &head->request, sequence);
	if (stays) {
		count(NOTE_note_request_stayed);
		entry->state = CONNECTION_SERVED;
	} else {
		count(NOTE_note_request_handed);
		if (owned)
			count(NOTE_note_connection_moved);
		entry->replica = slot;
		entry->incarnation = replica->incarnation;
		entry->state = CONNECTION_HANDING;
		entry->flags |= CONNECTION_OWNED;
	}
	if (held)
		entry->flags |= CONNECTION_HELD;
	/* written although the segment has not been sent: its repetition finds the decision */
	if (plan->is_fresh && bpf_map_update_elem(&connections, &scratch->flow_key, entry, BPF_ANY))
		return OUTCOME_drop_flow_table_full;
	return connection_plan_send(plan, held ? STEP_SEND_HELD : STEP_SEND,
				    stays ? CONNECTION_UNMARKED : CONNECTION_START);
}

/* --- steps: the end of it ------------------------------------------------------------------------------------- */

/*
 * The segment in hand, or held bytes in its place, to the owner.
 * A global function: verified once.
 */
__noinline int connection_dispatch(struct packet_context *context, __u32 held)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct connection *entry;

	if (!context || !space || !scratch || !plan)
		return OUTCOME_drop_internal;
	entry = connection_get(&scratch->flow_key);
	if (!entry)
		return OUTCOME_drop_internal;
	if (held && head_replace(context, scratch, space, entry, plan->kind))
		return OUTCOME_drop_rewrite_failed;
	return connection_forward(context, scratch, space, entry, plan->kind);
}

/*
 * Refuses the request in hand with an HTTP error.
 * A global function: verified once.
 */
__noinline int connection_refuse(struct packet_context *context)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct connection *entry;

	if (!context || !space || !scratch || !plan)
		return OUTCOME_drop_internal;
	entry = connection_planned(plan, &scratch->flow_key);
	if (!entry)
		return OUTCOME_drop_internal;
	if (tcp_before(entry->client_next, space->segment.end))
		entry->client_next = space->segment.end;
	if (space->segment.flags & TCP_FLAG_FIN)
		entry->flags |= CONNECTION_FIN_FROM_CLIENT;
	error_enter(entry, plan->status, space->segment.acknowledgement);
	if (plan->is_fresh)
		bpf_map_update_elem(&connections, &scratch->flow_key, entry, BPF_ANY);
	else
		bpf_map_delete_elem(&held_heads, &scratch->flow_key);
	return error_answer(context, scratch, space, entry);
}

/*
 * What is answered without an HTTP error. step: STEP_REFUSED, STEP_ACKNOWLEDGE or STEP_RESET.
 * A global function: verified once.
 */
__noinline int connection_respond(struct packet_context *context, __u32 step)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct connection *entry;

	if (!context || !space || !scratch || !plan)
		return OUTCOME_drop_internal;
	if (step == STEP_ACKNOWLEDGE)
		return tcp_acknowledge(context, scratch, space, plan->acknowledgement, 0,
				       OUTCOME_answered_piece);
	if (step == STEP_RESET)
		return tcp_reset(context, scratch, space, plan->outcome);
	entry = connection_get(&scratch->flow_key);
	if (!entry)
		return OUTCOME_drop_internal;
	return error_receive(context, scratch, space, entry);
}

/* Is the service routed by what its connections carry? */
static __always_inline bool connection_service(const struct service *service)
{
	return service->id_from == ID_FROM_HEADER;
}

/* A segment to the service with that index: step after step. */
static __always_inline __u32 connection_handle(struct packet_context *context,
					       struct scratch *scratch, __u32 index,
					       const struct service *service)
{
	__u32 step;

	if (service->state != SERVICE_ACTIVE)
		return OUTCOME_drop_internal;
	if (!request_source_is_valid(&scratch->packet))
		return OUTCOME_drop_source_invalid;
	step = connection_judge(context);
	if (step < OUTCOME_COUNT)
		return step;
	if (step == STEP_ACCEPT)
		return tcp_accept(context, index);
	if (step == STEP_FIRST || step == STEP_NEXT)
		step = connection_read_head(context, index, step == STEP_FIRST);
	else if (step == STEP_PIECE)
		step = connection_read_piece(context, index);
	if (step == STEP_HASH)
		step = connection_hash(context, index);
	if (step == STEP_DECIDE)
		step = connection_decide(context, index);
	if (step == STEP_PLACE)
		step = connection_place(context);
	if (step == STEP_SEND || step == STEP_SEND_HELD)
		step = connection_dispatch(context, step == STEP_SEND_HELD);
	if (step == STEP_REFUSE)
		step = connection_refuse(context);
	if (step >= OUTCOME_COUNT)
		step = connection_respond(context, step);
	return step;
}

#endif /* WARMPATH_BPF_CONNECTION_REQUEST_H */
