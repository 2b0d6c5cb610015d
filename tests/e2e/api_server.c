// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A stand-in for a Kubernetes API server, as far as EndpointSlices go: lists and watches in the shape of the real one's (HTTP/1.1, chunked,
 * a JSON object on a line), whose misbehaviour is commanded.
 *
 *   api_server PORT [NAMESPACE]   listens on 127.0.0.1, has objects in this namespace (default: default); answers each command with a line
 *                       "done", and prints a line for each request: "request list|watch VERSION [continue] STATUS"
 *
 * Commands, a line each on standard input:
 *     slice NAME IPv4|IPv6 PORTNAME:PORT [POD=ADDRESS[,UID][,terminating|,unready]]...   puts a slice, and tells the watches
 *     delete NAME            takes it away
 *     again                  sends the last event once more
 *     bookmark               sends a bookmark to the watches
 *     error CODE             sends an ERROR event with that code to the watches and ends them
 *     end                    ends the watches cleanly
 *     cut                    breaks them in the middle of a line
 *     garbage                sends them a line that is no event
 *     pieces BYTES           sends everything in pieces of so many bytes, a chunk and a packet each (0: as it comes)
 *     delay MILLISECONDS     waits so long before each answer to a list
 *     token TOKEN            requires this one (- none)
 *     refuse STATUS COUNT [RETRY-AFTER]   answers the next COUNT requests with this status
 *     endless on|off         says of each page of a list that another one follows
 *     silent on|off          takes requests without a word of an answer
 *     expire                 forgets the past: older versions get 410
 *     version v1 on|off      whether discovery.k8s.io/v1 is there
 */
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "api_objects.h"

#define CLIENTS_MAX 16
#define SLICES_MAX  64
#define EVENTS_MAX  1024

struct slice {
	char name[64];
	char *object; /* without its resourceVersion: see with_version() */
	int version;
};

struct event {
	int version;
	char *line;
};

struct client {
	int fd; /* 0: free */
	char request[8192];
	size_t length;
	bool watches;
	bool beta; /* asked for v1beta1 */
};

static struct client clients[CLIENTS_MAX];
static struct slice slices[SLICES_MAX];
static unsigned int slice_count;
static struct event events[EVENTS_MAX];
static unsigned int event_count;
static int version = 1000, oldest = 1000;
static size_t piece;
static unsigned int delay_milliseconds;
static char token[256] = "-";
static int refuse_status, refuse_count, refuse_retry;
static bool silent, has_v1 = true;
static bool endless;
static const char *namespace = "default";

/* --- sending ------------------------------------------------------------------------------------------------------- */

static void drop(struct client *client)
{
	close(client->fd);
	memset(client, 0, sizeof(*client));
}

static void put(struct client *client, const char *bytes, size_t length)
{
	while (client->fd && length > 0) {
		size_t part = piece && piece < length ? piece : length;
		ssize_t sent = send(client->fd, bytes, part, MSG_NOSIGNAL);

		if (sent < 0) {
			drop(client);
			return;
		}
		bytes += sent;
		length -= sent;
	}
}

static void put_text(struct client *client, const char *text)
{
	put(client, text, strlen(text));
}

/* In chunks of HTTP as large as the pieces, so that a line, too, is split at every byte. */
static void put_chunks(struct client *client, const char *text)
{
	size_t length = strlen(text);

	while (length > 0) {
		size_t part = piece && piece < length ? piece : length;
		char head[32];

		snprintf(head, sizeof(head), "%zx\r\n", part);
		put_text(client, head);
		put(client, text, part);
		put_text(client, "\r\n");
		text += part;
		length -= part;
	}
}

static void answer(struct client *client, int status, const char *reason, const char *extra,
		   const char *body)
{
	char *text;

	if (asprintf(
		    &text,
		    "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
		    status, reason, extra, strlen(body), body) < 0)
		err(1, "no memory");
	put_text(client, text);
	free(text);
}

static void refuse(struct client *client, int status, const char *message, int retry_after)
{
	char body[1024], extra[64] = "";

	snprintf(
		body, sizeof(body),
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
		"\"message\":\"%s\",\"code\":%d}\n",
		message, status);
	if (retry_after)
		snprintf(extra, sizeof(extra), "Retry-After: %d\r\n", retry_after);
	answer(client, status, "Refused", extra, body);
}

/* --- slices and events ------------------------------------------------------------------------------------------------ */

static void announce(const char *type, const char *object)
{
	char *text = with_version(object, version, false), *line;
	unsigned int i;

	if (event_count == EVENTS_MAX)
		errx(1, "too many events");
	if (asprintf(&line, "{\"type\":\"%s\",\"object\":%s}\n", type, text) < 0)
		err(1, "no memory");
	free(text);
	events[event_count].version = version;
	events[event_count++].line = line;
	for (i = 0; i < CLIENTS_MAX; i++) {
		if (clients[i].watches)
			put_chunks(&clients[i], line);
	}
}

static int find_slice(const char *name)
{
	unsigned int i;

	for (i = 0; i < slice_count; i++) {
		if (strcmp(slices[i].name, name) == 0)
			return i;
	}
	return -1;
}

static void put_slice(char *words)
{
	char *name = strsep(&words, " "), *family = strsep(&words, " "),
	     *port = strsep(&words, " "), *port_name = strsep(&port, ":"), *text = NULL;
	int index = find_slice(name);
	bool added = index < 0;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	write_slice(out, name, version, family, port_name, port, words);
	fclose(out);
	if (added) {
		if (slice_count == SLICES_MAX)
			errx(1, "too many slices");
		index = slice_count++;
		snprintf(slices[index].name, sizeof(slices[index].name), "%s", name);
	}
	free(slices[index].object);
	slices[index].object = text;
	slices[index].version = ++version;
	announce(added ? "ADDED" : "MODIFIED", text);
}

static void delete_slice(const char *name)
{
	int index = find_slice(name);
	char *object;

	if (index < 0)
		return;
	version++;
	object = slices[index].object;
	slices[index] = slices[--slice_count];
	memset(&slices[slice_count], 0, sizeof(slices[0]));
	announce("DELETED", object);
	free(object);
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

static int query_number(const char *request, const char *name, int otherwise)
{
	const char *at = strstr(request, name);

	return at ? atoi(at + strlen(name)) : otherwise;
}

/* Pages of the real server's form: each says where the next begins; all are of one version. */
static void answer_list(struct client *client, bool beta)
{
	unsigned int limit = query_number(client->request, "&limit=", 500);
	unsigned int from = query_number(client->request, "&continue=", 0), i;
	bool last = !endless && from + limit >= slice_count;
	char *body = NULL;
	size_t size;
	FILE *out = open_memstream(&body, &size);

	fprintf(out,
		"{\"kind\":\"EndpointSliceList\",\"apiVersion\":\"discovery.k8s.io/%s\",\"metadata\":{"
		"\"resourceVersion\":\"%d\"",
		beta ? "v1beta1" : "v1", version);
	if (!last)
		fprintf(out, ",\"continue\":\"%u\",\"remainingItemCount\":%u", from + limit,
			slice_count > from + limit ? slice_count - from - limit : 0);
	fprintf(out, "},\"items\":[");
	for (i = from; i < slice_count && i < from + limit; i++) {
		char *text = with_version(slices[i].object, slices[i].version, beta);

		fprintf(out, "%s%s", i > from ? "," : "", text);
		free(text);
	}
	fprintf(out, "]}\n");
	fclose(out);
	if (delay_milliseconds)
		usleep(delay_milliseconds * 1000);
	answer(client, 200, "OK", "", body);
	free(body);
}

static void begin_watch(struct client *client, int from)
{
	unsigned int i;

	put_text(client, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n");
	client->watches = true;
	for (i = 0; i < event_count; i++) {
		if (events[i].version > from)
			put_chunks(client, events[i].line);
	}
}

static int decide(const struct client *client, bool beta, bool watch, int from)
{
	char authorization[300], wanted[300];

	if (refuse_count > 0) {
		refuse_count--;
		return refuse_status;
	}
	snprintf(authorization, sizeof(authorization), "Authorization: Bearer %s\r\n", token);
	if (strcmp(token, "-") != 0 && !strstr(client->request, authorization))
		return 401;
	snprintf(
		wanted, sizeof(wanted),
		"/namespaces/%s/endpointslices?labelSelector=kubernetes.io%%2Fservice-name%%3Dllm&",
		namespace);
	if (!strstr(client->request, wanted))
		return 403;
	if (!beta && !has_v1)
		return 404;
	return watch && from < oldest ? 410 : 200;
}

static void take_request(struct client *client)
{
	bool watch = strstr(client->request, "&watch=true&");
	bool beta = strstr(client->request, "/v1beta1/");
	int from = query_number(client->request, "&resourceVersion=", 0);
	int status = decide(client, beta, watch, from);

	printf("request %s %s%s %d\n", watch ? "watch" : "list", beta ? "v1beta1" : "v1",
	       strstr(client->request, "&continue=") ? " continue" : "", status);
	client->beta = beta;
	client->length = 0;
	if (silent)
		return;
	if (status == 200 && watch)
		begin_watch(client, from);
	else if (status == 200)
		answer_list(client, beta);
	else
		refuse(client, status,
		       status == 410   ? "too old resource version"
		       : status == 401 ? "Unauthorized"
		       : status == 403 ? "endpointslices.discovery.k8s.io is forbidden"
				       : "refused on command",
		       refuse_retry);
}

static void read_client(struct client *client)
{
	ssize_t got = recv(client->fd, client->request + client->length,
			   sizeof(client->request) - 1 - client->length, 0);

	if (got <= 0) {
		drop(client);
		return;
	}
	client->length += got;
	client->request[client->length] = '\0';
	if (strstr(client->request, "\r\n\r\n"))
		take_request(client);
}

/* --- commands ---------------------------------------------------------------------------------------------------------- */

enum ending { CLEANLY, BROKEN };

static void tell_watches(const char *line, bool end, enum ending how)
{
	unsigned int i;

	for (i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &clients[i];

		if (!client->watches)
			continue;
		if (line)
			put_chunks(client, line);
		if (!end)
			continue;
		if (how == CLEANLY)
			put_text(client, "0\r\n\r\n");
		client->watches = false;
		if (how == BROKEN && client->fd)
			drop(client);
	}
}

static void send_bookmark(void)
{
	char line[512];

	snprintf(line, sizeof(line), BOOKMARK_FORMAT, ++version);
	tell_watches(line, false, CLEANLY);
}

static void send_error(int code)
{
	char line[512];

	snprintf(line, sizeof(line), ERROR_FORMAT, code);
	tell_watches(line, true, CLEANLY);
}

static void forget_past(void)
{
	while (event_count > 0)
		free(events[--event_count].line);
	oldest = ++version;
}

static void take_command(char *line)
{
	char *words = line, *command = strsep(&words, " ");

	if (!words)
		words = line + strlen(line);
	if (strcmp(command, "slice") == 0)
		put_slice(words);
	else if (strcmp(command, "delete") == 0)
		delete_slice(words);
	else if (strcmp(command, "again") == 0)
		tell_watches(events[event_count - 1].line, false, CLEANLY);
	else if (strcmp(command, "bookmark") == 0)
		send_bookmark();
	else if (strcmp(command, "error") == 0)
		send_error(atoi(words));
	else if (strcmp(command, "end") == 0)
		tell_watches(NULL, true, CLEANLY);
	else if (strcmp(command, "cut") == 0)
		tell_watches("{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Endpoi", true, BROKEN);
	else if (strcmp(command, "garbage") == 0)
		tell_watches("{\"type\": this is not JSON}\n", false, CLEANLY);
	else if (strcmp(command, "pieces") == 0)
		piece = atoi(words);
	else if (strcmp(command, "delay") == 0)
		delay_milliseconds = atoi(words);
	else if (strcmp(command, "token") == 0)
		snprintf(token, sizeof(token), "%s", words);
	else if (strcmp(command, "refuse") == 0)
		refuse_retry = 0,
		sscanf(words, "%d %d %d", &refuse_status, &refuse_count, &refuse_retry);
	else if (strcmp(command, "silent") == 0)
		silent = strcmp(words, "on") == 0;
	else if (strcmp(command, "endless") == 0)
		endless = strcmp(words, "on") == 0;
	else if (strcmp(command, "expire") == 0)
		forget_past();
	else if (strcmp(command, "version") == 0)
		has_v1 = strcmp(words, "v1 on") == 0;
	else
		errx(2, "no command %s", command);
	printf("done\n");
}

/* Commands come through a pipe, several at once perhaps. */
static void read_commands(void)
{
	static char text[65536];
	static size_t length;
	ssize_t got = read(STDIN_FILENO, text + length, sizeof(text) - 1 - length);
	char *newline;

	if (got <= 0)
		exit(0);
	length += got;
	text[length] = '\0';
	while ((newline = strchr(text, '\n'))) {
		*newline = '\0';
		take_command(text);
		length -= newline + 1 - text;
		memmove(text, newline + 1, length + 1);
	}
}

/* --- the loop ---------------------------------------------------------------------------------------------------------- */

static int listen_on(int port)
{
	struct sockaddr_in6 address = {
		.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT, .sin6_port = htons(port)};
	int fd = socket(AF_INET6, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 16))
		err(1, "cannot listen on port %d", port);
	return fd;
}

static void accept_client(int listener)
{
	int fd = accept(listener, NULL, NULL), one = 1;
	unsigned int i;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (i = 0; i < CLIENTS_MAX; i++) {
		if (!clients[i].fd) {
			clients[i].fd = fd;
			return;
		}
	}
	close(fd);
}

int main(int argc, char **argv)
{
	int listener;

	if (argc < 2 || argc > 3)
		errx(2, "usage: api_server PORT [NAMESPACE]");
	if (argc == 3)
	namespace = argv[2];
	listener = listen_on(atoi(argv[1]));
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	for (;;) {
		struct pollfd polled[CLIENTS_MAX + 2] = {{.fd = STDIN_FILENO, .events = POLLIN},
							 {.fd = listener, .events = POLLIN}};
		unsigned int i;

		for (i = 0; i < CLIENTS_MAX; i++) {
			polled[i + 2].fd = clients[i].fd ? clients[i].fd : -1;
			polled[i + 2].events = POLLIN;
		}
		if (poll(polled, CLIENTS_MAX + 2, -1) < 0 && errno != EINTR)
			err(1, "poll");
		if (polled[0].revents)
			read_commands();
		if (polled[1].revents)
			accept_client(listener);
		for (i = 0; i < CLIENTS_MAX; i++) {
			if (polled[i + 2].revents && clients[i].fd == polled[i + 2].fd)
				read_client(&clients[i]);
		}
	}
}
