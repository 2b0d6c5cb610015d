/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/upgrade.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "agent/agent.h"
#include "lib/log.h"

#define CHECK_MILLISECONDS \
	60000 /* loading the programs takes a second or two, on a slow machine twenty */
#define WORDS_MAX 2048

struct upgrade {
	struct agent *agent;
	upgrade_answered answered;
	void *context;
	char program[PATH_MAX];
	uv_process_t process;
	uv_pipe_t words; /* what it says on standard error */
	uv_timer_t patience;
	unsigned int open_handles;
	bool ended, heard; /* the process; its last word */
	bool too_late;
	int64_t exit_status;
	char text[WORDS_MAX];
	size_t length;
};

/* --- the answer ------------------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
	struct upgrade *upgrade = handle->data;

	if (--upgrade->open_handles == 0)
		free(upgrade);
}

/* The last line it said, without "error: " in front. */
static const char *last_line(struct upgrade *upgrade)
{
	static const char prefix[] = "error: ";
	char *line;

	while (upgrade->length > 0 && upgrade->text[upgrade->length - 1] == '\n')
		upgrade->length--;
	upgrade->text[upgrade->length] = '\0';
	line = strrchr(upgrade->text, '\n');
	line = line ? line + 1 : upgrade->text;
	return strncmp(line, prefix, strlen(prefix)) == 0 ? line + strlen(prefix) : line;
}

static void answer_when_all_is_known(struct upgrade *upgrade)
{
	const char *said;
	struct error error;
	bool good;

	if (!upgrade->ended || !upgrade->heard)
		return;
	good = upgrade->exit_status == 0 && !upgrade->too_late;
	said = last_line(upgrade);
	if (upgrade->too_late)
		error_set(
			&error, -ETIMEDOUT,
			"%s did not say within %d s whether it can take over; nothing was changed",
			upgrade->program, CHECK_MILLISECONDS / 1000);
	else if (said[0])
		error_set(&error, -EINVAL, "%s cannot take over, nothing was changed: %s",
			  upgrade->program, said);
	else
		error_set(&error, -EINVAL,
			  "%s cannot take over, nothing was changed: it ended with status %d and "
			  "without a word; is it a warmpathd?",
			  upgrade->program, (int)upgrade->exit_status);
	upgrade->agent->upgrade = NULL;
	upgrade->answered(upgrade->context, good ? NULL : &error);
	uv_close((uv_handle_t *)&upgrade->process, on_closed);
	uv_close((uv_handle_t *)&upgrade->words, on_closed);
	uv_close((uv_handle_t *)&upgrade->patience, on_closed);
}

/* --- asking ------------------------------------------------------------------------------------------------------ */

static void on_ended(uv_process_t *process, int64_t exit_status, int signal)
{
	struct upgrade *upgrade = process->data;

	upgrade->ended = true;
	upgrade->exit_status = signal ? 128 + signal : exit_status;
	answer_when_all_is_known(upgrade);
}

static void on_patience_lost(uv_timer_t *timer)
{
	struct upgrade *upgrade = timer->data;

	upgrade->too_late = true;
	/* somebody else may hold its standard error open, and will not be waited for */
	upgrade->heard = true;
	if (upgrade->ended)
		answer_when_all_is_known(upgrade);
	else
		uv_process_kill(&upgrade->process, SIGKILL);
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct upgrade *upgrade = handle->data;

	(void)suggested;
	/* the last line counts: of one who says too much, the beginning goes */
	if (upgrade->length > WORDS_MAX / 2) {
		memmove(upgrade->text, upgrade->text + WORDS_MAX / 4,
			upgrade->length - WORDS_MAX / 4);
		upgrade->length -= WORDS_MAX / 4;
	}
	*buffer = uv_buf_init(upgrade->text + upgrade->length, WORDS_MAX / 4);
}

static void on_words(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
	struct upgrade *upgrade = stream->data;

	(void)buffer;
	if (got > 0) {
		upgrade->length += got;
	} else if (got < 0) {
		uv_read_stop(stream);
		upgrade->heard = true;
		answer_when_all_is_known(upgrade);
	}
}

static int spawn(struct upgrade *upgrade)
{
	char check[] = "--check-running", config[] = "-c";
	char *arguments[] = {upgrade->program, check, config, (char *)upgrade->agent->config_path,
			     NULL};
	uv_stdio_container_t stdio[3] = {
		{.flags = UV_IGNORE},
		{.flags = UV_IGNORE},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		 .data.stream = (uv_stream_t *)&upgrade->words},
	};
	uv_process_options_t options = {
		.exit_cb = on_ended,
		.file = upgrade->program,
		.args = arguments,
		.stdio_count = 3,
		.stdio = stdio,
	};

	return uv_spawn(&upgrade->agent->loop, &upgrade->process, &options);
}

int upgrade_ask(struct agent *agent, const char *program, upgrade_answered answered, void *context,
		struct error *error)
{
	struct upgrade *upgrade;
	int result;

	if (agent->upgrade)
		return error_set(error, -EBUSY, "an upgrade is being checked already");
	upgrade = calloc(1, sizeof(*upgrade));
	if (!upgrade)
		return error_set(error, -ENOMEM, "not enough memory");
	upgrade->agent = agent;
	upgrade->answered = answered;
	upgrade->context = context;
	snprintf(upgrade->program, sizeof(upgrade->program), "%s", program);
	upgrade->open_handles = 3;
	uv_pipe_init(&agent->loop, &upgrade->words, 0);
	uv_timer_init(&agent->loop, &upgrade->patience);
	upgrade->process.data = upgrade->words.data = upgrade->patience.data = upgrade;
	result = spawn(upgrade);
	if (result) {
		error_set(error, result, "%s cannot be run: %s", program, uv_strerror(result));
		uv_close((uv_handle_t *)&upgrade->process, on_closed);
		uv_close((uv_handle_t *)&upgrade->words, on_closed);
		uv_close((uv_handle_t *)&upgrade->patience, on_closed);
		return result;
	}
	agent->upgrade = upgrade;
	uv_timer_start(&upgrade->patience, on_patience_lost, CHECK_MILLISECONDS, 0);
	uv_read_start((uv_stream_t *)&upgrade->words, give_room, on_words);
	log_info("asking %s whether it can take over", program);
	return 0;
}

int upgrade_become(const char *program, const char *config_path, int verbose)
{
	char config[] = "-c", once[] = "-v", twice[] = "-vv";
	char *arguments[] = {(char *)program, config, (char *)config_path, NULL, NULL};

	if (verbose)
		arguments[3] = verbose > 1 ? twice : once;
	execv(program, arguments);
	return -errno;
}

/* --- being asked --------------------------------------------------------------------------------------------------- */

int upgrade_check(const char *config_path, struct error *error)
{
	struct config *config = agent_load_config(config_path, error);
	struct datapath *datapath;
	struct pins pins;
	int result;

	if (!config)
		return -EINVAL;
	datapath = calloc(1, sizeof(*datapath));
	if (!datapath) {
		agent_drop_config(config);
		return error_set(error, -ENOMEM, "not enough memory");
	}
	pins_name(&pins, config->pin_path);
	result = pins_find_other_layout(config->pin_path, error);
	if (!result)
		result = datapath_try(datapath, &pins, config, error);
	if (!result && !datapath->adopted)
		result = error_set(error, -ENOENT,
				   "there is no data path in %s that it could take over",
				   pins.directory);
	free(datapath);
	agent_drop_config(config);
	return result;
}
