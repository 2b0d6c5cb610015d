/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath policy show|set
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "lib/policy.h"

static void print_policy(const json_t *answer)
{
	json_t *policy = json_object_get(answer, "policy"), *value;
	const char *key;

	printf("service %s%s\n", client_text(answer, "service"),
	       json_is_true(json_object_get(answer, "set_at_run_time"))
		       ? " (set at run time; `warmpath reload` goes back to the file)"
		       : "");
	json_object_foreach(policy, key, value)
	{
		char *text = json_is_string(value)
				     ? NULL
				     : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

		printf("  %s: %s\n", key, text ? text : json_string_value(value));
		free(text);
	}
}

static int show_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.children = client_service_children,
		.doc = "Print the settings of a service's policy, as in the configuration file.\v"
		       "Example:\n  warmpath policy show --service chat",
	};
	struct plain_arguments arguments = {.expected = 0};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_show(&arguments.client,
			   json_pack("{s:s, s:s*}", "command", "policy-show", "service",
				     arguments.client.service),
			   print_policy);
}

struct set_arguments {
	struct client_options client;
	json_t *pairs;
	struct policy_settings tried; /* takes each setting, to see whether it is one */
};

static error_t parse_set(int key, char *argument, struct argp_state *state)
{
	struct set_arguments *arguments = state->input;
	struct error error;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &arguments->client;
		return 0;
	case ARGP_KEY_ARG:
		if (!strchr(argument, '='))
			argp_error(state, "\"%s\" is not a setting: write KEY=VALUE", argument);
		if (policy_set_pair(&arguments->tried, argument, &error))
			argp_error(state, "%s", error.text);
		json_array_append_new(arguments->pairs, json_string(argument));
		return 0;
	case ARGP_KEY_END:
		if (json_array_size(arguments->pairs) == 0)
			argp_error(state, "say what to set: KEY=VALUE...");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int set_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_set,
		.args_doc = "KEY=VALUE...",
		.children = client_service_children,
		.doc = "Change settings of a service's policy, all of them at once; they stay until the "
		       "configuration is reloaded. Another policy begins with an empty memory of "
		       "placements.\v"
		       "Example:\n  warmpath policy set name=llm-aware epsilon=0.25",
	};
	struct set_arguments arguments = {.pairs = json_array()};
	json_t *answer;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	code = client_ask(&arguments.client,
			  json_pack("{s:s, s:s*, s:o}", "command", "policy-set", "service",
				    arguments.client.service, "settings", arguments.pairs),
			  &answer);
	if (code == EXIT_DONE && !arguments.client.json) {
		print_policy(answer);
		if (json_is_true(json_object_get(answer, "memory_cleared")))
			puts("The memory of placements was cleared.");
	}
	json_decref(answer);
	return code;
}

int policy_main(int argc, char **argv)
{
	static const struct subcommand subcommands[] = {
		{"show", show_main, "Print the settings"},
		{"set", set_main, "Change settings"},
		{0},
	};

	return run_subcommand(subcommands, argc, argv);
}
