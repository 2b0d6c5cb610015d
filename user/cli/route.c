/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath route ID
 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/client.h"

struct route_arguments {
	struct plain_arguments plain;
	bool all;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct route_arguments *arguments = state->input;

	switch (key) {
	case 'a':
		arguments->all = true;
		return 0;
	default:
		return client_parse_plain(key, argument, state);
	}
}

static void print_route(const json_t *answer)
{
	const json_t *walk = json_object_get(answer, "walk");
	const char *by_number = client_text(answer, "mod_n");
	json_t *name;
	size_t i;

	if (by_number[0])
		printf("%s (mod-n; hash %s, home on the ring %s)\n", by_number,
		       client_text(answer, "hash"), client_text(answer, "home"));
	else
		printf("%s (hash %s)\n", client_text(answer, "home"), client_text(answer, "hash"));
	json_array_foreach(walk, i, name) printf("%4zu  %s\n", i + 1, json_string_value(name));
}

int route_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"all", 'a', NULL, 0, "Print the whole walk: all replicas in the id's order", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "ID",
		.children = client_service_children,
		.doc = "Print the home of a conversation on the live ring.\v"
		       "Example:\n  warmpath route conv1 --all --service chat",
	};
	struct route_arguments arguments = {.plain.expected = 1};
	const struct client_options *client = &arguments.plain.client;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_show(client,
			   json_pack("{s:s, s:s*, s:s, s:b}", "command", "route", "service",
				     client->service, "id", arguments.plain.values[0], "all",
				     arguments.all),
			   print_route);
}
