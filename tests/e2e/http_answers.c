/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers in all their forms, and what may follow them on the same connection: a request for another conversation is answered by that one's
 * home, byte for byte as directly, wherever the end of the answer before is known; where it is not, all stays with the first.
 *
 *   http_answers ADDRESS PORT ID-A HOME-ADDRESS-A ID-B HOME-ADDRESS-B REPLICA-PORT
 *
 * The two ids have different homes. Prints TAP.
 */
#include <stdlib.h>

#include "raw_exchange.h"

#define QUIET_MILLISECONDS 200
#define ANSWER_MAX	   (2u << 20)
#define ECHOED		   (1u << 20)

struct conversation {
	const char *id;
	struct server home;
};

struct answer {
	char *bytes;
	size_t length;
};

static struct server service;
static struct conversation one, other;
static unsigned int number, failures;

static void report(bool good, const char *what)
{
	printf("%sok %u - %s\n", good ? "" : "not ", ++number, what);
	failures += !good;
}

static size_t write_request(char *text, const char *line, const char *id, const char *headers)
{
	return sprintf(text, "%s HTTP/1.1\r\nHost: replica\r\nX-Conversation-Id: %s\r\n%s\r\n",
		       line, id, headers);
}

/* Reads `length` bytes, or, if that is 0, until nothing has come for a moment or the server closes. */
static void read_answer(int connection, struct answer *answer, size_t length)
{
	size_t most = length ? length : ANSWER_MAX;

	answer->length = 0;
	while (answer->length < most) {
		struct pollfd waiting = {.fd = connection, .events = POLLIN};
		bool quiet_ends = !length && answer->length;
		ssize_t got;

		if (poll(&waiting, 1, quiet_ends ? QUIET_MILLISECONDS : PATIENCE_SECONDS * 1000) <=
		    0)
			return;
		got = recv(connection, answer->bytes + answer->length, most - answer->length, 0);
		if (got <= 0)
			return;
		answer->length += got;
	}
}

/* Sets the digits of Date to the same everywhere. */
static void mask(struct answer *answer)
{
	char *at = answer->bytes, *end = answer->bytes + answer->length;

	while ((at = memmem(at, end - at, "\r\nDate: ", 8))) {
		for (at += 8; at < end && *at != '\r'; at++)
			*at = '-';
	}
}

static bool equal(const char *what, struct answer *got, struct answer *expected)
{
	mask(got);
	mask(expected);
	if (got->length == expected->length &&
	    memcmp(got->bytes, expected->bytes, got->length) == 0)
		return true;
	printf("# %s: %zu bytes, expected are %zu: %.*s\n", what, got->length, expected->length,
	       got->length < 15 ? (int)got->length : 15, got->bytes);
	return false;
}

static void ask(const struct server *server, const char *request, struct answer *answer)
{
	int connection = raw_connect(server);

	answer->length = 0;
	if (connection < 0)
		return;
	raw_send(connection, request, strlen(request));
	read_answer(connection, answer, 0);
	close(connection);
}

/* `line` for one conversation, then a plain request for the other. */
static void check_form(const char *what, const char *line, const char *headers)
{
	static char first[512], second[512];
	static char room[4][ANSWER_MAX];
	struct answer expected[2] = {{room[0], 0}, {room[1], 0}},
		      got[2] = {{room[2], 0}, {room[3], 0}};
	int connection;
	bool good;

	write_request(first, line, one.id, headers);
	write_request(second, "GET /answer/chunks", other.id, "");
	ask(&one.home, first, &expected[0]);
	ask(&other.home, second, &expected[1]);
	connection = raw_connect(&service);
	raw_send(connection, first, strlen(first));
	read_answer(connection, &got[0], expected[0].length);
	raw_send(connection, second, strlen(second));
	read_answer(connection, &got[1], expected[1].length);
	close(connection);
	good = expected[0].length && expected[1].length;
	good &= equal("first answer", &got[0], &expected[0]);
	good &= equal("second answer", &got[1], &expected[1]);
	report(good, what);
}

/* Two requests in one segment: both are answered by the home of the first, in order. */
static void check_pipelined(void)
{
	static char requests[1024], single[512], room[3][ANSWER_MAX];
	struct answer expected = {room[0], 0}, both = {room[1], 0}, got = {room[2], 0};
	size_t length;
	int connection;

	length = write_request(requests, "GET /answer/chunks", one.id, "");
	write_request(requests + length, "GET /answer/trailers", other.id, "");
	snprintf(single, sizeof(single), "%.*s", (int)length, requests);
	ask(&one.home, single, &both);
	ask(&one.home, requests + length, &expected);
	memcpy(both.bytes + both.length, expected.bytes, expected.length);
	both.length += expected.length;
	connection = raw_connect(&service);
	raw_send(connection, requests, strlen(requests));
	read_answer(connection, &got, both.length);
	close(connection);
	report(equal("both answers", &got, &both),
	       "two requests in one segment are answered in order, by the home of the first");
}

/* A tunnel: what looks like a request in it is none. */
static void check_upgrade(void)
{
	static char request[512], room[3][ANSWER_MAX];
	struct answer expected = {room[0], 0}, got = {room[1], 0}, echo = {room[2], 0};
	int connection = raw_connect(&service);
	bool good;

	write_request(request, "GET /upgrade", one.id, "Upgrade: echo\r\nConnection: Upgrade\r\n");
	ask(&one.home, request, &expected);
	raw_send(connection, request, strlen(request));
	read_answer(connection, &got, expected.length);
	good = expected.length && equal("101", &got, &expected);
	write_request(request, "GET /answer/chunks", other.id, "");
	raw_send(connection, request, strlen(request));
	read_answer(connection, &echo, strlen(request));
	good &= echo.length == strlen(request) && memcmp(echo.bytes, request, echo.length) == 0;
	memset(room[0], 'e', ECHOED);
	for (size_t sent = 0; sent < ECHOED; sent += 65536) {
		raw_send(connection, room[0], 65536);
		read_answer(connection, &echo, 65536);
		good &= echo.length == 65536 && memcmp(echo.bytes, room[0], 65536) == 0;
	}
	close(connection);
	report(good, "an upgraded connection is a tunnel to the home of its request");
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
	if (argc != 8)
		errx(2, "usage: http_answers ADDRESS PORT ID-A HOME-A ID-B HOME-B REPLICA-PORT");
	setvbuf(stdout, NULL, _IOLBF, 0);
	service.length = parse_server_address(argv[1], argv[2], &service.address);
	parse_conversation(&one, argv[3], argv[4], argv[7]);
	parse_conversation(&other, argv[5], argv[6], argv[7]);
	check_form("a short answer in chunks, then another conversation", "GET /answer/chunks", "");
	check_form("an answer with trailers", "GET /answer/trailers", "");
	check_form("an answer of thousands of chunks", "GET /answer/many-chunks", "");
	check_form("an answer of hundreds of kilobytes, by Content-Length", "GET /answer/long", "");
	check_form("an answer without a body", "GET /answer/empty", "");
	check_form("204", "GET /answer/none", "");
	check_form("304, with the length of what it does not send", "GET /answer/unchanged", "");
	check_form("the answer to HEAD", "HEAD /answer/long", "");
	check_form("103, then the answer", "GET /answer/hints", "");
	check_form("500", "GET /answer/error", "");
	check_form("an upgrade that is declined", "GET /answer/chunks", "Upgrade: h2c\r\n");
	check_pipelined();
	check_upgrade();
	printf("1..%u\n", number);
	return failures ? 1 : 0;
}
