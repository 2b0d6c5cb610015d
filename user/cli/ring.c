/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath ring: the table of what can be asked of a ring.
 */
#include "cli/cli.h"

int ring_main(int argc, char **argv)
{
	static const struct subcommand subcommands[] = {
		{"walk", ring_walk_main, "Print the replicas clockwise from each id"},
		{"study", ring_study_main, "Measure how even rings are, and what they cost"},
		{"show", ring_show_main,
		 "Print what each replica has of the ring, and what a change moves"},
		{"plot", ring_plot_main, "Draw the ring, and what a change moves"},
		{0},
	};

	return run_subcommand(subcommands, argc, argv);
}
