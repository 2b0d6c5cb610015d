/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams that can be taken up again: those of requests with X-Conversation-Id, until 300 s after their end. */
#include "simreplica.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stream_free(struct server *server, struct stream *stream)
{
	struct stream **link = &server->streams;

	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	bytes_free(&stream->sent);
	free(stream);
}

/* Whoever is being played it gets the end of the answer, without [DONE]. */
static void stream_cut(struct server *server, struct stream *stream)
{
	struct connection *next;

	for (struct connection *connection = server->connections; connection; connection = next) {
		next = connection->next;
		if (connection->replay != stream)
			continue;
		connection->replay = NULL;
		connection_chunk(connection, "", 0);
		connection_answered(connection);
	}
	if (stream->job)
		job_cancel(stream->job);
	stream_free(server, stream);
}

static void forget_expired(struct server *server)
{
	uint64_t now = model_now(server);
	struct stream *next;

	for (struct stream *stream = server->streams; stream; stream = next) {
		next = stream->next;
		if (stream->expires && stream->expires <= now)
			stream_cut(server, stream);
	}
}

static struct stream *find(struct server *server, const char *conversation_id)
{
	forget_expired(server);
	for (struct stream *stream = server->streams; stream; stream = stream->next)
		if (strcmp(stream->conversation_id, conversation_id) == 0)
			return stream;
	return NULL;
}

struct stream *stream_new(struct server *server, const char *conversation_id, struct job *job)
{
	struct stream *stream = find(server, conversation_id);

	if (stream)
		stream_cut(server, stream);
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return NULL;
	snprintf(stream->conversation_id, sizeof(stream->conversation_id), "%s", conversation_id);
	stream->job = job;
	stream->started_at = unix_milliseconds();
	stream->next = server->streams;
	server->streams = stream;
	return stream;
}

static void play(struct connection *connection)
{
	struct stream *stream = connection->replay;

	if (stream->sent.length > connection->replayed)
		connection_chunk(connection, stream->sent.data + connection->replayed,
				 stream->sent.length - connection->replayed);
	connection->replayed = stream->sent.length;
	if (stream->done) {
		connection->replay = NULL;
		connection_chunk(connection, "", 0);
		connection_answered(connection);
	}
}

static void play_to_all(struct stream *stream, struct server *server)
{
	struct connection *next;

	for (struct connection *connection = server->connections; connection; connection = next) {
		next = connection->next;
		if (connection->replay == stream)
			play(connection);
	}
}

void stream_add(struct stream *stream, struct server *server, const void *data, size_t length)
{
	bytes_add(&stream->sent, data, length);
	play_to_all(stream, server);
}

void stream_end(struct stream *stream, struct server *server)
{
	stream->job = NULL;
	stream->done = true;
	stream->completed_at = unix_milliseconds();
	stream->expires = model_now(server) + STREAM_KEPT_SECONDS * SECOND;
	play_to_all(stream, server);
}

void stream_detach(struct connection *connection)
{
	connection->replay = NULL;
}

static struct stream *find_asked(struct connection *connection)
{
	char id[CONVERSATION_ID_MAX + 1];
	struct stream *stream;

	if (!query_value(connection, "conv_id", id, sizeof(id))) {
		answer_error(connection, 400, "invalid_request_error", "conv_id is missing");
		return NULL;
	}
	stream = find(connection->server, id);
	if (!stream)
		answer_error(connection, 404, "not_found_error", "no such stream");
	return stream;
}

void stream_replay(struct connection *connection)
{
	struct stream *stream = find_asked(connection);
	char from[24];

	if (!stream)
		return;
	connection->replayed = 0;
	if (query_value(connection, "from", from, sizeof(from)))
		connection->replayed = strtoull(from, NULL, 10);
	if (connection->replayed > stream->sent.length) {
		answer_error(connection, 400, "invalid_request_error",
			     "from lies behind what has been sent");
		return;
	}
	connection->replay = stream;
	connection_stream_head(connection);
	play(connection);
}

void stream_delete(struct connection *connection)
{
	struct stream *stream = find_asked(connection);

	if (!stream)
		return;
	stream_cut(connection->server, stream);
	server_schedule(connection->server);
	connection_answer(connection, 204, "", NULL, "", 0);
}

void stream_lookup(struct connection *connection)
{
	json_t *body = json_loadb(connection->body.data ? connection->body.data : "",
				  connection->body.length, 0, NULL);
	json_t *ids = json_object_get(body, "conversation_ids"), *id, *found;
	size_t index;

	if (!json_is_array(ids)) {
		json_decref(body);
		answer_error(connection, 400, "invalid_request_error",
			     "conversation_ids must be an array of strings");
		return;
	}
	found = json_array();
	json_array_foreach(ids, index, id)
	{
		const char *text = json_string_value(id);
		const struct stream *stream = text ? find(connection->server, text) : NULL;

		if (stream)
			json_array_append_new(
				found, json_pack("{s:s,s:b,s:I,s:I,s:I}", "conversation_id",
						 stream->conversation_id, "is_done", stream->done,
						 "total_bytes", (json_int_t)stream->sent.length,
						 "started_at", (json_int_t)stream->started_at,
						 "completed_at", (json_int_t)stream->completed_at));
	}
	json_decref(body);
	answer_json(connection, 200, found);
}

void stream_free_all(struct server *server)
{
	while (server->streams)
		stream_free(server, server->streams);
}
