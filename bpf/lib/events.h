/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Telling user space what was decided and how requests ended.
 *
 * Owns: the ring buffer `events`, the rate at which decisions go into it. May not know: packets, who reads the events.
 *
 * A full ring buffer costs the event, under a counter, never the packet.
 */
#ifndef WARMPATH_BPF_EVENTS_H
#define WARMPATH_BPF_EVENTS_H

#include "counters.h"
#include "decide.h"

#define NANOSECONDS_PER_SECOND 1000000000ULL

/* Where an event is put together; not pinned. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_decision);
} event_space SEC(".maps");

/* May another decision be traced in this second? */
static __always_inline bool events_take_turn(__u64 now)
{
	__u32 first = 0;
	struct trace_settings *settings = bpf_map_lookup_elem(&trace_settings, &first);
	__u64 second = now / NANOSECONDS_PER_SECOND;

	if (!settings || settings->events_per_second == 0)
		return false;
	if (settings->second != second) {
		settings->second = second;
		settings->traced = 0;
	}
	if (settings->traced >= settings->events_per_second)
		return false;
	return __sync_fetch_and_add(&settings->traced, 1) < settings->events_per_second;
}

struct event_loads {
	const struct decide_state *state;
	struct event_decision *event;
	void *members; /* inner map of ring_members */
};

/* One more replica into the event, unless the walk has put it there. */
static long event_load_step(__u32 index, void *argument)
{
	struct event_loads *context = argument;
	const struct decide_state *state = context->state;
	struct event_decision *event = context->event;
	const struct ring_member *member = bpf_map_lookup_elem(context->members, &index);
	__u32 count = event->load_count, replica, value;
	const struct replica_load *load;

	if (count >= EVENT_REPLICAS_MAX || !member)
		return 1;
	replica = member->replica;
	if (state->seen[replica / 64 % (REPLICAS_MAX / 64)] & (1ULL << (replica % 64)))
		return 0;
	load = bpf_map_lookup_elem(&replica_loads, &replica);
	if (!load || !load->counted)
		return 0;
	value = decide_value(load, state->decision.metric);
	if (replica == state->decision.replica) {
		__u32 own = state->decision.metric == LOAD_TOKENS
				    ? state->decision.charge
				    : state->decision.flags & DECISION_CHARGED;

		value = value > own ? value - own : 0;
	}
	event->loads[count].replica = replica;
	event->loads[count].load = value;
	event->load_count = count + 1;
	return 0;
}

/*
 * Puts the decision in `state` into the ring buffer. key: of the request. id_length: 0 where there was no id.
 * Loads are those before the charge: of the replicas walked over as the walk found them, of the others as they are now (another CPU may
 * have charged one of them since; the sum in the decision is that of the locked moment).
 */
static __always_inline void event_emit_decision(struct decide_state *state,
						const struct ring_header *ring, __u32 service,
						const struct open_request_key *key,
						const struct id_block *id, __u32 id_length,
						__u64 now)
{
	__u32 first = 0, slot = ring->slot, walked = state->walked_count, size;
	struct event_decision *event = bpf_map_lookup_elem(&event_space, &first);
	struct event_loads context = {
		.state = state,
		.event = event,
		.members = bpf_map_lookup_elem(&ring_members, &slot),
	};

	if (!event || !context.members)
		return;
	event->header.kind = EVENT_DECISION;
	event->header.service = service;
	event->header.nanoseconds = now;
	event->header.id_hash = state->request.id_hash;
	event->header.flow = key->flow;
	event->settings = state->settings;
	event->decision = state->decision;
	event->anonymous = state->request.anonymous;
	event->id_length = id_length;
	if (id_length > 0)
		for (int i = 0; i < ID_LENGTH_MAX / 8; i++)
			((__u64 *)event->id)[i] = id->word[i];
	if (walked > EVENT_REPLICAS_MAX)
		walked = EVENT_REPLICAS_MAX;
	if (walked == 0)
		for (int i = 0; i < REPLICAS_MAX / 64; i++)
			state->seen[i] = 0;
	event->walked_count = walked;
	event->load_count = walked;
	for (__u32 i = 0; i < EVENT_REPLICAS_MAX; i++) {
		if (i >= walked)
			break;
		event->loads[i] = state->walked[i];
	}
	bpf_loop(state->member_count, event_load_step, &context, 0);
	size = event->load_count;
	if (size > EVENT_REPLICAS_MAX)
		size = EVENT_REPLICAS_MAX;
	size = offsetof(struct event_decision, loads) + size * sizeof(event->loads[0]);
	if (bpf_ringbuf_output(&events, event, size, 0))
		count(NOTE_note_event_dropped);
}

static __always_inline void event_emit_completion(const struct open_request_key *key,
						  const struct open_request *request, __u64 number,
						  enum completion_status status, __u64 now)
{
	__u32 slot = request->replica;
	const struct replica *replica = bpf_map_lookup_elem(&replicas, &slot);
	struct event_completion *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		count(NOTE_note_event_dropped);
		return;
	}
	event->header.kind = EVENT_COMPLETION;
	event->header.service = request->service;
	event->header.nanoseconds = now;
	event->header.id_hash = request->id_hash;
	event->header.flow = key->flow;
	event->number = number;
	event->replica = slot;
	event->incarnation = request->incarnation;
	if (replica)
		__builtin_memcpy(event->replica_name, replica->name, sizeof(event->replica_name));
	else
		__builtin_memset(event->replica_name, 0, sizeof(event->replica_name));
	event->prompt_tokens = request->prompt_tokens;
	event->charge = request->charge;
	event->status = status;
	event->reserved = 0;
	event->decided_nanoseconds = request->decided_nanoseconds;
	bpf_ringbuf_submit(event, 0);
}

#endif /* WARMPATH_BPF_EVENTS_H */
