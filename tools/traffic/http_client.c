/* SPDX-License-Identifier: BSD-2-Clause */
#include "http_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct exchange {
	struct exchange *next;
	CURL *easy;
	struct curl_slist *headers;
	struct bytes body;
	char error[CURL_ERROR_SIZE];
	char served_by[HTTP_HEADER_SIZE], route_reason[HTTP_HEADER_SIZE];
	void (*done)(void *owner, const struct http_result *result);
	void *owner;
};

struct http_client {
	uv_loop_t *loop;
	CURLM *multi;
	uv_timer_t timer;
	struct exchange *exchanges;
	void (*broken_off)(void *owner);
	bool fresh, closing;
};

/* A socket of curl's that the loop watches. */
struct watched {
	uv_poll_t poll;
	struct http_client *client;
	curl_socket_t socket;
};

static void exchange_free(struct http_client *client, struct exchange *exchange)
{
	struct exchange **link = &client->exchanges;

	while (*link != exchange)
		link = &(*link)->next;
	*link = exchange->next;
	curl_multi_remove_handle(client->multi, exchange->easy);
	curl_easy_cleanup(exchange->easy);
	curl_slist_free_all(exchange->headers);
	bytes_free(&exchange->body);
	free(exchange);
}

static void finish(struct http_client *client, struct exchange *exchange, CURLcode code)
{
	struct http_result result = {.body = &exchange->body,
				     .served_by = exchange->served_by,
				     .route_reason = exchange->route_reason};
	void (*done)(void *owner, const struct http_result *result) = exchange->done;
	void *owner = exchange->owner;
	long status = 0;

	curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
	result.status = (int)status;
	if (code == CURLE_OPERATION_TIMEDOUT)
		result.error = "timeout";
	else if (code != CURLE_OK)
		result.error = exchange->error[0] ? exchange->error : curl_easy_strerror(code);
	done(owner, &result);
	exchange_free(client, exchange);
}

static void take_finished(struct http_client *client)
{
	CURLMsg *message;
	int left;

	while (!client->closing && (message = curl_multi_info_read(client->multi, &left))) {
		struct exchange *exchange = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&exchange);
		finish(client, exchange, message->data.result);
	}
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
	struct watched *watched = poll->data;
	struct http_client *client = watched->client;
	int flags = 0, running;

	if (status < 0)
		flags = CURL_CSELECT_ERR;
	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	curl_multi_socket_action(client->multi, watched->socket, flags, &running);
	take_finished(client);
}

static void on_timer(uv_timer_t *timer)
{
	struct http_client *client = timer->data;
	int running;

	curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	take_finished(client);
}

static int set_timer(CURLM *multi, long milliseconds, void *context)
{
	struct http_client *client = context;

	(void)multi;
	if (client->closing)
		return 0;
	if (milliseconds < 0)
		uv_timer_stop(&client->timer);
	else
		uv_timer_start(&client->timer, on_timer, (uint64_t)milliseconds, 0);
	return 0;
}

static void on_watched_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static int watch_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *assigned)
{
	struct http_client *client = context;
	struct watched *watched = assigned;
	int events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (watched) {
			uv_poll_stop(&watched->poll);
			uv_close((uv_handle_t *)&watched->poll, on_watched_closed);
		}
		curl_multi_assign(client->multi, socket, NULL);
		return 0;
	}
	if (!watched) {
		watched = calloc(1, sizeof(*watched));
		if (!watched)
			return -1;
		watched->client = client;
		watched->socket = socket;
		if (uv_poll_init_socket(client->loop, &watched->poll, socket)) {
			free(watched);
			return -1;
		}
		watched->poll.data = watched;
		curl_multi_assign(client->multi, socket, watched);
	}
	if (what & CURL_POLL_IN)
		events |= UV_READABLE;
	if (what & CURL_POLL_OUT)
		events |= UV_WRITABLE;
	uv_poll_start(&watched->poll, events, on_socket);
	return 0;
}

struct http_client *http_client_new(uv_loop_t *loop, bool fresh, void (*broken_off)(void *owner))
{
	struct http_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->loop = loop;
	client->fresh = fresh;
	client->broken_off = broken_off;
	client->multi = curl_multi_init();
	if (!client->multi) {
		free(client);
		return NULL;
	}
	uv_timer_init(loop, &client->timer);
	client->timer.data = client;
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
	return client;
}

static void on_client_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void http_client_close(struct http_client *client)
{
	if (!client || client->closing)
		return;
	client->closing = true;
	while (client->exchanges) {
		void *owner = client->exchanges->owner;

		exchange_free(client, client->exchanges);
		client->broken_off(owner);
	}
	curl_multi_cleanup(client->multi);
	uv_timer_stop(&client->timer);
	uv_close((uv_handle_t *)&client->timer, on_client_closed);
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;

	bytes_add(&exchange->body, data, size * count);
	return size * count;
}

static void take_header(const char *line, size_t length, const char *name, char *value)
{
	size_t name_length = strlen(name);

	if (length <= name_length || strncasecmp(line, name, name_length) != 0)
		return;
	line += name_length;
	length -= name_length;
	while (length && (*line == ' ' || *line == '\t')) {
		line++;
		length--;
	}
	while (length && strchr("\r\n \t", line[length - 1]))
		length--;
	if (length < HTTP_HEADER_SIZE) {
		memcpy(value, line, length);
		value[length] = '\0';
	}
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	size_t length = size * count;

	take_header(data, length, "x-served-by:", exchange->served_by);
	take_header(data, length, "x-routed-to:", exchange->served_by);
	take_header(data, length, "x-route-reason:", exchange->route_reason);
	return length;
}

int http_client_post(struct http_client *client, const char *url, struct curl_slist *headers,
		     const struct bytes *body, long timeout_ms,
		     void (*done)(void *owner, const struct http_result *result), void *owner)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	CURL *easy = curl_easy_init();

	if (!exchange || !easy) {
		free(exchange);
		curl_slist_free_all(headers);
		return -ENOMEM;
	}
	exchange->easy = easy;
	exchange->headers = headers;
	exchange->done = done;
	exchange->owner = owner;
	exchange->next = client->exchanges;
	client->exchanges = exchange;
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body->length);
	curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body->data);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	if (client->fresh) {
		curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
		curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	}
	if (curl_multi_add_handle(client->multi, easy) != CURLM_OK) {
		exchange_free(client, exchange);
		return -EIO;
	}
	return 0;
}
