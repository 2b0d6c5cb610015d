/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath conversation [show] ID, warmpath conversation forget ID
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/event_line.h"

#define COUNT_DEFAULT 5
#define COUNT_MAX     100

struct show_arguments {
	struct plain_arguments plain;
	long count;
	bool explain;
};

static double real(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

/* --- show --------------------------------------------------------------------------------------------------------------- */

static void print_placement(const json_t *placement)
{
	if (!json_is_object(placement)) {
		puts("placement  none: no answer has been remembered (see warmpath policy show)");
		return;
	}
	printf("placement  %s, %lld prompt tokens served there %.0f s ago",
	       client_text(placement, "replica"),
	       (long long)client_number(placement, "prompt_tokens"),
	       real(placement, "age_seconds"));
	if (json_is_true(json_object_get(placement, "counts")))
		putchar('\n');
	else
		printf("; it does not count any more: %s\n",
		       client_text(placement, "void_because"));
}

static void print_open(const json_t *list)
{
	json_t *request;
	size_t i;

	if (json_array_size(list) == 0)
		puts("open       no request");
	json_array_foreach(list, i, request) printf(
		"%s  request %lld on %s for %.1f s: %lld prompt tokens, %lld tokens charged, "
		"from %s\n",
		i ? "         " : "open     ", (long long)client_number(request, "number"),
		client_text(request, "replica"), real(request, "age_seconds"),
		(long long)client_number(request, "prompt_tokens"),
		(long long)client_number(request, "charge"), client_text(request, "client"));
}

static void print_explained(const json_t *decision)
{
	const char *text = client_text(decision, "text");

	while (*text) {
		int length = (int)strcspn(text, "\n");

		if (length > 0)
			printf("    %.*s\n", length, text);
		text += length + (text[length] == '\n');
	}
}

static void print_decisions(const json_t *list, bool explain)
{
	json_t *decision;
	size_t i;

	if (json_array_size(list) == 0) {
		puts("\nNo decision on it is remembered since warmpathd was started.");
		return;
	}
	puts("\nlast decisions, the newest first:");
	json_array_foreach(list, i, decision)
	{
		const char *status = client_text(decision, "status");
		char time[16], line[EVENT_LINE_SIZE];
		enum style style = event_line(decision, line);

		event_time(decision, time);
		printf("  %s  %s%s%s", time, style_text(style), line, style_text(STYLE_PLAIN));
		if (status[0])
			printf("  (%s, %.3f s)\n", status, real(decision, "seconds"));
		else
			puts("  (not ended)");
		if (explain)
			print_explained(decision);
	}
}

static void print_head(const json_t *answer)
{
	const char *home = client_text(answer, "home");

	printf("%s of service %s, hash %s\n", client_text(answer, "id"),
	       client_text(answer, "service"), client_text(answer, "hash"));
	printf("home       %s\n", home[0] ? home : "none: no replica is active");
	print_placement(json_object_get(answer, "placement"));
	print_open(json_object_get(answer, "open"));
}

static void print_conversation(const json_t *answer)
{
	print_head(answer);
	print_decisions(json_object_get(answer, "decisions"), false);
}

static void print_conversation_explained(const json_t *answer)
{
	print_head(answer);
	print_decisions(json_object_get(answer, "decisions"), true);
}

static error_t parse_show(int key, char *argument, struct argp_state *state)
{
	struct show_arguments *arguments = state->input;

	switch (key) {
	case 'n':
		arguments->count = argument_number(state, argument, "decisions", 0, COUNT_MAX);
		return 0;
	case 'e':
		arguments->explain = true;
		return 0;
	default:
		return client_parse_plain(key, argument, state);
	}
}

static int show_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"count", 'n', "NUMBER", 0, "Print so many of the last decisions, 0 to 100 (5)", 0},
		{"explain", 'e', NULL, 0, "With the numbers that each was made from", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_show,
		.args_doc = "ID",
		.children = client_service_children,
		.doc = "Print what is known of a conversation: its home on the ring, where it was last served and "
		       "how many tokens are cached there, its open requests, and the last decisions with the "
		       "reason of each move.\v"
		       "Examples:\n  warmpath conversation conv1\n"
		       "  warmpath conversation show conv1 --explain --count 2",
	};
	struct show_arguments arguments = {.plain.expected = 1, .count = COUNT_DEFAULT};
	const struct client_options *client = &arguments.plain.client;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_show(client,
			   json_pack("{s:s, s:s*, s:s, s:I}", "command", "conversation", "service",
				     client->service, "id", arguments.plain.values[0], "count",
				     (json_int_t)arguments.count),
			   arguments.explain ? print_conversation_explained : print_conversation);
}

/* --- forget ------------------------------------------------------------------------------------------------------------- */

static void print_forgotten(const json_t *answer)
{
	const json_t *placement = json_object_get(answer, "placement");

	if (json_is_object(placement))
		printf("forgotten: its placement on %s with %lld prompt tokens, and %lld decisions\n",
		       client_text(placement, "replica"),
		       (long long)client_number(placement, "prompt_tokens"),
		       (long long)client_number(answer, "decisions"));
	else
		printf("forgotten: %lld decisions; it had no placement\n",
		       (long long)client_number(answer, "decisions"));
}

static int forget_main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = client_parse_plain,
		.args_doc = "ID",
		.children = client_service_children,
		.doc = "Forget where a conversation was served: its next request goes home. Connections that are "
		       "open stay where they are.\v"
		       "Example:\n  warmpath conversation forget conv1",
	};
	struct plain_arguments arguments = {.expected = 1};

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	return client_show(&arguments.client,
			   json_pack("{s:s, s:s*, s:s}", "command", "conversation-forget",
				     "service", arguments.client.service, "id",
				     arguments.values[0]),
			   print_forgotten);
}

int conversation_main(int argc, char **argv)
{
	static const struct subcommand subcommands[] = {
		{"show", show_main,
		 "Print what is known of a conversation; the word \"show\" may be left out"},
		{"forget", forget_main, "Forget where it was served"},
		{0},
	};

	/* "conversation ID" is what is typed most: anything that is no subcommand is an id */
	if (argc > 1 && argv[1][0] != '-' && strcmp(argv[1], "show") != 0 &&
	    strcmp(argv[1], "forget") != 0 && strcmp(argv[1], "help") != 0)
		return show_main(argc, argv);
	return run_subcommand(subcommands, argc, argv);
}
