/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/events.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/control.h"
#include "agent/health.h"
#include "agent/quiet_close.h"
#include "agent/history.h"
#include "lib/log.h"

/* Read at one go; then the loop sees to its other work. */
#define EVENTS_AT_ONCE 2000

struct events {
	struct agent *agent;
	struct ring_buffer *buffer;
	uv_poll_t readable;
	unsigned int budget;
	unsigned int bad; /* events that are not ours: told once */
};

/* --- words ----------------------------------------------------------------------------------------------------------- */

static const char *replica_name(const void *context, __u32 slot)
{
	const struct agent *agent = context;

	if (slot >= REPLICAS_MAX || !agent->routing.replicas[slot].name[0])
		return NULL;
	return agent->routing.replicas[slot].name;
}

static const char *service_name(const struct agent *agent, __u32 service)
{
	if (service >= SERVICES_MAX || !agent->routing.services[service].name[0])
		return "(gone)";
	return agent->routing.services[service].name;
}

/* Adds what was printed into memory as "text"; takes the memory. */
static void add_text(json_t *message, char *text, size_t size)
{
	if (message && text)
		json_object_set_new(message, "text", json_stringn(text, size));
	free(text);
}

json_t *events_explanation(const struct agent *agent, __u32 service,
			   const struct explanation *explanation)
{
	const struct explanation_names names = {
		.replica = replica_name,
		.service = service_name(agent, service),
		.context = agent,
	};
	json_t *message = explanation_json(explanation, &names);
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	if (to) {
		explanation_print(to, explanation, &names);
		fclose(to);
	}
	add_text(message, text, size);
	return message;
}

/* "time", seconds since 1970: the kernel's clock says how long ago it was. */
static void add_time(json_t *message, __u64 nanoseconds)
{
	struct timespec monotonic, real;
	double age;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &real);
	age = monotonic.tv_sec + monotonic.tv_nsec / 1e9 - nanoseconds / 1e9;
	json_object_set_new(message, "time",
			    json_real(round((real.tv_sec + real.tv_nsec / 1e9 - age) * 1e3) / 1e3));
}

json_t *events_entry(const struct agent *agent, const struct history_entry *entry)
{
	const struct event_decision *event = entry->event;
	struct explanation explanation;
	struct error error;
	json_t *message;
	char why[160];

	if (explain_event(&explanation, event, entry->size, &error))
		return NULL;
	message = events_explanation(agent, event->header.service, &explanation);
	if (!message)
		return NULL;
	add_time(message, event->header.nanoseconds);
	if (entry->cause != MOVE_none) {
		const char *text = json_string_value(json_object_get(message, "text"));

		history_explain_move(entry, why, sizeof(why));
		json_object_set_new(message, "moved_from", json_string(entry->from_name));
		json_object_set_new(message, "move_cause",
				    json_string(move_cause_text(entry->cause)));
		json_object_set_new(message, "move_reason", json_string(why));
		json_object_set_new(message, "text",
				    json_sprintf("%s  moved here from %s: %s\n", text ? text : "",
						 entry->from_name, why));
	}
	if (entry->status) {
		json_object_set_new(message, "status",
				    json_string(completion_status_text(entry->status)));
		json_object_set_new(message, "seconds", json_real(entry->seconds));
	}
	return message;
}

static json_t *completion_message(const struct agent *agent, const struct event_completion *event)
{
	const char *service = service_name(agent, event->header.service);
	json_t *message = completion_json(event, service);
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	if (to) {
		completion_print(to, event, service);
		fclose(to);
	}
	add_text(message, text, size);
	return message;
}

static json_t *refusal_message(const struct agent *agent, const struct event_refusal *event)
{
	const char *service = service_name(agent, event->header.service);
	json_t *message = refusal_json(event, service);
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	if (to) {
		refusal_print(to, event, service);
		fclose(to);
	}
	add_text(message, text, size);
	return message;
}

/*
 * A replica has refused a request: told whoever follows or not, as it is the first that is heard of a server that has gone. A
 * whole row of them is told once.
 */
static void tell_refusal(const struct agent *agent, const struct event_refusal *event)
{
	if (event->cause == REFUSAL_RESET && event->refused_in_a_row == 1)
		log_warning(
			"replica %.*s of service %s refuses connections: does its server listen?",
			REPLICA_NAME_SIZE, event->replica_name,
			service_name(agent, event->header.service));
	if (event->replica < REPLICAS_MAX)
		health_refused(agent->health, event->replica);
}

/* --- reading ---------------------------------------------------------------------------------------------------------- */

static void refuse(struct events *events, const char *why)
{
	if (events->bad++ == 0)
		log_warning("%s", why);
}

static json_t *take_decision(struct events *events, const struct event_decision *event, size_t size,
			     bool followed)
{
	struct agent *agent = events->agent;
	const struct history_entry *entry;
	struct explanation explanation;
	struct error error;

	if (event_check(event, size, &error)) {
		refuse(events, error.text);
		return NULL;
	}
	entry = history_decision(agent->history, event, size, agent->routing.replicas);
	if (!followed)
		return NULL;
	if (entry)
		return events_entry(agent, entry);
	if (explain_event(&explanation, event, size, &error))
		return NULL;
	return events_explanation(agent, event->header.service, &explanation);
}

static json_t *take_completion(struct agent *agent, const struct event_completion *event,
			       bool followed)
{
	const struct history_entry *entry = history_completion(agent->history, event);
	json_t *message = followed ? completion_message(agent, event) : NULL;

	/* a completion itself knows no more of the id than its hash */
	if (message && entry && entry->event->id_length > 0)
		json_object_set_new(message, "id",
				    json_stringn(entry->event->id, entry->event->id_length));
	return message;
}

static void take_event(struct events *events, const struct event_header *header, size_t size)
{
	struct agent *agent = events->agent;
	bool followed = control_is_followed(agent->control, header->service, header->id_hash);
	json_t *message = NULL;

	if (header->kind == EVENT_DECISION) {
		message = take_decision(events, (const struct event_decision *)header, size,
					followed);
	} else if (header->kind == EVENT_COMPLETION && size >= sizeof(struct event_completion)) {
		message = take_completion(agent, (const struct event_completion *)header, followed);
	} else if (header->kind == EVENT_REFUSAL && size >= sizeof(struct event_refusal)) {
		history_refusal(agent->history, (const struct event_refusal *)header);
		tell_refusal(agent, (const struct event_refusal *)header);
		if (followed)
			message = refusal_message(agent, (const struct event_refusal *)header);
	} else {
		refuse(events, "An event in the ring buffer is of no known kind.");
	}
	if (!message)
		return;
	add_time(message, header->nanoseconds);
	control_publish(agent->control, header->service, header->id_hash, message);
}

static int on_event(void *context, void *data, size_t size)
{
	struct events *events = context;
	const struct event_header *header = data;

	if (size >= sizeof(struct event_move) && header->kind == EVENT_MOVE) {
		quiet_close_send(&events->agent->quiet_close, data);
		return --events->budget > 0 ? 0 : -EAGAIN;
	}
	if (size >= sizeof(*header))
		take_event(events, header, size);
	/* the one just read is done with either way */
	return --events->budget > 0 ? 0 : -EAGAIN;
}

static void on_readable(uv_poll_t *poll, int status, int ready)
{
	struct events *events = poll->data;

	(void)ready;
	if (status < 0)
		return;
	events->budget = EVENTS_AT_ONCE;
	ring_buffer__consume(events->buffer);
}

int events_configure(const struct agent *agent, struct error *error)
{
	struct trace_settings settings = {
		.events_per_second = agent->config->trace.decisions_per_second,
	};
	__u32 first = 0;

	if (bpf_map_update_elem(agent->datapath.trace_settings, &first, &settings, BPF_ANY))
		return error_set(error, -errno, "map trace_settings cannot be written: %s",
				 strerror(errno));
	return 0;
}

int events_open(struct agent *agent, struct events **result, struct error *error)
{
	struct events *events = calloc(1, sizeof(*events));

	*result = NULL;
	if (!events)
		return error_set(error, -ENOMEM, "not enough memory");
	events->agent = agent;
	events->buffer = ring_buffer__new(agent->datapath.events, on_event, events, NULL);
	if (!events->buffer) {
		free(events);
		return error_set(error, -errno, "the ring buffer events cannot be read: %s",
				 strerror(errno));
	}
	uv_poll_init(&agent->loop, &events->readable, ring_buffer__epoll_fd(events->buffer));
	events->readable.data = events;
	uv_poll_start(&events->readable, UV_READABLE, on_readable);
	*result = events;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct events *events = handle->data;

	ring_buffer__free(events->buffer);
	free(events);
}

void events_close(struct events *events)
{
	if (events)
		uv_close((uv_handle_t *)&events->readable, on_closed);
}
