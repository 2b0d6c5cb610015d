/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One exchange over HTTP again and again, while each time another packet of it is dropped, delayed or doubled: it has to complete every
 * time.
 *
 *   lossy_exchange SWITCH-NAMESPACE A B CLIENT-NAMESPACE ADDRESS PORT ID ID
 *
 * A and B are two interfaces in the switch's network that nothing else connects: a thread forwards every frame between them, and
 * mistreats the n-th TCP packet in one direction. The exchange is one connection: requests in turn for two conversations (ids whose
 * homes differ, so that the connection moves), with and without a body, one with its head in pieces, one with a long answer. The first
 * run is undisturbed and says how many packets there are and where each conversation's home is.
 *
 * Prints TAP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define FRAME_MAX	   65536
#define DELAY_PACKETS	   2  /* a delayed packet goes behind so many others of its direction, */
#define DELAY_MILLISECONDS 30 /* or after this time if there are none */
#define EXCHANGE_SECONDS \
	40 /* TCP repeats after 0.2, 0.4, 0.8 s; a neighbour's answer may take a second */

enum action { ACTION_NONE, ACTION_DROP, ACTION_DELAY, ACTION_DOUBLE, ACTION_COUNT };

static const char *const action_names[] = {"undisturbed", "dropped", "delayed", "doubled"};

static void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static void enter_namespace(const char *name)
{
	char path[128];
	int descriptor;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0 || setns(descriptor, CLONE_NEWNET))
		die(path);
	close(descriptor);
}

/* --- the wire ------------------------------------------------------------------------------------------------- */

struct wire {
	const char *namespace;
	const char *names[2];
	int sockets[2];
	pthread_barrier_t ready;

	/* set by the exchange while nothing is on its way */
	_Atomic enum action action;
	_Atomic int direction;
	_Atomic unsigned int which; /* from 1 */

	_Atomic unsigned int seen[2]; /* TCP packets from sockets[direction] */

	unsigned char held[FRAME_MAX];
	size_t held_length;
	int held_direction;
	unsigned int held_until; /* seen[] of its direction */
	struct timespec held_since;
};

static int open_interface(const char *name)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(name),
	};
	struct packet_mreq everything = {
		.mr_ifindex = address.sll_ifindex,
		.mr_type = PACKET_MR_PROMISC,
	};
	int on = 1, descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	if (descriptor < 0 || !address.sll_ifindex ||
	    bind(descriptor, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(descriptor, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &everything,
		       sizeof(everything)) ||
	    setsockopt(descriptor, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(descriptor, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)))
		die(name);
	return descriptor;
}

/* A frame begins with what the device still has to do to it (checksum, segmentation), so that nothing of that is lost on the way. */
#define OFFLOAD_SIZE sizeof(struct virtio_net_hdr)

static bool is_tcp(const unsigned char *frame, size_t length)
{
	if (length < OFFLOAD_SIZE + 54)
		return false;
	frame += OFFLOAD_SIZE;
	if (frame[12] == 0x08 && frame[13] == 0x00)
		return frame[23] == IPPROTO_TCP;
	return frame[12] == 0x86 && frame[13] == 0xdd && frame[20] == IPPROTO_TCP;
}

static void put(struct wire *wire, int direction, const unsigned char *frame, size_t length)
{
	if (send(wire->sockets[!direction], frame, length, 0) < 0 && errno != ENOBUFS)
		printf("# a frame of %zu bytes cannot be sent: %s\n", length, strerror(errno));
}

static void release(struct wire *wire)
{
	put(wire, wire->held_direction, wire->held, wire->held_length);
	wire->held_length = 0;
}

static void carry(struct wire *wire, int direction, const unsigned char *frame, size_t length)
{
	enum action action = ACTION_NONE;

	if (is_tcp(frame, length)) {
		unsigned int number = atomic_fetch_add(&wire->seen[direction], 1) + 1;

		if (wire->direction == direction && wire->which == number)
			action = wire->action;
		if (wire->held_length && wire->held_direction == direction &&
		    number > wire->held_until) {
			put(wire, direction, frame, length);
			release(wire);
			return;
		}
	}
	switch (action) {
	case ACTION_DROP:
		return;
	case ACTION_DELAY:
		memcpy(wire->held, frame, length);
		wire->held_length = length;
		wire->held_direction = direction;
		wire->held_until = wire->seen[direction] + DELAY_PACKETS - 1;
		clock_gettime(CLOCK_MONOTONIC, &wire->held_since);
		return;
	case ACTION_DOUBLE:
		put(wire, direction, frame, length);
		break;
	default:
		break;
	}
	put(wire, direction, frame, length);
}

static long milliseconds_since(const struct timespec *then)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - then->tv_sec) * 1000 + (now.tv_nsec - then->tv_nsec) / 1000000;
}

static void *run_wire(void *argument)
{
	static unsigned char frame[FRAME_MAX];
	struct wire *wire = argument;

	enter_namespace(wire->namespace);
	for (int i = 0; i < 2; i++)
		wire->sockets[i] = open_interface(wire->names[i]);
	pthread_barrier_wait(&wire->ready);
	for (;;) {
		struct pollfd waiting[2] = {{wire->sockets[0], POLLIN, 0},
					    {wire->sockets[1], POLLIN, 0}};

		if (poll(waiting, 2, wire->held_length ? 5 : -1) < 0 && errno != EINTR)
			die("poll");
		for (int i = 0; i < 2; i++) {
			ssize_t length;

			if (!(waiting[i].revents & POLLIN))
				continue;
			while ((length = recv(wire->sockets[i], frame, sizeof(frame),
					      MSG_DONTWAIT)) > 0)
				carry(wire, i, frame, length);
		}
		if (wire->held_length && milliseconds_since(&wire->held_since) > DELAY_MILLISECONDS)
			release(wire);
	}
	return NULL;
}

static void disturb(struct wire *wire, enum action action, int direction, unsigned int which)
{
	wire->action = ACTION_NONE;
	wire->direction = direction;
	wire->which = which;
	wire->seen[0] = 0;
	wire->seen[1] = 0;
	wire->action = action;
}

/* --- the exchange ---------------------------------------------------------------------------------------------- */

struct exchange {
	struct sockaddr_storage address;
	socklen_t address_length;
	const char *ids[2];
	char homes[2][64]; /* X-Replica of each id, from the first run */
	char problem[256];
};

struct request {
	const char *line;
	const char *headers;
	size_t body;   /* bytes sent */
	size_t answer; /* bytes expected; 0: whatever Content-Length says */
	bool in_pieces;
};

static const struct request requests[] = {
	{"GET /first HTTP/1.1", "", 0, 0, false},
	{"POST /upload HTTP/1.1", "", 6000, 0, false},
	{"GET /pieces HTTP/1.1", "", 0, 0, true},
	{"GET /large HTTP/1.1", "Range: bytes=0-19999\r\n", 0, 20000, false},
	{"POST /upload HTTP/1.1", "Connection: close\r\n", 100, 0, false},
};

static int problem(struct exchange *exchange, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int problem(struct exchange *exchange, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(exchange->problem, sizeof(exchange->problem), format, arguments);
	va_end(arguments);
	return -1;
}

static int send_all(struct exchange *exchange, int descriptor, const char *bytes, size_t length)
{
	while (length) {
		ssize_t sent = send(descriptor, bytes, length, MSG_NOSIGNAL);

		if (sent <= 0)
			return problem(exchange, "sending: %s", strerror(errno));
		bytes += sent;
		length -= sent;
	}
	return 0;
}

static int send_request(struct exchange *exchange, int descriptor, const struct request *request,
			const char *id)
{
	static char text[16384];
	size_t length, piece;
	int result = 0;

	length = snprintf(
		text, sizeof(text),
		"%s\r\nHost: lab\r\n%sX-Conversation-Id: %s\r\nContent-Length: %zu\r\n\r\n",
		request->line, request->headers, id, request->body);
	memset(text + length, 'b', request->body);
	length += request->body;
	if (!request->in_pieces)
		return send_all(exchange, descriptor, text, length);
	piece = length / 3 + 1;
	for (size_t at = 0; at < length && !result; at += piece) {
		size_t some = length - at < piece ? length - at : piece;

		result = send_all(exchange, descriptor, text + at, some);
		usleep(3000);
	}
	return result;
}

/* Reads one answer; its body's length and the replica that gave it. */
static int read_answer(struct exchange *exchange, int descriptor, const struct request *request,
		       char replica[64])
{
	static char text[65536];
	size_t filled = 0, wanted = 0, head = 0;
	char *end, *field;

	for (;;) {
		ssize_t got = recv(descriptor, text + filled, sizeof(text) - 1 - filled, 0);

		if (got < 0)
			return problem(exchange, "%s: receiving: %s", request->line,
				       strerror(errno));
		if (got == 0)
			return problem(exchange, "%s: closed after %zu bytes", request->line,
				       filled);
		filled += got;
		text[filled] = '\0';
		if (!head && (end = strstr(text, "\r\n\r\n"))) {
			head = end + 4 - text;
			field = strcasestr(text, "\r\nContent-Length: ");
			if (strncmp(text, "HTTP/1.1 20", 11) != 0 || !field || field > end)
				return problem(exchange, "%s: %.40s", request->line, text);
			wanted = strtoul(field + 18, NULL, 10);
			field = strcasestr(text, "\r\nX-Replica: ");
			if (!field || field > end ||
			    sscanf(field, "\r\nX-Replica: %63s", replica) != 1)
				return problem(exchange, "%s: no X-Replica", request->line);
		}
		if (head && filled >= head + wanted)
			break;
	}
	if (filled > head + wanted)
		return problem(exchange, "%s: %zu bytes too many", request->line,
			       filled - head - wanted);
	if (request->answer && wanted != request->answer)
		return problem(exchange, "%s: answer of %zu bytes", request->line, wanted);
	if (request->body && !request->answer) {
		field = strrchr(text + head, ' ');
		if (!field || strtoul(field, NULL, 10) != request->body)
			return problem(exchange, "%s: %s", request->line, text + head);
	}
	return 0;
}

static int run_requests(struct exchange *exchange, int descriptor)
{
	char replica[64], byte;

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		char *home = exchange->homes[i % 2];

		if (send_request(exchange, descriptor, &requests[i], exchange->ids[i % 2]) ||
		    read_answer(exchange, descriptor, &requests[i], replica))
			return -1;
		if (!home[0])
			memcpy(home, replica, sizeof(replica));
		if (strcmp(home, replica) != 0)
			return problem(exchange, "%s: answered by %s, not %s", requests[i].line,
				       replica, home);
	}
	if (recv(descriptor, &byte, 1, 0) != 0)
		return problem(exchange, "the connection was not closed at the end");
	return 0;
}

static int run_exchange(struct exchange *exchange)
{
	struct timeval patience = {.tv_sec = EXCHANGE_SECONDS};
	int descriptor = socket(exchange->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1, result;

	exchange->problem[0] = '\0';
	if (descriptor < 0)
		die("socket");
	setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(descriptor, (struct sockaddr *)&exchange->address, exchange->address_length))
		result = problem(exchange, "connecting: %s", strerror(errno));
	else
		result = run_requests(exchange, descriptor);
	close(descriptor);
	return result;
}

static void parse_address(struct exchange *exchange, const char *text, const char *port)
{
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)&exchange->address;
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&exchange->address;

	if (inet_pton(AF_INET, text, &ipv4->sin_addr) == 1) {
		ipv4->sin_family = AF_INET;
		ipv4->sin_port = htons(atoi(port));
		exchange->address_length = sizeof(*ipv4);
	} else if (inet_pton(AF_INET6, text, &ipv6->sin6_addr) == 1) {
		ipv6->sin6_family = AF_INET6;
		ipv6->sin6_port = htons(atoi(port));
		exchange->address_length = sizeof(*ipv6);
	} else {
		die(text);
	}
}

int main(int count, char **arguments)
{
	static struct exchange exchange;
	static struct wire wire;
	unsigned int packets[2], failures = 0, number = 0;
	pthread_t thread;

	if (count != 9) {
		fprintf(stderr, "usage: lossy_exchange SWITCH A B CLIENT ADDRESS PORT ID ID\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	wire.namespace = arguments[1];
	wire.names[0] = arguments[2];
	wire.names[1] = arguments[3];
	pthread_barrier_init(&wire.ready, NULL, 2);
	if (pthread_create(&thread, NULL, run_wire, &wire))
		die("pthread_create");
	enter_namespace(arguments[4]);
	parse_address(&exchange, arguments[5], arguments[6]);
	exchange.ids[0] = arguments[7];
	exchange.ids[1] = arguments[8];
	pthread_barrier_wait(&wire.ready);

	/* neighbours are resolved by the first, packets are counted in the second */
	for (int i = 0; i < 2; i++) {
		disturb(&wire, ACTION_NONE, 0, 0);
		if (run_exchange(&exchange)) {
			printf("not ok 1 - undisturbed: %s\n", exchange.problem);
			return 1;
		}
	}
	packets[0] = wire.seen[0];
	packets[1] = wire.seen[1];
	printf("ok %u - undisturbed: %u and %u packets, homes %s and %s\n", ++number, packets[0],
	       packets[1], exchange.homes[0], exchange.homes[1]);
	if (strcmp(exchange.homes[0], exchange.homes[1]) == 0) {
		printf("not ok %u - the two ids have different homes\n", ++number);
		return 1;
	}
	for (enum action action = ACTION_DROP; action < ACTION_COUNT; action++) {
		for (int direction = 0; direction < 2; direction++) {
			unsigned int failed = 0;
			long slowest = 0;

			for (unsigned int which = 1; which <= packets[direction] + 2; which++) {
				struct timespec started;
				long took;

				disturb(&wire, action, direction, which);
				clock_gettime(CLOCK_MONOTONIC, &started);
				if (run_exchange(&exchange)) {
					printf("# packet %u from %s %s: %s\n", which,
					       wire.names[direction], action_names[action],
					       exchange.problem);
					failed++;
				}
				took = milliseconds_since(&started);
				if (took > slowest)
					slowest = took;
			}
			printf("%sok %u - each of %u packets from %s %s in turn\n",
			       failed ? "not " : "", ++number, packets[direction] + 2,
			       wire.names[direction], action_names[action]);
			printf("# the slowest took %ld ms\n", slowest);
			failures += failed;
		}
	}
	printf("1..%u\n", number);
	return failures ? 1 : 0;
}
