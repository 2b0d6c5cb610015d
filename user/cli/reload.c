/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath reload
 */
#include "cli/cli.h"
#include "cli/client.h"

int reload_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.children = client_children,
		.doc = "Have warmpathd read its configuration again. A bad file changes nothing.\v"
		       "Example:\n  warmpath reload",
	};
	struct plain_arguments arguments = {.expected = 0};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_do(&arguments.client, json_pack("{s:s}", "command", "reload"),
			 "configuration applied");
}
