/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath explain ID
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/client.h"

#define NOT_GIVEN (-1)

struct explain_arguments {
	struct client_options client;
	const char *id;
	json_int_t prompt_tokens;
	json_int_t max_tokens;
};

static json_int_t read_tokens(struct argp_state *state, const char *text)
{
	char *end;
	long long number;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno || end == text || *end != '\0' || number < 0)
		argp_error(state, "\"%s\" is not a number of tokens", text);
	return number;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct explain_arguments *arguments = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &arguments->client;
		return 0;
	case 'p':
		arguments->prompt_tokens = read_tokens(state, argument);
		return 0;
	case 'm':
		arguments->max_tokens = read_tokens(state, argument);
		return 0;
	case ARGP_KEY_ARG:
		if (arguments->id)
			return ARGP_ERR_UNKNOWN;
		arguments->id = argument;
		return 0;
	case ARGP_KEY_END:
		if (!arguments->id)
			argp_error(state, "an id is needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int explain_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"prompt-tokens", 'p', "NUMBER", 0, "Prompt tokens of the request (1)", 0},
		{"max-tokens", 'm', "NUMBER", 0,
		 "Tokens to generate (the policy's default_max_tokens)", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "ID",
		.children = client_service_children,
		.doc = "Say what would be decided on a request of this conversation now, and why, from the "
		       "loads and placements of this moment. Nothing is changed.\v"
		       "Example:\n  warmpath explain conv1 --prompt-tokens 860 --max-tokens 48",
	};
	struct explain_arguments arguments = {.prompt_tokens = NOT_GIVEN, .max_tokens = NOT_GIVEN};
	json_t *message, *answer;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	message = json_pack("{s:s, s:s*, s:s}", "command", "explain", "service",
			    arguments.client.service, "id", arguments.id);
	if (message && arguments.prompt_tokens != NOT_GIVEN)
		json_object_set_new(message, "prompt_tokens",
				    json_integer(arguments.prompt_tokens));
	if (message && arguments.max_tokens != NOT_GIVEN)
		json_object_set_new(message, "max_tokens", json_integer(arguments.max_tokens));
	code = client_ask(&arguments.client, message, &answer);
	if (code == EXIT_DONE && !arguments.client.json)
		fputs(client_text(json_object_get(answer, "decision"), "text"), stdout);
	json_decref(answer);
	return code;
}
