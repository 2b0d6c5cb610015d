/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests for answers: reading them, the model's news of them, clients that leave. */
#include "simreplica.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/random.h"

#define WATCH_SECONDS 1
#define PING_SECONDS  30

/* --- reading the request --------------------------------------------------------------------------------- */

static int add_words(struct text *text, const char *words)
{
	while (*words) {
		const char *start;

		while (isspace((unsigned char)*words))
			words++;
		start = words;
		while (*words && !isspace((unsigned char)*words))
			words++;
		if (words > start &&
		    text_append_token(text, word_read(start, (size_t)(words - start))))
			return -ENOMEM;
	}
	return 0;
}

static int add_tokens(struct text *text, const uint32_t *tokens, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (text_append_token(text, tokens[i]))
			return -ENOMEM;
	return 0;
}

static uint32_t role_token(const char *role)
{
	if (strcmp(role, "system") == 0)
		return TOKEN_SYSTEM;
	if (strcmp(role, "user") == 0)
		return TOKEN_USER;
	if (strcmp(role, "assistant") == 0)
		return TOKEN_ASSISTANT;
	return TOKEN_OTHER_ROLE;
}

static int add_message_start(struct text *text, bool first, uint32_t role)
{
	const uint32_t opening[] = {TOKEN_BEGIN, TOKEN_MESSAGE_START, role, TOKEN_NEWLINE};
	const uint32_t between[] = {TOKEN_MESSAGE_END, TOKEN_NEWLINE, TOKEN_MESSAGE_START, role,
				    TOKEN_NEWLINE};

	return first ? add_tokens(text, opening, TEMPLATE_OPENING_TOKENS)
		     : add_tokens(text, between, TEMPLATE_BETWEEN_TOKENS);
}

/* A message's content: a string, or an array of text parts. */
static int add_content(struct text *text, const json_t *content)
{
	size_t index;
	json_t *part;

	if (json_is_string(content))
		return add_words(text, json_string_value(content));
	if (!json_is_array(content))
		return -EINVAL;
	json_array_foreach(content, index, part)
	{
		const char *words = json_string_value(json_object_get(part, "text"));
		int result = words ? add_words(text, words) : -EINVAL;

		if (result)
			return result;
	}
	return 0;
}

static int read_messages(const json_t *body, struct text *text)
{
	json_t *messages = json_object_get(body, "messages"), *message;
	size_t index;

	if (!json_is_array(messages) || !json_array_size(messages))
		return -EINVAL;
	json_array_foreach(messages, index, message)
	{
		const char *role = json_string_value(json_object_get(message, "role"));
		int result = role ? add_message_start(text, index == 0, role_token(role)) : -EINVAL;

		if (!result)
			result = add_content(text, json_object_get(message, "content"));
		if (result)
			return result;
	}
	return add_message_start(text, false, TOKEN_ASSISTANT);
}

static int read_prompt(const json_t *body, struct job *job, struct text *text)
{
	json_t *prompt = json_object_get(body, "prompt"), *token;
	size_t index;

	if (json_is_string(prompt)) {
		bytes_text(&job->prompt_text, json_string_value(prompt));
		return text_append_token(text, TOKEN_BEGIN)
			       ? -ENOMEM
			       : add_words(text, job->prompt_text.data);
	}
	if (!json_is_array(prompt))
		return -EINVAL;
	json_array_foreach(prompt, index, token)
	{
		if (!json_is_integer(token) || json_integer_value(token) < 0 ||
		    json_integer_value(token) > UINT32_MAX)
			return -EINVAL;
		if (text_append_token(text, (uint32_t)json_integer_value(token)))
			return -ENOMEM;
	}
	return 0;
}

/* The first of these that is a whole number. */
static json_int_t read_number(const json_t *body, const char *const *names, json_int_t otherwise)
{
	for (; *names; names++) {
		const json_t *value = json_object_get(body, *names);

		if (json_is_integer(value))
			return json_integer_value(value);
	}
	return otherwise;
}

/* The answer follows from the prompt alone, so any replica gives the same one, byte for byte. */
static uint64_t seed_of(const struct text *text)
{
	uint64_t seed = 0xcbf29ce484222325ull;

	for (uint32_t i = 0; i < text_length(text); i++)
		seed = (seed ^ text_token(text, i)) * 0x100000001b3ull;
	return random_mix(seed) & ~(1ull << 63);
}

static int read_request(struct job *job, const json_t *body)
{
	static const char *const limits[] = {"max_tokens", "max_completion_tokens", "n_predict",
					     NULL};
	static const char *const slots[] = {"id_slot", NULL};
	struct replica_request *request = &job->request;
	json_int_t limit = read_number(body, limits, -1), slot = read_number(body, slots, -1);
	struct text *text = text_new();
	int result;

	if (!text)
		return -ENOMEM;
	request->whole.text = text;
	result = job->chat ? read_messages(body, text) : read_prompt(body, job, text);
	if (result)
		return result;
	request->prompt_tokens = text_length(text);
	if (!request->prompt_tokens)
		return -EINVAL;
	request->answer_tokens = job->server->options.answer_tokens;
	if (limit >= 0 && limit < request->answer_tokens)
		request->answer_tokens = (uint32_t)limit;
	request->cache_prompt = !json_is_false(json_object_get(body, "cache_prompt"));
	request->slot_wanted = slot >= 0 ? (int32_t)(slot & 0x7fffffff) : -1;
	job->streamed = json_is_true(json_object_get(body, "stream"));
	job->return_progress = json_is_true(json_object_get(body, "return_progress"));
	job->include_usage = json_is_true(
		json_object_get(json_object_get(body, "stream_options"), "include_usage"));
	request->each_token = job->streamed;
	job->answer_seed = seed_of(text);
	for (uint32_t i = 0; i < request->answer_tokens; i++)
		if (text_append_token(text, word_token(job->answer_seed, i)))
			return -ENOMEM;
	request->whole.length = text_length(text);
	return 0;
}

/* --- the life of a job ------------------------------------------------------------------------------------ */

static void on_watch_closed(uv_handle_t *handle)
{
	struct job *job = handle->data;

	bytes_free(&job->prompt_text);
	free(job);
}

static void job_end(struct job *job)
{
	struct job **link = &job->server->jobs;

	while (*link != job)
		link = &(*link)->next;
	*link = job->next;
	if (job->stream)
		job->stream->job = NULL;
	text_release(job->request.whole.text); /* if it was never submitted */
	uv_close((uv_handle_t *)&job->watch, on_watch_closed);
}

void job_abandon(struct job *job)
{
	job->connection = NULL;
}

void job_cancel(struct job *job)
{
	struct connection *connection = job->connection;

	if (connection) {
		job->connection = NULL;
		connection->job = NULL;
		if (job->streamed && !job->head_sent)
			connection_stream_head(connection);
		if (job->streamed)
			connection_chunk(connection, "", 0);
		connection_answered(connection);
	}
	if (job->stream)
		job->stream->job = NULL;
	job->stream = NULL;
	job->doomed = true;
	server_schedule(job->server);
}

void jobs_sweep(struct server *server)
{
	struct job *next;

	for (struct job *job = server->jobs; job; job = next) {
		next = job->next;
		if (!job->doomed || job->request.cancelled)
			continue;
		if (job->submitted)
			replica_cancel(server->replica, &job->request, model_now(server));
		else
			job_end(job);
	}
}

/*
 * Whether the client of an unstreamed request is still there is looked at only when a second has passed in which the loop gave nothing to
 * anybody: /slots, /metrics and other requests' tokens restart that second.
 */
static void on_watch(uv_timer_t *timer)
{
	struct job *job = timer->data;
	struct server *server = job->server;
	uint64_t now = model_now(server), wait = WATCH_SECONDS * SECOND;

	if (server->frozen)
		return;
	if (job->streamed) {
		wait = PING_SECONDS * SECOND;
		if (job->connection && job->head_sent && now - job->last_event >= wait) {
			connection_chunk(job->connection, ":\n\n", 3);
			job->last_event = now;
		}
	} else if (now - server->last_result >= wait) {
		if (!job->survives && (!job->connection || connection_gone(job->connection))) {
			job->doomed = true;
			jobs_sweep(server);
			server_schedule(server);
			return;
		}
	} else {
		wait -= now - server->last_result;
	}
	uv_timer_start(timer, on_watch, real_milliseconds(server, wait), 0);
}

static void refuse(struct job *job, int result, const char *message)
{
	struct connection *connection = job->connection;
	uint32_t context = job->server->options.replica.context_tokens;
	char text[160];

	job->connection = NULL;
	connection->job = NULL;
	if (result != -E2BIG) {
		answer_error(connection, 400, "invalid_request_error", message);
	} else {
		snprintf(text, sizeof(text),
			 "request (%u tokens) exceeds the available context size (%u tokens)",
			 job->request.prompt_tokens, context);
		answer_json(connection, 400,
			    json_pack("{s:{s:i,s:s,s:s,s:i,s:i}}", "error", "code", 400, "message",
				      text, "type", "exceed_context_size_error", "n_prompt_tokens",
				      (int)job->request.prompt_tokens, "n_ctx", (int)context));
	}
	job_end(job);
}

static void name_job(struct job *job)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	static uint64_t count;
	struct random random = {.state = uv_hrtime() + ++count};
	size_t at = (size_t)snprintf(job->id, sizeof(job->id), job->chat ? "chatcmpl-" : "cmpl-");

	for (int i = 0; i < 32; i++)
		job->id[at++] = letters[random_u64(&random) % 62];
	job->id[at] = '\0';
}

void completion_request(struct connection *connection, enum completion_kind kind)
{
	struct server *server = connection->server;
	json_error_t fault;
	json_t *body = json_loadb(connection->body.data ? connection->body.data : "",
				  connection->body.length, 0, &fault);
	struct job *job;
	int result;

	if (!body) {
		char message[256];

		snprintf(message, sizeof(message), "[json.exception.parse_error] line %d: %s",
			 fault.line, fault.text);
		answer_error(connection, 500, "server_error", message);
		return;
	}
	job = calloc(1, sizeof(*job));
	if (!job) {
		json_decref(body);
		answer_error(connection, 500, "server_error", "out of memory");
		return;
	}
	job->server = server;
	job->connection = connection;
	connection->job = job;
	job->chat = kind == COMPLETION_CHAT;
	job->openai = kind == COMPLETION_OPENAI;
	job->created = time(NULL);
	job->model_name = server->options.model_name;
	job->request.owner = job;
	job->next = server->jobs;
	server->jobs = job;
	uv_timer_init(&server->loop, &job->watch);
	job->watch.data = job;
	name_job(job);
	result = read_request(job, body);
	json_decref(body);
	if (result) {
		refuse(job, result,
		       job->chat ? "messages must be a non-empty array of {role, content}"
				 : "prompt must be a string or an array of token ids");
		return;
	}
	if (job->request.prompt_tokens >= server->options.replica.context_tokens) {
		refuse(job, -E2BIG, NULL);
		return;
	}
	job->survives = connection->conversation_id[0];
	if (job->survives && job->streamed)
		job->stream = stream_new(server, connection->conversation_id, job);
	job->arrives =
		model_now(server) +
		(uint64_t)(cost_arrival(&server->options.model, job->request.prompt_tokens) * 1e6);
	job->last_event = job->arrives;
	uv_timer_start(
		&job->watch, on_watch,
		real_milliseconds(server, (job->streamed ? PING_SECONDS : WATCH_SECONDS) * SECOND),
		0);
	server_schedule(server);
}

static struct job *next_to_arrive(const struct server *server)
{
	struct job *first = NULL;

	for (struct job *job = server->jobs; job; job = job->next)
		if (!job->submitted && (!first || job->arrives <= first->arrives))
			first = job; /* the list begins with the newest: ties go to the oldest */
	return first;
}

uint64_t jobs_next_arrival(const struct server *server)
{
	const struct job *job = next_to_arrive(server);

	return job ? job->arrives : REPLICA_NEVER;
}

void jobs_arrive(struct server *server, uint64_t now)
{
	struct job *job;

	while ((job = next_to_arrive(server)) && job->arrives <= now) {
		struct text *text = job->request.whole.text;
		int result = replica_submit(server->replica, &job->request, job->arrives);

		job->submitted = true;
		if (result)
			refuse(job, result, "the request cannot be run");
		else
			text_release(text); /* the replica holds its own reference */
	}
}

/* --- what the model tells ----------------------------------------------------------------------------------- */

/* To the client if it is there, and to the store if it is kept. */
static void send_events(struct job *job, const struct bytes *events)
{
	if (!events->length)
		return;
	if (job->connection)
		connection_chunk(job->connection, events->data, events->length);
	if (job->stream)
		stream_add(job->stream, job->server, events->data, events->length);
	job->last_event = model_now(job->server);
}

static void on_started(struct replica_request *request, uint64_t when)
{
	struct job *job = request->owner;

	(void)when;
	if (!job->streamed || !job->connection)
		return;
	connection_stream_head(job->connection);
	job->head_sent = true;
}

static void on_progress(struct replica_request *request, uint64_t when)
{
	struct job *job = request->owner;
	struct bytes events = {0};

	if (!job->streamed || !job->return_progress)
		return;
	reply_event_progress(job, &events, when);
	send_events(job, &events);
	bytes_free(&events);
}

static void on_token(struct replica_request *request, uint64_t when)
{
	struct job *job = request->owner;
	struct bytes events = {0};

	(void)when;
	job->server->last_result = model_now(job->server);
	if (!job->survives && (!job->connection || connection_gone(job->connection))) {
		job->doomed = true;
		return;
	}
	if (request->predicted == 1)
		reply_event_head(job, &events);
	reply_event_token(job, &events);
	send_events(job, &events);
	bytes_free(&events);
}

static void finish_stream(struct job *job, uint64_t when)
{
	struct bytes events = {0};

	reply_event_last(job, &events, when);
	bytes_text(&events, "data: [DONE]\n\n");
	send_events(job, &events);
	bytes_free(&events);
	if (job->stream) {
		struct stream *stream = job->stream;

		job->stream = NULL;
		stream_end(stream, job->server);
	}
}

static void on_finished(struct replica_request *request, uint64_t when)
{
	struct job *job = request->owner;
	struct connection *connection;

	if (!request->cancelled && job->streamed)
		finish_stream(job, when);
	job->server->last_result = model_now(job->server);
	connection = job->connection;
	job->connection = NULL;
	if (connection) {
		connection->job = NULL;
		if (job->streamed) {
			connection_chunk(connection, "", 0);
			connection_answered(connection);
		} else if (request->cancelled) {
			connection_close(connection);
		} else {
			answer_json(connection, 200, reply_whole(job, when));
		}
	}
	job_end(job);
}

const struct replica_observer completion_observer = {
	.started = on_started,
	.progress = on_progress,
	.token = on_token,
	.finished = on_finished,
};
