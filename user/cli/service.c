/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath service list (show: service_show.c)
 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/table.h"

static void print_services(const json_t *answer)
{
	static const char *const headings[] = {"SERVICE", "ADDRESS", "PORT", "PROTOCOL",
					       "ID FROM", "POLICY",  "RING", "ACTIVE"};
	struct table table;
	json_t *service, *address;
	size_t i, j;

	table_begin(&table, 8, headings);
	json_array_foreach(json_object_get(answer, "services"), i, service)
	{
		json_array_foreach(json_object_get(service, "addresses"), j, address)
		{
			table_cell(&table, "%s", client_text(service, "name"));
			table_cell(&table, "%s", json_string_value(address));
			table_cell(&table, "%lld", (long long)client_number(service, "port"));
			table_cell(&table, "%s", client_text(service, "protocol"));
			table_cell(&table, "%s", client_text(service, "id_from"));
			table_cell(&table, "%s", client_text(service, "policy"));
			table_cell(&table, "%s, %lld vnodes%s", client_text(service, "dialect"),
				   (long long)client_number(service, "vnodes"),
				   json_is_true(json_object_get(service, "hash_keyed")) ? ", keyed"
											: "");
			table_cell(&table, "%lld",
				   (long long)client_number(json_object_get(service, "replicas"),
							    "active"));
		}
	}
	table_print(&table);
}

static int list_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.children = client_children,
		.doc = "Print the services, a line for each public address.\v"
		       "Example:\n  warmpath service list --json",
	};
	struct plain_arguments arguments = {.expected = 0};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_show(&arguments.client, json_pack("{s:s}", "command", "service-list"),
			   print_services);
}

int service_main(int argc, char **argv)
{
	static const struct subcommand subcommands[] = {
		{"list", list_main, "Print the services"},
		{"show", service_show_main, "Print one service, and where its replicas come from"},
		{0},
	};

	return run_subcommand(subcommands, argc, argv);
}
