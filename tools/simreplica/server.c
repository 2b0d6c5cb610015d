/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: one request at a time, 100 of them, 5 s idle; what arrives behind a request in the same read is lost. */
#include "simreplica.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define BODY_BYTES_MAX (64u << 20)

uint64_t model_now(const struct server *server)
{
	return (uint64_t)((double)uv_hrtime() * server->options.speed) - server->started;
}

uint64_t real_milliseconds(const struct server *server, uint64_t nanoseconds)
{
	return (uint64_t)((double)nanoseconds / server->options.speed / 1e6 + 0.999);
}

uint64_t unix_milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- the model's alarm ------------------------------------------------------------------------------------ */

void server_schedule(struct server *server)
{
	uint64_t next = replica_next(server->replica), now, arrival = jobs_next_arrival(server);
	struct itimerspec alarm = {0};
	double wait;

	if (server->frozen)
		return;
	if (arrival < next)
		next = arrival;
	if (next != REPLICA_NEVER) {
		now = model_now(server);
		wait = next > now ? (double)(next - now) / server->options.speed : 0;
		alarm.it_value.tv_sec = (time_t)(wait / 1e9);
		alarm.it_value.tv_nsec = (long)(wait - (double)alarm.it_value.tv_sec * 1e9) + 1;
		if (alarm.it_value.tv_nsec > 999999999)
			alarm.it_value.tv_nsec = 999999999;
	}
	timerfd_settime(server->work_timer, 0, &alarm, NULL);
}

static void on_work(uv_poll_t *poll, int status, int events)
{
	struct server *server = poll->data;
	uint64_t expirations, now;

	(void)status;
	(void)events;
	if (read(server->work_timer, &expirations, sizeof(expirations)) < 0 || server->frozen)
		return;
	now = model_now(server);
	jobs_arrive(server, now);
	replica_advance(server->replica, now);
	jobs_sweep(server);
	server_schedule(server);
}

/* --- writing ---------------------------------------------------------------------------------------------- */

struct write {
	uv_write_t request;
	struct connection *connection;
	char data[];
};

static void on_written(uv_write_t *request, int status)
{
	struct write *write = (struct write *)request;

	if (status < 0 && !write->connection->closing && !write->connection->job)
		connection_close(write->connection);
	free(write);
}

void connection_send(struct connection *connection, const void *data, size_t length)
{
	struct write *write;
	uv_buf_t buffer;

	if (connection->closing || !length)
		return;
	write = malloc(sizeof(*write) + length);
	if (!write)
		return;
	write->connection = connection;
	memcpy(write->data, data, length);
	buffer = uv_buf_init(write->data, (unsigned int)length);
	if (uv_write(&write->request, (uv_stream_t *)&connection->tcp, &buffer, 1, on_written))
		free(write);
}

static const char *reason_phrase(unsigned int status)
{
	switch (status) {
#define XX(number, name, text) \
	case number:           \
		return #text;
		HTTP_STATUS_MAP(XX)
#undef XX
	default:
		return "Unknown";
	}
}

static void add_common_head(struct connection *connection, struct bytes *head, unsigned int status)
{
	bytes_print(head, "HTTP/1.1 %u %s\r\n", status, reason_phrase(status));
	bytes_text(head, connection->keep_alive ? "Keep-Alive: timeout=5, max=100\r\n"
						: "Connection: close\r\n");
	bytes_text(head, "Server: llama.cpp\r\n");
	if (connection->server->options.name)
		bytes_print(head, "X-Served-By: %s\r\n", connection->server->options.name);
}

void connection_answer(struct connection *connection, unsigned int status, const char *type,
		       const char *headers, const char *body, size_t length)
{
	struct bytes answer = {0};

	if (status >= 400)
		connection->keep_alive = false;
	add_common_head(connection, &answer, status);
	if (status != 204)
		bytes_print(&answer, "Content-Type: %s\r\nContent-Length: %zu\r\n", type, length);
	bytes_print(&answer, "%s\r\n", headers ? headers : "");
	if (connection->parser.method != HTTP_HEAD)
		bytes_add(&answer, body, length);
	connection_send(connection, answer.data, answer.length);
	bytes_free(&answer);
	connection_answered(connection);
}

void connection_stream_head(struct connection *connection)
{
	struct bytes head = {0};

	add_common_head(connection, &head, 200);
	bytes_text(&head, "Content-Type: text/event-stream\r\nAccess-Control-Allow-Origin: \r\n"
			  "Transfer-Encoding: chunked\r\n\r\n");
	connection_send(connection, head.data, head.length);
	bytes_free(&head);
}

void connection_chunk(struct connection *connection, const void *data, size_t length)
{
	struct bytes chunk = {0};

	bytes_print(&chunk, "%zx\r\n", length);
	bytes_add(&chunk, data, length);
	bytes_text(&chunk, "\r\n");
	connection_send(connection, chunk.data, chunk.length);
	bytes_free(&chunk);
}

bool connection_gone(struct connection *connection)
{
	uv_os_fd_t socket;
	char byte;
	ssize_t length;

	if (connection->closing || uv_fileno((uv_handle_t *)&connection->tcp, &socket))
		return true;
	length = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR);
}

/* --- closing ---------------------------------------------------------------------------------------------- */

static void exit_when_left(struct server *server)
{
	if (server->frozen && !server->connections)
		uv_stop(&server->loop);
}

static void on_closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;
	struct server *server = connection->server;
	struct connection **link = &server->connections;

	while (*link != connection)
		link = &(*link)->next;
	*link = connection->next;
	bytes_free(&connection->url);
	bytes_free(&connection->body);
	bytes_free(&connection->field);
	bytes_free(&connection->value);
	free(connection);
	exit_when_left(server);
}

static void on_idle_closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;

	uv_close((uv_handle_t *)&connection->tcp, on_closed);
}

void connection_close(struct connection *connection)
{
	if (connection->closing)
		return;
	connection->closing = true;
	/* It takes the loop a turn to close: what arrives meanwhile must not begin another job. */
	uv_read_stop((uv_stream_t *)&connection->tcp);
	if (connection->job)
		job_abandon(connection->job);
	if (connection->replay)
		stream_detach(connection);
	uv_close((uv_handle_t *)&connection->idle, on_idle_closed);
}

/* Everything written so far goes out, then the connection ends. */
static void on_shut(uv_shutdown_t *request, int status)
{
	struct connection *connection = request->data;

	(void)status;
	free(request);
	connection_close(connection);
}

static void finish_and_close(struct connection *connection)
{
	uv_shutdown_t *request = malloc(sizeof(*request));

	if (!request) {
		connection_close(connection);
		return;
	}
	request->data = connection;
	if (uv_shutdown(request, (uv_stream_t *)&connection->tcp, on_shut)) {
		free(request);
		connection_close(connection);
	}
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static void on_idle(uv_timer_t *timer)
{
	connection_close(timer->data);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	static char room[65536]; /* consumed before the next read */

	(void)handle;
	(void)suggested;
	*buffer = uv_buf_init(room, sizeof(room));
}

static void take_header(struct connection *connection)
{
	const char *name = connection->field.data, *value = connection->value.data;

	if (name && value) {
		if (strcasecmp(name, "x-conversation-id") == 0 && !connection->conversation_id[0] &&
		    connection->value.length <= CONVERSATION_ID_MAX)
			snprintf(connection->conversation_id, sizeof(connection->conversation_id),
				 "%s", value);
		else if (strcasecmp(name, "expect") == 0 && strcasecmp(value, "100-continue") == 0)
			connection->expects_continue = true;
	}
	bytes_clear(&connection->field);
	bytes_clear(&connection->value);
	connection->in_value = false;
}

static int on_message_begin(http_parser *parser)
{
	struct connection *connection = parser->data;

	bytes_clear(&connection->url);
	bytes_clear(&connection->body);
	bytes_clear(&connection->field);
	bytes_clear(&connection->value);
	connection->conversation_id[0] = '\0';
	connection->in_value = connection->expects_continue = connection->complete = false;
	return 0;
}

static int on_url(http_parser *parser, const char *at, size_t length)
{
	struct connection *connection = parser->data;

	bytes_add(&connection->url, at, length);
	return 0;
}

static int on_header_field(http_parser *parser, const char *at, size_t length)
{
	struct connection *connection = parser->data;

	if (connection->in_value)
		take_header(connection);
	bytes_add(&connection->field, at, length);
	return 0;
}

static int on_header_value(http_parser *parser, const char *at, size_t length)
{
	struct connection *connection = parser->data;

	connection->in_value = true;
	bytes_add(&connection->value, at, length);
	return 0;
}

static int on_headers_complete(http_parser *parser)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct connection *connection = parser->data;

	take_header(connection);
	if (connection->expects_continue)
		connection_send(connection, go_on, sizeof(go_on) - 1);
	return 0;
}

static int on_body(http_parser *parser, const char *at, size_t length)
{
	struct connection *connection = parser->data;

	if (connection->body.length + length > BODY_BYTES_MAX)
		return 1;
	bytes_add(&connection->body, at, length);
	return 0;
}

static int on_message_complete(http_parser *parser)
{
	struct connection *connection = parser->data;

	connection->complete = true;
	http_parser_pause(parser, 1); /* what else was in this read is lost */
	return 0;
}

static const http_parser_settings parser_settings = {
	.on_message_begin = on_message_begin,
	.on_url = on_url,
	.on_header_field = on_header_field,
	.on_header_value = on_header_value,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

/*
 * Between two requests the time-out is model time, as users' thinking is. A client that is only just connecting, or sending, does that in real time:
 * there it is not sped up.
 */
static void wait_for_data(struct connection *connection, bool between)
{
	uint64_t milliseconds = IDLE_SECONDS * 1000;

	if (between && connection->requests)
		milliseconds = real_milliseconds(connection->server, IDLE_SECONDS * SECOND);
	uv_timer_start(&connection->idle, on_idle, milliseconds, 0);
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
	struct connection *connection = stream->data;

	if (length == 0)
		return;
	if (length < 0) {
		connection_close(connection);
		return;
	}
	if (connection->server->frozen)
		return;
	wait_for_data(connection, false);
	http_parser_execute(&connection->parser, &parser_settings, buffer->base, (size_t)length);
	if (connection->complete) {
		uv_read_stop(stream);
		uv_timer_stop(&connection->idle);
		connection->requests++;
		connection->answering = true;
		connection->keep_alive = http_should_keep_alive(&connection->parser) &&
					 connection->requests < KEEP_ALIVE_REQUESTS;
		route(connection);
	} else if (HTTP_PARSER_ERRNO(&connection->parser) != HPE_OK) {
		connection->answering = true;
		uv_read_stop(stream);
		answer_error(connection, 400, "invalid_request_error", "malformed HTTP request");
	}
}

static void listen_for_request(struct connection *connection)
{
	http_parser_init(&connection->parser, HTTP_REQUEST);
	connection->parser.data = connection;
	connection->complete = false;
	wait_for_data(connection, true);
	uv_read_start((uv_stream_t *)&connection->tcp, on_room, on_read);
}

void connection_answered(struct connection *connection)
{
	connection->job = NULL;
	connection->answering = false;
	if (connection->closing)
		return;
	if (connection->keep_alive)
		listen_for_request(connection);
	else
		finish_and_close(connection);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct server *server = listener->data;
	struct connection *connection;

	if (status < 0)
		return;
	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return;
	connection->server = server;
	uv_tcp_init(&server->loop, &connection->tcp);
	uv_timer_init(&server->loop, &connection->idle);
	connection->tcp.data = connection->idle.data = connection;
	connection->next = server->connections;
	server->connections = connection;
	if (uv_accept(listener, (uv_stream_t *)&connection->tcp)) {
		connection_close(connection);
		return;
	}
	uv_tcp_nodelay(&connection->tcp, 1);
	listen_for_request(connection);
}

/* --- starting and stopping ------------------------------------------------------------------------------------ */

static void watch_for_end(struct connection *connection)
{
	uv_timer_stop(&connection->idle);
	uv_read_start((uv_stream_t *)&connection->tcp, on_room, on_read);
}

/*
 * As the real server does: nobody gets in any more, idle connections are dropped, and running answers freeze with their connection
 * left open until the client leaves.
 */
static void on_terminate(uv_signal_t *signal, int number)
{
	struct server *server = signal->data;
	struct connection *next;

	(void)number;
	if (server->frozen) {
		uv_stop(&server->loop);
		return;
	}
	server->frozen = true;
	uv_close((uv_handle_t *)&server->listener, NULL);
	for (struct connection *connection = server->connections; connection; connection = next) {
		next = connection->next;
		if (connection->answering)
			watch_for_end(connection);
		else
			connection_close(connection);
	}
	exit_when_left(server);
}

static int listen_on(struct server *server)
{
	const struct options *options = &server->options;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	int result = getaddrinfo(options->address, options->port, &hints, &found);

	if (result) {
		fprintf(stderr, "simreplica: cannot listen on %s port %s: %s\n", options->address,
			options->port, gai_strerror(result));
		return -EINVAL;
	}
	uv_tcp_init(&server->loop, &server->listener);
	server->listener.data = server;
	result = uv_tcp_bind(&server->listener, found->ai_addr, 0);
	freeaddrinfo(found);
	if (!result)
		result = uv_listen((uv_stream_t *)&server->listener, 512, on_connection);
	if (result)
		fprintf(stderr, "simreplica: cannot listen on %s port %s: %s\n", options->address,
			options->port, uv_strerror(result));
	return result;
}

int server_run(struct server *server)
{
	int result = uv_loop_init(&server->loop);

	if (result)
		return result;
	server->replica =
		replica_new(&server->options.replica, &server->options.model, &completion_observer);
	server->work_timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (!server->replica || server->work_timer < 0) {
		fprintf(stderr, "simreplica: no memory or no timer\n");
		return -ENOMEM;
	}
	server->started = model_now(server) - SECOND; /* 0 means "never" in places */
	server->process_start = time(NULL);
	server->ready = model_now(server) + (uint64_t)(server->options.load_seconds * 1e9);
	result = listen_on(server);
	if (result)
		return result;
	uv_poll_init(&server->loop, &server->work, server->work_timer);
	server->work.data = server;
	uv_poll_start(&server->work, UV_READABLE, on_work);
	uv_signal_init(&server->loop, &server->terminate);
	uv_signal_init(&server->loop, &server->interrupt);
	server->terminate.data = server->interrupt.data = server;
	uv_signal_start(&server->terminate, on_terminate, SIGTERM);
	uv_signal_start(&server->interrupt, on_terminate, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	uv_run(&server->loop, UV_RUN_DEFAULT);
	return 0;
}
