/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a request's head to the replica it should go to.
 *
 * Owns: which bytes are hashed: the id, or what stands for it. May not know: TCP, entries, what is done with the answer.
 */
#ifndef WARMPATH_BPF_CONNECTION_DECIDE_H
#define WARMPATH_BPF_CONNECTION_DECIDE_H

#include "connection_head.h"
#include "connection_send.h"
#include "connection_step.h"
#include "id.h"
#include "ring.h"
#include "route.h"

/*
 * `length` (1 .. ID_LENGTH_MAX) bytes of the head from `offset` on into scratch->id, zeros behind them. previous: hash of the bytes before
 * them, 0 for none.
 * A global function: verified once.
 */
__noinline int decide_load(__u32 offset, __u32 length, __u64 previous)
{
	struct http_head *head = http_head_get();
	struct scratch *scratch = scratch_get();

	if (!head || !scratch)
		return -ENOENT;
	for (int i = 0; i < ID_LENGTH_MAX / 8; i++) {
		__s64 rest = (__s64)length - i * 8;
		__u64 some = -rest >> 63; /* all ones if there is a rest: without a branch */

		WARMPATH_BARRIER(some);
		scratch->id.word[i] =
			http_word(http_at(head, offset + i * 8)) & http_mask(rest) & some;
	}
	scratch->id.word[0] ^= previous;
	return 0;
}

/*
 * The ring key of the head in the per-CPU struct http_head.
 * A key that is longer than a block is hashed block by block, each with the hash of those before it.
 */
static __always_inline __u64 decide_key(const struct ring_header *ring, struct scratch *scratch,
					const struct http_head *head, __u64 *low)
{
	const struct http_request *request = &head->request;
	__u32 offset = request->key_offset, rest = request->key_length, length;
	__u64 key = 0;

	if (request->id == HTTP_ID_FOUND) {
		decide_load(request->id_offset, request->id_length, 0);
		return ring_hash_id(ring, &scratch->id, request->id_length, low);
	}
	if (rest == 0) {
		__builtin_memset(&scratch->id, 0, sizeof(scratch->id));
		address_copy((struct address *)&scratch->id, &scratch->packet.source);
		scratch->id.word[2] = scratch->packet.source_port;
		return ring_hash_id(ring, &scratch->id, sizeof(struct address) + sizeof(__be16),
				    low);
	}
	for (int i = 0; i < HTTP_KEY_BYTES_MAX / ID_LENGTH_MAX; i++) {
		if (rest == 0)
			break;
		length = rest < ID_LENGTH_MAX ? rest : ID_LENGTH_MAX;
		decide_load(offset, length, key);
		key = ring_hash_id(ring, &scratch->id, length, low);
		offset += length;
		rest -= length;
	}
	return key;
}

/*
 * How large the request is: as its headers say, where the service trusts clients with that; else by the length of its body, four bytes a
 * token.
 */
static __always_inline void decide_sizes(struct decide_request *request,
					 const struct http_request *head,
					 const struct http_service *settings,
					 const struct service *service)
{
	__u64 estimate = head->content_length / 4;

	if ((head->flags & HTTP_CHUNKED) || connection_is_opaque(service))
		estimate = head->body_present / 4;
	if (estimate > REQUEST_TOKENS_MAX)
		estimate = REQUEST_TOKENS_MAX;
	request->prompt_tokens = estimate ? estimate : 1;
	request->max_tokens = service->policy.default_max_tokens;
	if (!settings->trust_token_headers && !connection_is_opaque(service))
		return;
	if (head->flags & HTTP_HAS_PROMPT_TOKENS)
		request->prompt_tokens = head->prompt_tokens;
	if (head->flags & HTTP_HAS_MAX_TOKENS)
		request->max_tokens = head->max_tokens;
}

/* Nobody can take the request: said in HTTP, where that is what the client speaks. */
static __always_inline __u32 decide_unavailable(struct connection_plan *plan,
						const struct service *service)
{
	if (connection_is_opaque(service))
		return connection_plan_reset(plan, OUTCOME_reset_unavailable);
	return connection_plan_refusal(plan, 503);
}

/*
 * The key and the sizes of the request whose head is in the per-CPU struct http_head, into plan->request. Returns the next step. Apart from the
 * decision, so that the two do not stand on the stack at once.
 * A global function: verified once.
 */
__noinline int connection_hash(struct packet_context *context, const struct connection *entry,
			       __u32 service)
{
	struct connection_plan *plan = connection_plan_get();
	const struct http_service *settings = http_service_get(service);
	const struct service *service_settings = service_get(service);
	const struct ring_header *ring = ring_current(service);
	struct http_head *head = http_head_get();
	struct scratch *scratch = scratch_get();

	if (!context || !entry || !head || !scratch || !plan || !settings || !service_settings)
		return OUTCOME_drop_internal;
	if (head->request.id == HTTP_ID_INVALID)
		return connection_plan_refusal(plan, 400);
	if (!ring)
		return decide_unavailable(plan, service_settings);
	plan->is_keyless = head->request.id != HTTP_ID_FOUND;
	if (plan->is_keyless)
		count(NOTE_note_keyless);
	scratch->id_length = plan->is_keyless ? 0 : head->request.id_length;
	plan->request.id_hash = decide_key(ring, scratch, head, &plan->request.id_hash_low);
	plan->request.pinned = 0;
	if ((entry->flags & CONNECTION_OWNED) && !plan->may_move) {
		/* a connection that was idle for hours: its owner's slot may be another service's by now */
		if (!connection_owner_exists(entry))
			return connection_plan_refusal(plan, 503);
		plan->request.pinned = entry->replica + 1;
	}
	plan->request.anonymous = plan->is_keyless && head->request.key_length == 0;
	decide_sizes(&plan->request, &head->request, settings, service_settings);
	return STEP_DECIDE;
}

/*
 * Decides on the request in plan->request: the replica's slot into plan->slot. Returns the next step.
 * A global function: verified once.
 */
__noinline int connection_decide(struct packet_context *context, __u32 service)
{
	struct connection_plan *plan = connection_plan_get();
	struct scratch *scratch = scratch_get();
	struct route_request request = {
		.ring = ring_current(service),
		.service = service_get(service),
		.service_index = service,
	};
	__u32 outcome, slot = 0;

	if (!context || !scratch || !plan || !request.service)
		return OUTCOME_drop_internal;
	if (!request.ring)
		return decide_unavailable(plan, request.service);
	request.keyless = plan->is_keyless;
	request.known = &plan->request;
	outcome = route_request(context, scratch, &request, &slot);
	if (outcome == OUTCOME_drop_no_replica)
		return decide_unavailable(plan, request.service);
	if (outcome != OUTCOME_COUNT)
		return outcome;
	plan->slot = slot;
	return STEP_PLACE;
}

#endif /* WARMPATH_BPF_CONNECTION_DECIDE_H */
