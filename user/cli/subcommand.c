/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding a subcommand in its table, and listing the table.
 */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void complain(const char *format, ...)
{
	va_list arguments;

	fputs("warmpath: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static void list(FILE *to, const struct subcommand *table, const char *command)
{
	fprintf(to, "Usage: %s SUBCOMMAND [ARGUMENT...]\n\n", command);
	for (const struct subcommand *entry = table; entry->name; entry++)
		fprintf(to, "  %-12s %s\n", entry->name, entry->description);
	fprintf(to, "\n\"%s SUBCOMMAND --help\" says more about each.\n", command);
}

int run_subcommand(const struct subcommand *table, int argc, char **argv)
{
	char command[256];

	if (argc < 2) {
		list(stderr, table, argv[0]);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		list(stdout, table, argv[0]);
		return EXIT_DONE;
	}
	for (const struct subcommand *entry = table; entry->name; entry++) {
		if (strcmp(entry->name, argv[1]) != 0)
			continue;
		snprintf(command, sizeof(command), "%s %s", argv[0], argv[1]);
		argv[1] = command;
		return entry->function(argc - 1, argv + 1);
	}
	complain("there is no subcommand \"%s\"; \"%s --help\" lists them", argv[1], argv[0]);
	return EXIT_USAGE;
}
