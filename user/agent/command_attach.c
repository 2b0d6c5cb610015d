/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach, detach: interfaces at run time.
 */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/attach_xdp.h"
#include "agent/commands.h"
#include "lib/config_schema.h"
#include "lib/control.h"
#include "lib/log.h"

static int read_interface(const json_t *message, const char **name, struct error *error)
{
	int result = control_text(message, "interface", true, name, error);

	if (!result && !config_name_valid(*name, IF_NAMESIZE))
		return error_set(error, -EINVAL, "\"%.40s\" is not the name of an interface",
				 *name);
	return result;
}

/* So that a caller with more rights than a running agent has can clear the way, and ask again. */
static void name_obstacle(const struct agent *agent, const char *interface, json_t *answer)
{
	__u32 program;
	int index;

	if (xdp_in_the_way(&agent->datapath, interface, &index, &program))
		json_object_set_new(answer, "obstacle",
				    json_pack("{s:i, s:I}", "interface_index", index, "program",
					      (json_int_t)program));
}

int command_attach(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	const struct schema_choice *choice;
	const char *name, *mode;
	bool force = false;
	unsigned int i;
	int result = read_interface(message, &name, error);

	if (!result)
		result = control_text(message, "mode", false, &mode, error);
	if (!result)
		result = control_flag(message, "force", &force, error);
	if (result)
		return result;
	for (choice = choices_attach_mode; choice->word; choice++) {
		if (strcmp(choice->word, mode ? mode : "auto") == 0)
			break;
	}
	if (!choice->word)
		return error_set(error, -EINVAL,
				 "mode \"%.40s\" is not one of native, generic, tc, auto", mode);
	result = attachments_add(&agent->attachments, name, choice->value, force, error);
	if (result == -EBUSY && force)
		name_obstacle(agent, name, answer);
	if (result)
		return result;
	for (i = 0; i < agent->attachments.count; i++) {
		if (strcmp(agent->attachments.item[i].name, name) == 0)
			json_object_set_new(
				answer, "attached",
				json_string(attached_kind_name(agent->attachments.item[i].kind)));
	}
	json_object_set_new(answer, "interface", json_string(name));
	agent_refresh_warnings(agent);
	return 0;
}

int command_detach(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	const char *name;
	int result = control_text(message, "interface", true, &name, error);

	if (result)
		return result;
	if (strcmp(name, "all") == 0) {
		result = agent_detach_all(agent, error);
		if (result)
			return result;
		log_info("everything is detached and unpinned, by command: ending");
		json_object_set_new(answer, "ended", json_true());
		uv_stop(&agent->loop);
		return 0;
	}
	result = read_interface(message, &name, error);
	if (!result)
		result = attachments_remove(&agent->attachments, name, error);
	if (!result)
		json_object_set_new(answer, "interface", json_string(name));
	return result;
}
