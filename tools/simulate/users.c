/* SPDX-License-Identifier: BSD-2-Clause */
/* Who asks when: a profile's users, or a trace. */
#include "parts.h"

#include <errno.h>
#include <stdlib.h>

static void talk_end(struct simulation *simulation, struct talk *talk)
{
	dialogue_end(&talk->dialogue);
	simulation->talks_open--;
}

static void next_message(struct simulation *simulation, struct talk *talk)
{
	const struct profile *profile = simulation->settings->profile;
	struct plan_turn planned;

	if (talk->turn == talk->plan.turns) {
		talk_end(simulation, talk);
		return;
	}
	plan_turn(profile, simulation->settings->seed, talk->index, talk->turn, &planned);
	event_queue_add(&simulation->queue, simulation->now + nanoseconds(planned.think_s),
			HAPPENS_SEND, talk->index, NULL);
}

static void send_message(struct simulation *simulation, struct talk *talk)
{
	const struct simulation_settings *settings = simulation->settings;
	const struct profile *profile = settings->profile;
	struct plan_turn planned;
	struct asked *asked;

	if (!talk->started) {
		talk->started = true;
		if (dialogue_start(&talk->dialogue, true) ||
		    (profile->system_prompt_words &&
		     dialogue_say(&talk->dialogue, ROLE_SYSTEM, plan_system_seed(settings->seed),
				  profile->system_prompt_words)))
			fail(simulation, -ENOMEM, "out of memory");
	}
	plan_turn(profile, settings->seed, talk->index, talk->turn, &planned);
	if (dialogue_say(&talk->dialogue, ROLE_USER, planned.seed, planned.words))
		fail(simulation, -ENOMEM, "out of memory");
	if (dialogue_estimate(&talk->dialogue, profile->max_tokens, false) + profile->max_tokens >
	    profile->max_context_tokens) {
		talk_end(simulation, talk);
		return;
	}
	asked = asked_new(simulation, talk, talk->turn++);
	if (!asked)
		return;
	asked->closed_loop = true;
	send_request(asked, &talk->dialogue, profile->max_tokens, profile->request_timeout_s);
}

static void send_from_trace(struct simulation *simulation, uint32_t index)
{
	const struct trace *trace = simulation->settings->trace;
	const struct trace_request *request = &trace->requests[index];
	struct asked *asked =
		asked_new(simulation, &simulation->talks[request->conversation], request->turn);

	simulation->trace_next = index + 1;
	if (simulation->trace_next < trace->count)
		event_queue_add(&simulation->queue, nanoseconds(trace->requests[index + 1].at_s),
				HAPPENS_SEND, index + 1, NULL);
	if (!asked)
		return;
	if (dialogue_start(&asked->own, true) ||
	    dialogue_say_blocks(&asked->own, trace->seeds + request->first_block,
				request->block_count, trace->block_words, request->words))
		fail(simulation, -ENOMEM, "out of memory");
	send_request(asked, &asked->own, request->answer_tokens,
		     simulation->settings->trace_timeout_s);
}

void answer(struct asked *asked)
{
	struct simulation *simulation = asked->simulation;
	struct record *record = &asked->record;

	simulation->in_flight--;
	record->t_end_s = (double)simulation->now / NANOSECONDS;
	record->latency_ms = (record->t_end_s - record->t_start_s) * 1e3;
	simulation->result->errors += record->error[0] != '\0';
	simulation->result->duration_s = record->t_end_s;
	if (simulation->each)
		simulation->each(record, simulation->context);
	if (!asked->closed_loop)
		return;
	if (record->error[0]
		    ? dialogue_unanswered(&asked->talk->dialogue)
		    : dialogue_answered_tokens(&asked->talk->dialogue, record->predicted_n))
		fail(simulation, -ENOMEM, "out of memory");
	next_message(simulation, asked->talk);
}

void send_next(struct simulation *simulation, uint32_t number)
{
	if (simulation->settings->trace)
		send_from_trace(simulation, number);
	else
		send_message(simulation, &simulation->talks[number]);
}

bool traffic_over(const struct simulation *simulation)
{
	if (simulation->in_flight)
		return false;
	return simulation->settings->trace
		       ? simulation->trace_next == simulation->settings->trace->count
		       : simulation->talks_open == 0;
}

int start_traffic(struct simulation *simulation)
{
	const struct simulation_settings *settings = simulation->settings;
	uint32_t count =
		settings->trace ? settings->trace->conversations : settings->profile->conversations;

	simulation->talks = calloc(count, sizeof(*simulation->talks));
	if (!simulation->talks)
		return error_set(simulation->error, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count; i++) {
		struct talk *talk = &simulation->talks[i];

		talk->index = i;
		if (settings->trace) {
			trace_conversation_id(settings->seed, i, talk->plan.id);
			continue;
		}
		plan_conversation(settings->profile, settings->seed, i, &talk->plan);
		event_queue_add(&simulation->queue, nanoseconds(talk->plan.start_s), HAPPENS_SEND,
				i, NULL);
	}
	simulation->talks_open = settings->trace ? 0 : count;
	if (settings->trace)
		event_queue_add(&simulation->queue, nanoseconds(settings->trace->requests[0].at_s),
				HAPPENS_SEND, 0, NULL);
	return 0;
}

void end_traffic(struct simulation *simulation)
{
	const struct simulation_settings *settings = simulation->settings;

	for (uint32_t i = 0;
	     simulation->talks && !settings->trace && i < settings->profile->conversations; i++)
		dialogue_end(&simulation->talks[i].dialogue);
	free(simulation->talks);
}
