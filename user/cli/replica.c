/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath replica list|add|drain|undrain|remove|weight
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/table.h"
#include "lib/ring.h"

/* --- list ----------------------------------------------------------------------------------------------------------- */

struct list_arguments {
	struct client_options client;
	bool removed;
};

static error_t parse_list(int key, char *argument, struct argp_state *state)
{
	struct list_arguments *arguments = state->input;

	(void)argument;
	if (key == ARGP_KEY_INIT)
		state->child_inputs[0] = &arguments->client;
	else if (key == 'r')
		arguments->removed = true;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static void print_addresses(struct table *table, const json_t *replica)
{
	const json_t *addresses = json_object_get(replica, "addresses");
	char where[160] = "", neighbour[80] = "";
	size_t used = 0, noted = 0, i;
	json_t *address;

	json_array_foreach(addresses, i, address)
	{
		const char *text = client_text(address, "address");
		const char *format = strchr(text, ':') ? "%s[%s]:%lld" : "%s%s:%lld";

		used += snprintf(where + used, sizeof(where) - used, format, i ? " " : "", text,
				 (long long)client_number(replica, "port"));
		noted += snprintf(neighbour + noted, sizeof(neighbour) - noted, "%s%s",
				  i ? ", " : "", client_text(address, "neighbour"));
	}
	table_cell(table, "%s", where);
	table_cell(table, "%s", neighbour);
}

/* "1", or "1 (30 %)" of it during slow start. */
static void print_weight(struct table *table, const json_t *replica)
{
	double weight = json_number_value(json_object_get(replica, "weight"));
	double share = json_number_value(json_object_get(replica, "slow_start"));

	if (share < 1)
		table_cell(table, "%g (%g %%)", weight, 100 * share);
	else
		table_cell(table, "%g", weight);
}

/* The time of a day of "2026-11-30T08:23:33Z". */
static const char *time_of_day(const char *time)
{
	return strchr(time, 'T') ? strchr(time, 'T') + 1 : time;
}

static void print_health(struct table *table, const json_t *replica)
{
	const json_t *health = json_object_get(replica, "health");
	const char *state = client_text(health, "state"), *since = client_text(health, "since");
	const char *failure = client_text(health, "failure");

	if (strcmp(state, "down") == 0)
		table_cell(table, "%s since %s: %s", state, *since ? time_of_day(since) : "long",
			   *failure ? failure : "not up yet after a restart of warmpathd");
	else if (*since)
		table_cell(table, "%s since %s", state, time_of_day(since));
	else
		table_cell(table, "%s", state);
}

/* "1 running, 2 waiting, cache 33 %", as the replica itself says. */
static void print_reported(struct table *table, const json_t *replica)
{
	const json_t *reported = json_object_get(replica, "reported");
	const json_t *cache = json_object_get(reported, "cache_usage");
	char text[40] = "";

	if (!json_object_get(reported, "running")) {
		table_cell(table, "%s", *client_text(reported, "failure") ? "no answer" : "-");
		return;
	}
	if (cache)
		snprintf(text, sizeof(text), ", cache %.0f %%", 100 * json_number_value(cache));
	table_cell(table, "%.0f running, %.0f waiting%s",
		   json_number_value(json_object_get(reported, "running")),
		   json_number_value(json_object_get(reported, "waiting")), text);
}

static bool any_reports(const json_t *answer)
{
	json_t *replica;
	size_t i;

	json_array_foreach(json_object_get(answer, "replicas"), i, replica)
	{
		if (json_object_get(replica, "reported"))
			return true;
	}
	return false;
}

static void print_replicas(const json_t *answer)
{
	/* the last one only if replicas are asked */
	static const char *const headings[] = {"SERVICE",   "NAME",	   "STATE", "ADDRESS",
					       "NEIGHBOUR", "WEIGHT",	   "SHARE", "POINTS",
					       "SLOT",	    "INCARNATION", "FLOWS", "REQUESTS",
					       "TOKENS",    "HEALTH",	   "SAYS"};
	bool reported = any_reports(answer);
	struct table table;
	json_t *replica;
	size_t i;

	table_begin(&table, reported ? 15 : 14, headings);
	json_array_foreach(json_object_get(answer, "replicas"), i, replica)
	{
		table_cell(&table, "%s", client_text(replica, "service"));
		table_cell(&table, "%s", client_text(replica, "name"));
		table_cell(&table, "%s", client_text(replica, "state"));
		print_addresses(&table, replica);
		print_weight(&table, replica);
		table_cell(&table, "%.2f %%",
			   100 * json_number_value(json_object_get(replica, "share")));
		table_cell(&table, "%lld", (long long)client_number(replica, "points"));
		table_cell(&table, "%lld", (long long)client_number(replica, "slot"));
		table_cell(&table, "%lld", (long long)client_number(replica, "incarnation"));
		table_cell(&table, "%lld", (long long)client_number(replica, "flows"));
		table_cell(&table, "%lld", (long long)client_number(replica, "requests"));
		table_cell(&table, "%lld", (long long)client_number(replica, "tokens"));
		print_health(&table, replica);
		if (reported)
			print_reported(&table, replica);
	}
	table_print(&table);
}

static int list_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"removed", 'r', NULL, 0, "Also those removed whose connections have not all ended",
		 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_list,
		.children = client_service_children,
		.doc = "Print the replicas with their state, share of the ring, connections, and requests and "
		       "tokens in flight.\v"
		       "Example:\n  warmpath replica list --service chat",
	};
	struct list_arguments arguments = {0};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_show(&arguments.client,
			   json_pack("{s:s, s:s*, s:b}", "command", "replica-list", "service",
				     arguments.client.service, "removed", arguments.removed),
			   print_replicas);
}

/* --- add ------------------------------------------------------------------------------------------------------------ */

struct add_arguments {
	struct client_options client;
	const char *name;
	json_t *addresses;
	long port;
	__u32 weight_thousandths;
};

static error_t parse_add(int key, char *argument, struct argp_state *state)
{
	struct add_arguments *arguments = state->input;
	struct error error;
	char *end;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &arguments->client;
		return 0;
	case 'a':
		json_array_append_new(arguments->addresses, json_string(argument));
		return 0;
	case 'p':
		arguments->port = strtol(argument, &end, 10);
		if (*end != '\0' || end == argument || arguments->port < 1 ||
		    arguments->port > 65535)
			argp_error(state, "--port %s: must be a number from 1 to 65535", argument);
		return 0;
	case 'w':
		if (ring_parse_weight(argument, &arguments->weight_thousandths, &error))
			argp_error(state, "%s", error.text);
		return 0;
	case ARGP_KEY_ARG:
		if (arguments->name)
			return ARGP_ERR_UNKNOWN;
		arguments->name = argument;
		return 0;
	case ARGP_KEY_END:
		if (!arguments->name || !arguments->port ||
		    json_array_size(arguments->addresses) == 0)
			argp_error(state, "NAME, --address and --port are needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int add_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"address", 'a', "ADDRESS", 0, "Its address; twice for IPv4 and IPv6", 0},
		{"port", 'p', "PORT", 0, "The port it listens on", 0},
		{"weight", 'w', "WEIGHT", 0, "Its share relative to others, 0.001 to 1000 (1)", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_add,
		.args_doc = "NAME",
		.children = client_service_children,
		.doc = "Add a replica to a service, until it is removed or the configuration is reloaded.\v"
		       "Example:\n  warmpath replica add llm-3 --address 10.0.2.13 --address fd00:2::13 "
		       "--port 8001",
	};
	struct add_arguments arguments = {
		.addresses = json_array(),
		.weight_thousandths = RING_WEIGHT_ONE,
	};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_do(&arguments.client,
			 json_pack("{s:s, s:s*, s:s, s:o, s:i, s:f}", "command", "replica-add",
				   "service", arguments.client.service, "name", arguments.name,
				   "addresses", arguments.addresses, "port", (int)arguments.port,
				   "weight", arguments.weight_thousandths / 1000.0),
			 "added");
}

/* --- undrain, remove ------------------------------------------------------------------------------------------ */

static int change(const struct argp *argp, int argc, char **argv, const char *command,
		  const char *done)
{
	struct plain_arguments arguments = {.expected = 1};

	argp_parse(argp, argc, argv, 0, NULL, &arguments);
	return client_do(&arguments.client,
			 json_pack("{s:s, s:s*, s:s}", "command", command, "service",
				   arguments.client.service, "name", arguments.values[0]),
			 done);
}

static int undrain_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.args_doc = "NAME",
		.children = client_service_children,
		.doc = "Put a replica that is being drained back on the ring.\v"
		       "Example:\n  warmpath replica undrain llm-0",
	};

	return change(&argp, argc, argv, "replica-undrain", "active");
}

static int remove_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.args_doc = "NAME",
		.children = client_service_children,
		.doc = "Remove a replica from its service. A configured one comes back when the "
		       "configuration is reloaded.\v"
		       "Example:\n  warmpath replica remove llm-3",
	};

	return change(&argp, argc, argv, "replica-remove", "removed");
}

/* --- weight ----------------------------------------------------------------------------------------------------------- */

static int weight_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.args_doc = "NAME WEIGHT",
		.children = client_service_children,
		.doc = "Give a replica another weight (0.001 to 1000), until the configuration is reloaded.\v"
		       "Example:\n  warmpath replica weight llm-2 0.5",
	};
	struct plain_arguments arguments = {.expected = 2};
	__u32 weight_thousandths;
	struct error error;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	if (ring_parse_weight(arguments.values[1], &weight_thousandths, &error)) {
		complain("%s", error.text);
		return EXIT_USAGE;
	}
	return client_do(&arguments.client,
			 json_pack("{s:s, s:s*, s:s, s:f}", "command", "replica-weight", "service",
				   arguments.client.service, "name", arguments.values[0], "weight",
				   weight_thousandths / 1000.0),
			 "weight set");
}

int replica_main(int argc, char **argv)
{
	static const struct subcommand subcommands[] = {
		{"list", list_main, "Print the replicas"},
		{"add", add_main, "Add a replica"},
		{"drain", replica_drain_main, "Give a replica no new conversations"},
		{"undrain", undrain_main, "Put a drained replica back on the ring"},
		{"remove", remove_main, "Remove a replica"},
		{"weight", weight_main, "Give a replica another weight"},
		{0},
	};

	return run_subcommand(subcommands, argc, argv);
}
