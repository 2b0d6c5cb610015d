/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snapshot, decisions: what `warmpath top` shows. All numbers count from some beginning on; rates are the reader's to make.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <warmpath/loads.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/events.h"
#include "agent/history.h"
#include "lib/control.h"
#include "lib/counters.h"
#include "lib/explanation.h"
#include "lib/policy.h"

#define DECISIONS_DEFAULT 20
#define DECISIONS_MAX	  200

/* --- services ----------------------------------------------------------------------------------------------------------- */

static json_t *reasons_json(const struct history_totals *totals)
{
	static const char *const names[] = {
#define X(name, text) text,
		WARMPATH_ROUTE_REASONS(X)
#undef X
	};
	json_t *object = json_object();

	for (int i = 0; i < REASON_COUNT; i++)
		json_object_set_new(object, names[i], json_integer((json_int_t)totals->reasons[i]));
	return object;
}

static json_t *moves_json(const struct history_totals *totals)
{
	json_t *object = json_object();

	for (int i = MOVE_none + 1; i < MOVE_CAUSE_COUNT; i++)
		json_object_set_new(object, move_cause_text(i),
				    json_integer((json_int_t)totals->moves[i]));
	return object;
}

static json_t *completions_json(const struct history_totals *totals)
{
	json_t *object = json_object();

	for (int i = COMPLETION_SUCCESS; i <= COMPLETION_ABANDONED; i++)
		json_object_set_new(object, completion_status_text(i),
				    json_integer((json_int_t)totals->completions[i]));
	return object;
}

static json_t *service_json(const struct agent *agent, __u32 index)
{
	const struct service *service = &agent->routing.services[index];
	const struct history_totals *totals = history_totals(agent->history, index);
	const struct policy_settings *policy = &service->policy;
	struct service_load load = {0};

	bpf_map_lookup_elem(agent->datapath.service_loads, &index, &load);
	return json_pack(
		"{s:s, s:s, s:s, s:b, s:f, s:I, s:I, s:i, s:I, s:I, s:I, s:o, s:o, s:o, s:I}",
		"name", service->name, "policy", policy_name(policy->policy), "load_metric",
		decide_metric(policy) == LOAD_TOKENS ? "tokens" : "requests", "capped",
		policy->policy == POLICY_BOUNDED || policy->policy == POLICY_LLM_AWARE, "epsilon",
		policy->epsilon_millionths / 1e6, "requests", (json_int_t)load.requests, "tokens",
		(json_int_t)load.tokens, "replica_count", (int)load.replica_count, "decisions",
		(json_int_t)load.decisions, "releases", (json_int_t)load.releases, "traced",
		(json_int_t)totals->traced, "reasons", reasons_json(totals), "moves",
		moves_json(totals), "completions", completions_json(totals), "refusals",
		(json_int_t)totals->refusals);
}

/* --- replicas ----------------------------------------------------------------------------------------------------------- */

static json_t *replica_json(const struct agent *agent, __u32 slot, const double *shares)
{
	const struct replica *replica = &agent->routing.replicas[slot];
	const struct history_replica *totals = history_replica(agent->history, slot);
	struct replica_load load = {0};
	int member = -1;

	bpf_map_lookup_elem(agent->datapath.replica_loads, &slot, &load);
	if (replica->state == REPLICA_ACTIVE && agent->rings.built[replica->service])
		member = ring_find_member(&agent->rings.ring[replica->service], replica->name);
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		"service", agent->routing.services[replica->service].name, "name", replica->name,
		"state", replica_state_name(replica->state), "address", replica->address_text,
		"weight", replica->weight_thousandths / 1000.0, "share",
		member >= 0 ? shares[member] : 0.0, "incarnation", (int)replica->incarnation,
		"requests", (int)load.requests, "tokens", (json_int_t)load.tokens, "decisions",
		(json_int_t)load.decisions, "prompt_tokens", (json_int_t)totals->prompt_tokens,
		"cached_tokens", (json_int_t)totals->cached_tokens, "moves_in",
		(json_int_t)totals->moves_in, "moves_out", (json_int_t)totals->moves_out,
		"refusals", (json_int_t)totals->refusals);
}

static void add_replicas(const struct agent *agent, __u32 service, json_t *list)
{
	double shares[REPLICAS_MAX];

	if (agent->rings.built[service])
		ring_shares(&agent->rings.ring[service], shares);
	for (__u32 slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &agent->routing.replicas[slot];

		if (replica->service == service && replica_in_set(replica))
			json_array_append_new(list, replica_json(agent, slot, shares));
	}
}

int command_snapshot(struct agent *agent, const json_t *message, json_t *answer,
		     struct error *error)
{
	json_t *services = json_array(), *replicas = json_array();
	struct timespec now;
	struct counters counters;
	const char *name;
	int only = -1, result;

	json_object_set_new(answer, "services", services);
	json_object_set_new(answer, "replicas", replicas);
	result = control_text(message, "service", false, &name, error);
	if (!result && name) {
		only = routing_find_service(&agent->routing, name, error);
		result = only < 0 ? only : 0;
	}
	if (!result)
		result = counters_read(agent->datapath.counters, &counters);
	if (result)
		return error->text[0] ? result
				      : error_set(error, result, "the counters cannot be read: %s",
						  strerror(-result));
	for (int i = 0; i < SERVICES_MAX; i++) {
		if (!agent->routing.settings[i] || (only >= 0 && only != i))
			continue;
		json_array_append_new(services, service_json(agent, i));
		add_replicas(agent, i, replicas);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	json_object_set_new(answer, "seconds", json_real(now.tv_sec + now.tv_nsec / 1e9));
	json_object_set_new(answer, "uptime_seconds",
			    json_integer(now.tv_sec - agent->started.tv_sec));
	json_object_set_new(answer, "version", json_string(WARMPATH_VERSION));
	json_object_set_new(answer, "process", json_integer(getpid()));
	json_object_set_new(answer, "counters", counters_json(&counters));
	return 0;
}

/* --- decisions ---------------------------------------------------------------------------------------------------------- */

int command_decisions(struct agent *agent, const json_t *message, json_t *answer,
		      struct error *error)
{
	const struct history_entry *entry = NULL;
	json_int_t count = DECISIONS_DEFAULT;
	json_t *list = json_array();
	const char *name, *replica;
	int service, result;

	json_object_set_new(answer, "decisions", list);
	result = control_text(message, "service", false, &name, error);
	if (!result)
		result = control_text(message, "replica", false, &replica, error);
	if (!result)
		result = control_number(message, "count", false, 1, DECISIONS_MAX, &count, error);
	if (result)
		return result;
	service = routing_find_service(&agent->routing, name, error);
	if (service < 0)
		return service;
	while ((json_int_t)json_array_size(list) < count &&
	       (entry = history_newest(agent->history, entry))) {
		if ((int)entry->event->header.service == service &&
		    (!replica || strcmp(entry->replica_name, replica) == 0))
			json_array_append_new(list, events_entry(agent, entry));
	}
	return 0;
}
