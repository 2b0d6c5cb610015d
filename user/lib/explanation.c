/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps; their words are in explanation_text.c and explanation_json.c. */
#include "lib/explanation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/decide_core.h"
#include "lib/decide_text.h"

/* What the core sees when it decides once more: the replicas of the event, the walk as it was, the sums as they were. */
struct replay {
	struct service_load sums;
	struct replica_load loads[REPLICAS_MAX];
	__u32 incarnations[REPLICAS_MAX];
	struct ring_point points[EVENT_REPLICAS_MAX];
	struct placement placement;
	struct decide_state state;
};

static void set_load(struct replay *replay, __u32 slot, __u32 load)
{
	replay->loads[slot].counted = 1;
	replay->loads[slot].requests = load;
	replay->loads[slot].tokens = load;
	replay->incarnations[slot] = 1;
}

static void set_up(struct replay *replay, const struct event_decision *event)
{
	const struct decision *decision = &event->decision;
	struct decide_state *state = &replay->state;
	__u32 walked = event->walked_count;

	for (__u32 i = 0; i < event->load_count; i++)
		set_load(replay, event->loads[i].replica, event->loads[i].load);
	set_load(replay, decision->preferred, decision->preferred_load);
	replay->sums.replica_count = decision->replica_count;
	replay->sums.requests = decision->sum;
	replay->sums.tokens = decision->sum;
	for (__u32 i = 0; i < walked; i++)
		replay->points[i].replica = event->loads[i].replica;
	/* nothing was walked over if the preferred replica took it at once */
	if (walked == 0)
		replay->points[walked++].replica = decision->home;
	replay->placement = (struct placement){
		.replica = decision->placement_replica,
		.incarnation = 1,
		.prompt_tokens = decision->placement_prompt_tokens,
	};
	set_load(replay, decision->home, replay->loads[decision->home].tokens);
	state->settings = event->settings;
	state->request.prompt_tokens = decision->prompt_tokens;
	state->request.max_tokens = decision->max_tokens;
	state->point_count = walked;
	state->member_count = walked;
}

static bool run_again(const struct event_decision *event)
{
	const struct decision *recorded = &event->decision, *again;
	struct replay *replay = calloc(1, sizeof(*replay));
	struct decide_tables tables;
	bool agrees;

	if (!replay)
		return false;
	set_up(replay, event);
	tables = (struct decide_tables){
		.points = replay->points,
		.service_load = &replay->sums,
		.loads = replay->loads,
		.incarnations = replay->incarnations,
		.placement =
			recorded->placement_replica == REPLICA_NONE ? NULL : &replay->placement,
	};
	decide_run(&tables, &replay->state);
	again = &replay->state.decision;
	agrees = again->replica == recorded->replica && again->reason == recorded->reason &&
		 again->cost == recorded->cost &&
		 again->preferred_cost == recorded->preferred_cost && again->sum == recorded->sum;
	free(replay);
	return agrees;
}

static struct explanation_verdict judge(const struct explanation *explanation, __u32 replica,
					__u32 load, __u32 cost, bool preferred)
{
	const struct event_decision *event = explanation->event;
	const struct decision *decision = &event->decision;
	struct explanation_verdict verdict = {
		.replica = replica,
		.load = load,
		.cost = cost,
		.idle = load == 0,
		.cap = decision_cap(decision->sum, cost, decision->replica_count,
				    event->settings.epsilon_millionths, decision->metric),
		.fits_cap = decide_run_fits(load, cost, decision->sum, decision->replica_count,
					    event->settings.epsilon_millionths, decision->metric),
	};

	verdict.accepted = verdict.fits_cap;
	if (preferred && explanation->long_verdict == LONG_APPLIED) {
		verdict.long_cap = explanation->long_cap;
		verdict.accepted |=
			decide_run_fits(load, cost, decision->sum, decision->replica_count,
					event->settings.long_epsilon_millionths, decision->metric);
	}
	return verdict;
}

static enum long_verdict judge_length(const struct explanation *explanation)
{
	const struct event_decision *event = explanation->event;

	if (event->settings.policy != POLICY_LLM_AWARE)
		return LONG_NOT_ASKED;
	if (!event->settings.long_stickiness)
		return LONG_OFF;
	if (!explanation->cache_likely)
		return LONG_NO_CACHE;
	if (event->decision.prompt_tokens < event->settings.long_threshold_tokens)
		return LONG_TOO_SHORT;
	return LONG_APPLIED;
}

static void list_tried(struct explanation *explanation)
{
	const struct event_decision *event = explanation->event;
	const struct decision *decision = &event->decision;
	__u32 full_cost = decision->prompt_tokens + decision->max_tokens;

	if (decision->metric == LOAD_REQUESTS)
		full_cost = 1;
	explanation->tried[explanation->tried_count++] =
		judge(explanation, decision->preferred, decision->preferred_load,
		      decision->preferred_cost, true);
	for (__u32 i = 0; i < event->walked_count; i++)
		if (event->loads[i].replica != decision->preferred)
			explanation->tried[explanation->tried_count++] =
				judge(explanation, event->loads[i].replica, event->loads[i].load,
				      full_cost, false);
}

static bool is_walked(const struct event_decision *event, __u32 slot)
{
	for (__u32 i = 0; i < event->walked_count; i++)
		if (event->loads[i].replica == slot)
			return true;
	return false;
}

/* What the replica's load was before the decision charged it. */
static __u32 load_before(const struct replica_load *load, const struct decision *decision,
			 bool charged)
{
	bool tokens = decision->metric == LOAD_TOKENS;
	__u32 value = tokens ? load->tokens : load->requests;

	if (!charged)
		return value;
	return value - (tokens ? decision->charge : (decision->flags & DECISION_CHARGED) != 0);
}

void explanation_make_event(struct event_decision *event, const struct decide_tables *tables,
			    const struct decide_state *state, const char *id, size_t id_length)
{
	const struct decision *decision = &state->decision;

	memset(event, 0, sizeof(*event));
	event->header.kind = EVENT_DECISION;
	event->header.id_hash = state->request.id_hash;
	event->settings = state->settings;
	event->decision = *decision;
	event->anonymous = state->request.anonymous;
	event->id_length = id_length;
	if (id_length > 0)
		memcpy(event->id, id, id_length);
	event->walked_count = state->walked_count;
	if (event->walked_count > EVENT_REPLICAS_MAX)
		event->walked_count = EVENT_REPLICAS_MAX;
	memcpy(event->loads, state->walked, event->walked_count * sizeof(event->loads[0]));
	event->load_count = event->walked_count;
	for (__u32 i = 0; i < state->member_count && event->load_count < EVENT_REPLICAS_MAX; i++) {
		__u32 slot = tables->members[i].replica;
		const struct replica_load *load = &tables->loads[slot];

		if (!load->counted || is_walked(event, slot))
			continue;
		event->loads[event->load_count].replica = slot;
		event->loads[event->load_count++].load =
			load_before(load, decision, slot == decision->replica);
	}
}

static bool is_slot(__u32 slot)
{
	return slot < REPLICAS_MAX;
}

static bool is_slot_or_none(__u32 slot)
{
	return slot < REPLICAS_MAX || slot == REPLICA_NONE;
}

int event_check(const struct event_decision *event, size_t size, struct error *error)
{
	const struct decision *decision = &event->decision;
	size_t fixed = offsetof(struct event_decision, loads);
	bool capped;

	if (size < fixed || event->header.kind != EVENT_DECISION ||
	    event->load_count > EVENT_REPLICAS_MAX || event->walked_count > event->load_count ||
	    event->id_length > ID_LENGTH_MAX ||
	    size < fixed + event->load_count * sizeof(event->loads[0]))
		return error_set(error, -EINVAL, "An event in the ring buffer is not whole.");
	capped = decision->flags & DECISION_HAS_CAP;
	if (!is_slot(decision->replica) || !is_slot_or_none(decision->placement_replica) ||
	    (capped && (!is_slot(decision->preferred) || !is_slot(decision->home) ||
			decision->replica_count == 0)))
		return error_set(error, -EINVAL, "An event in the ring buffer names no replica.");
	for (__u32 i = 0; i < event->load_count; i++)
		if (!is_slot(event->loads[i].replica))
			return error_set(error, -EINVAL,
					 "An event in the ring buffer names no replica.");
	return 0;
}

int explain_event(struct explanation *explanation, const struct event_decision *event, size_t size,
		  struct error *error)
{
	const struct decision *decision = &event->decision;
	int err = event_check(event, size, error);

	if (err)
		return err;
	memset(explanation, 0, sizeof(*explanation));
	explanation->event = event;
	explanation->agrees = true;
	explanation->total = decision->sum + decision->preferred_cost;
	if (decision->replica_count > 0)
		explanation->average = (double)explanation->total / decision->replica_count;
	if (!(decision->flags & DECISION_HAS_CAP))
		return 0;
	explanation->cap =
		decision_cap(decision->sum, decision->preferred_cost, decision->replica_count,
			     event->settings.epsilon_millionths, decision->metric);
	explanation->cache_likely =
		event->settings.policy == POLICY_LLM_AWARE &&
		(!event->settings.placement_memory || decision->placement_replica != REPLICA_NONE);
	explanation->long_verdict = judge_length(explanation);
	if (explanation->long_verdict == LONG_APPLIED)
		explanation->long_cap = decision_cap(
			decision->sum, decision->preferred_cost, decision->replica_count,
			event->settings.long_epsilon_millionths, decision->metric);
	explanation->agrees = run_again(event);
	list_tried(explanation);
	return 0;
}
