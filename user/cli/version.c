/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath version
 */
#include "cli/cli.h"

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <warmpath/layout.h>

static error_t parse(int key, char *argument, struct argp_state *state)
{
	bool *json = state->input;

	(void)argument;
	if (key != 'j')
		return ARGP_ERR_UNKNOWN;
	*json = true;
	return 0;
}

int version_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{.name = "json", .key = 'j', .doc = "Print JSON"},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Print the version of warmpath and of the layout of its maps.\v"
		       "Example:\n  warmpath version --json",
	};
	bool json = false;

	argp_parse(&argp, argc, argv, 0, NULL, &json);
	printf(json ? "{\"version\": \"%s\", \"layout\": %d}\n" : "warmpath %s (map layout %d)\n",
	       WARMPATH_VERSION, WARMPATH_LAYOUT_VERSION);
	return EXIT_DONE;
}
