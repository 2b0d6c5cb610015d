/* SPDX-License-Identifier: BSD-2-Clause */
/* A request's life: decided, sent, queued, answered or given up. */
#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/random.h"

static void schedule_asked(struct asked *asked, uint64_t time, enum event_kind_simulated kind)
{
	asked->references++;
	event_queue_add(&asked->simulation->queue, time, kind, 0, asked);
}

void release_asked(struct asked *asked)
{
	if (--asked->references)
		return;
	if (asked->next)
		asked->next->previous = asked->previous;
	if (asked->previous)
		asked->previous->next = asked->next;
	else
		asked->simulation->under_way = asked->next;
	dialogue_end(&asked->own);
	free(asked);
}

void leave_replica(struct asked *asked, uint64_t when, int status, const char *error)
{
	struct simulation *simulation = asked->simulation;

	if (asked->over)
		return;
	asked->over = true;
	asked->record.status = status;
	snprintf(asked->record.error, sizeof(asked->record.error), "%s", error);
	if (asked->number &&
	    engine_finish(simulation->engine, asked->number, status == 200, simulation->error))
		fail(simulation, -EIO, NULL);
	schedule_asked(asked, when + nanoseconds(simulation->settings->network_ms / 2e3),
		       HAPPENS_ANSWER);
}

static void on_finished(struct replica_request *request, uint64_t when)
{
	struct asked *asked = request->owner;
	struct record *record = &asked->record;

	asked->at_replica = false;
	if (request->cancelled) {
		release_asked(asked);
		return;
	}
	record->has_timings = true;
	record->cache_n = request->cached;
	record->prompt_n = request->processed;
	record->predicted_n = request->predicted;
	record->prompt_ms = (double)(request->first_token - request->started) / 1e6;
	record->predicted_ms = (double)(when - request->first_token) / 1e6;
	leave_replica(asked, when, 200, "");
	release_asked(asked);
}

static void decide(struct simulation *simulation, struct asked *asked, uint32_t max_tokens)
{
	struct engine_request request = {
		.request = ++simulation->numbers,
		.id = asked->record.conversation_id,
		.id_length = strlen(asked->record.conversation_id),
		.prompt_tokens = asked->record.est_prompt_tokens,
		.max_tokens = max_tokens,
	};
	static const char *const reasons[] = {
#define X(name, text) text,
		WARMPATH_ROUTE_REASONS(X)
#undef X
	};
	struct decision decision;

	if (simulation->settings->sizes_unseen) {
		request.prompt_tokens = 1; /* what the data path takes a SYN for */
		request.max_tokens = simulation->settings->engine.policy.default_max_tokens;
	}
	if (engine_request(simulation->engine, &request, &decision, simulation->error)) {
		fail(simulation, -EIO, NULL);
		return;
	}
	snprintf(asked->record.route_reason, sizeof(asked->record.route_reason), "%s",
		 reasons[decision.reason]);
	if (decision.replica == REPLICA_NONE || !simulation->site_of_slot[decision.replica])
		return;
	asked->number = request.request;
	asked->site = simulation->site_of_slot[decision.replica];
	snprintf(asked->record.replica, sizeof(asked->record.replica), "%s", asked->site->name);
}

struct asked *asked_new(struct simulation *simulation, struct talk *talk, uint32_t turn)
{
	struct asked *asked = calloc(1, sizeof(*asked));

	if (!asked) {
		fail(simulation, -ENOMEM, "out of memory");
		return NULL;
	}
	asked->simulation = simulation;
	asked->talk = talk;
	asked->next = simulation->under_way;
	if (asked->next)
		asked->next->previous = asked;
	simulation->under_way = asked;
	snprintf(asked->record.conversation_id, sizeof(asked->record.conversation_id), "%s",
		 talk->plan.id);
	asked->record.heavy = talk->plan.heavy;
	asked->record.turn = turn + 1;
	asked->record.t_start_s = (double)simulation->now / NANOSECONDS;
	return asked;
}

void send_request(struct asked *asked, struct dialogue *dialogue, uint32_t max_tokens,
		  double timeout_s)
{
	struct simulation *simulation = asked->simulation;
	const struct simulation_settings *settings = simulation->settings;
	uint32_t answer =
		max_tokens < settings->answer_tokens ? max_tokens : settings->answer_tokens;
	uint64_t arrives = simulation->now + nanoseconds(settings->network_ms / 2e3);

	asked->record.est_prompt_tokens = dialogue_estimate(dialogue, max_tokens, false);
	simulation->result->requests++;
	simulation->in_flight++;
	if (dialogue_prompt(dialogue,
			    random_seed(settings->seed, 1000, simulation->numbers + 1) >> 1, answer,
			    &asked->request.whole, &asked->request.prompt_tokens))
		fail(simulation, -ENOMEM, "out of memory");
	asked->request.answer_tokens = answer;
	asked->request.cache_prompt = true;
	asked->request.slot_wanted = -1;
	asked->request.owner = asked;
	decide(simulation, asked, max_tokens);
	schedule_asked(asked, simulation->now + nanoseconds(timeout_s), HAPPENS_TIMEOUT);
	if (!asked->site) {
		leave_replica(asked, arrives, 503, "status 503: no replica");
	} else if (asked->site->dead) {
		leave_replica(asked, arrives, 0, "connection refused");
	} else {
		text_hold(asked->request.whole.text); /* until it has arrived */
		schedule_asked(asked,
			       arrives + nanoseconds(cost_arrival(&settings->model,
								  asked->request.prompt_tokens) /
						     1e3),
			       HAPPENS_ARRIVE);
	}
}

void arrive(struct asked *asked)
{
	struct simulation *simulation = asked->simulation;
	struct text *text = asked->request.whole.text;
	int result = 0;

	if (asked->over) {
		text_release(text);
		return;
	}
	if (asked->site->dead) {
		leave_replica(asked, simulation->now, 0, "connection refused");
	} else {
		asked->at_replica = true;
		asked->references++;
		result = replica_submit(asked->site->replica, &asked->request, simulation->now);
		if (result) {
			asked->at_replica = false;
			asked->references--; /* the event's own is still there */
			leave_replica(asked, simulation->now, 400,
				      "status 400: the request exceeds the available context size");
		}
		schedule_work(simulation, asked->site);
	}
	text_release(text);
}

void time_out(struct asked *asked)
{
	struct simulation *simulation = asked->simulation;

	if (asked->over)
		return;
	if (asked->at_replica) {
		replica_cancel(asked->site->replica, &asked->request, simulation->now);
		schedule_work(simulation, asked->site);
	}
	leave_replica(asked, simulation->now, 0, "timeout");
}

const struct replica_observer request_observer = {.finished = on_finished};
