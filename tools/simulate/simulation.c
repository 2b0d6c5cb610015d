/* SPDX-License-Identifier: BSD-2-Clause */
#include "simulation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/dialogue.h"
#include "../lib/random.h"
#include "event_queue.h"

enum event_kind_simulated {
	HAPPENS_SEND,	 /* a user's message, or (trace) a request: number is its index */
	HAPPENS_ARRIVE,	 /* a request is tokenised and joins its replica's queue */
	HAPPENS_WORK,	 /* a replica's next step is over */
	HAPPENS_ANSWER,	 /* an answer, or a failure, reaches the client */
	HAPPENS_TIMEOUT, /* the client gives up */
	HAPPENS_SCALE,	 /* a new replica is ready: number */
	HAPPENS_DRAIN,
	HAPPENS_KILL,
	HAPPENS_DETECT, /* of the killed replica */
};

#define NANOSECONDS 1e9

struct site { /* a replica and what the router thinks of it */
	char name[REPLICA_NAME_SIZE];
	struct replica *replica;
	bool member, dead;
	uint64_t due; /* of the WORK event that counts; older ones are stale */
};

struct talk {
	struct dialogue dialogue;
	uint32_t index, turn;
	struct plan_conversation plan;
	bool started;
};

struct asked {
	struct replica_request request;
	struct asked *next, *previous; /* of all under way */
	struct simulation *simulation;
	struct talk *talk;
	struct site *site;
	struct dialogue own; /* trace: a dialogue of its own */
	bool closed_loop, at_replica, over;
	uint64_t number;     /* for the engine */
	uint32_t references; /* events that point here */
	struct record record;
};

struct simulation {
	const struct simulation_settings *settings;
	struct simulation_result *result;
	struct engine *engine;
	struct event_queue queue;
	struct site sites[REPLICAS_MAX];
	uint32_t site_count;
	struct site *site_of_slot[REPLICAS_MAX];
	struct talk *talks;
	struct asked *under_way;
	uint64_t numbers, now;
	uint32_t talks_open, trace_next, in_flight;
	void (*each)(struct record *record, void *context);
	void *context;
	struct error *error;
	int failed; /* negative errno: the run ends */
};

static uint64_t nanoseconds(double seconds)
{
	return (uint64_t)llround(seconds * NANOSECONDS);
}

static void fail(struct simulation *simulation, int code, const char *sentence)
{
	if (simulation->failed)
		return;
	simulation->failed = code;
	if (sentence)
		error_set(simulation->error, code, "%s", sentence);
}

/* --- the set of replicas ---------------------------------------------------------------------------------------- */

static int set_members(struct simulation *simulation)
{
	const char *names[REPLICAS_MAX];
	size_t count = 0;
	int result;

	for (uint32_t i = 0; i < simulation->site_count; i++)
		if (simulation->sites[i].member)
			names[count++] = simulation->sites[i].name;
	result = engine_set_replicas(simulation->engine, names, count, simulation->error);
	if (result)
		return result;
	for (size_t i = 0; i < REPLICAS_MAX; i++) {
		simulation->site_of_slot[i] = NULL;
		for (uint32_t site = 0;
		     simulation->engine->slots[i].name[0] && site < simulation->site_count; site++)
			if (strcmp(simulation->engine->slots[i].name,
				   simulation->sites[site].name) == 0)
				simulation->site_of_slot[i] = &simulation->sites[site];
	}
	return 0;
}

static void on_finished(struct replica_request *request, uint64_t when);

static int add_site(struct simulation *simulation)
{
	static const struct replica_observer observer = {.finished = on_finished};
	struct site *site = &simulation->sites[simulation->site_count];

	snprintf(site->name, sizeof(site->name), "llm-%u", simulation->site_count);
	site->replica = replica_new(&simulation->settings->replica, &simulation->settings->model,
				    &observer);
	if (!site->replica)
		return -ENOMEM;
	site->member = true;
	site->dead = false;
	site->due = REPLICA_NEVER;
	simulation->site_count++;
	return 0;
}

static void schedule_work(struct simulation *simulation, struct site *site)
{
	uint64_t next = replica_next(site->replica);

	if (next == site->due)
		return;
	site->due = next;
	if (next != REPLICA_NEVER)
		event_queue_add(&simulation->queue, next, HAPPENS_WORK,
				(uint32_t)(site - simulation->sites), NULL);
}

/* --- a request's life --------------------------------------------------------------------------------------------- */

static void schedule_asked(struct asked *asked, uint64_t time, enum event_kind_simulated kind)
{
	asked->references++;
	event_queue_add(&asked->simulation->queue, time, kind, 0, asked);
}

static void release_asked(struct asked *asked)
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

/* The answer leaves the replica (or the failure becomes known there): the router sees it, the client a bit later. */
static void leave_replica(struct asked *asked, uint64_t when, int status, const char *error)
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

static struct asked *asked_new(struct simulation *simulation, struct talk *talk, uint32_t turn)
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

/* Sends the dialogue as it is. */
static void send_request(struct asked *asked, struct dialogue *dialogue, uint32_t max_tokens,
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

static void arrive(struct asked *asked)
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

static void time_out(struct asked *asked)
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

/* --- the users ------------------------------------------------------------------------------------------------------ */

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

static void answer(struct asked *asked)
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

/* --- what happens in mid-run ------------------------------------------------------------------------------------------ */

static bool traffic_over(const struct simulation *simulation)
{
	if (simulation->in_flight)
		return false;
	return simulation->settings->trace
		       ? simulation->trace_next == simulation->settings->trace->count
		       : simulation->talks_open == 0;
}

static void scale_up(struct simulation *simulation)
{
	while (simulation->site_count < simulation->settings->scale_to)
		if (add_site(simulation)) {
			fail(simulation, -ENOMEM, "out of memory");
			return;
		}
	if (set_members(simulation))
		fail(simulation, -EIO, NULL);
	simulation->result->new_replica_ready_s = (double)simulation->now / NANOSECONDS;
	simulation->result->scale_skipped = false;
}

static void remove_member(struct simulation *simulation, uint32_t number)
{
	simulation->sites[number].member = false;
	if (set_members(simulation))
		fail(simulation, -EIO, NULL);
}

static void kill_replica(struct simulation *simulation, struct site *site)
{
	struct asked *next;

	site->dead = true;
	site->due = REPLICA_NEVER;
	replica_free(site->replica);
	site->replica = NULL;
	for (struct asked *asked = simulation->under_way; asked; asked = next) {
		bool was_there = asked->at_replica;

		next = asked->next;
		if (asked->site != site)
			continue;
		asked->at_replica = false;
		/* those on their way find it dead when they arrive */
		if (was_there) {
			leave_replica(asked, simulation->now, 0, "connection reset");
			release_asked(asked);
		}
	}
	event_queue_add(&simulation->queue,
			simulation->now + nanoseconds(simulation->settings->detect_s),
			HAPPENS_DETECT, (uint32_t)(site - simulation->sites), NULL);
}

static void happen(struct simulation *simulation, const struct event *event)
{
	struct site *site;

	switch ((enum event_kind_simulated)event->kind) {
	case HAPPENS_SEND:
		if (simulation->settings->trace)
			send_from_trace(simulation, event->number);
		else
			send_message(simulation, &simulation->talks[event->number]);
		break;
	case HAPPENS_ARRIVE:
		arrive(event->subject);
		release_asked(event->subject);
		break;
	case HAPPENS_WORK:
		site = &simulation->sites[event->number];
		if (site->due != event->time)
			break;
		site->due = REPLICA_NEVER;
		replica_advance(site->replica, event->time);
		schedule_work(simulation, site);
		break;
	case HAPPENS_ANSWER:
		answer(event->subject);
		release_asked(event->subject);
		break;
	case HAPPENS_TIMEOUT:
		time_out(event->subject);
		release_asked(event->subject);
		break;
	case HAPPENS_SCALE:
		scale_up(simulation);
		break;
	case HAPPENS_DRAIN:
		remove_member(simulation, simulation->settings->drained);
		break;
	case HAPPENS_KILL:
		kill_replica(simulation, &simulation->sites[simulation->settings->killed]);
		break;
	case HAPPENS_DETECT:
		remove_member(simulation, event->number);
		break;
	}
}

/* --- the run ------------------------------------------------------------------------------------------------------------ */

static int start_traffic(struct simulation *simulation)
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

static int start(struct simulation *simulation)
{
	const struct simulation_settings *settings = simulation->settings;
	int result = engine_open(&simulation->engine, &engine_driver_user, &settings->engine,
				 simulation->error);

	for (uint32_t i = 0; i < settings->replicas && !result; i++)
		if (add_site(simulation))
			result = error_set(simulation->error, -ENOMEM, "out of memory");
	if (!result)
		result = set_members(simulation);
	if (!result)
		result = start_traffic(simulation);
	if (result)
		return result;
	if (!isnan(settings->scale_at_s)) {
		simulation->result->scale_skipped = true;
		event_queue_add(&simulation->queue,
				nanoseconds(settings->scale_at_s + settings->load_s), HAPPENS_SCALE,
				0, NULL);
	}
	if (!isnan(settings->drain_at_s))
		event_queue_add(&simulation->queue, nanoseconds(settings->drain_at_s),
				HAPPENS_DRAIN, 0, NULL);
	if (!isnan(settings->kill_at_s))
		event_queue_add(&simulation->queue, nanoseconds(settings->kill_at_s), HAPPENS_KILL,
				0, NULL);
	return 0;
}

static void note_end_state(struct simulation *simulation)
{
	struct simulation_result *result = simulation->result;
	uint32_t loads[REPLICAS_MAX] = {0};

	result->replica_count = simulation->site_count;
	if (engine_loads(simulation->engine, loads, simulation->error))
		return;
	for (uint32_t i = 0; i < simulation->site_count; i++) {
		snprintf(result->replicas[i].name, sizeof(result->replicas[i].name), "%s",
			 simulation->sites[i].name);
		result->replicas[i].counted = simulation->sites[i].member;
	}
	for (uint32_t member = 0; member < simulation->engine->ring.header.member_count; member++)
		for (uint32_t i = 0; i < simulation->site_count; i++)
			if (strcmp(simulation->engine->ring.names[member],
				   simulation->sites[i].name) == 0)
				result->replicas[i].load = loads[member];
}

static void end(struct simulation *simulation)
{
	struct event event;

	/* what is left: time-outs of requests that were answered, and all else after a failure */
	while (event_queue_take(&simulation->queue, &event)) {
		struct asked *asked = event.subject;

		if (!asked)
			continue;
		if (event.kind == HAPPENS_ARRIVE)
			text_release(asked->request.whole.text);
		release_asked(asked);
	}
	for (uint32_t i = 0; i < simulation->site_count; i++)
		replica_free(simulation->sites[i].replica);
	while (simulation->under_way) {
		simulation->under_way->references = 1;
		release_asked(simulation->under_way);
	}
	for (uint32_t i = 0; simulation->talks && !simulation->settings->trace &&
			     i < simulation->settings->profile->conversations;
	     i++)
		dialogue_end(&simulation->talks[i].dialogue);
	free(simulation->talks);
	event_queue_free(&simulation->queue);
	engine_close(simulation->engine);
}

int simulation_run(const struct simulation_settings *settings,
		   void (*each)(struct record *record, void *context), void *context,
		   struct simulation_result *result, struct error *error)
{
	struct simulation *simulation = calloc(1, sizeof(*simulation));
	struct event event;
	int failed;

	*result = (struct simulation_result){.new_replica_ready_s = NAN};
	if (!simulation)
		return error_set(error, -ENOMEM, "out of memory");
	simulation->settings = settings;
	simulation->result = result;
	simulation->each = each;
	simulation->context = context;
	simulation->error = error;
	simulation->failed = start(simulation);
	while (!simulation->failed && !traffic_over(simulation) &&
	       event_queue_take(&simulation->queue, &event)) {
		simulation->now = event.time;
		result->events++;
		happen(simulation, &event);
	}
	failed = simulation->failed;
	if (!failed)
		note_end_state(simulation);
	end(simulation);
	free(simulation);
	return failed;
}
