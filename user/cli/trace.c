/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath trace
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/client.h"

struct trace_arguments {
	struct plain_arguments plain;
	long count; /* 0: no end */
	bool decisions_only;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct trace_arguments *arguments = state->input;

	switch (key) {
	case 'n':
		arguments->count = argument_number(state, argument, "events", 1, LONG_MAX);
		return 0;
	case 'd':
		arguments->decisions_only = true;
		return 0;
	default:
		return client_parse_plain(key, argument, state);
	}
}

static bool take(void *context, const json_t *line)
{
	struct trace_arguments *arguments = context;

	if (arguments->decisions_only && strcmp(client_text(line, "event"), "decision") != 0)
		return true;
	if (arguments->plain.client.json)
		client_print_line(line);
	else
		fputs(client_text(line, "text"), stdout);
	/* who reads along wants to see it now; who has stopped reading ends the trace */
	if (fflush(stdout))
		return false;
	return arguments->count == 0 || --arguments->count > 0;
}

int trace_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"count", 'n', "NUMBER", 0, "End after so many events", 0},
		{"decisions", 'd', NULL, 0, "Leave completions and refusals out", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[ID]",
		.children = client_service_children,
		.doc = "Print decisions, with the numbers they were made from and the verdict on each "
		       "replica tried, and completions, as they are made; of one conversation if an ID is "
		       "given. At most trace.decisions_per_second are traced.\v"
		       "Example:\n  warmpath trace conv1 --count 10",
	};
	struct trace_arguments arguments = {.plain.optional = 1};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	client_catch_signals();
	return client_follow(&arguments.plain.client,
			     json_pack("{s:s, s:s*, s:s*}", "command", "trace", "service",
				       arguments.plain.client.service, "id",
				       arguments.plain.values[0]),
			     take, &arguments);
}
