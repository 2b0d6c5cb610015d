/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath address ID
 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/client.h"

static void print_addresses(const json_t *answer)
{
	json_t *address;
	size_t i;

	json_array_foreach(json_object_get(answer, "addresses"), i, address)
		printf("%s\n", json_string_value(address));
}

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

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_show(&arguments.client,
			   json_pack("{s:s, s:s*, s:s}", "command", "address", "service",
				     arguments.client.service, "id", arguments.values[0]),
			   print_addresses);
}
