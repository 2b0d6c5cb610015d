/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath replica drain [--wait] [--deadline SECONDS]
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "lib/control.h"

#define POLL_MILLISECONDS 500
#define PATIENCE_SECONDS  30 /* with a warmpathd that does not answer: it may be restarting */
#define DEADLINE_MAX	  (7 * 86400)

struct drain_arguments {
	struct plain_arguments plain;
	bool wait;
	long deadline; /* seconds; 0: none */
};

struct busy {
	bool draining;
	long long requests;
	long long connections;
};

static error_t parse_drain(int key, char *argument, struct argp_state *state)
{
	struct drain_arguments *arguments = state->input;

	if (key == 'w') {
		arguments->wait = true;
	} else if (key == 'd') {
		arguments->deadline = argument_number(state, argument, "seconds", 1, DEADLINE_MAX);
		arguments->wait = true;
	} else {
		return client_parse_plain(key, argument, state);
	}
	return 0;
}

static double seconds_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) + (double)(now.tv_nsec - from->tv_nsec) / 1e9;
}

/* --- what is left ----------------------------------------------------------------------------------------------- */

/* 0; or a negative errno with a sentence, -EAGAIN if warmpathd did not answer. */
static int ask_busy(const struct drain_arguments *arguments, struct busy *busy, struct error *error)
{
	json_t *message =
		json_pack("{s:s, s:s*, s:s}", "command", "replica-busy", "service",
			  arguments->plain.client.service, "name", arguments->plain.values[0]);
	int descriptor = control_connect(client_socket(&arguments->plain.client), error);
	json_t *answer = NULL;
	int result = -EAGAIN;

	if (descriptor >= 0 && control_ask(descriptor, message, &answer, error) == 0) {
		result = 0;
		if (!json_is_true(json_object_get(answer, "ok")))
			result = error_set(error, -ENOENT, "%s", client_text(answer, "error"));
		busy->draining = json_is_true(json_object_get(answer, "draining"));
		busy->requests = client_number(answer, "requests");
		busy->connections = client_number(answer, "connections");
	}
	if (descriptor >= 0)
		close(descriptor);
	json_decref(answer);
	json_decref(message);
	return result;
}

static const char *describe(const struct busy *busy, char *text, size_t size)
{
	snprintf(text, size, "%lld open request%s, %lld connection%s", busy->requests,
		 busy->requests == 1 ? "" : "s", busy->connections,
		 busy->connections == 1 ? "" : "s");
	return text;
}

/* On a terminal one line that is rewritten; else a line for each change. */
static void show(const struct drain_arguments *arguments, const struct busy *busy,
		 const struct busy *shown, double seconds)
{
	const char *name = arguments->plain.values[0];
	char text[80];

	if (arguments->plain.client.json)
		return;
	describe(busy, text, sizeof(text));
	if (isatty(STDOUT_FILENO))
		printf("\r%s: %s, %.0f s\033[K", name, text, seconds);
	else if (busy->requests != shown->requests || busy->connections != shown->connections)
		printf("%s: %s, %.0f s\n", name, text, seconds);
	fflush(stdout);
}

static void end_line(const struct drain_arguments *arguments)
{
	if (!arguments->plain.client.json && isatty(STDOUT_FILENO))
		putchar('\n');
}

/* Says how it ended: with --json an object, else a sentence. An exit code. */
static int end(const struct drain_arguments *arguments, const struct busy *busy, double seconds,
	       const char *failure)
{
	const char *name = arguments->plain.values[0];
	json_t *object;

	end_line(arguments);
	if (arguments->plain.client.json) {
		object = json_pack("{s:b, s:s, s:s, s:I, s:I, s:f, s:s*}", "ok", !failure, "name",
				   name, "done", failure ? "draining" : "drained", "requests",
				   (json_int_t)busy->requests, "connections",
				   (json_int_t)busy->connections, "seconds", seconds, "error",
				   failure);
		json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
		putchar('\n');
		json_decref(object);
	} else if (!failure) {
		printf("drained: %s has nothing open any more\n", name);
	}
	if (failure)
		complain("%s", failure);
	return failure ? EXIT_FAILED : EXIT_DONE;
}

static int wait_until_drained(const struct drain_arguments *arguments)
{
	static const struct timespec pause = {.tv_nsec = POLL_MILLISECONDS * 1000000L};
	struct busy busy = {0}, shown = {.requests = -1};
	struct timespec begun, answered;
	char text[80], failure[200];
	struct error error;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	answered = begun;
	for (;; nanosleep(&pause, NULL)) {
		int result = ask_busy(arguments, &busy, &error);
		double seconds = seconds_since(&begun);

		if (result == -EAGAIN && seconds_since(&answered) < PATIENCE_SECONDS)
			continue;
		if (result) {
			end_line(arguments);
			complain("%s", error.text);
			return result == -EAGAIN ? EXIT_UNREACHABLE : EXIT_FAILED;
		}
		clock_gettime(CLOCK_MONOTONIC, &answered);
		show(arguments, &busy, &shown, seconds);
		shown = busy;
		if (!busy.draining) {
			snprintf(failure, sizeof(failure),
				 "replica %s is not being drained any more",
				 arguments->plain.values[0]);
			return end(arguments, &busy, seconds, failure);
		}
		if (busy.requests == 0 && busy.connections == 0)
			return end(arguments, &busy, seconds, NULL);
		if (arguments->deadline && seconds >= (double)arguments->deadline) {
			snprintf(failure, sizeof(failure),
				 "replica %s still has %s after %ld s; it goes on draining",
				 arguments->plain.values[0], describe(&busy, text, sizeof(text)),
				 arguments->deadline);
			return end(arguments, &busy, seconds, failure);
		}
	}
}

/* --- the command -------------------------------------------------------------------------------------------------- */

int replica_drain_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"wait", 'w', NULL, 0, "Wait until nothing of the replica's is open any more", 0},
		{"deadline", 'd', "SECONDS", 0,
		 "Wait no longer than this; exit status 1 if something is open then", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_drain,
		.args_doc = "NAME",
		.children = client_service_children,
		.doc = "Give a replica no new conversations. What is open there ends undisturbed; a conversation "
		       "of it moves with its next request.\v"
		       "Example:\n  warmpath replica drain llm-0 --wait --deadline 600 && ssh llm-0 reboot",
	};
	struct drain_arguments arguments = {.plain.expected = 1};
	const struct client_options *client = &arguments.plain.client;
	json_t *answer = NULL, *message;
	struct client_options quiet;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	message = json_pack("{s:s, s:s*, s:s}", "command", "replica-drain", "service",
			    client->service, "name", arguments.plain.values[0]);
	if (!arguments.wait)
		return client_do(client, message, "draining");
	/* with --json one object is printed: that of the end */
	quiet = *client;
	quiet.json = false;
	code = client_ask(&quiet, message, &answer);
	json_decref(answer);
	return code == EXIT_DONE ? wait_until_drained(&arguments) : code;
}
