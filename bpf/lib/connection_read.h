/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The head of a request, in one segment or in several: when it is read, when its pieces are held.
 *
 * Owns: the step from a segment to a head that can be decided on; the beginning of an entry. May not know: how a head is read or held
 * (connection_head.h), what is decided.
 */
#ifndef WARMPATH_BPF_CONNECTION_READ_H
#define WARMPATH_BPF_CONNECTION_READ_H

#include "connection_head.h"
#include "connection_life.h"
#include "connection_step.h"
#include "tcp_accept.h"

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
__noinline int connection_read_head(struct packet_context *context, struct connection *entry,
				    __u32 service, __u32 first)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct http_head *head = http_head_get();
	bool last;
	int verdict;

	if (!context || !entry || !space || !scratch || !head || !plan)
		return OUTCOME_drop_internal;
	tcp_read_options(context);
	plan->is_fresh = !!first;
	if (first) {
		plan->may_move = 1;
		connection_begin(entry, space, scratch, service, plan->options);
	}
	last = space->segment.flags & TCP_FLAG_FIN;
	verdict = head_read(context, service, false, last);
	if (verdict < 0)
		return OUTCOME_drop_internal;
	/* pinned: it is not known where requests begin, and what does not look like one is part of the last */
	if (entry->pinned && !plan->may_move &&
	    (verdict == HTTP_HEAD_MALFORMED || head->scan.state < HTTP_SCAN_LINE))
		return connection_plan_send(plan, STEP_SEND, CONNECTION_UNMARKED);
	if (verdict == HTTP_HEAD_MALFORMED)
		return connection_plan_refusal(plan, 400);
	if (!plan->may_move) {
		/* the owner gets it anyway, so nothing is held: what has come has to do */
		if (verdict == HTTP_HEAD_MORE)
			head->request.doubts |= HTTP_DOUBT_UNFINISHED;
		return STEP_HASH;
	}
	if (!head_waits(head, verdict, last) || head_hold(context, true))
		return STEP_HASH;
	count(NOTE_note_head_held);
	entry->state = CONNECTION_HOLDING;
	entry->client_next = space->segment.end;
	if (first && bpf_map_update_elem(&connections, &scratch->flow_key, &plan->fresh, BPF_ANY))
		return OUTCOME_drop_flow_table_full;
	plan->acknowledgement = space->segment.end;
	return STEP_ACKNOWLEDGE;
}

/*
 * A segment while a head is held.
 * A global function: verified once.
 */
__noinline int connection_read_piece(struct packet_context *context, struct connection *entry,
				     __u32 service)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct http_head *head = http_head_get();
	const struct held_head *held;
	__u32 next;
	bool last;
	int verdict;

	if (!context || !entry || !space || !scratch || !head || !plan)
		return OUTCOME_drop_internal;
	held = held_head_get(&scratch->flow_key);
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
	/* an owner that closes the connection meanwhile closes it with this request */
	plan->may_move = entry->pinned == PIN_NONE && !(entry->flags & CONNECTION_FIN_FROM_REPLICA);
	if (held->length >= HTTP_HEAD_SIZE || !head_waits(head, verdict, last))
		return STEP_HASH;
	entry->client_next = space->segment.end;
	plan->acknowledgement = space->segment.end;
	return STEP_ACKNOWLEDGE;
}

/*
 * The held head of a request that is to be decided once more.
 * A global function: verified once.
 */
__noinline int connection_read_again(struct packet_context *context, __u32 service)
{
	struct connection_plan *plan = connection_plan_get();

	if (!context || !plan)
		return OUTCOME_drop_internal;
	/* it was whole when it was decided first, or as whole as it would get */
	if (head_read(context, service, true, true) < 0)
		return OUTCOME_drop_internal;
	plan->is_held = 1;
	plan->may_move = 1;
	return STEP_HASH;
}

#endif /* WARMPATH_BPF_CONNECTION_READ_H */
