/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the subcommands of `warmpath` share.
 *
 * Owns: the form of a subcommand, exit codes, how an error is said. May not know: what any subcommand does.
 *
 * A new subcommand is a file of its own with one function, and a line in the table of main.c.
 */
#ifndef WARMPATH_CLI_H
#define WARMPATH_CLI_H

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,      /* asked rightly, but it could not be done */
	EXIT_USAGE = 2,	      /* asked wrongly */
	EXIT_UNREACHABLE = 3, /* warmpathd does not answer */
};

struct subcommand {
	const char *name;
	/* argv[0] is all of the command so far ("warmpath ring walk"), as --help shows it; returns an exit code */
	int (*function)(int argc, char **argv);
	const char *description; /* one line */
};

/* Each in the file of its name; detach in attach.c. */
int address_main(int argc, char **argv);
int attach_main(int argc, char **argv);
int conversation_main(int argc, char **argv);
int counters_main(int argc, char **argv);
int detach_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int reload_main(int argc, char **argv);
int replica_main(int argc, char **argv);
int replica_drain_main(int argc, char **argv); /* a subcommand of replica */
int route_main(int argc, char **argv);
int service_main(int argc, char **argv);
int service_show_main(int argc, char **argv);
int status_main(int argc, char **argv);
int decide_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int policy_main(int argc, char **argv);
int trace_main(int argc, char **argv);
int ring_main(int argc, char **argv);
int ring_plot_main(int argc, char **argv);
int ring_show_main(int argc, char **argv);
int ring_study_main(int argc, char **argv);
int ring_walk_main(int argc, char **argv);
int upgrade_main(int argc, char **argv);
int top_main(int argc, char **argv);
int watch_main(int argc, char **argv);
int version_main(int argc, char **argv);

/*
 * Runs the subcommand that argv[1] names, out of a table closed by an entry without a name; --help lists the table.
 * Returns its exit code.
 */
int run_subcommand(const struct subcommand *table, int argc, char **argv);

/* Says one sentence on standard error, behind "warmpath: ". */
__attribute__((__format__(__printf__, 1, 2))) void complain(const char *format, ...);

#endif /* WARMPATH_CLI_H */
