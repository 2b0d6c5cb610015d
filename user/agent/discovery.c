/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/discovery.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/discovery_parts.h"
#include "lib/log.h"

/* Changes of several sources, or of one in several steps, are one change of the ring; and a source gone wild does not keep us busy. */
#define GATHER_MILLISECONDS 20
#define PAUSE_MILLISECONDS  200
#define AGAIN_MILLISECONDS  10000 /* after a union that could not be applied */
#define UNCHANGED	    1

/* --- services ----------------------------------------------------------------------------------------------------- */

struct found_service *discovery_find_service(const struct discovery *discovery, const char *name)
{
	unsigned int i;

	for (i = 0; i < discovery->service_count; i++) {
		if (strcmp(discovery->services[i].name, name) == 0)
			return (struct found_service *)&discovery->services[i];
	}
	return NULL;
}

static void drop_notes(struct found_service *service)
{
	unsigned int i;

	for (i = 0; i < service->note_count; i++)
		free(service->notes[i]);
	service->note_count = 0;
	service->notes_left_out = 0;
}

static void take_note(void *context, const char *sentence)
{
	struct found_service *service = context;

	char *note = service->note_count < DISCOVERY_NOTES_MAX ? strdup(sentence) : NULL;

	if (note)
		service->notes[service->note_count++] = note;
	else
		service->notes_left_out++;
}

/* --- the union ------------------------------------------------------------------------------------------------------ */

struct union_request {
	struct discovery *discovery;
	struct found_service *service;
};

static int bring_in(struct agent *agent, struct routing *next, void *context, struct error *error)
{
	const struct union_request *request = context;
	struct discovery *discovery = request->discovery;
	const struct slot_usage usage = agent_slot_usage(agent);
	int index = routing_find_service(next, request->service->name, error);
	struct discovered_member *members;
	unsigned int count = 0, i;
	bool complete = true;
	int result;

	if (index < 0)
		return index;
	for (i = 0; i < discovery->source_count; i++) {
		if (strcmp(discovery->sources[i]->service, request->service->name) == 0)
			count += discovery->sources[i]->member_count;
	}
	members = calloc(count ? count : 1, sizeof(*members));
	if (!members)
		return error_set(error, -ENOMEM, "not enough memory");
	count = 0;
	for (i = 0; i < discovery->source_count; i++) {
		const struct discovery_source *source = discovery->sources[i];

		if (strcmp(source->service, request->service->name) != 0)
			continue;
		complete &= source->known;
		if (source->member_count)
			memcpy(members + count, source->members,
			       source->member_count * sizeof(*members));
		count += source->member_count;
	}
	drop_notes(request->service);
	result = routing_discover(next, index, members, count, complete, &usage, take_note,
				  request->service, error);
	free(members);
	if (!result && memcmp(next, &agent->routing, sizeof(*next)) == 0)
		return UNCHANGED;
	return result;
}

static void apply_service(struct discovery *discovery, struct found_service *service)
{
	struct union_request request = {.discovery = discovery, .service = service};
	struct error error;
	int result = agent_change_routing(discovery->agent, bring_in, &request, &error);

	service->changed = result < 0;
	if (result < 0)
		service->problem = error;
	else
		service->problem.text[0] = '\0';
}

static void on_gathered(uv_timer_t *timer);

static void look_again(struct discovery *discovery, uint64_t milliseconds)
{
	uint64_t now = uv_now(discovery->gather->loop);
	uint64_t since = now - discovery->applied;

	if (since < PAUSE_MILLISECONDS && milliseconds < PAUSE_MILLISECONDS - since)
		milliseconds = PAUSE_MILLISECONDS - since;
	if (!uv_is_active((uv_handle_t *)discovery->gather) ||
	    uv_timer_get_due_in(discovery->gather) > milliseconds)
		uv_timer_start(discovery->gather, on_gathered, milliseconds, 0);
}

static void on_gathered(uv_timer_t *timer)
{
	struct discovery *discovery = timer->data;
	bool again = false;
	unsigned int i;

	for (i = 0; i < discovery->service_count; i++) {
		if (discovery->services[i].changed)
			apply_service(discovery, &discovery->services[i]);
		again |= discovery->services[i].changed;
	}
	discovery->applied = uv_now(timer->loop);
	if (again)
		look_again(discovery, AGAIN_MILLISECONDS);
	agent_refresh_warnings(discovery->agent);
}

/* --- what sources say ----------------------------------------------------------------------------------------------- */

static void end_problem(struct discovery_source *source)
{
	source->confirmed = uv_hrtime();
	if (!source->problem.text[0])
		return;
	source->problem.text[0] = '\0';
	log_info("service %s: %s answers again", source->service, source->title);
	agent_refresh_warnings(source->discovery->agent);
}

void discovery_found(struct discovery_source *source, const struct discovered_member *members,
		     unsigned int count, const struct error *note)
{
	struct found_service *service = discovery_find_service(source->discovery, source->service);
	struct discovered_member *copy;

	if (count > DISCOVERED_MAX) {
		discovery_failed(source, "%u endpoints are found, at most %d are possible", count,
				 DISCOVERED_MAX);
		return;
	}
	copy = calloc(count ? count : 1, sizeof(*copy));
	if (!copy) {
		discovery_failed(source, "not enough memory");
		return;
	}
	if (count)
		memcpy(copy, members, count * sizeof(*copy));
	if (source->known && count == source->member_count &&
	    memcmp(copy, source->members, count * sizeof(*copy)) == 0) {
		free(copy);
	} else {
		free(source->members);
		source->members = copy;
		source->member_count = count;
		source->known = true;
		log_debug("service %s: %s has %u replicas", source->service, source->title, count);
		if (service)
			service->changed = true;
		look_again(source->discovery, GATHER_MILLISECONDS);
	}
	source->note.text[0] = '\0';
	if (note)
		source->note = *note;
	end_problem(source);
}

void discovery_confirmed(struct discovery_source *source)
{
	if (source->known)
		end_problem(source);
}

void discovery_failed(struct discovery_source *source, const char *format, ...)
{
	struct error said;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(said.text, sizeof(said.text), format, arguments);
	va_end(arguments);
	source->failures++;
	if (strcmp(said.text, source->problem.text) == 0)
		return;
	source->problem = said;
	agent_refresh_warnings(source->discovery->agent);
}

/* --- sources beginning and ending ----------------------------------------------------------------------------------- */

static void make_title(struct discovery_source *source)
{
	const struct config_discovery *settings = &source->settings;

	if (settings->from == DISCOVERY_DNS)
		snprintf(source->title, sizeof(source->title), "dns %s %s",
			 settings->records == DNS_RECORDS_SRV	 ? "srv"
			 : settings->records == DNS_RECORDS_AAAA ? "aaaa"
								 : "a",
			 settings->name);
	else
		snprintf(source->title, sizeof(source->title), "kubernetes %s/%s",
			 settings->namespace[0] ? settings->namespace : "in-cluster",
			 settings->service);
}

static void end_source(struct discovery_source *source)
{
	source->kind->stop(source);
	free(source->members);
	free(source);
}

static void begin_source(struct discovery *discovery, const char *service,
			 const struct config_discovery *settings)
{
	struct discovery_source *source = calloc(1, sizeof(*source));
	struct error error;

	if (!source) {
		log_error("service %s: not enough memory for a source of replicas", service);
		return;
	}
	source->discovery = discovery;
	source->loop = &discovery->agent->loop;
	source->transfers = discovery->transfers;
	source->settings = *settings;
	snprintf(source->service, sizeof(source->service), "%s", service);
	make_title(source);
	source->kind = settings->from == DISCOVERY_DNS ? &discovery_dns : &discovery_kubernetes;
	discovery->sources[discovery->source_count++] = source;
	if (source->kind->start(source, &error))
		discovery_failed(source, "%s", error.text);
}

/* Settings are filled into zeroed memory: equal ones have equal bytes, but for the line. */
static bool same_settings(const struct config_discovery *a, const struct config_discovery *b)
{
	struct config_discovery other = *b;

	other.line = a->line;
	return memcmp(a, &other, sizeof(other)) == 0;
}

static bool is_configured(const struct discovery *discovery, const struct discovery_source *source)
{
	const struct config *config = discovery->agent->config;
	unsigned int i, j;

	for (i = 0; i < config->service_count; i++) {
		const struct config_service *service = &config->services[i];

		for (j = 0;
		     strcmp(service->name, source->service) == 0 && j < service->discovery_count;
		     j++) {
			if (same_settings(&service->discovery[j], &source->settings))
				return true;
		}
	}
	return false;
}

static bool is_running(const struct discovery *discovery, const char *service,
		       const struct config_discovery *settings)
{
	unsigned int i;

	for (i = 0; i < discovery->source_count; i++) {
		if (strcmp(discovery->sources[i]->service, service) == 0 &&
		    same_settings(&discovery->sources[i]->settings, settings))
			return true;
	}
	return false;
}

static void end_unconfigured(struct discovery *discovery)
{
	unsigned int kept = 0, i;

	for (i = 0; i < discovery->source_count; i++) {
		if (is_configured(discovery, discovery->sources[i]))
			discovery->sources[kept++] = discovery->sources[i];
		else
			end_source(discovery->sources[i]);
	}
	discovery->source_count = kept;
}

void discovery_configure(struct discovery *discovery)
{
	const struct config *config;
	unsigned int i, j;

	if (!discovery)
		return;
	config = discovery->agent->config;
	end_unconfigured(discovery);
	for (i = 0; i < discovery->service_count; i++)
		drop_notes(&discovery->services[i]);
	memset(discovery->services, 0, sizeof(discovery->services));
	discovery->service_count = 0;
	for (i = 0; i < config->service_count; i++) {
		const struct config_service *service = &config->services[i];
		struct found_service *found = &discovery->services[discovery->service_count];

		if (service->discovery_count == 0)
			continue;
		discovery->service_count++;
		snprintf(found->name, sizeof(found->name), "%s", service->name);
		found->changed = true;
		for (j = 0; j < service->discovery_count; j++) {
			if (!is_running(discovery, service->name, &service->discovery[j]))
				begin_source(discovery, service->name, &service->discovery[j]);
		}
	}
	/* At once, so that a reload leaves nobody out who was found. */
	on_gathered(discovery->gather);
}

int discovery_open(struct agent *agent, struct discovery **result, struct error *error)
{
	struct discovery *discovery = calloc(1, sizeof(*discovery));
	int code;

	*result = NULL;
	if (discovery)
		discovery->gather = calloc(1, sizeof(*discovery->gather));
	if (!discovery || !discovery->gather) {
		free(discovery);
		return error_set(error, -ENOMEM, "not enough memory");
	}
	discovery->agent = agent;
	code = transfers_open(&agent->loop, &discovery->transfers, error);
	if (code) {
		free(discovery->gather);
		free(discovery);
		return code;
	}
	uv_timer_init(&agent->loop, discovery->gather);
	discovery->gather->data = discovery;
	*result = discovery;
	discovery_configure(discovery);
	return 0;
}

static void free_timer(uv_handle_t *handle)
{
	free(handle);
}

void discovery_close(struct discovery *discovery)
{
	unsigned int i;

	if (!discovery)
		return;
	for (i = 0; i < discovery->source_count; i++)
		end_source(discovery->sources[i]);
	for (i = 0; i < discovery->service_count; i++)
		drop_notes(&discovery->services[i]);
	transfers_close(discovery->transfers);
	uv_timer_stop(discovery->gather);
	uv_close((uv_handle_t *)discovery->gather, free_timer);
	free(discovery);
}
