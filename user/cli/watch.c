/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath watch: one line an event; totals below them on a terminal, JSON in a pipe.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <warmpath/decision.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/event_line.h"

#define WAIT_NANOSECONDS 300000000L /* between looks for an agent that has ended */

struct watch {
	struct plain_arguments plain;
	const char *replica;
	const char *reason;
	bool moved_only;
	bool text; /* also in a pipe */
	long count;

	bool terminal;
	struct timespec started;
	unsigned long decisions, moved, answered, failed, changes;
	unsigned long reasons[REASON_COUNT];
};

static const char *const reason_names[] = {
#define X(name, text) text,
	WARMPATH_ROUTE_REASONS(X)
#undef X
};

/* --- options ------------------------------------------------------------------------------------------------------------ */

static void check_reason(struct argp_state *state, const char *reason)
{
	char names[256] = "";

	for (int i = 0; i < REASON_COUNT; i++) {
		if (strcmp(reason_names[i], reason) == 0)
			return;
		if (i > 0)
			strcat(names, ", ");
		strcat(names, reason_names[i]);
	}
	argp_error(state, "there is no reason \"%s\"; there are: %s", reason, names);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct watch *watch = state->input;

	switch (key) {
	case 'r':
		watch->replica = argument;
		return 0;
	case 'R':
		check_reason(state, argument);
		watch->reason = argument;
		return 0;
	case 'm':
		watch->moved_only = true;
		return 0;
	case 't':
		watch->text = true;
		return 0;
	case 'n':
		watch->count = argument_number(state, argument, "events", 1, LONG_MAX);
		return 0;
	default:
		return client_parse_plain(key, argument, state);
	}
}

/* --- totals ------------------------------------------------------------------------------------------------------------- */

static void add(struct watch *watch, const json_t *event)
{
	const char *kind = client_text(event, "event");

	if (strcmp(kind, "decision") == 0) {
		watch->decisions++;
		watch->moved += client_text(event, "moved_from")[0] != '\0';
		for (int i = 0; i < REASON_COUNT; i++)
			watch->reasons[i] +=
				strcmp(reason_names[i], client_text(event, "reason")) == 0;
	} else if (strcmp(kind, "completion") == 0) {
		if (strcmp(client_text(event, "status"), "success") == 0)
			watch->answered++;
		else
			watch->failed++;
	} else if (strcmp(kind, "refusal") == 0) {
		watch->failed++;
	} else if (strcmp(kind, "change") == 0) {
		watch->changes++;
	}
}

static void describe_totals(const struct watch *watch, FILE *to)
{
	struct timespec now;
	double seconds;

	clock_gettime(CLOCK_MONOTONIC, &now);
	seconds = now.tv_sec - watch->started.tv_sec + (now.tv_nsec - watch->started.tv_nsec) / 1e9;
	fprintf(to, "%lu decision%s in %.0f s; %lu moved, %lu answered, %lu failed, %lu changes",
		watch->decisions, watch->decisions == 1 ? "" : "s", seconds, watch->moved,
		watch->answered, watch->failed, watch->changes);
	for (int i = 0; i < REASON_COUNT; i++)
		if (watch->reasons[i] > 0)
			fprintf(to, "; %s %lu", reason_names[i], watch->reasons[i]);
}

/* The last line is the totals': it gives way to the next event, so it has to fit into one row. */
static void show_totals(const struct watch *watch)
{
	struct winsize size = {0};
	char text[512] = "";
	FILE *to = watch->terminal ? fmemopen(text, sizeof(text) - 1, "w") : NULL;

	if (!to)
		return;
	describe_totals(watch, to);
	fclose(to);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 2)
		size.ws_col = 80;
	printf("%s%.*s%s", style_text(STYLE_QUIET), size.ws_col - 1, text, style_text(STYLE_PLAIN));
}

static void clear_totals(const struct watch *watch)
{
	if (watch->terminal)
		fputs("\r\033[K", stdout);
}

/* --- events ------------------------------------------------------------------------------------------------------------- */

static bool wanted(const struct watch *watch, const json_t *event)
{
	const char *kind = client_text(event, "event");
	bool decision = strcmp(kind, "decision") == 0;

	if (strcmp(kind, "missed") == 0)
		return true;
	if (watch->replica && strcmp(client_text(event, "replica"), watch->replica) != 0 &&
	    strcmp(client_text(event, "moved_from"), watch->replica) != 0)
		return false;
	if (watch->reason &&
	    (!decision || strcmp(client_text(event, "reason"), watch->reason) != 0))
		return false;
	return !watch->moved_only || client_text(event, "moved_from")[0] != '\0';
}

static void print_event(const struct watch *watch, const json_t *event)
{
	char time[16], line[EVENT_LINE_SIZE];
	enum style style;

	if (!watch->text) {
		client_print_line(event);
		return;
	}
	event_time(event, time);
	style = event_line(event, line);
	printf("%s  %s%s%s\n", time, style_text(style), line, style_text(STYLE_PLAIN));
}

static bool take(void *context, const json_t *event)
{
	struct watch *watch = context;

	if (!wanted(watch, event))
		return true;
	add(watch, event);
	clear_totals(watch);
	print_event(watch, event);
	show_totals(watch);
	if (fflush(stdout))
		return false;
	return watch->count == 0 || --watch->count > 0;
}

/* Until the agent ends, the events are enough, or a signal comes. */
static int follow_one_agent(struct watch *watch)
{
	const struct client_options *client = &watch->plain.client;

	return client_follow(client,
			     json_pack("{s:s, s:s*, s:s*, s:b}", "command", "trace", "service",
				       client->service, "id", watch->plain.values[0], "changes",
				       !watch->plain.values[0]),
			     take, watch);
}

/* Waits until an agent answers again. False: a signal came. */
static bool wait_for_agent(const struct client_options *options)
{
	static const struct timespec pause = {.tv_nsec = WAIT_NANOSECONDS};

	while (!client_interrupted() && !client_reachable(options))
		nanosleep(&pause, NULL);
	return !client_interrupted();
}

static int follow(struct watch *watch)
{
	int code;

	do {
		code = follow_one_agent(watch);
	} while (code == EXIT_UNREACHABLE && wait_for_agent(&watch->plain.client));
	return client_interrupted() ? EXIT_DONE : code;
}

int watch_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"replica", 'r', "NAME", 0, "Only what is about this replica", 0},
		{"reason", 'R', "REASON", 0, "Only decisions with this reason, such as overflow",
		 0},
		{"moved", 'm', NULL, 0, "Only decisions that moved a conversation", 0},
		{"count", 'n', "NUMBER", 0, "End after so many events", 0},
		{"text", 't', NULL, 0, "Lines of text also in a pipe, where JSON is the rule", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[ID]",
		.children = client_service_children,
		.doc = "Print decisions, how they ended, and changes of the set of replicas as they happen, a line each; "
		       "of one conversation if an ID is given. Goes on when warmpathd is started again. `warmpath "
		       "trace` prints the numbers of each decision.\v"
		       "Examples:\n  warmpath watch --moved\n"
		       "  warmpath watch --replica llm-0 --reason overflow\n"
		       "  warmpath watch | jq 'select(.event == \"change\")'",
	};
	struct watch watch = {.plain.optional = 1};
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &watch);
	watch.terminal = isatty(STDOUT_FILENO) && !watch.plain.client.json;
	watch.text |= watch.terminal;
	if (watch.plain.client.json)
		watch.text = false;
	/* later agents are waited for, the first is not */
	if (!client_reachable(&watch.plain.client))
		return follow_one_agent(&watch);
	clock_gettime(CLOCK_MONOTONIC, &watch.started);
	client_catch_signals();
	code = follow(&watch);
	if (watch.terminal)
		putchar('\n');
	return code;
}
