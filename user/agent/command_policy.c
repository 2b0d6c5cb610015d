/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy-show, policy-set: the settings of a service's policy, at run time.
 */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "lib/control.h"
#include "lib/log.h"
#include "lib/policy.h"
#include "lib/policy_json.h"

static int find_service(struct agent *agent, const json_t *message, struct error *error)
{
	const char *name;
	int result = control_text(message, "service", false, &name, error);

	return result ? result : routing_find_service(&agent->routing, name, error);
}

static void describe(const struct service *service, json_t *answer)
{
	json_object_set_new(answer, "service", json_string(service->name));
	json_object_set_new(answer, "policy", policy_to_json(&service->policy));
	json_object_set_new(answer, "set_at_run_time", json_boolean(service->policy_overridden));
}

int command_policy_show(struct agent *agent, const json_t *message, json_t *answer,
			struct error *error)
{
	int service = find_service(agent, message, error);

	if (service < 0)
		return service;
	describe(&agent->routing.services[service], answer);
	return 0;
}

struct policy_change {
	int service;
	const json_t *settings; /* list of "KEY=VALUE" */
};

static int change_policy(struct agent *agent, struct routing *next, void *context,
			 struct error *error)
{
	const struct policy_change *change = context;
	struct service *service = &next->services[change->service];
	json_t *pair;
	int result = 0;
	size_t i;

	(void)agent;
	json_array_foreach(change->settings, i, pair)
	{
		if (!json_is_string(pair))
			return error_set(error, -EINVAL, "settings must be a list of KEY=VALUE");
		result = policy_set_pair(&service->policy, json_string_value(pair), error);
		if (result)
			return result;
	}
	service->policy_overridden = 1;
	return policy_check(&service->policy, error);
}

/* All settings of one command take effect together, or none. */
int command_policy_set(struct agent *agent, const json_t *message, json_t *answer,
		       struct error *error)
{
	struct policy_change change = {.settings = json_object_get(message, "settings")};
	struct policy_settings before;
	const struct service *service;
	int result;

	if (json_array_size(change.settings) == 0)
		return error_set(error, -EINVAL, "settings must be a list of KEY=VALUE");
	change.service = find_service(agent, message, error);
	if (change.service < 0)
		return change.service;
	service = &agent->routing.services[change.service];
	before = service->policy;
	result = agent_change_routing(agent, change_policy, &change, error);
	if (result)
		return result;
	log_info("service %s: policy %s was set by command", service->name,
		 policy_name(service->policy.policy));
	describe(service, answer);
	json_object_set_new(answer, "memory_cleared",
			    json_boolean(policy_clears_memory(&before, &service->policy)));
	return 0;
}
