/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request in pieces: cut at every byte into two segments, a byte a segment, with a head larger than a segment. Each answer has to be, byte for
 * byte, what the replica at the conversation's home answers directly to the request as a whole.
 *
 *   http_cuts ADDRESS PORT ID-A HOME-ADDRESS-A ID-B HOME-ADDRESS-B REPLICA-PORT
 *
 * The two ids have different homes. The server's /upload answers with a digest of the body. Prints TAP.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "raw_exchange.h"

#define REQUEST_MAX 16384

struct conversation {
	const char *id;
	struct server home;
};

static struct server service;
static struct conversation one, other;
static unsigned int number, failures;

static void report(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void report(bool good, const char *format, ...)
{
	va_list arguments;

	printf("%sok %u - ", good ? "" : "not ", ++number);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	failures += !good;
}

/* A request with a head of at least `head` bytes, the id behind what fills it. Returns its length; it ends with a '\0'. */
static size_t write_request(char *text, const char *id, size_t head, size_t body, bool last)
{
	size_t length = sprintf(text, "POST /upload HTTP/1.1\r\nHost: replica\r\n");

	for (unsigned int i = 0; length + 200 < head; i++)
		length += sprintf(text + length, "X-Filling-%u: %.*s\r\n", i, 80,
				  "filling filling filling filling filling filling filling filling "
				  "filling filling filling");
	length += sprintf(text + length, "X-Conversation-Id: %s\r\n%sContent-Length: %zu\r\n\r\n",
			  id, last ? "Connection: close\r\n" : "", body);
	for (size_t i = 0; i < body; i++)
		text[length++] = 'a' + i % 26;
	text[length] = '\0';
	return length;
}

/* The first request of a connection, cut at every byte. */
static void cut_first(const char *request, size_t length, const struct transcript *expected,
		      unsigned int pause)
{
	static struct transcript got;
	unsigned int wrong = 0;

	for (size_t cut = 1; cut < length; cut++) {
		char what[64];

		snprintf(what, sizeof(what), "cut behind byte %zu", cut);
		raw_exchange(&service, request, length, cut, pause, &got);
		wrong += !transcripts_equal(what, &got, expected);
	}
	report(!wrong, "first request of a connection, cut at each of %zu places%s", length - 1,
	       pause ? ", the pieces apart" : "");
}

/* The second request of a connection, which takes it to another replica, cut at every byte. */
static void cut_second(const char *request, size_t length, const struct transcript *expected)
{
	static struct transcript got;
	static char first[REQUEST_MAX];
	size_t first_length = write_request(first, one.id, 0, 5, false);
	unsigned int wrong = 0;

	for (size_t cut = 1; cut < length; cut++) {
		int connection = raw_connect(&service);
		char what[64];

		snprintf(what, sizeof(what), "second request cut behind byte %zu", cut);
		memset(&got, 0, sizeof(got));
		raw_send(connection, first, first_length);
		raw_read(connection, &got,
			 "36bbe50ed96841d10443bcb670d6554f0a34b761be67ec9c4a8ad2c0c44ca42c\n");
		got.length = 0;
		raw_send(connection, request, cut);
		raw_send(connection, request + cut, length - cut);
		raw_read(connection, &got, NULL);
		mask_dates(&got);
		close(connection);
		wrong += !transcripts_equal(what, &got, expected);
	}
	report(!wrong,
	       "second request of a connection, to another replica, cut at each of %zu places",
	       length - 1);
}

static void byte_by_byte(const char *request, size_t length, const struct transcript *expected)
{
	static struct transcript got;
	int connection = raw_connect(&service);

	memset(&got, 0, sizeof(got));
	for (size_t i = 0; i < length; i++) {
		raw_send(connection, request + i, 1);
		usleep(100);
	}
	raw_read(connection, &got, NULL);
	mask_dates(&got);
	close(connection);
	report(transcripts_equal("a byte a segment", &got, expected), "%zu segments of a byte each",
	       length);
}

/* Heads of several segments: all at once, and cut at every 61st byte. */
static void large_head(size_t head)
{
	static struct transcript got, expected;
	static char request[REQUEST_MAX];
	size_t length = write_request(request, other.id, head, 40, true);
	unsigned int wrong = 0, cuts = 0;

	raw_exchange(&other.home, request, length, 0, 0, &expected);
	for (size_t cut = 0; cut < length; cut += 61, cuts++) {
		char what[64];

		snprintf(what, sizeof(what), "head of %zu bytes cut behind byte %zu", head, cut);
		raw_exchange(&service, request, length, cut, 0, &got);
		wrong += !transcripts_equal(what, &got, &expected);
	}
	report(!wrong, "head of %zu bytes, at once and cut at %u places", length - 40, cuts - 1);
}

static void parse_conversation(struct conversation *conversation, const char *id,
			       const char *address, const char *port)
{
	conversation->id = id;
	conversation->home.length =
		parse_server_address(address, port, &conversation->home.address);
}

int main(int argc, char **argv)
{
	static struct transcript expected;
	static char request[REQUEST_MAX];
	size_t length;

	if (argc != 8)
		errx(2, "usage: http_cuts ADDRESS PORT ID-A HOME-A ID-B HOME-B REPLICA-PORT");
	setvbuf(stdout, NULL, _IOLBF, 0);
	service.length = parse_server_address(argv[1], argv[2], &service.address);
	parse_conversation(&one, argv[3], argv[4], argv[7]);
	parse_conversation(&other, argv[5], argv[6], argv[7]);
	length = write_request(request, other.id, 0, 40, true);
	raw_exchange(&other.home, request, length, 0, 0, &expected);
	report(strncmp(expected.text, "HTTP/1.1 200", 12) == 0 && expected.closed,
	       "the replica answers a direct request");
	cut_first(request, length, &expected, 0);
	cut_first(request, length, &expected, 1000);
	cut_second(request, length, &expected);
	byte_by_byte(request, length, &expected);
	large_head(1500);
	large_head(2900);
	large_head(3900);
	printf("1..%u\n", number);
	return failures ? 1 : 0;
}
