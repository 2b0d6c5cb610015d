/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/client.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lib/control.h"

const char *client_default_socket;

/* --- options ------------------------------------------------------------------------------------------------------ */

enum {
	OPTION_SOCKET = 's',
	OPTION_JSON = 'j',
	OPTION_SERVICE = 'S',
};

static const struct argp_option client_options_list[] = {
	{"socket", OPTION_SOCKET, "PATH", 0,
	 "The agent's control socket (default " CONTROL_SOCKET_DEFAULT ")", 0},
	{"json", OPTION_JSON, NULL, 0, "Print JSON", 0},
	{0},
};

static const struct argp_option service_options_list[] = {
	{"socket", OPTION_SOCKET, "PATH", 0,
	 "The agent's control socket (default " CONTROL_SOCKET_DEFAULT ")", 0},
	{"json", OPTION_JSON, NULL, 0, "Print JSON", 0},
	{"service", OPTION_SERVICE, "NAME", 0, "The service, where there are several", 0},
	{0},
};

static error_t parse_client(int key, char *argument, struct argp_state *state)
{
	struct client_options *options = state->input;

	switch (key) {
	case OPTION_SOCKET:
		options->socket = argument;
		return 0;
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_SERVICE:
		options->service = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp client_argp = {.options = client_options_list, .parser = parse_client};
const struct argp client_service_argp = {.options = service_options_list, .parser = parse_client};

const struct argp_child client_children[] = {{&client_argp, 0, NULL, 0}, {0}};
const struct argp_child client_service_children[] = {{&client_service_argp, 0, NULL, 0}, {0}};

/* What --help calls the arguments of the subcommand. argp_parse() puts its own options around it, in an argp that names none. */
static const char *names_of_arguments(const struct argp_state *state)
{
	const struct argp *argp = state->root_argp;

	while (!argp->args_doc && argp->children && argp->children[0].argp)
		argp = argp->children[0].argp;
	return argp->args_doc ? argp->args_doc : "an argument";
}

error_t client_parse_plain(int key, char *argument, struct argp_state *state)
{
	struct plain_arguments *arguments = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &arguments->client;
		return 0;
	case ARGP_KEY_ARG:
		if (arguments->got == arguments->expected + arguments->optional)
			return ARGP_ERR_UNKNOWN;
		arguments->values[arguments->got++] = argument;
		return 0;
	case ARGP_KEY_END:
		if (arguments->got < arguments->expected)
			argp_error(state, "%s is needed", names_of_arguments(state));
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

long argument_number(struct argp_state *state, const char *text, const char *things, long minimum,
		     long maximum)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (errno || end == text || *end != '\0' || number < minimum || number > maximum)
		argp_error(state, "\"%s\" is not a number of %s: give %ld to %ld", text, things,
			   minimum, maximum);
	return number;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

const char *client_socket(const struct client_options *options)
{
	const char *environment = getenv("WARMPATH_SOCKET");

	if (options->socket)
		return options->socket;
	if (client_default_socket)
		return client_default_socket;
	return environment && environment[0] ? environment : CONTROL_SOCKET_DEFAULT;
}

/* Says why there is no answer; with --json also as the answer that a refusal would be, in jansson's `form`. An exit code. */
static int no_answer(const struct client_options *options, const struct error *error, size_t form,
		     int code)
{
	complain("%s", error->text);
	if (options->json) {
		json_t *refusal = control_refusal(error->text);

		json_dumpf(refusal, stdout, form);
		putchar('\n');
		json_decref(refusal);
	}
	return code;
}

/* EXIT_DONE and a connection; or another exit code, the sentence said and the reference to `message` dropped. */
static int reach(const struct client_options *options, json_t *message, size_t form,
		 int *descriptor)
{
	struct error error;

	if (!message) {
		error_set(&error, -EINVAL, "an argument is not UTF-8 text");
		return no_answer(options, &error, form, EXIT_USAGE);
	}
	*descriptor = control_connect(client_socket(options), &error);
	if (*descriptor >= 0)
		return EXIT_DONE;
	json_decref(message);
	return no_answer(options, &error, form,
			 *descriptor == -ENAMETOOLONG ? EXIT_USAGE : EXIT_UNREACHABLE);
}

int client_exchange(const struct client_options *options, json_t *message, json_t **answer)
{
	struct error error;
	int descriptor, result;

	*answer = NULL;
	result = reach(options, message, JSON_INDENT(2), &descriptor);
	if (result != EXIT_DONE)
		return result;
	result = control_ask(descriptor, message, answer, &error);
	close(descriptor);
	json_decref(message);
	if (result)
		return no_answer(options, &error, JSON_INDENT(2), EXIT_UNREACHABLE);
	return EXIT_DONE;
}

int client_take_answer(const struct client_options *options, json_t **answer)
{
	if (options->json) {
		json_dumpf(*answer, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
		putchar('\n');
	}
	if (json_is_true(json_object_get(*answer, "ok")))
		return EXIT_DONE;
	complain("%s", client_text(*answer, "error"));
	json_decref(*answer);
	*answer = NULL;
	return EXIT_FAILED;
}

int client_ask(const struct client_options *options, json_t *message, json_t **answer)
{
	int code = client_exchange(options, message, answer);

	return code == EXIT_DONE ? client_take_answer(options, answer) : code;
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number; /* ends the wait for the next line */
	interrupted = 1;
}

void client_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool client_interrupted(void)
{
	return interrupted;
}

static int follow(struct control_stream *stream, bool (*take)(void *context, const json_t *line),
		  void *context, struct error *error)
{
	bool go_on = true, first = true;
	json_t *line;

	while (go_on && !interrupted) {
		int result = control_stream_next(stream, &line, error);

		if (result ==
		    -EINTR) /* a signal, or nothing for a while: look whether it was a signal */
			continue;
		if (result)
			return result;
		if (first && !json_is_true(json_object_get(line, "ok"))) {
			result = error_set(error, -EINVAL, "%s", client_text(line, "error"));
			json_decref(line);
			return result;
		}
		go_on = first || take(context, line);
		first = false;
		json_decref(line);
	}
	return 0;
}

int client_follow(const struct client_options *options, json_t *message,
		  bool (*take)(void *context, const json_t *line), void *context)
{
	struct control_stream stream;
	struct error error;
	int descriptor, result;

	result = reach(options, message, JSON_COMPACT, &descriptor);
	if (result != EXIT_DONE)
		return result;
	result = control_stream_open(&stream, descriptor, message, &error);
	json_decref(message);
	if (!result)
		result = follow(&stream, take, context, &error);
	control_stream_close(&stream);
	if (result == -ENODATA) {
		complain("warmpathd has ended");
		return EXIT_UNREACHABLE;
	}
	if (!result)
		return EXIT_DONE;
	complain("%s", error.text);
	return result == -EINVAL ? EXIT_FAILED : EXIT_UNREACHABLE;
}

bool client_reachable(const struct client_options *options)
{
	struct error error;
	int descriptor = control_connect(client_socket(options), &error);

	if (descriptor < 0)
		return false;
	close(descriptor);
	return true;
}

void client_print_line(const json_t *event)
{
	json_t *copy = json_copy((json_t *)event);

	json_object_del(copy, "text");
	json_dumpf(copy, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
	putchar('\n');
	json_decref(copy);
}

int client_show(const struct client_options *options, json_t *message,
		void (*print)(const json_t *answer))
{
	json_t *answer;
	int code = client_ask(options, message, &answer);

	if (code == EXIT_DONE && !options->json)
		print(answer);
	json_decref(answer);
	return code;
}

int client_do(const struct client_options *options, json_t *message, const char *done)
{
	json_t *answer;
	int code = client_ask(options, message, &answer);

	if (code == EXIT_DONE && done && !options->json)
		printf("%s\n", done);
	json_decref(answer);
	return code;
}

const char *client_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

json_int_t client_number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}
