/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath counters: from the agent, or, where none runs, from the pinned map.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/table.h"
#include "lib/counters.h"

#define PIN_PATH_DEFAULT "/sys/fs/bpf/warmpath"

struct counters_arguments {
	struct client_options client;
	const char *pin_path; /* NULL: ask the agent */
	bool all;
	bool explain;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct counters_arguments *arguments = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &arguments->client;
		return 0;
	case 'a':
		arguments->all = true;
		return 0;
	case 'e':
		arguments->explain = true;
		return 0;
	case 'p':
		arguments->pin_path = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_counters(const struct counters_arguments *arguments, const json_t *counters)
{
	static const char *const headings[] = {"COUNTER", "PACKETS", "VERDICT", "MEANING"};
	struct table table;
	unsigned int i;

	table_begin(&table, arguments->explain ? 4 : 3, headings);
	for (i = 0; i < COUNTER_COUNT; i++) {
		const struct counter_description *counter = &counter_descriptions[i];
		json_int_t value = client_number(counters, counter->name);

		if (value == 0 && !arguments->all)
			continue;
		table_cell(&table, "%s", counter->name);
		table_cell(&table, "%lld", (long long)value);
		table_cell(&table, "%s", counter->verdict);
		if (arguments->explain)
			table_cell(&table, "%s", counter->sentence);
	}
	table_print(&table);
}

static int read_pinned(const struct counters_arguments *arguments, json_t **counters)
{
	const char *pin_path = arguments->pin_path ? arguments->pin_path : PIN_PATH_DEFAULT;
	struct counters values;
	struct error error;

	if (counters_read_pinned(pin_path, &values, &error)) {
		complain("%s", error.text);
		return EXIT_FAILED;
	}
	*counters = counters_json(&values);
	if (arguments->client.json) {
		json_t *answer = json_pack("{s:b, s:O}", "ok", 1, "counters", *counters);

		json_dumpf(answer, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(answer);
	}
	return EXIT_DONE;
}

int counters_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"all", 'a', NULL, 0, "Also those that are 0", 0},
		{"explain", 'e', NULL, 0, "Say what each one means", 0},
		{"pin-path", 'p', "DIRECTORY", 0,
		 "Read the counters pinned there, without the agent (without this option: only if no "
		 "agent answers, from " PIN_PATH_DEFAULT ")",
		 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = client_children,
		.doc = "Print what became of the packets: each ended in exactly one way; notes count what "
		       "happened besides.\v"
		       "Example:\n  warmpath counters --all --explain",
	};
	struct counters_arguments arguments = {0};
	json_t *answer = NULL, *counters = NULL;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	if (arguments.pin_path || !client_reachable(&arguments.client)) {
		code = read_pinned(&arguments, &counters);
	} else {
		code = client_ask(&arguments.client, json_pack("{s:s}", "command", "counters"),
				  &answer);
		counters = json_incref(json_object_get(answer, "counters"));
	}
	if (code == EXIT_DONE && !arguments.client.json)
		print_counters(&arguments, counters);
	json_decref(counters);
	json_decref(answer);
	return code;
}
