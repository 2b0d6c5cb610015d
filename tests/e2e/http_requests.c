/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests over HTTP/1.1, of many conversations interleaved on each of many connections, and every answer held against what the replica at the
 * conversation's home gives when it is asked directly.
 *
 *   http_requests [--connections N] [--requests N] [--fresh] [--ports FIRST-LAST] [--pause MS] ADDRESS PORT PLAN EXPECTED
 *
 * PLAN has lines "ID HOME"; EXPECTED has a folder for each HOME, with a file for each path /files/NAME: its body. The n-th request is for the
 * n-th id (round and round), and for another file in each round. --requests 0 goes on until SIGTERM. --fresh makes a connection for each
 * request; --ports takes local ports in turn; --pause waits between the requests of a connection.
 *
 * A line "astray ID REPLICA NAME" for each answer that another replica gave, "different ID ? NAME" for each that none gives; "failed ID HOME
 * SECONDS REASON" for each request that failed (the first 1,000), SECONDS being how long ago it was sent; then
 * "requests=N answered=N failed=N reset=N astray=N different=N connections=N port_uses=N".
 * port_uses: how often the least used of --ports was used.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "expected_bodies.h"
#include "server_address.h"

#define CONNECTIONS_MAX 1024
#define HEAD_MAX	8192
#define FAILURES_SHOWN	1000
#define SILENCE_SECONDS 15 /* TCP repeats after 0.2, 0.4, 0.8 ... s */

struct connection {
	int descriptor; /* -1: none */
	bool waiting_to_send;
	double due;  /* when the next request is to be sent, or the answer has to come on */
	bool open;   /* a request is under way */
	bool ending; /* the server is to close first, so that the local port is free at once */
	double sent_at;
	const struct conversation *conversation;
	unsigned int file;
	char request[512];
	size_t request_length, request_sent;
	char head[HEAD_MAX + 1];
	size_t head_length;
	bool head_done, close_after, until_close;
	size_t body_length, body_received;
	bool fits[HOMES_MAX]; /* whether the body so far is that of each home */
};

static struct connection connections[CONNECTIONS_MAX];
static unsigned int connection_count = 32, pause_milliseconds;
static unsigned long wanted = 10000, begun, answered, failed, resets, astray, different, opened;
static unsigned int first_port, last_port, next_port, port_uses[65536];
static bool fresh;
static struct sockaddr_storage address;
static socklen_t address_length;
static int poller;
static volatile sig_atomic_t ended;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

/* --- a connection ------------------------------------------------------------------------------------------------ */

static void watch(struct connection *connection, int operation, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = connection};

	if (epoll_ctl(poller, operation, connection->descriptor, &event))
		err(2, "epoll_ctl");
}

static void disconnect(struct connection *connection)
{
	if (connection->descriptor >= 0)
		close(connection->descriptor);
	connection->descriptor = -1;
	connection->ending = false;
}

static void fail(struct connection *connection, const char *reason, int error)
{
	if (error == ECONNRESET || error == EPIPE)
		resets++;
	if (failed++ < FAILURES_SHOWN)
		printf("failed %s %s %.3f %s%s%s\n", connection->conversation->id,
		       homes[connection->conversation->home], now() - connection->sent_at, reason,
		       error ? ": " : "", error ? strerror(error) : "");
	connection->open = false;
	disconnect(connection);
}

static int new_socket(void)
{
	int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;

	if (descriptor < 0)
		err(2, "socket");
	setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return descriptor;
}

/* Another socket in the place of this one. */
static void renew(int descriptor)
{
	int another = new_socket();

	if (dup3(another, descriptor, O_CLOEXEC) < 0)
		err(2, "dup3");
	close(another);
}

/*
 * Connects from the next of --ports, those in use aside: taken by somebody else, or by a connection of ours whose last acknowledgement is
 * still on its way. Returns what connect() does.
 */
static int connect_from_port(int descriptor)
{
	struct sockaddr_storage local = {.ss_family = address.ss_family};
	/* sin_port and sin6_port are in the same place */
	in_port_t *port = &((struct sockaddr_in *)&local)->sin_port;
	unsigned int range = last_port - first_port + 1;

	for (unsigned int tries = 0; tries < range; tries++) {
		unsigned int number = next_port++ % range;

		*port = htons(first_port + number);
		if (bind(descriptor, (struct sockaddr *)&local, address_length) == 0) {
			int result =
				connect(descriptor, (struct sockaddr *)&address, address_length);

			if (result == 0 || errno != EADDRNOTAVAIL) {
				port_uses[number]++;
				return result;
			}
			/* a socket cannot be bound again */
			renew(descriptor);
		}
	}
	errx(2, "none of the local ports is free");
}

static bool make_connection(struct connection *connection)
{
	int result;

	connection->descriptor = new_socket();
	opened++;
	if (last_port)
		result = connect_from_port(connection->descriptor);
	else
		result = connect(connection->descriptor, (struct sockaddr *)&address,
				 address_length);
	if (result && errno != EINPROGRESS) {
		fail(connection, "connecting", errno);
		return false;
	}
	watch(connection, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
	connection->waiting_to_send = true;
	return true;
}

static void send_request(struct connection *connection)
{
	while (connection->request_sent < connection->request_length) {
		ssize_t sent =
			send(connection->descriptor, connection->request + connection->request_sent,
			     connection->request_length - connection->request_sent, MSG_NOSIGNAL);

		if (sent < 0 && (errno == EAGAIN || errno == EINPROGRESS))
			break;
		if (sent < 0) {
			fail(connection, "sending", errno);
			return;
		}
		connection->request_sent += sent;
	}
	if ((connection->request_sent < connection->request_length) !=
	    connection->waiting_to_send) {
		connection->waiting_to_send = !connection->waiting_to_send;
		watch(connection, EPOLL_CTL_MOD,
		      connection->waiting_to_send ? EPOLLIN | EPOLLOUT : EPOLLIN);
	}
}

static void begin_request(struct connection *connection)
{
	const struct conversation *conversation = &conversations[begun % conversation_count];

	connection->conversation = conversation;
	connection->file = (begun / conversation_count + begun) % file_count;
	begun++;
	connection->request_length = snprintf(
		connection->request, sizeof(connection->request),
		"GET /files/%s HTTP/1.1\r\nHost: replica\r\nX-Conversation-Id: %s\r\n%s\r\n",
		files[connection->file], conversation->id, fresh ? "Connection: close\r\n" : "");
	connection->request_sent = 0;
	connection->open = true;
	connection->head_length = 0;
	connection->head_done = connection->close_after = connection->until_close = false;
	connection->body_length = connection->body_received = 0;
	for (unsigned int i = 0; i < home_count; i++)
		connection->fits[i] = true;
	connection->sent_at = now();
	connection->due = connection->sent_at + SILENCE_SECONDS;
	if (connection->descriptor < 0 && !make_connection(connection))
		return;
	send_request(connection);
}

/* --- an answer --------------------------------------------------------------------------------------------------- */

static void answer_is_complete(struct connection *connection)
{
	const struct conversation *conversation = connection->conversation;
	unsigned int home = conversation->home;

	answered++;
	for (unsigned int i = 0; i < home_count; i++)
		connection->fits[i] &=
			connection->body_received == bodies[i][connection->file].length;
	if (!connection->fits[home]) {
		unsigned int from = 0;

		while (from < home_count && !connection->fits[from])
			from++;
		*(from < home_count ? &astray : &different) += 1;
		printf("%s %s %s %s\n", from < home_count ? "astray" : "different",
		       conversation->id, from < home_count ? homes[from] : "?",
		       files[connection->file]);
	}
	connection->open = false;
	connection->due = now() + pause_milliseconds / 1e3;
	if (connection->close_after || fresh) {
		connection->ending = true;
		connection->due += 1;
	}
}

static void take_body(struct connection *connection, const char *bytes, size_t length)
{
	for (unsigned int i = 0; i < home_count; i++) {
		const struct body *body = &bodies[i][connection->file];

		connection->fits[i] &=
			connection->body_received + length <= body->length &&
			memcmp(body->bytes + connection->body_received, bytes, length) == 0;
	}
	connection->body_received += length;
	if (!connection->until_close && connection->body_received > connection->body_length)
		fail(connection, "more bytes than Content-Length", 0);
	else if (!connection->until_close && connection->body_received == connection->body_length)
		answer_is_complete(connection);
}

static bool read_head(struct connection *connection)
{
	char *head = connection->head, *length = strcasestr(head, "\r\nContent-Length:");
	const char *persistence = strcasestr(head, "\r\nConnection:");

	if (strncmp(head, "HTTP/1.", 7) != 0 || strncmp(head + 8, " 200 ", 5) != 0) {
		head[strcspn(head, "\r\n")] = '\0';
		fail(connection, head, 0);
		return false;
	}
	connection->close_after = head[7] == '0';
	if (persistence) {
		persistence += strspn(persistence + 13, " ") + 13;
		connection->close_after = strncasecmp(persistence, "close", 5) == 0;
	}
	connection->until_close = !length;
	connection->body_length = length ? strtoul(length + 17, NULL, 10) : 0;
	connection->head_done = true;
	return true;
}

static void take(struct connection *connection, const char *bytes, size_t length)
{
	size_t room, before = connection->head_length;
	char *end;

	connection->due = now() + SILENCE_SECONDS;
	if (connection->head_done) {
		take_body(connection, bytes, length);
		return;
	}
	room = HEAD_MAX - before;
	if (length < room)
		room = length;
	memcpy(connection->head + before, bytes, room);
	connection->head_length += room;
	connection->head[connection->head_length] = '\0';
	end = strstr(connection->head, "\r\n\r\n");
	if (!end) {
		if (connection->head_length == HEAD_MAX)
			fail(connection, "the head has no end", 0);
		return;
	}
	room = end + 4 - connection->head - before; /* of these bytes, those of the head */
	end[2] = '\0';
	if (read_head(connection))
		take_body(connection, bytes + room, length - room);
}

static void receive(struct connection *connection)
{
	static char bytes[65536];
	ssize_t got;

	while (connection->descriptor >= 0) {
		got = recv(connection->descriptor, bytes, sizeof(bytes), 0);
		if (got < 0 && errno == EAGAIN)
			return;
		if (!connection->open) {
			/* the server ends an idle connection: the next request makes another; a reset is none of its business */
			if (got > 0)
				printf("different - - bytes between two answers\n");
			if (got > 0)
				different++;
			if (got < 0)
				resets++;
			if (connection->ending)
				connection->due -= 1;
			disconnect(connection);
			return;
		}
		if (got < 0) {
			fail(connection, "receiving", errno);
		} else if (got == 0) {
			if (connection->head_done && connection->until_close) {
				answer_is_complete(connection);
				disconnect(connection);
			} else {
				fail(connection, "closed in mid-answer", 0);
			}
		} else {
			take(connection, bytes, got);
		}
	}
}

/* --- all of them --------------------------------------------------------------------------------------------------- */

static bool more_to_begin(void)
{
	return !ended && (!wanted || begun < wanted);
}

/* Begins what is due and gives up what is silent. Returns the milliseconds until it is to be called again, -1 if all is done. */
static int tick(void)
{
	double time = now(), next = time + 1;
	bool busy = false;

	for (unsigned int i = 0; i < connection_count; i++) {
		struct connection *connection = &connections[i];

		if (connection->open && time >= connection->due)
			fail(connection, "no answer", 0);
		if (connection->ending && time >= connection->due)
			disconnect(connection);
		if (!connection->open && !connection->ending && more_to_begin() &&
		    time >= connection->due)
			begin_request(connection);
		busy |= connection->open || more_to_begin();
		if (connection->due < next)
			next = connection->due;
	}
	if (!busy)
		return -1;
	return next > time ? (int)((next - time) * 1e3) + 1 : 0;
}

static void run(void)
{
	struct epoll_event events[64];
	int patience, count;

	while ((patience = tick()) >= 0) {
		count = epoll_wait(poller, events, 64, patience);
		for (int i = 0; i < count; i++) {
			struct connection *connection = events[i].data.ptr;

			if (connection->descriptor >= 0 && connection->open &&
			    (events[i].events & EPOLLOUT))
				send_request(connection);
			if (connection->descriptor >= 0 && (events[i].events & ~EPOLLOUT))
				receive(connection);
		}
	}
}

static unsigned int least_port_uses(void)
{
	unsigned int least = port_uses[0];

	for (unsigned int i = 0; last_port && i <= last_port - first_port; i++) {
		if (port_uses[i] < least)
			least = port_uses[i];
	}
	return least;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"connections", required_argument, NULL, 'c'},
						{"requests", required_argument, NULL, 'n'},
						{"fresh", no_argument, NULL, 'f'},
						{"ports", required_argument, NULL, 'P'},
						{"pause", required_argument, NULL, 'p'},
						{0}};
	int option;

	setlinebuf(stdout); /* failures are told when they happen */
	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (option) {
		case 'c':
			connection_count = atoi(optarg);
			break;
		case 'n':
			wanted = strtoul(optarg, NULL, 10);
			break;
		case 'f':
			fresh = true;
			break;
		case 'P':
			if (sscanf(optarg, "%u-%u", &first_port, &last_port) != 2 ||
			    first_port < 1 || last_port < first_port || last_port > 65535)
				errx(2, "--ports %s: FIRST-LAST is needed", optarg);
			break;
		case 'p':
			pause_milliseconds = atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 4 || connection_count < 1 || connection_count > CONNECTIONS_MAX)
		errx(2, "usage: http_requests [OPTIONS] ADDRESS PORT PLAN EXPECTED");
	address_length = parse_server_address(argv[optind], argv[optind + 1], &address);
	read_plan(argv[optind + 2]);
	read_bodies(argv[optind + 3]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (poller < 0)
		err(2, "epoll_create1");
	for (unsigned int i = 0; i < connection_count; i++)
		connections[i].descriptor = -1;
	run();
	printf("requests=%lu answered=%lu failed=%lu reset=%lu astray=%lu different=%lu "
	       "connections=%lu port_uses=%u\n",
	       begun, answered, failed, resets, astray, different, opened, least_port_uses());
	return 0;
}
