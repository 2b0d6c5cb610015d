/* SPDX-License-Identifier: BSD-2-Clause */
/* An explanation as JSON. */
#include <arpa/inet.h>
#include <math.h>
#include <string.h>

#include "lib/address.h"
#include "lib/decide_core.h"
#include "lib/explanation.h"
#include "lib/policy.h"
#include "lib/policy_json.h"

static json_t *name_json(const struct explanation_names *names, __u32 slot)
{
	const char *name = slot == REPLICA_NONE ? NULL : names->replica(names->context, slot);

	return name ? json_string(name) : json_null();
}

static json_t *hash_json(__u64 hash)
{
	return json_sprintf("0x%016llx", (unsigned long long)hash);
}

static json_t *client_json(const struct flow_key *flow)
{
	char client[ENDPOINT_TEXT_SIZE];

	if (!flow->protocol)
		return json_null();
	return json_string(endpoint_format(&flow->client, flow->client_port, client));
}

/* Two decimals are enough for people and exact enough to compare; whole where requests are counted. */
static json_t *cap_json(double cap, enum load_metric metric)
{
	return metric == LOAD_REQUESTS ? json_integer((json_int_t)cap)
				       : json_real(round(cap * 100) / 100);
}

static json_t *loads_json(const struct event_decision *event, const struct explanation_names *names)
{
	json_t *loads = json_object();

	for (__u32 i = 0; i < event->load_count; i++) {
		const char *name = names->replica(names->context, event->loads[i].replica);

		json_object_set_new(loads, name ? name : "(gone)",
				    json_integer(event->loads[i].load));
	}
	return loads;
}

static json_t *tried_json(const struct explanation *explanation,
			  const struct explanation_names *names)
{
	enum load_metric metric = explanation->event->decision.metric;
	json_t *list = json_array();

	for (__u32 i = 0; i < explanation->tried_count; i++) {
		const struct explanation_verdict *verdict = &explanation->tried[i];
		json_t *item =
			json_pack("{s:o, s:i, s:i, s:o, s:b, s:b}", "replica",
				  name_json(names, verdict->replica), "load", (int)verdict->load,
				  "cost", (int)verdict->cost, "cap", cap_json(verdict->cap, metric),
				  "idle", verdict->idle, "fits", verdict->accepted);

		if (verdict->long_cap > 0)
			json_object_set_new(item, "long_cap", cap_json(verdict->long_cap, metric));
		json_array_append_new(list, item);
	}
	return list;
}

static const char *long_text(enum long_verdict verdict)
{
	switch (verdict) {
	case LONG_OFF:
		return "off";
	case LONG_TOO_SHORT:
		return "prompt too short";
	case LONG_NO_CACHE:
		return "no cache";
	case LONG_APPLIED:
		return "applied";
	default:
		return "not a matter of the policy";
	}
}

static void add_cap(json_t *object, const struct explanation *explanation,
		    const struct explanation_names *names)
{
	const struct decision *decision = &explanation->event->decision;
	json_t *placement = json_null();

	if (decision->placement_replica != REPLICA_NONE)
		placement = json_pack("{s:o, s:i}", "replica",
				      name_json(names, decision->placement_replica),
				      "prompt_tokens", (int)decision->placement_prompt_tokens);
	json_object_set_new(object, "placement", placement);
	json_object_set_new(object, "preferred", name_json(names, decision->preferred));
	json_object_set_new(object, "preferred_cost", json_integer(decision->preferred_cost));
	json_object_set_new(object, "total", json_integer((json_int_t)explanation->total));
	json_object_set_new(object, "average", json_real(round(explanation->average * 100) / 100));
	json_object_set_new(object, "cap", cap_json(explanation->cap, decision->metric));
	json_object_set_new(object, "long_stickiness",
			    json_string(long_text(explanation->long_verdict)));
	if (explanation->long_verdict == LONG_APPLIED)
		json_object_set_new(object, "long_cap",
				    cap_json(explanation->long_cap, decision->metric));
	json_object_set_new(object, "tried", tried_json(explanation, names));
	json_object_set_new(object, "of_one_moment", json_boolean(explanation->agrees));
}

json_t *explanation_json(const struct explanation *explanation,
			 const struct explanation_names *names)
{
	const struct event_decision *event = explanation->event;
	const struct decision *decision = &event->decision;
	json_t *object = json_pack(
		"{s:s, s:s, s:I, s:o, s:o, s:o, s:s, s:o, s:i, s:i, s:s, s:o, s:i, s:I, s:o, s:o, s:s, "
		"s:i, s:i, s:b}",
		"event", "decision", "service", names->service, "number",
		(json_int_t)decision->number, "id",
		event->id_length > 0 ? json_stringn(event->id, event->id_length) : json_null(),
		"hash", hash_json(event->header.id_hash), "client",
		client_json(&event->header.flow), "policy", policy_name(event->settings.policy),
		"settings", policy_to_json(&event->settings), "prompt_tokens",
		(int)decision->prompt_tokens, "max_tokens", (int)decision->max_tokens,
		"load_metric", decision->metric == LOAD_TOKENS ? "tokens" : "requests", "loads",
		loads_json(event, names), "replica_count", (int)decision->replica_count, "load_sum",
		(json_int_t)decision->sum, "home", name_json(names, decision->home), "replica",
		name_json(names, decision->replica), "reason", route_reason_text(decision->reason),
		"cost", (int)decision->cost, "charge", (int)decision->charge, "contended",
		(decision->flags & DECISION_CONTENDED) != 0);

	if (object && decision->flags & DECISION_HAS_CAP)
		add_cap(object, explanation, names);
	return object;
}

const char *completion_status_text(enum completion_status status)
{
	static const char *const texts[] = {
		[COMPLETION_SUCCESS] = "success",     [COMPLETION_FAILED] = "failed",
		[COMPLETION_TIMED_OUT] = "timed-out", [COMPLETION_SUPERSEDED] = "superseded",
		[COMPLETION_ABANDONED] = "abandoned",
	};

	if ((unsigned int)status < sizeof(texts) / sizeof(texts[0]) && texts[status])
		return texts[status];
	return "unknown";
}

json_t *completion_json(const struct event_completion *event, const char *service)
{
	return json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:i, s:i, s:i, s:s, s:f}", "event",
			 "completion", "service", service, "number", (json_int_t)event->number,
			 "hash", hash_json(event->header.id_hash), "client",
			 client_json(&event->header.flow), "replica",
			 json_stringn(event->replica_name,
				      strnlen(event->replica_name, sizeof(event->replica_name))),
			 "incarnation", (int)event->incarnation, "prompt_tokens",
			 (int)event->prompt_tokens, "charge", (int)event->charge, "status",
			 completion_status_text(event->status), "seconds",
			 (double)(event->header.nanoseconds - event->decided_nanoseconds) / 1e9);
}

json_t *refusal_json(const struct event_refusal *event, const char *service)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:i, s:s, s:i}", "event", "refusal", "service",
			 service, "hash", hash_json(event->header.id_hash), "client",
			 client_json(&event->header.flow), "replica",
			 json_stringn(event->replica_name,
				      strnlen(event->replica_name, sizeof(event->replica_name))),
			 "incarnation", (int)event->incarnation, "cause",
			 event->cause == REFUSAL_ABORTED ? "aborted" : "reset", "in_a_row",
			 (int)event->refused_in_a_row);
}
