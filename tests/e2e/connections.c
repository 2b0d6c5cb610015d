// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Many TCP connections of one client at once, held open and used for an HTTP request now and then.
 *
 *   connections [--source-port PORT] [--timeout MILLISECONDS] PORT FILE
 *
 * FILE has a line "ID ADDRESS" for each connection. Standard input says when to use them, a command a line:
 *     round            one request on each connection, all at the same time; opens those not opened yet
 *     rounds N PAUSE   N times that, PAUSE milliseconds apart, reported as one
 *     end              as the end of standard input: all connections are closed
 * Each command is answered by a line "ID REPLICA" for each connection, or "ID - REASON" if it is broken, and a last line
 *     round answered=N broken=N moved=N       (moved: another replica than on the connection's first request)
 * A broken connection stays broken: it is never opened again.
 * With --source-port all connections come from that port.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096

enum connection_state { NEW, CONNECTING, READING, IDLE, BROKEN };

struct connection {
	char id[64], address[64];
	enum connection_state state;
	int fd;
	char received[8192]; /* head and body of one answer; the pages asked for are small */
	size_t received_size;
	char replica[64], first_replica[64];
	const char *reason;
};

static struct connection *connections;
static size_t connection_count;
static uint16_t port, source_port;
static int timeout_milliseconds = 5000;

static int64_t milliseconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void break_connection(struct connection *connection, const char *reason)
{
	connection->state = BROKEN;
	connection->reason = reason;
	if (connection->fd >= 0)
		close(connection->fd);
	connection->fd = -1;
}

static void open_connection(struct connection *connection)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *result;
	char port_text[8];
	int on = 1;

	snprintf(port_text, sizeof(port_text), "%u", port);
	if (getaddrinfo(connection->address, port_text, &hints, &result))
		errx(2, "%s is not an IP address", connection->address);
	connection->fd = socket(result->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connection->fd < 0)
		err(1, "cannot open a socket");
	if (source_port) {
		struct sockaddr_in6 from = {.sin6_family = (sa_family_t)result->ai_family,
					    .sin6_port = htons(source_port)};
		/* the same port for several connections is fine as long as they go to different addresses */
		setsockopt(connection->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(connection->fd, (struct sockaddr *)&from, result->ai_addrlen))
			err(1, "cannot bind to port %u", source_port);
	}
	if (connect(connection->fd, result->ai_addr, result->ai_addrlen) && errno != EINPROGRESS)
		break_connection(connection, strerror(errno));
	else
		connection->state = CONNECTING;
	freeaddrinfo(result);
}

static void send_request(struct connection *connection)
{
	char request[256];
	int size = snprintf(
		request, sizeof(request),
		"GET /%s HTTP/1.1\r\nHost: warmpath.test\r\nConnection: keep-alive\r\n\r\n",
		connection->id);

	connection->received_size = 0;
	connection->state = READING;
	if (send(connection->fd, request, (size_t)size, MSG_NOSIGNAL) != size)
		break_connection(connection, strerror(errno));
}

/* Looks whether the answer is complete, and for the replica's name in it. */
static void check_answer(struct connection *connection)
{
	const char *text = connection->received, *body, *length, *replica;

	connection->received[connection->received_size] = 0;
	body = strstr(text, "\r\n\r\n");
	if (!body)
		return;
	body += 4;
	length = strcasestr(text, "\r\nContent-Length: ");
	replica = strcasestr(text, "\r\nX-Replica: ");
	if (strncmp(text, "HTTP/1.1 200 ", 13) || !length || length > body || !replica ||
	    replica > body) {
		break_connection(connection, "unexpected answer");
		return;
	}
	if (connection->received_size - (size_t)(body - text) < strtoul(length + 18, NULL, 10))
		return;
	sscanf(replica + 13, "%63[^\r\n]", connection->replica);
	if (!connection->first_replica[0])
		snprintf(connection->first_replica, sizeof(connection->first_replica), "%s",
			 connection->replica);
	if (strncmp(body, connection->replica, strlen(connection->replica)))
		break_connection(connection, "head and body name different replicas");
	else
		connection->state = IDLE;
}

static void progress(struct connection *connection)
{
	int error = 0;
	socklen_t size = sizeof(error);
	ssize_t received;

	if (connection->state == CONNECTING) {
		getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size);
		if (error)
			break_connection(connection, strerror(error));
		else
			send_request(connection);
		return;
	}
	received = recv(connection->fd, connection->received + connection->received_size,
			sizeof(connection->received) - 1 - connection->received_size, 0);
	if (received < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (received < 0) {
		break_connection(connection, strerror(errno));
		return;
	}
	if (received == 0) {
		break_connection(connection, "closed by the replica");
		return;
	}
	connection->received_size += (size_t)received;
	check_answer(connection);
}

static void request_on_all(void)
{
	int64_t deadline = milliseconds() + timeout_milliseconds;
	static struct pollfd polled[CONNECTIONS_MAX];
	static struct connection *polled_connection[CONNECTIONS_MAX];

	for (size_t index = 0; index < connection_count; index++) {
		if (connections[index].state == NEW)
			open_connection(&connections[index]);
		else if (connections[index].state == IDLE)
			send_request(&connections[index]);
	}
	for (;;) {
		nfds_t open = 0;

		for (size_t index = 0; index < connection_count; index++) {
			struct connection *connection = &connections[index];

			if (connection->state != CONNECTING && connection->state != READING)
				continue;
			if (milliseconds() >= deadline) {
				break_connection(connection, connection->state == CONNECTING
								     ? "no connection in time"
								     : "no answer in time");
				continue;
			}
			polled[open].fd = connection->fd;
			polled[open].events = connection->state == CONNECTING ? POLLOUT : POLLIN;
			polled_connection[open++] = connection;
		}
		if (!open)
			return;
		if (poll(polled, open, 100) < 0 && errno != EINTR)
			err(1, "cannot poll");
		for (nfds_t index = 0; index < open; index++) {
			if (polled[index].revents)
				progress(polled_connection[index]);
		}
	}
}

static void report(size_t moved_before)
{
	size_t answered = 0, broken = 0, moved = moved_before;

	for (size_t index = 0; index < connection_count; index++) {
		const struct connection *connection = &connections[index];

		if (connection->state == BROKEN) {
			printf("%s - %s\n", connection->id, connection->reason);
			broken++;
			continue;
		}
		printf("%s %s\n", connection->id, connection->replica);
		answered++;
	}
	printf("round answered=%zu broken=%zu moved=%zu\n", answered, broken, moved);
	fflush(stdout);
}

static size_t count_moved(void)
{
	size_t moved = 0;

	for (size_t index = 0; index < connection_count; index++)
		moved += strcmp(connections[index].replica, connections[index].first_replica) != 0;
	return moved;
}

static void read_connections(const char *path)
{
	char id[64], address[64];
	FILE *file = fopen(path, "r");

	if (!file)
		err(2, "cannot read %s", path);
	connections = calloc(CONNECTIONS_MAX, sizeof(*connections));
	if (!connections)
		err(1, "no memory");
	while (fscanf(file, "%63s %63s", id, address) == 2) {
		struct connection *connection = &connections[connection_count++];

		if (connection_count == CONNECTIONS_MAX)
			errx(2, "%s has more than %d lines", path, CONNECTIONS_MAX - 1);
		connection->fd = -1;
		memcpy(connection->id, id, sizeof(id));
		memcpy(connection->address, address, sizeof(address));
	}
	fclose(file);
	if (!connection_count)
		errx(2, "%s has no lines \"ID ADDRESS\"", path);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"source-port", required_argument, NULL, 's'},
						{"timeout", required_argument, NULL, 't'},
						{0}};
	char line[128];
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			source_port = (uint16_t)strtoul(optarg, NULL, 10);
		else if (option == 't')
			timeout_milliseconds = atoi(optarg);
		else
			return 2;
	}
	if (argc - optind != 2)
		errx(2,
		     "usage: connections [--source-port PORT] [--timeout MILLISECONDS] PORT FILE");
	port = (uint16_t)strtoul(argv[optind], NULL, 10);
	read_connections(argv[optind + 1]);
	while (fgets(line, sizeof(line), stdin)) {
		unsigned int count = 1, pause = 0;
		size_t moved = 0;

		if (!strcmp(line, "end\n"))
			break;
		if (strcmp(line, "round\n") && sscanf(line, "rounds %u %u", &count, &pause) != 2)
			errx(2, "unknown command: %s", line);
		for (unsigned int number = 0; number < count; number++) {
			if (number)
				usleep(pause * 1000);
			request_on_all();
			moved += count_moved();
		}
		report(moved);
	}
	return 0;
}
