/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads answers: whole bodies and event streams, of llama-server and of anything that speaks the same format. */
#include "traffic.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static uint32_t count_of(const json_t *object, const char *name)
{
	double value = json_number_value(json_object_get(object, name));

	return value > 0 && value < UINT32_MAX ? (uint32_t)value : 0;
}

static void read_timings(const json_t *event, struct answer *answer)
{
	const json_t *timings = json_object_get(event, "timings");
	const json_t *usage = json_object_get(event, "usage");
	const json_t *details = json_object_get(usage, "prompt_tokens_details");

	if (json_is_object(timings)) {
		answer->has_timings = true;
		answer->cache_n = count_of(timings, "cache_n");
		answer->prompt_n = count_of(timings, "prompt_n");
		answer->predicted_n = count_of(timings, "predicted_n");
		answer->prompt_ms = json_number_value(json_object_get(timings, "prompt_ms"));
		answer->predicted_ms = json_number_value(json_object_get(timings, "predicted_ms"));
	} else if (json_is_object(usage) && !answer->has_timings) {
		/* other servers say at least this */
		answer->has_timings = true;
		answer->cache_n = count_of(details, "cached_tokens");
		answer->prompt_n = count_of(usage, "prompt_tokens") - answer->cache_n;
		answer->predicted_n = count_of(usage, "completion_tokens");
	}
}

static void read_whole(const struct bytes *body, struct answer *answer)
{
	json_t *reply = json_loadb(body->data ? body->data : "", body->length, 0, NULL);
	const char *content = json_string_value(json_object_get(
		json_object_get(json_array_get(json_object_get(reply, "choices"), 0), "message"),
		"content"));

	if (!content) {
		snprintf(answer->error, sizeof(answer->error), "malformed answer: %.80s",
			 body->data ? body->data : "empty");
	} else {
		answer->content = strdup(content);
		read_timings(reply, answer);
	}
	json_decref(reply);
}

static bool read_event(const char *text, size_t length, struct bytes *content,
		       struct answer *answer)
{
	json_t *event = json_loadb(text, length, 0, NULL);
	const char *piece;

	if (!event)
		return false;
	piece = json_string_value(json_object_get(
		json_object_get(json_array_get(json_object_get(event, "choices"), 0), "delta"),
		"content"));
	if (piece)
		bytes_text(content, piece);
	read_timings(event, answer);
	json_decref(event);
	return true;
}

static void read_stream(const struct bytes *body, struct answer *answer)
{
	struct bytes content = {0};
	bool done = false;

	for (const char *line = body->data; line && *line && !answer->error[0];) {
		size_t length = strcspn(line, "\n");

		if (strncmp(line, "data: [DONE]", 12) == 0)
			done = true;
		else if (strncmp(line, "data: ", 6) == 0 &&
			 !read_event(line + 6, length - 6, &content, answer))
			snprintf(answer->error, sizeof(answer->error), "malformed event: %.80s",
				 line);
		line += length + (line[length] == '\n');
	}
	if (!done && !answer->error[0])
		snprintf(answer->error, sizeof(answer->error), "the stream ended without [DONE]");
	bytes_text(&content, "");
	answer->content = content.data;
}

void answer_read(const struct http_result *result, bool stream, struct answer *answer)
{
	*answer = (struct answer){0};
	if (result->error)
		snprintf(answer->error, sizeof(answer->error), "%s", result->error);
	else if (result->status != 200)
		snprintf(answer->error, sizeof(answer->error), "status %d: %.120s", result->status,
			 result->body->data ? result->body->data : "");
	else if (stream)
		read_stream(result->body, answer);
	else
		read_whole(result->body, answer);
}

void answer_free(struct answer *answer)
{
	free(answer->content);
	answer->content = NULL;
}
