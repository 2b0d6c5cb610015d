/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages on the control socket: one JSON object on a line in, one on a line out.
 *
 *	-> {"command": "route", "id": "conv1"}
 *	<- {"ok": true, ...} or {"ok": false, "error": "one sentence"}
 *
 * Owns: framing, limits, reading arguments out of a message, the client's side. May not know: what any command does.
 */
#ifndef WARMPATH_USER_CONTROL_H
#define WARMPATH_USER_CONTROL_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/error.h"

#define CONTROL_SOCKET_DEFAULT "/run/warmpath/control.sock"
#define CONTROL_LINE_MAX       65536	   /* of a question, with its newline */
#define CONTROL_ANSWER_MAX     (16u << 20) /* of an answer */

/*
 * Reads one line (without its newline) as a message: a JSON object with a text "command". NULL with a sentence if it is not one;
 * else the caller drops the reference.
 */
json_t *control_parse(const char *line, size_t length, struct error *error);

/* {"ok": false, "error": sentence}; a new reference. */
json_t *control_refusal(const char *sentence);

/* --- arguments of a message: each 0, or -EINVAL with a sentence that names the argument ---------------------- */

/* Text without control characters. Borrowed from the message; *text is NULL if it is absent and not `required`. */
int control_text(const json_t *message, const char *name, bool required, const char **text,
		 struct error *error);

/* A whole number in a range; *number stays as it is if it is absent and not `required`. */
int control_number(const json_t *message, const char *name, bool required, json_int_t minimum,
		   json_int_t maximum, json_int_t *number, struct error *error);

/* A number with up to three decimals, in thousandths. */
int control_thousandths(const json_t *message, const char *name, bool required, json_int_t minimum,
			json_int_t maximum, json_int_t *thousandths, struct error *error);

int control_flag(const json_t *message, const char *name, bool *flag, struct error *error);

/* Refuses arguments that are not in `known` (ended by NULL; "command" is always known). */
int control_only(const json_t *message, const char *const *known, struct error *error);

/* --- the client's side ------------------------------------------------------------------------------------------ */

/* Connects to the agent. A descriptor, or a negative errno with a sentence. */
int control_connect(const char *path, struct error *error);

/*
 * Sends `message` and waits for the answer. 0 and a new reference in *answer, also if the agent refused (then "ok" is false); or a
 * negative errno with a sentence if there was no answer.
 */
int control_ask(int descriptor, const json_t *message, json_t **answer, struct error *error);

#define STREAM_PATIENCE_SECONDS 1

/* A command that is answered by many lines. */
struct control_stream {
	int descriptor;
	char *text; /* received and not read yet */
	size_t length;
	size_t room;
};

/* Sends `message` on a connection, of which the stream takes over the descriptor. 0, or a negative errno with a sentence. */
int control_stream_open(struct control_stream *stream, int descriptor, const json_t *message,
			struct error *error);

/*
 * Waits for the next line: 0 and a new reference; -ENODATA if the agent has hung up, -EINTR after a signal
 * or STREAM_PATIENCE_SECONDS without anything; or another negative errno
 * with a sentence.
 */
int control_stream_next(struct control_stream *stream, json_t **message, struct error *error);

void control_stream_close(struct control_stream *stream);

#endif /* WARMPATH_USER_CONTROL_H */
