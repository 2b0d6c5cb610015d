/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/control.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "lib/control.h"
#include "lib/log.h"

/* A follower may have so much unread before it misses messages. */
#define FOLLOW_QUEUE_MAX (1u << 20)

struct control {
	struct agent *agent;
	struct control_client *asking; /* whose command is being carried out */
	uv_pipe_t listener;
	struct control_client *clients;
	unsigned int client_count;
	unsigned long last_ticket;
	char path[108];
};

struct control_client {
	struct control *control;
	struct control_client *next;
	uv_pipe_t pipe;
	uv_timer_t idle;
	unsigned int open_handles; /* pipe and timer: freed when both are closed */
	bool follows;
	struct event_filter filter;
	unsigned long long missed; /* messages, since it was last told */
	unsigned long ticket;	   /* of the answer that is still to come; 0: none is */
	bool ending;		   /* hang up when what is being sent has been sent */
	unsigned int sending;
	size_t length;
	char line[CONTROL_LINE_MAX];
};

/* --- ending a connection ------------------------------------------------------------------------------------------ */

static void on_closed(uv_handle_t *handle)
{
	struct control_client *client = handle->data;

	if (--client->open_handles == 0)
		free(client);
}

static void hang_up(struct control_client *client)
{
	struct control_client **at;

	if (uv_is_closing((uv_handle_t *)&client->pipe))
		return;
	for (at = &client->control->clients; *at; at = &(*at)->next) {
		if (*at == client) {
			*at = client->next;
			client->control->client_count--;
			break;
		}
	}
	uv_close((uv_handle_t *)&client->pipe, on_closed);
	uv_close((uv_handle_t *)&client->idle, on_closed);
}

/* A follower has nothing to say; that it is gone shows when it is read from, or written to. */
static void on_idle(uv_timer_t *timer)
{
	struct control_client *client = timer->data;

	if (!client->ticket && (!client->follows || client->missed > 0))
		hang_up(client);
}

/* --- answers ------------------------------------------------------------------------------------------------------- */

struct answer {
	uv_write_t request;
	struct control_client *client;
	char *text;
};

static void on_sent(uv_write_t *request, int status)
{
	struct answer *answer = (struct answer *)request;
	struct control_client *client = answer->client;

	free(answer->text);
	free(answer);
	client->sending--;
	if (status < 0 || (client->ending && client->sending == 0))
		hang_up(client);
}

void control_answer(struct control_client *client, json_t *message)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	char *text = message ? json_dumps(message, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	uv_buf_t buffer;

	json_decref(message);
	if (!answer || !text || uv_is_closing((uv_handle_t *)&client->pipe)) {
		free(answer);
		free(text);
		hang_up(client);
		return;
	}
	answer->client = client;
	answer->text = text;
	buffer = uv_buf_init(text, strlen(text) + 1);
	text[buffer.len - 1] = '\n'; /* in the place of the closing NUL */
	client->sending++;
	if (uv_write(&answer->request, (uv_stream_t *)&client->pipe, &buffer, 1, on_sent)) {
		client->sending--;
		free(text);
		free(answer);
		hang_up(client);
	}
}

/* --- followers ------------------------------------------------------------------------------------------------------ */

void control_follow(struct control *control, const struct event_filter *filter)
{
	struct control_client *client = control->asking;

	if (!client)
		return;
	client->follows = true;
	client->filter = *filter;
}

static bool wants(const struct control_client *client, __u32 service, __u64 id_hash)
{
	const struct event_filter *filter = &client->filter;

	return client->follows && !client->ending &&
	       (filter->service < 0 || (__u32)filter->service == service) &&
	       (!filter->by_id || filter->id_hash == id_hash);
}

bool control_is_followed(const struct control *control, __u32 service, __u64 id_hash)
{
	const struct control_client *client;

	for (client = control ? control->clients : NULL; client; client = client->next) {
		if (wants(client, service, id_hash))
			return true;
	}
	return false;
}

static void send_to_follower(struct control_client *client, json_t *message)
{
	if (uv_stream_get_write_queue_size((uv_stream_t *)&client->pipe) > FOLLOW_QUEUE_MAX) {
		client->missed++;
		return;
	}
	if (client->missed > 0) {
		json_t *missed = json_pack("{s:s, s:I, s:s}", "event", "missed", "count",
					   (json_int_t)client->missed, "text",
					   "(events were missed: this client reads too slowly)\n");

		client->missed = 0;
		control_answer(client, missed);
	}
	uv_timer_again(&client->idle);
	control_answer(client, json_incref(message));
}

void control_publish(struct control *control, __u32 service, __u64 id_hash, json_t *message)
{
	struct control_client *client, *next;

	for (client = control ? control->clients : NULL; client; client = next) {
		next = client->next;
		if (wants(client, service, id_hash))
			send_to_follower(client, message);
	}
	json_decref(message);
}

static bool wants_changes(const struct control_client *client, __u32 service)
{
	return client->follows && !client->ending && client->filter.changes &&
	       (client->filter.service < 0 || (__u32)client->filter.service == service);
}

bool control_changes_are_followed(const struct control *control, __u32 service)
{
	const struct control_client *client;

	for (client = control ? control->clients : NULL; client; client = client->next) {
		if (wants_changes(client, service))
			return true;
	}
	return false;
}

void control_publish_change(struct control *control, __u32 service, json_t *message)
{
	struct control_client *client, *next;

	for (client = control ? control->clients : NULL; client; client = next) {
		next = client->next;
		if (wants_changes(client, service))
			send_to_follower(client, message);
	}
	json_decref(message);
}

static void refuse_and_end(struct control_client *client, const char *sentence)
{
	client->ending = true;
	uv_read_stop((uv_stream_t *)&client->pipe);
	control_answer(client, control_refusal(sentence));
}

/* --- questions ------------------------------------------------------------------------------------------------------ */

static void take_line(struct control_client *client, const char *line, size_t length)
{
	struct error error;
	json_t *message = control_parse(line, length, &error), *answer;

	if (!message) {
		control_answer(client, control_refusal(error.text));
		return;
	}
	client->control->asking = client;
	answer = commands_run(client->control->agent, message);
	client->control->asking = NULL;
	if (client->ticket)
		json_decref(answer);
	else
		control_answer(client, answer);
	json_decref(message);
}

/* Takes the whole lines from the buffer, as far as they can be answered: in their order. */
static void take_lines(struct control_client *client)
{
	char *newline;

	while (!uv_is_closing((uv_handle_t *)&client->pipe) && !client->ticket &&
	       (newline = memchr(client->line, '\n', client->length))) {
		size_t length = newline - client->line;

		take_line(client, client->line, length);
		client->length -= length + 1;
		memmove(client->line, newline + 1, client->length);
		uv_timer_again(&client->idle);
		/* One who asks and does not listen must not fill the memory. */
		if (uv_stream_get_write_queue_size((uv_stream_t *)&client->pipe) >
		    CONTROL_ANSWER_MAX)
			hang_up(client);
	}
	if (client->length == sizeof(client->line))
		refuse_and_end(client, "the line is too long: at most 65535 bytes are read");
}

unsigned long control_defer(struct control *control)
{
	struct control_client *client = control->asking;

	if (!client)
		return 0;
	client->ticket = ++control->last_ticket;
	return client->ticket;
}

bool control_answer_deferred(struct control *control, unsigned long ticket, json_t *answer)
{
	struct control_client *client;

	/* 0 is what clients have who wait for nothing */
	for (client = control && ticket ? control->clients : NULL; client; client = client->next) {
		if (client->ticket != ticket)
			continue;
		client->ticket = 0;
		control_answer(client, answer);
		take_lines(client);
		return true;
	}
	json_decref(answer);
	return false;
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct control_client *client = handle->data;

	(void)suggested;
	*buffer = uv_buf_init(client->line + client->length, sizeof(client->line) - client->length);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
	struct control_client *client = stream->data;

	(void)buffer;
	if (got < 0) {
		hang_up(client);
	} else if (got > 0) {
		client->length += got;
		take_lines(client);
	}
}

/* --- connections ----------------------------------------------------------------------------------------------------- */

static bool peer_may(const struct control_client *client)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	uv_os_fd_t descriptor;

	if (uv_fileno((const uv_handle_t *)&client->pipe, &descriptor) ||
	    getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return false;
	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	log_warning("control socket: user %u was turned away", peer.uid);
	return false;
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct control *control = listener->data;
	struct control_client *client;

	if (status < 0)
		return;
	client = calloc(1, sizeof(*client));
	if (!client)
		return;
	client->control = control;
	client->open_handles = 2;
	uv_pipe_init(&control->agent->loop, &client->pipe, 0);
	uv_timer_init(&control->agent->loop, &client->idle);
	client->pipe.data = client;
	client->idle.data = client;
	client->next = control->clients;
	control->clients = client;
	control->client_count++;
	if (uv_accept(listener, (uv_stream_t *)&client->pipe)) {
		hang_up(client);
		return;
	}
	uv_timer_start(&client->idle, on_idle, CONTROL_IDLE_SECONDS * 1000,
		       CONTROL_IDLE_SECONDS * 1000);
	if (!peer_may(client))
		refuse_and_end(client, "only root and the user that warmpathd runs as are served");
	else if (control->client_count > CONTROL_CLIENTS_MAX)
		refuse_and_end(client, "too many connections to the control socket; try again");
	else if (uv_read_start((uv_stream_t *)&client->pipe, give_room, on_read))
		hang_up(client);
}

/* --- the socket file --------------------------------------------------------------------------------------------------- */

/* The lock on pin_path keeps a second agent off, but another may have the same socket in its configuration. */
static int remove_stale_socket(const char *path, struct error *error)
{
	struct stat status;
	struct error nobody;
	int descriptor;

	if (lstat(path, &status))
		return 0;
	if (!S_ISSOCK(status.st_mode))
		return error_set(error, -EEXIST, "control_socket %s exists and is not a socket",
				 path);
	descriptor = control_connect(path, &nobody);
	if (descriptor >= 0) {
		close(descriptor);
		return error_set(error, -EADDRINUSE,
				 "another warmpathd listens on control_socket %s", path);
	}
	unlink(path);
	return 0;
}

static int make_socket(struct control *control, struct error *error)
{
	char directory[sizeof(control->path)];
	mode_t before;
	int result;

	memcpy(directory, control->path, sizeof(directory));
	if (mkdir(dirname(directory), 0755) && errno != EEXIST)
		return error_set(error, -errno,
				 "the directory of control_socket %s cannot be made: %s",
				 control->path, strerror(errno));
	result = remove_stale_socket(control->path, error);
	if (result)
		return result;
	/* So that there is no moment at which others could connect. */
	before = umask(0177);
	result = uv_pipe_bind(&control->listener, control->path);
	umask(before);
	if (!result)
		result = uv_listen((uv_stream_t *)&control->listener, 16, on_connection);
	if (result)
		return error_set(error, result, "control_socket %s cannot be made: %s",
				 control->path, uv_strerror(result));
	return 0;
}

static void on_listener_closed(uv_handle_t *handle)
{
	free(handle->data);
}

int control_listen(struct agent *agent, struct control **control, struct error *error)
{
	struct control *made = calloc(1, sizeof(*made));
	int result;

	*control = NULL;
	if (!made)
		return error_set(error, -ENOMEM, "not enough memory");
	made->agent = agent;
	memcpy(made->path, agent->config->control_socket, sizeof(made->path));
	uv_pipe_init(&agent->loop, &made->listener, 0);
	made->listener.data = made;
	result = make_socket(made, error);
	if (result)
		uv_close((uv_handle_t *)&made->listener, on_listener_closed);
	else
		*control = made;
	return result;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	while (control->clients)
		hang_up(control->clients);
	/* libuv unlinks the socket file when it closes a pipe that it bound. */
	uv_close((uv_handle_t *)&control->listener, on_listener_closed);
}
