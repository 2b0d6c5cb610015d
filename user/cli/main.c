/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath, the command line: the table of subcommands.
 */
#include "cli/cli.h"

#include <argp.h>

static const struct subcommand subcommands[] = {
	{"ring", ring_main, "Look at the hash ring, without a running router"},
	{"version", version_main, "Print the version"},
	{0},
};

int main(int argc, char **argv)
{
	argp_err_exit_status = EXIT_USAGE;
	if (argc > 0)
		argv[0] = "warmpath";
	return run_subcommand(subcommands, argc, argv);
}
