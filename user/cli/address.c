/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath address ID
 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/client.h"

int address_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.args_doc = "ID",
		.children = client_service_children,
		.doc = "Print the address to connect to for a conversation, in a service that takes the id "
		       "from the address.\v"
		       "Example:\n  curl \"http://[$(warmpath address conv1)]:8443/\"",
	};
	struct plain_arguments arguments = {.expected = 1};
	json_t *answer, *address;
	size_t i;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	code = client_ask(&arguments.client,
			  json_pack("{s:s, s:s*, s:s}", "command", "address", "service",
				    arguments.client.service, "id", arguments.values[0]),
			  &answer);
	if (code == EXIT_DONE && !arguments.client.json) {
		json_array_foreach(json_object_get(answer, "addresses"), i, address)
			printf("%s\n", json_string_value(address));
	}
	json_decref(answer);
	return code;
}
