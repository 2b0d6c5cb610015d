/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath, the command line: the table of subcommands.
 */
#include "cli/cli.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"

static const struct subcommand subcommands[] = {
	{"status", status_main, "Print what warmpathd does"},
	{"replica", replica_main, "List and change the replicas"},
	{"service", service_main, "List the services"},
	{"route", route_main, "Print the home of a conversation"},
	{"address", address_main, "Print the address to connect to for a conversation"},
	{"attach", attach_main, "Attach the router to an interface"},
	{"detach", detach_main, "Detach the router from an interface, or from all"},
	{"reload", reload_main, "Apply the configuration anew"},
	{"upgrade", upgrade_main, "Have another build of warmpathd take over"},
	{"policy", policy_main, "Show and change how replicas are chosen"},
	{"explain", explain_main, "Say what would be decided on a request now, and why"},
	{"trace", trace_main, "Print decisions and completions as they are made, with reasons"},
	{"top", top_main, "Show what the replicas do at present"},
	{"watch", watch_main, "Print decisions and changes of the set as they happen"},
	{"conversation", conversation_main,
	 "Print what is known of one conversation, or forget it"},
	{"doctor", doctor_main,
	 "Look for what keeps this machine from working, and say what to do"},
	{"counters", counters_main, "Print what became of the packets"},
	{"decide", decide_main, "Try a policy out on events, without a running router"},
	{"ring", ring_main, "Look at the hash ring, without a running router"},
	{"version", version_main, "Print the version"},
	{0},
};

/* Takes "--socket PATH" in front of the subcommand, where scripts put it once for all. */
static int take_socket(int argc, char **argv)
{
	static const char option[] = "--socket";
	int taken = 0;

	if (argc > 2 && strcmp(argv[1], option) == 0) {
		client_default_socket = argv[2];
		taken = 2;
	} else if (argc > 1 && strncmp(argv[1], option, strlen(option)) == 0 &&
		   argv[1][strlen(option)] == '=') {
		client_default_socket = argv[1] + strlen(option) + 1;
		taken = 1;
	}
	if (taken)
		memmove(argv + 1, argv + 1 + taken, (argc - taken) * sizeof(*argv));
	return argc - taken;
}

/* What was printed into a full disk, or a pipe that nobody reads, is no success, whichever subcommand it was. */
static void close_output(void)
{
	int failed = ferror(stdout);

	if ((fclose(stdout) == 0 && !failed) || errno == EPIPE)
		return;
	complain("the output cannot be written: %s", strerror(errno));
	_exit(EXIT_FAILED);
}

int main(int argc, char **argv)
{
	atexit(close_output);
	argp_err_exit_status = EXIT_USAGE;
	if (argc > 0)
		argv[0] = "warmpath";
	argc = take_socket(argc, argv);
	return run_subcommand(subcommands, argc, argv);
}
