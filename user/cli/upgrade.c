/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath upgrade
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "lib/control.h"

#define WAIT_SECONDS 60 /* for the new agent, which loads its programs first */

struct upgrade_arguments {
	struct plain_arguments plain;
	char *program; /* absolute */
	bool check;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct upgrade_arguments *arguments = state->input;

	switch (key) {
	case 'p':
		free(arguments->program);
		arguments->program = realpath(argument, NULL);
		if (!arguments->program)
			argp_error(state, "there is no file %s", argument);
		return 0;
	case 'c':
		arguments->check = true;
		return 0;
	default:
		return client_parse_plain(key, argument, state);
	}
}

/* What the agent says to "version" without a word if it does not answer; NULL then. The caller drops the reference. */
static json_t *ask_version(const struct client_options *options)
{
	json_t *message = json_pack("{s:s}", "command", "version"), *answer = NULL;
	struct error error;
	int descriptor = control_connect(client_socket(options), &error);

	if (descriptor >= 0 && message)
		control_ask(descriptor, message, &answer, &error);
	if (descriptor >= 0)
		close(descriptor);
	json_decref(message);
	return answer;
}

/* Waits for an agent that is another than `before`. NULL: none came. */
static json_t *wait_for_another(const struct client_options *options, const json_t *before)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	struct timespec clock;
	time_t end;
	json_t *now;

	/* not by the time of day, which somebody may set meanwhile */
	clock_gettime(CLOCK_MONOTONIC, &clock);
	end = clock.tv_sec + WAIT_SECONDS;
	for (; clock.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &clock)) {
		now = ask_version(options);
		if (now && strcmp(client_text(now, "instance"), client_text(before, "instance")))
			return now;
		json_decref(now);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static int report(const struct client_options *options, const json_t *before, const json_t *now)
{
	json_t *status;
	struct client_options quiet = *options;
	int code;

	quiet.json = false;
	code = client_ask(&quiet, json_pack("{s:s}", "command", "status"), &status);
	if (code == EXIT_DONE && options->json) {
		json_t *answer =
			json_pack("{s:b, s:s, s:s, s:O, s:O}", "ok", 1, "from",
				  client_text(before, "version"), "to", client_text(now, "version"),
				  "process", json_object_get(status, "process"), "adopted",
				  json_object_get(status, "adopted"));

		json_dumpf(answer, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(answer);
	} else if (code == EXIT_DONE) {
		printf("upgraded: warmpathd %s (was %s), process %lld, data path %s\n",
		       client_text(now, "version"), client_text(before, "version"),
		       (long long)client_number(status, "process"),
		       json_is_true(json_object_get(status, "adopted"))
			       ? "taken over with its connections"
			       : "made anew");
	}
	json_decref(status);
	return code;
}

static int upgrade(const struct upgrade_arguments *arguments, const json_t *before)
{
	const struct client_options *options = &arguments->plain.client;
	struct client_options quiet = *options;
	json_t *answer, *now;
	int code;

	quiet.json = options->json && arguments->check; /* else the answer is what came of it */
	code = client_ask(&quiet,
			  json_pack("{s:s, s:s*, s:b}", "command", "upgrade", "program",
				    arguments->program, "check", arguments->check),
			  &answer);
	if (code == EXIT_DONE && arguments->check && !options->json)
		printf("%s can take over\n", client_text(answer, "program"));
	json_decref(answer);
	if (code != EXIT_DONE || arguments->check)
		return code;
	now = wait_for_another(options, before);
	if (!now) {
		complain(
			"the new warmpathd does not answer; the data path goes on: look into its log, "
			"and start it again");
		return EXIT_UNREACHABLE;
	}
	code = report(options, before, now);
	json_decref(now);
	return code;
}

int upgrade_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"program", 'p', "FILE", 0,
		 "The build to upgrade to (without this option: what is now at the path that the running "
		 "one was started from)",
		 0},
		{"check", 'c', NULL, 0, "Only ask it whether it can take over", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = client_children,
		.doc = "Have another build of warmpathd take over from the running one. It is asked first "
		       "whether it can, with the configuration file as it is now and the maps in use; if not, "
		       "nothing is changed. Its programs then take the places of the running ones, one by one, "
		       "and connections, loads and counters go on.\v"
		       "Examples:\n"
		       "  warmpath upgrade\n"
		       "  warmpath upgrade --program /usr/local/sbin/warmpathd.before",
	};
	struct upgrade_arguments arguments = {.plain = {.expected = 0}};
	json_t *before;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	code = client_ask(&(struct client_options){.socket = arguments.plain.client.socket},
			  json_pack("{s:s}", "command", "version"), &before);
	if (code == EXIT_DONE)
		code = upgrade(&arguments, before);
	json_decref(before);
	free(arguments.program);
	return code;
}
