/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection, bytes as they are, and everything that comes back: of the test programs that hold what a service answers against what its replica
 * answers directly.
 *
 * Owns: connecting, sending in pieces, reading to the end, masking what two equal answers differ in. May not know: what the bytes mean beyond
 * that.
 */
#ifndef WARMPATH_TEST_RAW_EXCHANGE_H
#define WARMPATH_TEST_RAW_EXCHANGE_H

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server_address.h"

#define TRANSCRIPT_MAX	 65536
#define PATIENCE_SECONDS 15 /* TCP repeats after 0.2, 0.4, 0.8 ... s */

struct server {
	struct sockaddr_storage address;
	socklen_t length;
};

struct transcript {
	char text[TRANSCRIPT_MAX + 1];
	size_t length;
	bool closed; /* by the server */
	int error;   /* how it ended otherwise */
};

static double seconds_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* A connection that sends what it is given at once. -1: errno. */
static int raw_connect(const struct server *server)
{
	struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
	int on = 1, connection = socket(server->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connection < 0)
		return -1;
	setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(connection, (const struct sockaddr *)&server->address, server->length)) {
		close(connection);
		return -1;
	}
	return connection;
}

/* False: errno. A server may close before it has read all: that is in the transcript then. */
static bool raw_send(int connection, const void *bytes, size_t length)
{
	const char *from = bytes;

	while (length) {
		ssize_t sent = send(connection, from, length, MSG_NOSIGNAL);

		if (sent < 0)
			return false;
		from += sent;
		length -= sent;
	}
	return true;
}

/* Reads until the server closes, `until` has come (NULL: not looked for), or patience is over. */
static inline void raw_read(int connection, struct transcript *transcript, const char *until)
{
	double end = seconds_now() + PATIENCE_SECONDS;

	for (;;) {
		struct pollfd waiting = {.fd = connection, .events = POLLIN};
		int left = (end - seconds_now()) * 1e3;
		ssize_t got;

		transcript->text[transcript->length] = '\0';
		if (until && strstr(transcript->text, until))
			return;
		if (left <= 0 || poll(&waiting, 1, left) <= 0) {
			transcript->error = ETIMEDOUT;
			return;
		}
		got = recv(connection, transcript->text + transcript->length,
			   TRANSCRIPT_MAX - transcript->length, 0);
		if (got <= 0) {
			transcript->closed = got == 0;
			transcript->error = got < 0 ? errno : 0;
			return;
		}
		transcript->length += got;
	}
}

/* Sets the digits of Date to 0, so that two answers of the same kind are equal. */
static inline void mask_dates(struct transcript *transcript)
{
	char *at = transcript->text;

	while ((at = strstr(at, "\r\nDate: "))) {
		char *end = strstr(at + 2, "\r\n");

		for (at += 8; end && at < end; at++)
			*at = '-';
	}
}

/* A whole connection: sends the bytes (in two pieces if 0 < cut < length, `pause` microseconds apart), reads to the end. */
static inline void raw_exchange(const struct server *server, const char *bytes, size_t length,
				size_t cut, unsigned int pause, struct transcript *transcript)
{
	int connection = raw_connect(server);

	transcript->length = 0;
	transcript->text[0] = '\0';
	transcript->closed = false;
	transcript->error = errno;
	if (connection < 0)
		return;
	transcript->error = 0;
	if (cut > 0 && cut < length) {
		raw_send(connection, bytes, cut);
		if (pause)
			usleep(pause);
		raw_send(connection, bytes + cut, length - cut);
	} else {
		raw_send(connection, bytes, length);
	}
	raw_read(connection, transcript, NULL);
	mask_dates(transcript);
	close(connection);
}

/* Says on a line of its own what differs, and where. Returns whether nothing does. */
static inline bool transcripts_equal(const char *what, const struct transcript *got,
				     const struct transcript *expected)
{
	if (got->length == expected->length &&
	    memcmp(got->text, expected->text, got->length) == 0 &&
	    got->closed == expected->closed && got->error == expected->error)
		return true;
	printf("# %s: %zu bytes%s%s, expected are %zu%s%s:\n", what, got->length,
	       got->closed ? ", closed" : "", got->error ? strerror(got->error) : "",
	       expected->length, expected->closed ? ", closed" : "",
	       expected->error ? strerror(expected->error) : "");
	for (const char *at = got->text; *at && at < got->text + 400;) {
		int line = strcspn(at, "\r\n");

		printf("#   %.*s\n", line, at);
		at += line;
		at += strspn(at, "\r\n");
	}
	return false;
}

#endif /* WARMPATH_TEST_RAW_EXCHANGE_H */
