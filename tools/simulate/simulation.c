/* SPDX-License-Identifier: BSD-2-Clause */
#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int add_site(struct simulation *simulation)
{
	struct site *site = &simulation->sites[simulation->site_count];

	snprintf(site->name, sizeof(site->name), "llm-%u", simulation->site_count);
	site->replica = replica_new(&simulation->settings->replica, &simulation->settings->model,
				    &request_observer);
	if (!site->replica)
		return -ENOMEM;
	site->member = true;
	site->dead = false;
	site->due = REPLICA_NEVER;
	simulation->site_count++;
	return 0;
}

void schedule_work(struct simulation *simulation, struct site *site)
{
	uint64_t next = replica_next(site->replica);

	if (next == site->due)
		return;
	site->due = next;
	if (next != REPLICA_NEVER)
		event_queue_add(&simulation->queue, next, HAPPENS_WORK,
				(uint32_t)(site - simulation->sites), NULL);
}

/* --- what happens in mid-run ------------------------------------------------------------------------------------------ */

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
		send_next(simulation, event->number);
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
	end_traffic(simulation);
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
