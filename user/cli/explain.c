/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath explain ID
 */
#include <stdio.h>
#include <warmpath/layout.h>

#include "cli/cli.h"
#include "cli/client.h"

#define NOT_GIVEN (-1)

struct explain_arguments {
	struct plain_arguments plain;
	json_int_t prompt_tokens;
	json_int_t max_tokens;
};

static json_int_t read_tokens(struct argp_state *state, const char *text)
{
	return argument_number(state, text, "tokens", 0, REQUEST_TOKENS_MAX);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct explain_arguments *arguments = state->input;

	switch (key) {
	case 'p':
		arguments->prompt_tokens = read_tokens(state, argument);
		return 0;
	case 'm':
		arguments->max_tokens = read_tokens(state, argument);
		return 0;
	default:
		return client_parse_plain(key, argument, state);
	}
}

static void print_decision(const json_t *answer)
{
	fputs(client_text(json_object_get(answer, "decision"), "text"), stdout);
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
	struct explain_arguments arguments = {
		.plain.expected = 1,
		.prompt_tokens = NOT_GIVEN,
		.max_tokens = NOT_GIVEN,
	};
	const struct client_options *client = &arguments.plain.client;
	json_t *message;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	message = json_pack("{s:s, s:s*, s:s}", "command", "explain", "service", client->service,
			    "id", arguments.plain.values[0]);
	if (message && arguments.prompt_tokens != NOT_GIVEN)
		json_object_set_new(message, "prompt_tokens",
				    json_integer(arguments.prompt_tokens));
	if (message && arguments.max_tokens != NOT_GIVEN)
		json_object_set_new(message, "max_tokens", json_integer(arguments.max_tokens));
	return client_show(client, message, print_decision);
}
