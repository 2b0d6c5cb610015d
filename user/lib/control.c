/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/control.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_SECONDS 60 /* a ring of a million points takes a few */

static bool is_blank(const char *line, size_t length)
{
	while (length > 0 && strchr(" \t\r", line[length - 1]) && line[length - 1])
		length--;
	return length == 0;
}

json_t *control_parse(const char *line, size_t length, struct error *error)
{
	json_error_t problem;
	json_t *message;

	message = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
	if (!message) {
		if (is_blank(line, length))
			error_set(error, -EINVAL,
				  "the message is empty: one JSON object a line is expected");
		else if (json_error_code(&problem) == json_error_invalid_utf8)
			error_set(error, -EINVAL, "the message is not UTF-8 text");
		else
			error_set(error, -EINVAL, "the message is not JSON: %s", problem.text);
		return NULL;
	}
	if (!json_is_object(message))
		error_set(error, -EINVAL, "the message is not a JSON object");
	else if (!json_is_string(json_object_get(message, "command")))
		error_set(error, -EINVAL, "the message has no text \"command\"");
	else
		return message;
	json_decref(message);
	return NULL;
}

json_t *control_refusal(const char *sentence)
{
	json_t *answer = json_pack("{s:b, s:s}", "ok", 0, "error", sentence);
	char *plain, *at;

	if (answer)
		return answer;
	/* One that was cut in the middle of a character, or repeats what is not UTF-8, is still to be said. */
	plain = strdup(sentence);
	for (at = plain; at && *at; at++) {
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	}
	answer = json_pack("{s:b, s:s}", "ok", 0, "error", plain ? plain : "refused");
	free(plain);
	return answer;
}

/* --- arguments -------------------------------------------------------------------------------------------------- */

static int absent(const char *name, bool required, struct error *error)
{
	return required ? error_set(error, -EINVAL, "the argument \"%s\" is missing", name) : 0;
}

int control_text(const json_t *message, const char *name, bool required, const char **text,
		 struct error *error)
{
	const json_t *value = json_object_get(message, name);
	const char *at;

	*text = NULL;
	if (!value)
		return absent(name, required, error);
	if (!json_is_string(value))
		return error_set(error, -EINVAL, "the argument \"%s\" is not text", name);
	for (at = json_string_value(value); *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return error_set(error, -EINVAL,
					 "the argument \"%s\" has control characters", name);
	}
	*text = json_string_value(value);
	return 0;
}

int control_number(const json_t *message, const char *name, bool required, json_int_t minimum,
		   json_int_t maximum, json_int_t *number, struct error *error)
{
	const json_t *value = json_object_get(message, name);

	if (!value)
		return absent(name, required, error);
	if (!json_is_integer(value) || json_integer_value(value) < minimum ||
	    json_integer_value(value) > maximum)
		return error_set(error, -EINVAL,
				 "the argument \"%s\" is not a whole number from %lld to %lld",
				 name, (long long)minimum, (long long)maximum);
	*number = json_integer_value(value);
	return 0;
}

int control_thousandths(const json_t *message, const char *name, bool required, json_int_t minimum,
			json_int_t maximum, json_int_t *thousandths, struct error *error)
{
	const json_t *value = json_object_get(message, name);
	double scaled;

	if (!value)
		return absent(name, required, error);
	scaled = json_is_number(value) ? json_number_value(value) * 1000 : NAN;
	if (!(scaled >= minimum && scaled <= maximum) || fabs(scaled - rint(scaled)) > 1e-6)
		return error_set(
			error, -EINVAL,
			"the argument \"%s\" is not a number from %g to %g with at most 3 digits "
			"after the point",
			name, minimum / 1000.0, maximum / 1000.0);
	*thousandths = (json_int_t)rint(scaled);
	return 0;
}

int control_flag(const json_t *message, const char *name, bool *flag, struct error *error)
{
	const json_t *value = json_object_get(message, name);

	if (value && !json_is_boolean(value))
		return error_set(error, -EINVAL, "the argument \"%s\" is not true or false", name);
	if (value)
		*flag = json_is_true(value);
	return 0;
}

int control_only(const json_t *message, const char *const *known, struct error *error)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)message, name, value)
	{
		const char *const *at = known;

		if (strcmp(name, "command") == 0)
			continue;
		while (*at && strcmp(*at, name) != 0)
			at++;
		if (!*at)
			return error_set(error, -EINVAL, "command %s has no argument \"%.64s\"",
					 json_string_value(json_object_get(message, "command")),
					 name);
	}
	return 0;
}

/* --- the client's side -------------------------------------------------------------------------------------------- */

int control_connect(const char *path, struct error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
	int descriptor, result;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(error, -ENAMETOOLONG, "the socket path %s is too long", path);
	strcpy(address.sun_path, path);
	descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (descriptor < 0)
		return error_set(error, -errno, "no socket can be made: %s", strerror(errno));
	setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(descriptor, (struct sockaddr *)&address, sizeof(address)) == 0)
		return descriptor;
	result = -errno;
	close(descriptor);
	if (result == -ENOENT || result == -ECONNREFUSED)
		return error_set(
			error, result,
			"warmpathd is not running, or its control socket is not %s (--socket)",
			path);
	if (result == -EACCES)
		return error_set(
			error, result,
			"%s belongs to another user: be root, or the user warmpathd runs as", path);
	return error_set(error, result, "%s cannot be connected to: %s", path, strerror(-result));
}

static int send_message(int descriptor, const json_t *message, struct error *error)
{
	char *text = json_dumps(message, JSON_COMPACT);
	size_t length, sent = 0;
	int result = 0;

	if (!text)
		return error_set(error, -ENOMEM, "not enough memory");
	length = strlen(text);
	text[length++] = '\n'; /* in the place of the closing NUL */
	if (length > CONTROL_LINE_MAX)
		result = error_set(error, -E2BIG, "the message is longer than %d bytes",
				   CONTROL_LINE_MAX);
	while (!result && sent < length) {
		ssize_t now = send(descriptor, text + sent, length - sent, MSG_NOSIGNAL);

		if (now < 0)
			result = error_set(error, -errno, "warmpathd cannot be talked to: %s",
					   strerror(errno));
		else
			sent += now;
	}
	free(text);
	return result;
}

/* Reads up to the newline; the caller frees *line. */
static int receive_line(int descriptor, char **line, size_t *length, struct error *error)
{
	size_t room = 0;

	*line = NULL;
	*length = 0;
	for (;;) {
		char *newline;
		ssize_t now;

		if (*length + 4096 > room) {
			char *grown;

			room = room ? room * 2 : 16384;
			grown = room > CONTROL_ANSWER_MAX ? NULL : realloc(*line, room);
			if (!grown)
				return error_set(error, -E2BIG, "warmpathd's answer is too long");
			*line = grown;
		}
		now = recv(descriptor, *line + *length, room - *length, 0);
		if (now < 0 && errno == EINTR)
			continue;
		if (now < 0)
			return error_set(error, -errno, "warmpathd does not answer: %s",
					 errno == EAGAIN ? "timed out" : strerror(errno));
		if (now == 0)
			return error_set(error, -ECONNRESET,
					 "warmpathd closed the connection without an answer");
		newline = memchr(*line + *length, '\n', now);
		*length += now;
		if (newline) {
			*length = newline - *line;
			return 0;
		}
	}
}

int control_ask(int descriptor, const json_t *message, json_t **answer, struct error *error)
{
	json_error_t problem;
	char *line = NULL;
	size_t length;
	int result;

	*answer = NULL;
	result = send_message(descriptor, message, error);
	/* One who hangs up on us may have said why: too many connections, another user's. */
	if (!result || result == -EPIPE || result == -ECONNRESET)
		result = receive_line(descriptor, &line, &length, error);
	if (!result) {
		*answer = json_loadb(line, length, 0, &problem);
		if (!json_is_object(*answer)) {
			json_decref(*answer);
			*answer = NULL;
			result = error_set(error, -EPROTO, "warmpathd's answer is not understood");
		}
	}
	free(line);
	return result;
}

/* --- answers of many lines ---------------------------------------------------------------------------------------- */

int control_stream_open(struct control_stream *stream, int descriptor, const json_t *message,
			struct error *error)
{
	const struct timeval patience = {.tv_sec = STREAM_PATIENCE_SECONDS};
	int result;

	*stream = (struct control_stream){.descriptor = descriptor};
	setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	result = send_message(descriptor, message, error);
	/* as in control_ask() */
	return result == -EPIPE || result == -ECONNRESET ? 0 : result;
}

void control_stream_close(struct control_stream *stream)
{
	close(stream->descriptor);
	free(stream->text);
	*stream = (struct control_stream){.descriptor = -1};
}

/* Takes the first line off what has been received; NULL if there is no whole one. */
static json_t *take_message(struct control_stream *stream, bool *taken)
{
	char *newline = stream->length ? memchr(stream->text, '\n', stream->length) : NULL;
	json_error_t problem;
	json_t *message;
	size_t size;

	*taken = newline != NULL;
	if (!newline)
		return NULL;
	size = newline + 1 - stream->text;
	message = json_loadb(stream->text, size - 1, 0, &problem);
	stream->length -= size;
	memmove(stream->text, newline + 1, stream->length);
	return message;
}

static int receive_more(struct control_stream *stream, struct error *error)
{
	ssize_t now;

	if (stream->room - stream->length < 65536) {
		size_t room = stream->room + 262144;
		char *grown = room > CONTROL_ANSWER_MAX ? NULL : realloc(stream->text, room);

		if (!grown)
			return error_set(error, -E2BIG, "warmpathd's answer is too long");
		stream->text = grown;
		stream->room = room;
	}
	now = recv(stream->descriptor, stream->text + stream->length, stream->room - stream->length,
		   0);
	if (now == 0)
		return -ENODATA;
	if (now < 0 && errno != EINTR && errno != EAGAIN)
		return error_set(error, -errno, "warmpathd cannot be listened to: %s",
				 strerror(errno));
	stream->length += now > 0 ? now : 0;
	return now < 0 ? -EINTR : 0;
}

int control_stream_next(struct control_stream *stream, json_t **message, struct error *error)
{
	bool taken;
	int result;

	for (;;) {
		*message = take_message(stream, &taken);
		if (*message)
			return 0;
		if (taken)
			return error_set(error, -EPROTO, "warmpathd's answer is not understood");
		result = receive_more(stream, error);
		if (result)
			return result;
	}
}
