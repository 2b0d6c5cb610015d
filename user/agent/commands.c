/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/commands.h"

#include <errno.h>
#include <string.h>

#include "lib/control.h"
#include "lib/log.h"

static const struct command {
	const char *name;
	command_function function;
	const char *arguments[8]; /* ended by NULL */
} commands[] = {
	{"status", command_status, {NULL}},
	{"service-list", command_service_list, {"service", NULL}},
	{"counters", command_counters, {NULL}},
	{"version", command_version, {NULL}},
	{"reload", command_reload, {NULL}},
	{"upgrade", command_upgrade, {"program", "check", NULL}},
	{"replica-list", command_replica_list, {"service", "removed", NULL}},
	{"replica-add",
	 command_replica_add,
	 {"service", "name", "addresses", "port", "weight", NULL}},
	{"replica-drain", command_replica_drain, {"service", "name", NULL}},
	{"replica-busy", command_replica_busy, {"service", "name", NULL}},
	{"replica-undrain", command_replica_undrain, {"service", "name", NULL}},
	{"replica-remove", command_replica_remove, {"service", "name", NULL}},
	{"replica-weight", command_replica_weight, {"service", "name", "weight", NULL}},
	{"policy-show", command_policy_show, {"service", NULL}},
	{"policy-set", command_policy_set, {"service", "settings", NULL}},
	{"explain", command_explain, {"service", "id", "prompt_tokens", "max_tokens", NULL}},
	{"trace", command_trace, {"service", "id", "changes", NULL}},
	{"snapshot", command_snapshot, {"service", NULL}},
	{"decisions", command_decisions, {"service", "replica", "count", NULL}},
	{"conversation", command_conversation, {"service", "id", "count", NULL}},
	{"conversation-forget", command_conversation_forget, {"service", "id", NULL}},
	{"ring", command_ring, {"service", NULL}},
	{"route", command_route, {"service", "id", "all", NULL}},
	{"address", command_address, {"service", "id", NULL}},
	{"attach", command_attach, {"interface", "mode", "force", NULL}},
	{"detach", command_detach, {"interface", NULL}},
};

static const struct command *find_command(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

json_t *commands_run(struct agent *agent, const json_t *message)
{
	const char *name = json_string_value(json_object_get(message, "command"));
	const struct command *command = find_command(name);
	json_t *answer = json_pack("{s:b}", "ok", 1), *refusal;
	struct error error = {0};
	int result;

	if (!answer)
		return NULL;
	if (command)
		result = control_only(message, command->arguments, &error);
	else
		result = error_set(&error, -EINVAL, "there is no command \"%.64s\"", name);
	if (command && !result)
		result = command->function(agent, message, answer, &error);
	if (!result)
		return answer;
	log_debug("command %.64s refused: %s", name, error.text);
	refusal = control_refusal(error.text);
	if (json_object_get(answer, "obstacle"))
		json_object_set(refusal, "obstacle", json_object_get(answer, "obstacle"));
	json_decref(answer);
	return refusal;
}
