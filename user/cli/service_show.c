/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath service show, and the sources of replicas as `status` prints them, too.
 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/discovery.h"
#include "cli/table.h"

/* --- sources of replicas ------------------------------------------------------------------------------------------ */

static void format_age(const json_t *source, char *text, size_t size)
{
	const json_t *age = json_object_get(source, "age_seconds");
	double seconds = json_number_value(age);

	if (!age)
		snprintf(text, size, "never");
	else if (seconds < 600)
		snprintf(text, size, "%.0f s ago", seconds);
	else
		snprintf(text, size, "%.0f min ago", seconds / 60);
}

static void add_sources(struct table *table, const json_t *service)
{
	json_t *source;
	size_t i;

	json_array_foreach(json_object_get(service, "discovery"), i, source)
	{
		json_int_t terminating = client_number(source, "terminating");
		char age[32];

		format_age(source, age, sizeof(age));
		table_cell(table, "%s", client_text(service, "name"));
		table_cell(table, "%s", client_text(source, "source"));
		table_cell(table, "%s", client_text(source, "state"));
		if (terminating)
			table_cell(table, "%lld, %lld of them ending",
				   (long long)client_number(source, "members"),
				   (long long)terminating);
		else
			table_cell(table, "%lld", (long long)client_number(source, "members"));
		table_cell(table, "%s", age);
	}
}

void discovery_print(const json_t *services)
{
	static const char *const headings[] = {"SERVICE", "SOURCE", "STATE", "FOUND", "CONFIRMED"};
	struct table table;
	json_t *service;
	size_t i, count = 0;

	json_array_foreach(services, i, service) count +=
		json_array_size(json_object_get(service, "discovery"));
	if (count == 0)
		return;
	putchar('\n');
	table_begin(&table, 5, headings);
	json_array_foreach(services, i, service) add_sources(&table, service);
	table_print(&table);
}

/* --- one service ------------------------------------------------------------------------------------------------------ */

static void print_problems(const json_t *service)
{
	json_t *source, *note;
	size_t i;

	json_array_foreach(json_object_get(service, "discovery"), i, source)
	{
		if (client_text(source, "problem")[0])
			printf("%s: %s\n", client_text(source, "source"),
			       client_text(source, "problem"));
		if (client_text(source, "note")[0])
			printf("%s: %s\n", client_text(source, "source"),
			       client_text(source, "note"));
	}
	json_array_foreach(json_object_get(service, "discovery_notes"), i, note)
		printf("discovery: %s\n", json_string_value(note));
}

static void print_service(const json_t *answer)
{
	const json_t *services = json_object_get(answer, "services");
	const json_t *service = json_array_get(services, 0);
	const json_t *replicas = json_object_get(service, "replicas");
	json_t *address;
	size_t i;

	printf("service %s\n", client_text(service, "name"));
	printf("  public     ");
	json_array_foreach(json_object_get(service, "addresses"), i, address)
		printf("%s%s", i ? ", " : "", json_string_value(address));
	printf(" port %lld, %s\n", (long long)client_number(service, "port"),
	       client_text(service, "protocol"));
	printf("  id from    %s\n", client_text(service, "id_from"));
	printf("  policy     %s\n", client_text(service, "policy"));
	printf("  ring       %s, %lld vnodes%s; generation %lld, %lld points\n",
	       client_text(service, "dialect"), (long long)client_number(service, "vnodes"),
	       json_is_true(json_object_get(service, "hash_keyed")) ? ", keyed" : "",
	       (long long)client_number(service, "generation"),
	       (long long)client_number(service, "points"));
	printf("  replicas   %lld active, %lld draining, %lld down\n",
	       (long long)client_number(replicas, "active"),
	       (long long)client_number(replicas, "draining"),
	       (long long)client_number(replicas, "down"));
	discovery_print(services);
	print_problems(service);
}

int service_show_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.args_doc = "[SERVICE]",
		.children = client_children,
		.doc = "Print one service, and where its replicas come from: what each source of discovery has "
		       "found, when that was confirmed last, and what is wrong with it. Without SERVICE the only "
		       "one.\v"
		       "Example:\n  warmpath service show chat",
	};
	struct plain_arguments arguments = {.expected = 0, .optional = 1};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_show(&arguments.client,
			   json_pack("{s:s, s:s}", "command", "service-list", "service",
				     arguments.values[0] ? arguments.values[0] : ""),
			   print_service);
}
