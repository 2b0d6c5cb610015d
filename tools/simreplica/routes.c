/* SPDX-License-Identifier: BSD-2-Clause */
/* Which request goes where, and the wording of errors. */
#include "simreplica.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

void answer_json(struct connection *connection, unsigned int status, json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));

	connection_answer(connection, status, "application/json; charset=utf-8", NULL,
			  text ? text : "", text ? strlen(text) : 0);
	free(text);
	json_decref(json);
}

void answer_error(struct connection *connection, unsigned int code, const char *type,
		  const char *message)
{
	answer_json(connection, code,
		    json_pack("{s:{s:i,s:s,s:s}}", "error", "code", (int)code, "message", message,
			      "type", type));
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool query_value(const struct connection *connection, const char *name, char *value, size_t size)
{
	const char *at = strchr(connection->url.data, '?');
	size_t length = strlen(name), out = 0;

	while (at && (strncmp(at + 1, name, length) != 0 || at[1 + length] != '='))
		at = strchr(at + 1, '&');
	if (!at)
		return false;
	for (at += 2 + length; *at && *at != '&'; at++) {
		char c = *at;

		if (c == '%' && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0) {
			c = (char)(hex_digit(at[1]) * 16 + hex_digit(at[2]));
			at += 2;
		} else if (c == '+') {
			c = ' ';
		}
		if (out + 1 >= size)
			return false;
		value[out++] = c;
	}
	value[out] = '\0';
	return true;
}

static void chat(struct connection *connection)
{
	completion_request(connection, COMPLETION_CHAT);
}

static void own_completion(struct connection *connection)
{
	completion_request(connection, COMPLETION_OWN);
}

static void openai_completion(struct connection *connection)
{
	completion_request(connection, COMPLETION_OPENAI);
}

static const struct {
	const char *path;
	enum http_method method;
	bool while_loading;
	void (*handle)(struct connection *connection);
} routes[] = {
	{"/health", HTTP_GET, true, status_health},
	{"/v1/health", HTTP_GET, true, status_health},
	{"/metrics", HTTP_GET, false, status_metrics},
	{"/slots", HTTP_GET, false, status_slots},
	{"/props", HTTP_GET, false, status_properties},
	{"/models", HTTP_GET, false, status_models},
	{"/v1/models", HTTP_GET, false, status_models},
	{"/completion", HTTP_POST, false, own_completion},
	{"/completions", HTTP_POST, false, own_completion},
	{"/v1/completions", HTTP_POST, false, openai_completion},
	{"/chat/completions", HTTP_POST, false, chat},
	{"/v1/chat/completions", HTTP_POST, false, chat},
	{"/v1/stream", HTTP_GET, false, stream_replay},
	{"/v1/stream", HTTP_DELETE, false, stream_delete},
	{"/v1/streams/lookup", HTTP_POST, false, stream_lookup},
};

static bool loading(struct connection *connection)
{
	if (model_now(connection->server) >= connection->server->ready)
		return false;
	answer_error(connection, 503, "unavailable_error", "Loading model");
	return true;
}

void route(struct connection *connection)
{
	const char *url = connection->url.data ? connection->url.data : "/";
	size_t length = strcspn(url, "?");
	enum http_method method = connection->parser.method;

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (strlen(routes[i].path) != length || strncmp(url, routes[i].path, length) != 0)
			continue;
		if (routes[i].method != method &&
		    !(routes[i].method == HTTP_GET && method == HTTP_HEAD))
			continue;
		if (routes[i].while_loading || !loading(connection))
			routes[i].handle(connection);
		return;
	}
	if (strncmp(url, "/slots/", 7) == 0 && method == HTTP_POST) {
		if (!loading(connection))
			slot_action(connection, url + 7);
		return;
	}
	answer_error(connection, 404, "not_found_error", "File Not Found");
}
