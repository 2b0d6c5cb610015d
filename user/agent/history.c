/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warmpath/contact.h>

#include "lib/policy.h"

#define BUCKETS HISTORY_DECISIONS

/*
 * The entries are written round and round. Those of one bucket of hashes are chained from the newest to the oldest; a chain ends where a
 * sequence number is not found at its place any more, and so nothing has to be unchained.
 */
struct history {
	struct history_entry entries[HISTORY_DECISIONS];
	__u64 newest_in_bucket[BUCKETS];
	__u64 sequence; /* of the newest */
	struct history_totals totals[SERVICES_MAX];
	struct history_replica replicas[REPLICAS_MAX];
	__u64 refused
		[REPLICAS_MAX]; /* when the slot's replica last refused a connection; coarse monotonic clock */
};

struct history *history_new(void)
{
	return calloc(1, sizeof(struct history));
}

void history_free(struct history *history)
{
	for (__u32 i = 0; history && i < HISTORY_DECISIONS; i++)
		free(history->entries[i].event);
	free(history);
}

/* --- finding ----------------------------------------------------------------------------------------------------------- */

static __u32 bucket_of(__u32 service, __u64 id_hash)
{
	return (id_hash ^ id_hash >> 32 ^ service * 0x9e3779b1u) % BUCKETS;
}

/* The entry of this number, or NULL if it has been overwritten. */
static struct history_entry *find(const struct history *history, __u64 sequence)
{
	const struct history_entry *entry = &history->entries[sequence % HISTORY_DECISIONS];

	return sequence > 0 && entry->sequence == sequence ? (struct history_entry *)entry : NULL;
}

static bool is_of(const struct history_entry *entry, __u32 service, __u64 id_hash)
{
	return entry->event && entry->event->header.service == service &&
	       entry->event->header.id_hash == id_hash;
}

const struct history_entry *history_of(const struct history *history, __u32 service, __u64 id_hash,
				       const struct history_entry *before)
{
	__u64 sequence = before ? before->next_in_bucket
				: history->newest_in_bucket[bucket_of(service, id_hash)];
	struct history_entry *entry;

	while ((entry = find(history, sequence))) {
		if (is_of(entry, service, id_hash))
			return entry;
		sequence = entry->next_in_bucket;
	}
	return NULL;
}

const struct history_entry *history_newest(const struct history *history,
					   const struct history_entry *before)
{
	__u64 sequence = before ? before->sequence - 1 : history->sequence;
	struct history_entry *entry;

	while ((entry = find(history, sequence)) && !entry->event)
		sequence--;
	return entry;
}

unsigned int history_forget(struct history *history, __u32 service, __u64 id_hash)
{
	const struct history_entry *entry = NULL;
	unsigned int count = 0;

	while ((entry = history_of(history, service, id_hash, entry))) {
		struct history_entry *forgotten = find(history, entry->sequence);

		free(forgotten->event);
		forgotten->event = NULL;
		count++;
	}
	return count;
}

/* --- moves --------------------------------------------------------------------------------------------------------------- */

static bool keeps_conversations(enum routing_policy policy)
{
	return policy == POLICY_CONSISTENT || policy == POLICY_BOUNDED ||
	       policy == POLICY_LLM_AWARE;
}

/* Did the data path leave the replica out of this decision, as it had just refused a connection (contact.h)? */
static bool was_refusing(const struct history *history, __u32 slot,
			 const struct event_decision *now)
{
	__u64 refused = history->refused[slot];

	return refused && now->header.nanoseconds >= refused &&
	       now->header.nanoseconds - refused < CONTACT_AVOIDED_NANOSECONDS;
}

static enum move_cause find_cause(const struct history *history, const struct history_entry *last,
				  const struct event_decision *now, const struct replica *from)
{
	const struct event_decision *before = last->event;
	const struct decision *decision = &now->decision;

	if (!keeps_conversations(now->settings.policy) ||
	    now->settings.policy != before->settings.policy || decision->reason == REASON_pinned)
		return MOVE_policy;
	if (from->state != REPLICA_ACTIVE)
		return MOVE_gone;
	if (was_refusing(history, before->decision.replica, now))
		return MOVE_refused;
	if (decision->reason == REASON_overflow || decision->reason == REASON_fallback_least_loaded)
		return MOVE_overloaded;
	if (decision->home != before->decision.home)
		return MOVE_ring;
	/* home, where it had not been: there is room again, or nothing any more to stay for elsewhere */
	if (now->settings.policy == POLICY_LLM_AWARE && now->settings.placement_memory &&
	    decision->placement_replica == REPLICA_NONE)
		return last->status == COMPLETION_SUCCESS ? MOVE_restarted : MOVE_unanswered;
	return MOVE_returned;
}

/* Compares with the time before, and notes what that one had of the prompt. */
static void compare(struct history *history, struct history_entry *entry,
		    const struct history_entry *before, const struct replica *replicas)
{
	const struct decision *decision = &entry->event->decision;
	struct history_replica *replica = &history->replicas[decision->replica];
	__u32 cached = 0;

	if (before && before->event->decision.replica == decision->replica &&
	    strcmp(before->replica_name, entry->replica_name) == 0)
		cached = before->event->decision.prompt_tokens;
	if (decision->placement_replica != REPLICA_NONE)
		cached = decision->placement_replica == decision->replica
				 ? decision->placement_prompt_tokens
				 : 0;
	replica->prompt_tokens += decision->prompt_tokens;
	replica->cached_tokens +=
		cached < decision->prompt_tokens ? cached : decision->prompt_tokens;
	if (!before || before->event->decision.replica >= REPLICAS_MAX ||
	    before->event->decision.replica == decision->replica)
		return;
	memcpy(entry->from_name, before->replica_name, sizeof(entry->from_name));
	entry->from_state = replicas[before->event->decision.replica].state;
	entry->cause = find_cause(history, before, entry->event,
				  &replicas[before->event->decision.replica]);
	history->replicas[before->event->decision.replica].moves_out++;
	replica->moves_in++;
}

const struct history_entry *history_decision(struct history *history,
					     const struct event_decision *event, size_t size,
					     const struct replica *replicas)
{
	__u32 service = event->header.service % SERVICES_MAX;
	__u32 bucket = bucket_of(event->header.service, event->header.id_hash);
	struct history_totals *totals = &history->totals[service];
	struct history_entry *entry;
	const struct history_entry *before =
		event->anonymous
			? NULL
			: history_of(history, event->header.service, event->header.id_hash, NULL);
	struct event_decision *copy = malloc(size);

	if (!copy)
		return NULL;
	memcpy(copy, event, size);
	totals->traced++;
	if ((unsigned int)event->decision.reason < REASON_COUNT)
		totals->reasons[event->decision.reason]++;
	entry = &history->entries[++history->sequence % HISTORY_DECISIONS];
	if (before == entry)
		before = NULL; /* it is the one overwritten */
	free(entry->event);
	*entry = (struct history_entry){
		.event = copy,
		.size = size,
		.sequence = history->sequence,
		.next_in_bucket = history->newest_in_bucket[bucket],
	};
	history->newest_in_bucket[bucket] = history->sequence;
	if (event->decision.replica >= REPLICAS_MAX)
		return entry;
	memcpy(entry->replica_name, replicas[event->decision.replica].name,
	       sizeof(entry->replica_name));
	compare(history, entry, before, replicas);
	totals->moves[entry->cause]++;
	return entry;
}

/* --- the rest ------------------------------------------------------------------------------------------------------------ */

const struct history_entry *history_completion(struct history *history,
					       const struct event_completion *event)
{
	const struct history_entry *entry = NULL;

	if ((unsigned int)event->status <= COMPLETION_ABANDONED)
		history->totals[event->header.service % SERVICES_MAX].completions[event->status]++;
	while ((entry = history_of(history, event->header.service, event->header.id_hash, entry))) {
		struct history_entry *completed = find(history, entry->sequence);

		if (entry->event->decision.number != event->number)
			continue;
		completed->status = event->status;
		completed->seconds =
			(double)(event->header.nanoseconds - event->decided_nanoseconds) / 1e9;
		return completed;
	}
	return NULL;
}

void history_refusal(struct history *history, const struct event_refusal *event)
{
	history->totals[event->header.service % SERVICES_MAX].refusals++;
	if (event->replica >= REPLICAS_MAX)
		return;
	history->replicas[event->replica].refusals++;
	if (event->cause == REFUSAL_RESET)
		history->refused[event->replica] = event->header.nanoseconds;
}

void history_reset_replica(struct history *history, __u32 slot)
{
	memset(&history->replicas[slot], 0, sizeof(history->replicas[slot]));
	history->refused[slot] = 0;
}

const struct history_totals *history_totals(const struct history *history, __u32 service)
{
	return &history->totals[service];
}

const struct history_replica *history_replica(const struct history *history, __u32 slot)
{
	return &history->replicas[slot];
}

/* --- words --------------------------------------------------------------------------------------------------------------- */

const char *move_cause_text(enum move_cause cause)
{
	static const char *const texts[] = {
#define X(name, text) [MOVE_##name] = text,
		WARMPATH_MOVE_CAUSES(X)
#undef X
	};

	return texts[cause];
}

static const char *state_clause(enum replica_state state)
{
	switch (state) {
	case REPLICA_DRAINING:
		return "is draining";
	case REPLICA_DOWN:
		return "is down";
	default:
		return "has left the service";
	}
}

void history_explain_move(const struct history_entry *entry, char *text, size_t size)
{
	const struct decision *decision = &entry->event->decision;
	const char *from = entry->from_name;

	switch (entry->cause) {
	case MOVE_gone:
		snprintf(text, size, "%s %s", from, state_clause(entry->from_state));
		return;
	case MOVE_refused:
		snprintf(text, size, "%s had just refused a connection", from);
		return;
	case MOVE_restarted:
		snprintf(text, size,
			 "what %s had served of it does not count any more (restarted, "
			 "forgotten, or out of memory)",
			 from);
		return;
	case MOVE_overloaded:
		snprintf(text, size, "its replica was at its cap");
		return;
	case MOVE_ring:
		snprintf(text, size, "the ring has changed: its home is another one now");
		return;
	case MOVE_unanswered:
		snprintf(text, size,
			 "the request before was not answered by %s, so nothing is cached", from);
		return;
	case MOVE_returned:
		snprintf(text, size, "back %s: there is room again",
			 decision->placement_replica == decision->replica ? "where its cache is"
									  : "at its home");
		return;
	case MOVE_policy:
		if (decision->reason == REASON_pinned)
			snprintf(text, size, "its connection was open to this one");
		else
			snprintf(text, size,
				 "policy %s is new, or keeps no conversation where it was",
				 policy_name(entry->event->settings.policy));
		return;
	default:
		text[0] = '\0';
	}
}
