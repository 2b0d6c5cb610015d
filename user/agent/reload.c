/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration of a running agent: reading it, applying it anew, going back where it cannot be applied.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/discovery.h"
#include "agent/events.h"
#include "agent/handoff_settings.h"
#include "agent/metrics.h"
#include "lib/cluster_secret.h"
#include "lib/log.h"

/* One sentence: the first problem, and that there are more. */
static void first_problem(const char *path, const struct config_problems *problems,
			  struct error *error)
{
	if (!problems->text)
		error_set(error, -ENOMEM, "not enough memory");
	else if (problems->count == 1)
		error_set(error, -EINVAL, "%s", problems->text);
	else
		error_set(error, -EINVAL,
			  "%.*s (and %u more: `warmpathd --check -c %s` lists them)",
			  (int)strcspn(problems->text, "\n"), problems->text, problems->count - 1,
			  path);
}

struct config *agent_load_config(const char *path, struct error *error)
{
	struct config_problems problems = {0};
	struct config *config = calloc(1, sizeof(*config));

	if (!config) {
		error_set(error, -ENOMEM, "not enough memory");
		return NULL;
	}
	if (config_load(path, config, &problems)) {
		first_problem(path, &problems, error);
		config_free(config);
		free(config);
		config = NULL;
	} else if (cluster_secrets_load(&config->handoff, error)) {
		config_free(config);
		free(config);
		config = NULL;
	}
	config_problems_free(&problems);
	return config;
}

void agent_drop_config(struct config *config)
{
	if (config)
		config_free(config);
	free(config);
}

/* What is fixed for the life of the maps, the programs and the socket. */
static int check_fixed_settings(const struct config *now, const struct config *next,
				struct error *error)
{
	static const char how[] = "takes effect only with a restart; nothing was changed";

	if (strcmp(now->pin_path, next->pin_path) != 0)
		return error_set(error, -EINVAL, "another pin_path %s", how);
	if (strcmp(now->control_socket, next->control_socket) != 0)
		return error_set(error, -EINVAL, "another control_socket %s", how);
	if (now->role != next->role)
		return error_set(error, -EINVAL, "another role %s", how);
	if (now->shape != next->shape)
		return error_set(error, -EINVAL, "another shape %s", how);
	if (memcmp(&now->limits, &next->limits, sizeof(now->limits)) != 0)
		return error_set(
			error, -EINVAL,
			"the limits are the sizes of tables in use and cannot change: `warmpath "
			"detach all` and a restart make new ones; nothing was changed");
	return 0;
}

void agent_take_log_level(const struct agent *agent)
{
	if (!agent->verbose)
		log_set_level(agent->config->log_level);
}

int agent_merge_config(struct agent *agent, struct routing *next, void *context,
		       struct error *error)
{
	const struct merge_request *request = context;
	const struct slot_usage usage = agent_slot_usage(agent);

	return routing_merge(next, request->config, request->merge, &usage, error);
}

/* What can be refused comes first; each step is undone if a later one fails. */
static int apply_config(struct agent *agent, const struct config *next, struct error *error)
{
	struct merge_request request = {.config = next, .merge = MERGE_RELOAD};
	struct attachments *before = malloc(sizeof(*before));
	int result;

	if (!before)
		return error_set(error, -ENOMEM, "not enough memory");
	*before = agent->attachments;
	result = check_fixed_settings(agent->config, next, error);
	if (!result)
		result = metrics_configure(agent->metrics, &next->metrics, error);
	if (!result) {
		result = attachments_configure(&agent->attachments, next, false, error);
		if (!result)
			result = handoff_keys_write(agent->datapath.handoff_keys, &next->handoff,
						    error);
		if (!result)
			result = agent_change_routing(agent, agent_merge_config, &request, error);
		if (result) {
			handoff_keys_write(agent->datapath.handoff_keys, &agent->config->handoff,
					   NULL);
			attachments_restore(&agent->attachments, before);
			metrics_configure(agent->metrics, &agent->config->metrics, NULL);
		} else {
			attachments_detach_unconfigured(&agent->attachments, next);
		}
	}
	free(before);
	return result;
}

static int reload(struct agent *agent, struct error *error)
{
	struct config *next = agent_load_config(agent->config_path, error);
	int result;

	if (!next)
		return -EINVAL;
	result = apply_config(agent, next, error);
	if (result) {
		agent_drop_config(next);
		return result;
	}
	agent_drop_config(agent->config);
	agent->config = next;
	agent_take_log_level(agent);
	if (events_configure(agent, error))
		log_warning("%s", error->text);
	clock_gettime(CLOCK_REALTIME, &agent->loaded);
	log_info("configuration %s applied", agent->config_path);
	discovery_configure(agent->discovery);
	agent_refresh_warnings(agent);
	return 0;
}

int agent_reload(struct agent *agent, struct error *error)
{
	int result;

	service_manager_reloading();
	result = reload(agent, error);
	service_manager_reloaded();
	return result;
}
