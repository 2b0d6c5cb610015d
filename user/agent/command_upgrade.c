/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * upgrade: another build takes over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/control.h"
#include "agent/upgrade.h"
#include "lib/control.h"
#include "lib/log.h"

struct question {
	struct agent *agent;
	unsigned long ticket;
	bool only_check;
	char program[PATH_MAX];
};

static void on_answered(void *context, const struct error *problem)
{
	struct question *question = context;
	struct agent *agent = question->agent;
	char *program = problem || question->only_check ? NULL : strdup(question->program);
	bool told;

	if (problem)
		log_warning("upgrade: %s", problem->text);
	told = control_answer_deferred(agent->control, question->ticket,
				       problem ? control_refusal(problem->text)
					       : json_pack("{s:b, s:s, s:b}", "ok", 1, "program",
							   question->program, "upgrading",
							   !question->only_check));
	if (program && told) {
		log_info("%s takes over; the data path goes on", program);
		service_manager_upgrading();
		free(agent->next_program);
		agent->next_program = program;
		uv_stop(&agent->loop);
	} else if (program) {
		log_info("upgrade: who asked for it has gone; nothing was changed");
		free(program);
	}
	free(question);
}

int command_upgrade(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	struct question *question;
	const char *program;
	bool only_check = false;
	int result = control_text(message, "program", false, &program, error);

	(void)answer;
	if (!result)
		result = control_flag(message, "check", &only_check, error);
	if (result)
		return result;
	if (!program)
		program = agent->program_path;
	if (!program || program[0] != '/' || strlen(program) >= sizeof(question->program))
		return error_set(error, -EINVAL, "\"program\" is not the absolute path of a file");
	if (access(program, X_OK))
		return error_set(error, -errno, "%s cannot be run: %s", program, strerror(errno));
	question = calloc(1, sizeof(*question));
	if (!question)
		return error_set(error, -ENOMEM, "not enough memory");
	question->agent = agent;
	question->only_check = only_check;
	strcpy(question->program, program);
	result = upgrade_ask(agent, program, on_answered, question, error);
	if (result)
		free(question);
	else
		question->ticket = control_defer(agent->control);
	return result;
}
