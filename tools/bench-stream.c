/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench-stream: many slow streams at once, as chat completions are (tools/bench-http).
 *
 *	bench-stream serve PORT				answers every request with a stream of server-sent events
 *	bench-stream read [options] HOST:PORT,...	opens the streams, reads them to their end, says how even they were
 *
 * One thread and one event loop each. A server sends one event to every open stream at each tick, so what it does does not depend on
 * how its clients are routed.
 */
#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/arguments.h"

#define STREAMS_MAX	 16384
#define TICK_NANOSECONDS 100000000ULL
#define EVENT_TEXT                                                                                 \
	"data: {\"id\":\"chatcmpl-0001\",\"object\":\"chat.completion.chunk\",\"created\":0,"      \
	"\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},\"finish_reason\":null}]}\n" \
	"\n"

struct stream {
	bool open;
	bool asked;	     /* serve: the request has come; read: it has been sent */
	uint32_t events;     /* still to be sent; have been received */
	uint64_t last;	     /* read: when the last event came, in nanoseconds */
	int newlines;	     /* read: how many in a row end what has come */
	bool in_head;	     /* read */
	bool complete;	     /* read */
	char request[1024];  /* serve: what has come of it */
	unsigned int length; /* of `request` */
};

static struct stream streams[STREAMS_MAX]; /* by descriptor */
static int loop;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "bench-stream: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void watch(int descriptor, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = descriptor};

	if (descriptor >= STREAMS_MAX || epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &event))
		fail("a connection cannot be watched");
}

static void end(int descriptor)
{
	streams[descriptor].open = false;
	close(descriptor);
}

/* --- serve --------------------------------------------------------------------------------------------------------- */

static int stream_write(int descriptor, const char *text, size_t length)
{
	return send(descriptor, text, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length ? 0
											      : -1;
}

static int send_event(int descriptor)
{
	static char chunk[512];
	static int length;

	if (!length)
		length = snprintf(chunk, sizeof(chunk), "%zx\r\n%s\r\n", sizeof(EVENT_TEXT) - 1,
				  EVENT_TEXT);
	return stream_write(descriptor, chunk, length);
}

static void serve_tick(int timer)
{
	uint64_t times;

	if (read(timer, &times, sizeof(times)) != sizeof(times))
		return;
	for (int i = 0; i < STREAMS_MAX; i++) {
		struct stream *stream = &streams[i];

		if (!stream->open || !stream->events)
			continue;
		if (send_event(i) || (--stream->events == 0 && stream_write(i, "0\r\n\r\n", 5)))
			end(i);
	}
}

static void serve_read(int descriptor)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
				   "Cache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct stream *stream = &streams[descriptor];
	ssize_t got = recv(descriptor, stream->request + stream->length,
			   sizeof(stream->request) - 1 - stream->length, 0);
	const char *number;

	if (got <= 0) {
		end(descriptor);
		return;
	}
	stream->length += got;
	stream->request[stream->length] = 0;
	if (!strstr(stream->request, "\r\n\r\n")) {
		if (stream->length == sizeof(stream->request) - 1)
			end(descriptor);
		return;
	}
	number = strstr(stream->request, "events=");
	stream->events = number ? strtoul(number + 7, NULL, 10) : 0;
	stream->length = 0;
	if (!stream->events || stream_write(descriptor, head, sizeof(head) - 1))
		end(descriptor);
}

static void serve(int port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct itimerspec tick = {{0, TICK_NANOSECONDS}, {0, TICK_NANOSECONDS}};
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0), timer, yes = 1, no = 0;
	struct epoll_event events[256];

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, 4096))
		fail("the port cannot be listened on");
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	if (timer < 0 || timerfd_settime(timer, 0, &tick, NULL))
		fail("no timer");
	watch(listener, EPOLLIN);
	watch(timer, EPOLLIN);
	for (;;) {
		int count = epoll_wait(loop, events, 256, -1);

		for (int i = 0; i < count; i++) {
			int descriptor = events[i].data.fd, taken;

			if (descriptor == timer) {
				serve_tick(timer);
			} else if (descriptor != listener) {
				serve_read(descriptor);
			} else {
				while ((taken = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >=
				       0) {
					setsockopt(taken, IPPROTO_TCP, TCP_NODELAY, &yes,
						   sizeof(yes));
					watch(taken, EPOLLIN);
					streams[taken] = (struct stream){.open = true};
				}
			}
		}
	}
}

/* --- read ---------------------------------------------------------------------------------------------------------- */

struct options {
	uint32_t streams;
	uint32_t events;
	char *ids;
	char *targets;
	int port; /* serve */
};

struct reading {
	uint32_t open;
	uint32_t complete, failed;
	uint64_t bytes;
	uint32_t *gaps; /* microseconds between two events of a stream */
	size_t gap_count, gap_size;
};

static struct sockaddr_in next_target(const char *targets)
{
	static const char *at;
	struct sockaddr_in address = {.sin_family = AF_INET};
	char host[64];
	int port, length;

	if (!at || !*at)
		at = targets;
	if (sscanf(at, "%63[0-9.]:%d%n", host, &port, &length) != 2 ||
	    inet_pton(AF_INET, host, &address.sin_addr) != 1) {
		fprintf(stderr, "bench-stream: %s: must be ADDRESS:PORT,...\n", targets);
		exit(2);
	}
	at += length;
	if (*at == ',')
		at++;
	address.sin_port = htons(port);
	return address;
}

static void open_stream(const struct options *options)
{
	struct sockaddr_in address = next_target(options->targets);
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (descriptor < 0 || (connect(descriptor, (struct sockaddr *)&address, sizeof(address)) &&
			       errno != EINPROGRESS))
		fail("no connection");
	watch(descriptor, EPOLLIN | EPOLLOUT | EPOLLET);
	streams[descriptor] = (struct stream){.open = true, .in_head = true};
}

static void ask(int descriptor, const struct options *options)
{
	static char *id;
	char text[512];
	int length;

	id = strtok(id ? NULL : options->ids, ",");
	if (!id) {
		fprintf(stderr, "bench-stream: there are fewer ids than needed\n");
		exit(2);
	}
	length = snprintf(text, sizeof(text),
			  "GET /stream?events=%u HTTP/1.1\r\nHost: bench\r\n"
			  "x-conversation-id: %s\r\n\r\n",
			  options->events, id);
	streams[descriptor].asked = true;
	streams[descriptor].last = now();
	if (send(descriptor, text, length, MSG_NOSIGNAL) != length)
		streams[descriptor].asked = false;
}

static void take_event(struct reading *reading, struct stream *stream, uint64_t time)
{
	if (stream->events++ && reading->gap_count < reading->gap_size)
		reading->gaps[reading->gap_count++] = (time - stream->last) / 1000;
	stream->last = time;
}

/* Counts the blank lines: one behind the head, one behind each event, one behind the last chunk. */
static void take(struct reading *reading, struct stream *stream, const char *text, ssize_t length,
		 const struct options *options)
{
	uint64_t time = now();

	reading->bytes += length;
	for (ssize_t i = 0; i < length; i++) {
		if (text[i] == '\r')
			continue;
		stream->newlines = text[i] == '\n' ? stream->newlines + 1 : 0;
		if (stream->newlines != 2)
			continue;
		if (stream->in_head)
			stream->in_head = false;
		else if (stream->events < options->events)
			take_event(reading, stream, time);
		else
			stream->complete = true;
	}
}

static void read_stream(struct reading *reading, int descriptor, const struct options *options)
{
	static char buffer[65536];
	struct stream *stream = &streams[descriptor];
	ssize_t got;

	while ((got = recv(descriptor, buffer, sizeof(buffer), 0)) > 0)
		take(reading, stream, buffer, got, options);
	if (got < 0 && (errno == EAGAIN || errno == EINTR) && !stream->complete)
		return;
	if (stream->complete)
		reading->complete++;
	else
		reading->failed++;
	reading->open--;
	end(descriptor);
}

static int compare(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static uint32_t percentile(const struct reading *reading, double part)
{
	return reading->gap_count ? reading->gaps[(size_t)(part * (reading->gap_count - 1))] : 0;
}

static int read_streams(struct options *options)
{
	struct reading reading = {.gap_size = (size_t)options->streams * options->events};
	uint64_t started = now(),
		 deadline = started + (options->events * 2 + 100) * TICK_NANOSECONDS;
	struct epoll_event events[256];
	uint32_t opened = 0;

	reading.gaps = calloc(reading.gap_size, sizeof(*reading.gaps));
	if (!reading.gaps)
		fail("no memory");
	while ((opened < options->streams || reading.open) && now() < deadline) {
		int count;

		for (int i = 0; i < 64 && opened < options->streams; i++, opened++, reading.open++)
			open_stream(options);
		count = epoll_wait(loop, events, 256, opened < options->streams ? 5 : 1000);
		for (int i = 0; i < count; i++) {
			int descriptor = events[i].data.fd;

			if (!streams[descriptor].asked && (events[i].events & EPOLLOUT))
				ask(descriptor, options);
			if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))
				read_stream(&reading, descriptor, options);
		}
	}
	qsort(reading.gaps, reading.gap_count, sizeof(*reading.gaps), compare);
	printf("bench {\"requests\":%u,\"seconds\":%.6f,\"bytes\":%llu,\"p50\":%u,\"p99\":%u,\"failed\":%u}\n",
	       reading.complete, (now() - started) / 1e9, (unsigned long long)reading.bytes,
	       percentile(&reading, 0.5), percentile(&reading, 0.99),
	       reading.failed + reading.open);
	free(reading.gaps);
	return 0;
}

/* --- options ------------------------------------------------------------------------------------------------------- */

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 's':
		options->streams =
			argument_count(state, "--streams", argument, 1, STREAMS_MAX - 100);
		return 0;
	case 'e':
		options->events = argument_count(state, "--events", argument, 1, 100000);
		return 0;
	case 'i':
		options->ids = argument;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0 && strcmp(argument, "serve") == 0)
			options->port = -1;
		else if (state->arg_num == 0 && strcmp(argument, "read") != 0)
			argp_error(state, "%s: must be serve or read", argument);
		else if (state->arg_num == 1 && options->port)
			options->port = argument_count(state, "PORT", argument, 1, 65535);
		else if (state->arg_num == 1)
			options->targets = argument;
		else if (state->arg_num > 1)
			argp_error(state, "%s: too many arguments", argument);
		return 0;
	case ARGP_KEY_END:
		if (state->arg_num != 2)
			argp_error(state, "serve PORT, or read HOST:PORT,... is needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option option_list[] = {
		{"streams", 's', "NUMBER", 0, "read: how many at once (1000)", 0},
		{"events", 'e', "NUMBER", 0, "read: of each stream, one in 100 ms (100)", 0},
		{"ids", 'i', "LIST", 0,
		 "read: their conversations, separated by commas; at least as many", 0},
		{0},
	};
	static const struct argp argp = {
		.options = option_list,
		.parser = parse,
		.args_doc = "serve PORT\nread ADDRESS:PORT,...",
		.doc = "Serve or read many slow streams of server-sent events.",
	};
	struct options options = {.streams = 1000, .events = 100};
	struct rlimit files = {STREAMS_MAX, STREAMS_MAX};

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	setrlimit(RLIMIT_NOFILE, &files);
	signal(SIGPIPE, SIG_IGN);
	loop = epoll_create1(0);
	if (loop < 0)
		fail("no event loop");
	if (options.port)
		serve(options.port);
	if (!options.ids) {
		fprintf(stderr, "bench-stream: --ids is needed\n");
		return 2;
	}
	return read_streams(&options);
}
