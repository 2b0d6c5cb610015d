/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath status
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/discovery.h"
#include "cli/table.h"

#define UNWELL_MAX 10 /* replicas told one by one */

static void print_interfaces(const json_t *interfaces)
{
	static const char *const headings[] = {"INTERFACE", "MODE", "ATTACHED", "DRIVER", "NOTE"};
	struct table table;
	json_t *interface;
	size_t i;

	table_begin(&table, 5, headings);
	json_array_foreach(interfaces, i, interface)
	{
		const char *problem = client_text(interface, "problem");

		table_cell(&table, "%s", client_text(interface, "name"));
		table_cell(&table, "%s", client_text(interface, "mode"));
		table_cell(&table, "%s", client_text(interface, "attached"));
		table_cell(&table, "%s", client_text(interface, "driver"));
		if (problem[0])
			table_cell(&table, "%s", problem);
		else
			table_cell(&table, "%s%s",
				   json_is_true(json_object_get(interface, "dispatcher"))
					   ? "libxdp dispatcher"
					   : "",
				   json_is_true(json_object_get(interface, "configured"))
					   ? ""
					   : "attached by command");
	}
	table_print(&table);
}

static void print_services(const json_t *services)
{
	static const char *const headings[] = {"SERVICE", "POLICY",   "RING",
					       "ACTIVE",  "DRAINING", "DOWN"};
	struct table table;
	json_t *service;
	size_t i;

	table_begin(&table, 6, headings);
	json_array_foreach(services, i, service)
	{
		const json_t *replicas = json_object_get(service, "replicas");

		table_cell(&table, "%s", client_text(service, "name"));
		table_cell(&table, "%s", client_text(service, "policy"));
		table_cell(&table, "%lld points, generation %lld",
			   (long long)client_number(service, "points"),
			   (long long)client_number(service, "generation"));
		table_cell(&table, "%lld", (long long)client_number(replicas, "active"));
		table_cell(&table, "%lld", (long long)client_number(replicas, "draining"));
		table_cell(&table, "%lld", (long long)client_number(replicas, "down"));
	}
	table_print(&table);
}

static void print_unwell(const json_t *unwell)
{
	json_t *replica;
	size_t i;

	json_array_foreach(unwell, i, replica)
	{
		const char *service = client_text(replica, "service");
		const char *name = client_text(replica, "name");
		const char *since = client_text(replica, "since");
		const char *failure = client_text(replica, "failure");

		if (i == 0)
			putchar('\n');
		if (i == UNWELL_MAX) {
			printf("... and %zu more: see warmpath replica list\n",
			       json_array_size(unwell) - i);
			break;
		}
		if (strcmp(client_text(replica, "state"), "down") == 0)
			printf("replica %s of service %s is down%s%s%s%s\n", name, service,
			       *since ? " since " : "", since, *failure ? ": " : "", failure);
		else
			printf("replica %s of service %s begins slowly: %g %% of its share\n", name,
			       service,
			       100 * json_number_value(json_object_get(replica, "slow_start")));
	}
}

static void print_status(const json_t *answer)
{
	const json_t *warnings = json_object_get(answer, "warnings");
	json_t *warning;
	size_t i;

	printf("warmpathd %s, process %lld, up %lld s, shape %s\n", client_text(answer, "version"),
	       (long long)client_number(answer, "process"),
	       (long long)client_number(answer, "uptime_seconds"), client_text(answer, "shape"));
	printf("configuration %s, applied %s\n", client_text(answer, "configuration"),
	       client_text(answer, "configuration_applied"));
	printf("data path %s below %s\n\n",
	       json_is_true(json_object_get(answer, "adopted")) ? "adopted, pinned" : "pinned",
	       client_text(answer, "pin_path"));
	print_interfaces(json_object_get(answer, "interfaces"));
	putchar('\n');
	print_services(json_object_get(answer, "services"));
	discovery_print(json_object_get(answer, "services"));
	print_unwell(json_object_get(answer, "unwell"));
	json_array_foreach(warnings, i, warning)
		printf("%swarning: %s\n", i ? "" : "\n", json_string_value(warning));
}

int status_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.children = client_children,
		.doc = "Print what warmpathd does: interfaces, services, warnings.\v"
		       "Example:\n  warmpath status --json",
	};
	struct plain_arguments arguments = {.expected = 0};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_show(&arguments.client, json_pack("{s:s}", "command", "status"),
			   print_status);
}
