/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath attach INTERFACE, warmpath detach INTERFACE|all
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "lib/config_schema.h"
#include "lib/xdp_links.h"

struct attach_arguments {
	struct plain_arguments plain;
	const char *mode;
	bool force;
};

static error_t parse_attach(int key, char *argument, struct argp_state *state)
{
	struct attach_arguments *arguments = state->input;

	switch (key) {
	case 'm':
		if (!schema_find_word(choices_attach_mode, argument))
			argp_error(state,
				   "there is no mode \"%s\": use native, generic, tc or auto",
				   argument);
		arguments->mode = argument;
		return 0;
	case 'f':
		arguments->force = true;
		return 0;
	default:
		return client_parse_plain(key, argument, state);
	}
}

/*
 * A link of another process is found by its id alone, for which a running agent has no rights any more: who calls this often has them. False:
 * the refusal stands.
 */
static bool clear_the_way(const struct attach_arguments *arguments, const json_t *refusal,
			  __u32 *link)
{
	const json_t *obstacle = json_object_get(refusal, "obstacle");

	return arguments->force && obstacle &&
	       xdp_link_detach_next(link, (int)client_number(obstacle, "interface_index"),
				    (__u32)client_number(obstacle, "program")) == 0;
}

static int attach(const struct attach_arguments *arguments)
{
	const struct client_options *client = &arguments->plain.client;
	json_t *answer = NULL;
	__u32 link = 0;
	int code;

	do {
		json_decref(answer);
		code = client_exchange(client,
				       json_pack("{s:s, s:s, s:s, s:b}", "command", "attach",
						 "interface", arguments->plain.values[0], "mode",
						 arguments->mode, "force", arguments->force),
				       &answer);
	} while (code == EXIT_DONE && clear_the_way(arguments, answer, &link));
	if (code == EXIT_DONE)
		code = client_take_answer(client, &answer);
	if (code == EXIT_DONE && !client->json)
		printf("attached (%s)\n", client_text(answer, "attached"));
	json_decref(answer);
	return code;
}

int attach_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"mode", 'm', "MODE", 0, "native, generic, tc or auto (the default)", 0},
		{"force", 'f', NULL, 0, "Replace a program of someone else that is in the way", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_attach,
		.args_doc = "INTERFACE",
		.children = client_children,
		.doc = "Attach the router to an interface, or change its mode, until the configuration is "
		       "reloaded.\v"
		       "Example:\n  warmpath attach eth1 --mode native",
	};
	struct attach_arguments arguments = {.plain.expected = 1, .mode = "auto"};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return attach(&arguments);
}

int detach_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.args_doc = "INTERFACE|all",
		.children = client_children,
		.doc = "Detach the router from an interface. \"all\" is the end of the data path: everything is "
		       "detached, all pins are removed, connections are forgotten, warmpathd ends "
		       "(`warmpathd --detach -c FILE` does it where none runs).\v"
		       "Examples:\n  warmpath detach eth1\n  warmpath detach all",
	};
	struct plain_arguments arguments = {.expected = 1};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_do(
		&arguments.client,
		json_pack("{s:s, s:s}", "command", "detach", "interface", arguments.values[0]),
		strcmp(arguments.values[0], "all") == 0 ? "detached and unpinned; warmpathd ends"
							: "detached");
}
