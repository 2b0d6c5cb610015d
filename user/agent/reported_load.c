/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/reported_load.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/health.h"
#include "agent/health_check.h"
#include "agent/web_client.h"
#include "lib/address.h"
#include "lib/calls.h"
#include "lib/log.h"

#define AT_ONCE_MAX	     16
#define TICK_MILLISECONDS    200 /* how often it is looked who is due */
#define TIMEOUT_MILLISECONDS 2000
#define STALE_INTERVALS	     3 /* without an answer what was said last counts no more */

struct asked {
	bool asked;
	char name[REPLICA_NAME_SIZE];
	__u32 service;
	struct address address;
	__be16 port;
	uint64_t due;	   /* in the loop's time */
	uint64_t answered; /* the same; 0: never */
	struct reported_metrics last;
	char failure[120]; /* of the last try; empty: none */
	struct reading *reading;
};

/* One answer being read. */
struct reading {
	struct reported_load *loads;
	__u32 slot;
	__u32 own; /* requests of ours that it had when it was asked */
	__u32 process;
	struct web_transfer *transfer;
	struct reported_reader reader;
};

struct reported_load {
	struct agent *agent;
	struct transfers *transfers;
	uv_timer_t tick;
	unsigned int running;
	__u32 first; /* slot to look at first, so that slow ones do not keep others from being asked */
	unsigned int seed;
	struct foreign_load foreign[REPLICAS_MAX];
	struct asked replicas[REPLICAS_MAX];
};

static const struct config_reported_load *settings_of(const struct reported_load *loads, __u32 slot)
{
	const struct routing *routing = &loads->agent->routing;
	const struct config_service *settings = routing->settings[routing->replicas[slot].service];

	if (!settings || settings->reported_load.from == LOAD_FROM_NONE)
		return NULL;
	return &settings->reported_load;
}

/* --- correcting -------------------------------------------------------------------------------------------------- */

static __u32 own_requests(const struct reported_load *loads, __u32 slot)
{
	struct replica_load load = {0};

	bpf_map_lookup_elem(loads->agent->datapath.replica_loads, &slot, &load);
	reported_load_own(loads, slot, &load);
	return load.requests;
}

/* What a request is charged on average now; without one of ours, what one without numbers would be. */
static __u64 usual_tokens(const struct reported_load *loads, __u32 service)
{
	__u64 requests = 0, tokens = 0;

	for (__u32 slot = 0; slot < REPLICAS_MAX; slot++) {
		struct replica_load load = {0};

		if (!loads->replicas[slot].asked || loads->replicas[slot].service != service)
			continue;
		bpf_map_lookup_elem(loads->agent->datapath.replica_loads, &slot, &load);
		reported_load_own(loads, slot, &load);
		requests += load.requests;
		tokens += load.tokens;
	}
	return requests ? tokens / requests
			: loads->agent->routing.services[service].policy.default_max_tokens;
}

static void set_foreign(struct reported_load *loads, __u32 slot, __u32 requests, __u64 tokens)
{
	struct foreign_load *foreign = &loads->foreign[slot];
	const struct asked *asked = &loads->replicas[slot];
	struct error error;

	if (requests > REPLICA_LOAD_MAX / 2)
		requests = REPLICA_LOAD_MAX / 2;
	if (tokens > REPLICA_LOAD_MAX / 2)
		tokens = REPLICA_LOAD_MAX / 2;
	if (foreign->requests == requests && foreign->tokens == tokens)
		return;
	if (control_add_foreign(loads->agent->datapath.control_program, asked->service, slot,
				(__s64)requests - foreign->requests,
				(__s64)tokens - (__s64)foreign->tokens, &error)) {
		log_warning("the load of replica %s cannot be corrected: %s", asked->name,
			    error.text);
		return;
	}
	foreign->requests = requests;
	foreign->tokens = tokens;
}

static void correct(struct reported_load *loads, __u32 slot, __u32 own_before)
{
	const struct config_reported_load *settings = settings_of(loads, slot);
	const struct asked *asked = &loads->replicas[slot];
	__u32 own = own_requests(loads, slot), others;
	double reported = asked->last.running + asked->last.waiting;

	if (!settings || !settings->correct || !asked->last.complete) {
		set_foreign(loads, slot, 0, 0);
		return;
	}
	/* One of ours may have come or gone while it was asked: it is not to be taken for one of others. */
	if (own_before > own)
		own = own_before;
	if (reported > REPLICA_LOAD_MAX)
		reported = REPLICA_LOAD_MAX;
	others = reported > own ? (__u32)(reported - own) : 0;
	set_foreign(loads, slot, others, others ? others * usual_tokens(loads, asked->service) : 0);
}

/* --- asking -------------------------------------------------------------------------------------------------------- */

static void take_header(void *context, const char *line, size_t length)
{
	struct reading *reading = context;

	reading->process = health_process_of_header(line, length, reading->process);
}

static bool take_body(void *context, unsigned int status, const char *bytes, size_t length)
{
	struct reading *reading = context;

	return status == 200 && reported_take(&reading->reader, bytes, length);
}

static void take_answer(struct reading *reading, const struct web_result *result)
{
	struct reported_load *loads = reading->loads;
	struct asked *asked = &loads->replicas[reading->slot];
	const struct reported_metrics *found = reported_end(&reading->reader);

	asked->failure[0] = '\0';
	if (result->status && result->status != 200)
		snprintf(asked->failure, sizeof(asked->failure), "status %u, expected 200",
			 result->status);
	else if (!result->complete)
		snprintf(asked->failure, sizeof(asked->failure), "%.119s",
			 result->error.text[0] ? result->error.text : "the answer is too long");
	else if (!found->complete)
		snprintf(asked->failure, sizeof(asked->failure),
			 "the answer lacks the numbers of running and waiting requests");
	if (asked->failure[0])
		return;
	asked->last = *found;
	asked->answered = uv_now(&loads->agent->loop);
	health_heard(loads->agent->health, reading->slot,
		     reading->process ? reading->process : found->process);
	correct(loads, reading->slot, reading->own);
}

static void on_done(void *context, const struct web_result *result)
{
	struct reading *reading = context;

	reading->loads->replicas[reading->slot].reading = NULL;
	reading->loads->running--;
	take_answer(reading, result);
	free(reading);
}

static void ask(struct reported_load *loads, __u32 slot,
		const struct config_reported_load *settings)
{
	struct asked *asked = &loads->replicas[slot];
	struct reading *reading = calloc(1, sizeof(*reading));
	char place[ENDPOINT_TEXT_SIZE], url[ENDPOINT_TEXT_SIZE + HEALTH_PATH_SIZE + 16];
	uint64_t patience = settings->interval_milliseconds < TIMEOUT_MILLISECONDS
				    ? settings->interval_milliseconds
				    : TIMEOUT_MILLISECONDS;
	struct web_request request = {
		.url = url,
		.connect_milliseconds = patience,
		.total_milliseconds = patience,
		.header = take_header,
		.take = take_body,
		.done = on_done,
		.context = reading,
	};
	struct error error;

	asked->due = uv_now(&loads->agent->loop) + settings->interval_milliseconds;
	if (!reading)
		return;
	snprintf(url, sizeof(url), "http://%s%s",
		 endpoint_format(&asked->address,
				 settings->port ? htons(settings->port) : asked->port, place),
		 settings->path);
	reading->loads = loads;
	reading->slot = slot;
	reading->own = own_requests(loads, slot);
	reported_begin(&reading->reader, settings->from);
	if (web_client_get(loads->transfers, &request, &reading->transfer, &error)) {
		free(reading);
		return;
	}
	asked->reading = reading;
	loads->running++;
}

static bool is_stale(const struct reported_load *loads, __u32 slot)
{
	const struct config_reported_load *settings = settings_of(loads, slot);
	const struct asked *asked = &loads->replicas[slot];

	return !settings || !asked->answered ||
	       uv_now(&loads->agent->loop) - asked->answered >
		       (uint64_t)settings->interval_milliseconds * STALE_INTERVALS;
}

static void on_tick(uv_timer_t *timer)
{
	struct reported_load *loads = timer->data;
	uint64_t now = uv_now(&loads->agent->loop);

	__u32 first = loads->first;

	for (__u32 i = 0; i < REPLICAS_MAX; i++) {
		__u32 slot = (first + i) % REPLICAS_MAX;
		const struct config_reported_load *settings;
		struct asked *asked = &loads->replicas[slot];

		if (!asked->asked)
			continue;
		settings = settings_of(loads, slot);
		if (!settings || is_stale(loads, slot))
			set_foreign(loads, slot, 0, 0);
		if (settings && !asked->reading && asked->due <= now &&
		    loads->running < AT_ONCE_MAX) {
			ask(loads, slot, settings);
			loads->first = (slot + 1) % REPLICAS_MAX;
		}
	}
}

/* --- the set ------------------------------------------------------------------------------------------------------- */

static void forget(struct reported_load *loads, __u32 slot)
{
	struct asked *asked = &loads->replicas[slot];

	if (!asked->asked)
		return;
	set_foreign(loads, slot, 0, 0);
	if (asked->reading) {
		web_transfer_cancel(asked->reading->transfer);
		free(asked->reading);
		loads->running--;
	}
	memset(asked, 0, sizeof(*asked));
}

static const struct address *asked_address(const struct replica *replica)
{
	return address_is_set(&replica->ipv4) ? &replica->ipv4 : &replica->ipv6;
}

static bool is_same(const struct asked *asked, const struct replica *replica)
{
	return asked->asked && asked->service == replica->service && asked->port == replica->port &&
	       address_equal(&asked->address, asked_address(replica)) &&
	       strcmp(asked->name, replica->name) == 0;
}

static void begin_asking(struct reported_load *loads, __u32 slot)
{
	const struct replica *replica = &loads->agent->routing.replicas[slot];
	struct asked *asked = &loads->replicas[slot];

	asked->asked = true;
	memcpy(asked->name, replica->name, sizeof(asked->name));
	asked->service = replica->service;
	asked->address = *asked_address(replica);
	asked->port = replica->port;
	asked->due = uv_now(&loads->agent->loop) +
		     rand_r(&loads->seed) % settings_of(loads, slot)->interval_milliseconds;
}

void reported_load_follow(struct reported_load *loads)
{
	bool any = false;

	if (!loads)
		return;
	for (__u32 slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &loads->agent->routing.replicas[slot];
		bool wanted = replica_in_set(replica) && settings_of(loads, slot);

		if (!wanted || !is_same(&loads->replicas[slot], replica))
			forget(loads, slot);
		if (wanted && !loads->replicas[slot].asked)
			begin_asking(loads, slot);
		any |= wanted;
	}
	if (!any)
		uv_timer_stop(&loads->tick);
	else if (!uv_is_active((uv_handle_t *)&loads->tick))
		uv_timer_start(&loads->tick, on_tick, TICK_MILLISECONDS, TICK_MILLISECONDS);
}

/* --- questions ----------------------------------------------------------------------------------------------------- */

const struct foreign_load *reported_load_foreign(const struct reported_load *loads)
{
	return loads ? loads->foreign : NULL;
}

void reported_load_own(const struct reported_load *loads, __u32 slot, struct replica_load *load)
{
	const struct foreign_load *foreign = loads ? &loads->foreign[slot] : NULL;

	if (!foreign)
		return;
	load->requests -= load->requests < foreign->requests ? load->requests : foreign->requests;
	load->tokens -= load->tokens < foreign->tokens ? load->tokens : foreign->tokens;
}

const struct reported_metrics *reported_load_of(const struct reported_load *loads, __u32 slot,
						double *age)
{
	if (!loads || !loads->replicas[slot].asked || is_stale(loads, slot))
		return NULL;
	*age = (double)(uv_now(&loads->agent->loop) - loads->replicas[slot].answered) / 1000;
	return &loads->replicas[slot].last;
}

json_t *reported_load_json(const struct reported_load *loads, __u32 slot)
{
	const struct reported_metrics *last;
	json_t *object;
	double age;

	if (!loads || !loads->replicas[slot].asked)
		return NULL;
	object = json_pack("{s:i}", "foreign_requests", (int)loads->foreign[slot].requests);
	last = reported_load_of(loads, slot, &age);
	if (last) {
		json_object_set_new(object, "running", json_real(last->running));
		json_object_set_new(object, "waiting", json_real(last->waiting));
		if (last->cache_usage >= 0)
			json_object_set_new(object, "cache_usage", json_real(last->cache_usage));
		json_object_set_new(object, "age_seconds", json_real(age));
	}
	if (loads->replicas[slot].failure[0])
		json_object_set_new(object, "failure", json_string(loads->replicas[slot].failure));
	return object;
}

/* --- beginning and end ----------------------------------------------------------------------------------------------- */

int reported_load_open(struct agent *agent, struct reported_load **result, struct error *error)
{
	struct reported_load *loads = calloc(1, sizeof(*loads));
	int failed;

	*result = NULL;
	if (!loads)
		return error_set(error, -ENOMEM, "not enough memory");
	failed = transfers_open(&agent->loop, &loads->transfers, error);
	if (failed) {
		free(loads);
		return failed;
	}
	loads->agent = agent;
	loads->seed = (unsigned int)uv_hrtime();
	uv_timer_init(&agent->loop, &loads->tick);
	loads->tick.data = loads;
	*result = loads;
	reported_load_follow(loads);
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void reported_load_close(struct reported_load *loads)
{
	if (!loads)
		return;
	for (__u32 slot = 0; slot < REPLICAS_MAX; slot++)
		forget(loads, slot);
	transfers_close(loads->transfers);
	uv_close((uv_handle_t *)&loads->tick, on_closed);
}
