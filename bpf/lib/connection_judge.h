/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The first step of a client's segment (docs/handoff.md, sections 3 and 6): what is it to its connection?
 *
 * Owns: the question whose segment it is, and what a segment means in each state. May not know: how heads are read, how it is decided.
 */
#ifndef WARMPATH_BPF_CONNECTION_JUDGE_H
#define WARMPATH_BPF_CONNECTION_JUDGE_H

#include "connection_life.h"
#include "connection_step.h"
#include "tcp_accept.h"

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
	bool fits = !tcp_before(sequence, entry->replica_acknowledged) &&
		    !tcp_before(entry->client_next, sequence);

	if (entry->flags & CONNECTION_OWNED)
		outcome = connection_send(context, scratch, space, entry,
					  entry->state == CONNECTION_HANDING ? CONNECTION_FOLLOW
									     : CONNECTION_UNMARKED);
	if (fits)
		connection_close(entry);
	return outcome;
}

/*
 * The first segment of a request comes again, as its owner has not answered. True: the owner cannot, and the request is to be decided
 * once more: as if it were the connection's first.
 */
static __always_inline bool judge_start_repeated(struct connection *entry)
{
	count(NOTE_note_start_repeated);
	contact_repeated(entry->replica);
	if (connection_owner_may_answer(entry))
		return false;
	count(NOTE_note_request_decided_again);
	connection_end_request(entry, COMPLETION_ABANDONED);
	connection_clear_flags(entry, CONNECTION_OWNED);
	return true;
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
		if (judge_start_repeated(entry))
			return STEP_HELD_AGAIN;
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
	if (start && judge_start_repeated(entry)) {
		plan->may_move = 1;
		return STEP_NEXT;
	}
	return connection_forward(context, scratch, space, entry,
				  start ? CONNECTION_START : CONNECTION_FOLLOW);
}

/*
 * On a connection that cannot move: where its requests end is not known, but a client that has all of the last answer and sends something
 * new begins another one (if it looks like one: STEP_NEXT), which is charged to the owner.
 */
static __always_inline bool judge_begins_request(const struct connection *entry,
						 const struct tcp_segment *segment)
{
	__u8 state = entry->answer.state;

	return (state == HTTP_FOLLOW_DONE || state == HTTP_FOLLOW_LOST) &&
	       segment->sequence == entry->client_next &&
	       segment->acknowledgement == entry->replica_next &&
	       entry->replica_next != entry->start_acknowledgement;
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
	plan->may_move = 0;
	if (entry->pinned && segment->length && judge_begins_request(entry, segment))
		return STEP_NEXT;
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
		connection_pin(entry, answer->state == HTTP_FOLLOW_LOST ||
						      answer->state == HTTP_FOLLOW_UNTIL_CLOSE ||
						      answer->state == HTTP_FOLLOW_TUNNEL
					      ? PIN_ANSWER_END
					      : PIN_PIPELINED);
		return connection_forward(context, scratch, space, entry, CONNECTION_UNMARKED);
	}
	plan->may_move = segment->acknowledgement == answer->next_sequence &&
			 entry->replica_acknowledged == segment->sequence &&
			 !(flags & (CONNECTION_FIN_FROM_CLIENT | CONNECTION_FIN_FROM_REPLICA));
	return STEP_NEXT;
}

/*
 * A TCP segment to a service. What needs nothing more than the entry ends here. entry: of the connection in scratch->flow_key, NULL: there is
 * none; it is not looked at where the segment is a SYN.
 * A global function: verified once.
 */
__noinline int connection_judge(struct packet_context *context, struct connection *entry)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
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

	plan->is_fresh = 0;
	plan->is_held = 0;
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

#endif /* WARMPATH_BPF_CONNECTION_JUDGE_H */
