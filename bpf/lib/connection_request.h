/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Client to replica, where the connection is routed by what it carries (docs/handoff.md).
 *
 * Owns: the order of the steps, and the last ones. May not know: how anything is read, decided or written.
 */
#ifndef WARMPATH_BPF_CONNECTION_REQUEST_H
#define WARMPATH_BPF_CONNECTION_REQUEST_H

#include "connection_decide.h"
#include "connection_error.h"
#include "connection_head.h"
#include "connection_judge.h"
#include "connection_place.h"
#include "connection_read.h"
#include "connection_step.h"
#include "tcp_accept.h"

/*
 * The segment in hand, or held bytes in its place, to the owner.
 * A global function: verified once.
 */
__noinline int connection_dispatch(struct packet_context *context, struct connection *entry,
				   __u32 held)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();

	if (!context || !space || !scratch || !plan)
		return OUTCOME_drop_internal;
	/* what connection_place() has entered is another than it was made in */
	if (plan->is_fresh)
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
__noinline int connection_refuse(struct packet_context *context, struct connection *entry)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	const struct http_head *head = http_head_get();
	__u32 next;

	if (!context || !entry || !space || !scratch || !plan || !head)
		return OUTCOME_drop_internal;
	if (tcp_before(entry->client_next, space->segment.end))
		entry->client_next = space->segment.end;
	if (space->segment.flags & TCP_FLAG_FIN)
		connection_set_flags(entry, CONNECTION_FIN_FROM_CLIENT);
	if (head->request.method == HTTP_METHOD_HEAD)
		connection_set_flags(entry, CONNECTION_NO_BODY);
	else
		connection_clear_flags(entry, CONNECTION_NO_BODY);
	next = space->segment.acknowledgement;
	if (entry->flags & CONNECTION_OWNED) {
		connection_tell_left(scratch, entry, entry->replica_acknowledged, next);
		/* behind all that the owner has sent, of which something may still be on its way */
		if (tcp_before(next, entry->replica_next))
			next = entry->replica_next;
	}
	error_enter(entry, plan->status, next);
	if (plan->is_fresh)
		bpf_map_update_elem(&connections, &scratch->flow_key, &plan->fresh, BPF_ANY);
	else
		bpf_map_delete_elem(&held_heads, &scratch->flow_key);
	return error_answer(context, scratch, space, entry);
}

/*
 * What is answered without an HTTP error. step: STEP_REFUSED, STEP_ACKNOWLEDGE or STEP_RESET.
 * A global function: verified once.
 */
__noinline int connection_respond(struct packet_context *context, struct connection *entry,
				  __u32 step)
{
	struct connection_plan *plan = connection_plan_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();

	if (!context || !space || !scratch || !plan)
		return OUTCOME_drop_internal;
	if (step == STEP_ACKNOWLEDGE)
		return tcp_acknowledge(context, scratch, space, plan->acknowledgement, 0,
				       OUTCOME_answered_piece);
	if (step == STEP_RESET)
		return tcp_reset(context, scratch, space, plan->outcome);
	if (!entry)
		return OUTCOME_drop_internal;
	return error_receive(context, scratch, space, entry);
}

/* A segment to the service with that index: step after step. */
static __always_inline __u32 connection_handle(struct packet_context *context,
					       struct scratch *scratch, __u32 index,
					       const struct service *service)
{
	struct connection_plan *plan = connection_plan_get();
	struct connection *entry = NULL;
	__u32 step;

	if (!plan || service->state != SERVICE_ACTIVE)
		return OUTCOME_drop_internal;
	if (!request_source_is_valid(&scratch->packet))
		return OUTCOME_drop_source_invalid;
	/* looked up once, for all steps */
	if (!(scratch->packet.tcp_flags & TCP_FLAG_SYN)) {
		flow_key_of_request(&scratch->flow_key, &scratch->packet);
		entry = connection_get(&scratch->flow_key);
	}
	step = connection_judge(context, entry);
	if (step < OUTCOME_COUNT)
		return step;
	if (step == STEP_ACCEPT)
		return tcp_accept(context, index);
	if (step == STEP_FIRST)
		entry = &plan->fresh;
	if (step == STEP_FIRST || step == STEP_NEXT)
		step = connection_read_head(context, entry, index, step == STEP_FIRST);
	else if (step == STEP_PIECE)
		step = connection_read_piece(context, entry, index);
	else if (step == STEP_HELD_AGAIN)
		step = connection_read_again(context, index);
	if (step == STEP_HASH)
		step = connection_hash(context, entry, index);
	if (step == STEP_DECIDE)
		step = connection_decide(context, index);
	if (step == STEP_PLACE)
		step = connection_place(context, entry);
	if (step == STEP_SEND || step == STEP_SEND_HELD)
		step = connection_dispatch(context, entry, step == STEP_SEND_HELD);
	if (step == STEP_REFUSE)
		step = connection_refuse(context, entry);
	if (step >= OUTCOME_COUNT)
		step = connection_respond(context, entry, step);
	return step;
}

#endif /* WARMPATH_BPF_CONNECTION_REQUEST_H */
