/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the subcommands that talk to warmpathd share: their options, asking, printing.
 *
 * Owns: --socket, --json, --service; exit codes of a failed question. May not know: what any command means.
 */
#ifndef WARMPATH_CLI_CLIENT_H
#define WARMPATH_CLI_CLIENT_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

struct client_options {
	const char *socket; /* NULL: the default */
	const char *service;
	bool json;
};

/*
 * To be children of a subcommand's parser: --socket and --json; the second also has --service. Their input is a struct
 * client_options.
 */
extern const struct argp client_argp;
extern const struct argp client_service_argp;

/* The socket if --socket is not given behind the subcommand: "warmpath --socket PATH ...", else $WARMPATH_SOCKET, else built in. */
extern const char *client_default_socket;

/* The path of the socket to use. */
const char *client_socket(const struct client_options *options);

/*
 * Asks warmpathd; drops the reference to `message` (also to one that is NULL: out of memory). EXIT_DONE and the answer (the caller drops
 * the reference), or another exit code after the sentence has been said. With --json the answer, also a refusal, has been printed
 * already.
 */
int client_ask(const struct client_options *options, json_t *message, json_t **answer);

/*
 * The two halves of it, for those who look at a refusal before anybody else does: EXIT_DONE and any answer, of which nothing has been said
 * or printed; then all that is said and printed of one. That takes the reference to a refusal.
 */
int client_exchange(const struct client_options *options, json_t *message, json_t **answer);
int client_take_answer(const struct client_options *options, json_t **answer);

/*
 * Asks for something that is answered by many lines, and gives each to `take`, until that returns false, warmpathd hangs up or a signal
 * comes. The first line, the answer proper, is only looked at for a refusal. Drops the reference to `message`. An exit code.
 */
int client_follow(const struct client_options *options, json_t *message,
		  bool (*take)(void *context, const json_t *line), void *context);

/* Has SIGINT and SIGTERM end what is being waited for, and not the program at once. */
void client_catch_signals(void);
bool client_interrupted(void);

/* Whether an agent takes connections at present. */
bool client_reachable(const struct client_options *options);

/* Prints an event as one line of JSON, without its "text", which says the same in words. */
void client_print_line(const json_t *event);

/* Asks, and gives the answer to `print` unless --json has printed it already. Drops the reference to `message`. An exit code. */
int client_show(const struct client_options *options, json_t *message,
		void (*print)(const json_t *answer));

/* The same where the answer is of no further interest; prints `done` (may be NULL) if not --json. */
int client_do(const struct client_options *options, json_t *message, const char *done);

/* Values of an answer, for printing: text (or ""), a number (or 0). */
const char *client_text(const json_t *object, const char *name);
json_int_t client_number(const json_t *object, const char *name);

/*
 * A parser of the shared options and of plain arguments, named in args_doc. A subcommand with options of its own has this as the first
 * member of its arguments, and its parser leaves to client_parse_plain() what it does not know.
 */
struct plain_arguments {
	struct client_options client;
	const char *values[4]; /* NULL: not given */
	unsigned int expected; /* how many there must be */
	unsigned int optional; /* how many may follow them */
	unsigned int got;
};
error_t client_parse_plain(int key, char *argument, struct argp_state *state);

/* A whole number of an option; complains of a "`text` is not a number of `things`" that is none or out of range, and ends. */
long argument_number(struct argp_state *state, const char *text, const char *things, long minimum,
		     long maximum);
extern const struct argp_child client_children[];
extern const struct argp_child client_service_children[];

#endif /* WARMPATH_CLI_CLIENT_H */
