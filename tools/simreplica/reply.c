/* SPDX-License-Identifier: BSD-2-Clause */
/* How answers are worded: bodies and stream events in the fields of llama-server. */
#include "simreplica.h"

#include <stdlib.h>
#include <string.h>

static double milliseconds(uint64_t from, uint64_t to)
{
	return to > from ? (double)(to - from) / 1e6 : 0;
}

json_t *reply_timings(const struct job *job, uint64_t finished)
{
	const struct replica_request *request = &job->request;
	double prompt_ms = milliseconds(request->started, request->first_token);
	double predicted_ms = milliseconds(request->first_token, finished);
	double processed = request->processed, predicted = request->predicted;

	return json_pack("{s:i,s:i,s:f,s:f,s:f,s:i,s:f,s:f,s:f}", "cache_n", (int)request->cached,
			 "prompt_n", (int)request->processed, "prompt_ms", prompt_ms,
			 "prompt_per_token_ms", processed > 0 ? prompt_ms / processed : 0.0,
			 "prompt_per_second", prompt_ms > 0 ? processed * 1e3 / prompt_ms : 0.0,
			 "predicted_n", (int)request->predicted, "predicted_ms", predicted_ms,
			 "predicted_per_token_ms", predicted > 0 ? predicted_ms / predicted : 0.0,
			 "predicted_per_second",
			 predicted_ms > 0 ? predicted * 1e3 / predicted_ms : 0.0);
}

static json_t *usage(const struct job *job)
{
	const struct replica_request *request = &job->request;

	return json_pack("{s:i,s:i,s:i,s:{s:i}}", "completion_tokens", (int)request->predicted,
			 "prompt_tokens", (int)request->prompt_tokens, "total_tokens",
			 (int)(request->prompt_tokens + request->predicted),
			 "prompt_tokens_details", "cached_tokens", (int)request->cached);
}

static const char *finish_reason(const struct job *job)
{
	return job->request.predicted >= job->server->options.answer_tokens ? "stop" : "length";
}

static json_t *answer_text(const struct job *job)
{
	uint32_t count = job->request.predicted;
	char *text = malloc(words_bytes(count) + 1);
	json_t *string;

	if (!text)
		return json_string("");
	string = json_stringn(text, words_spell(job->answer_seed, count, text));
	free(text);
	return string;
}

static json_t *own_body(const struct job *job, uint64_t finished)
{
	const struct replica_request *request = &job->request;
	json_t *tokens = json_array();

	for (uint32_t i = 0; i < request->predicted; i++)
		json_array_append_new(tokens, json_integer(word_token(job->answer_seed, i)));
	return json_pack(
		"{s:i,s:o,s:o,s:i,s:b,s:s,s:i,s:i,s:{s:i,s:b},s:s,s:b,s:b,s:s,s:s,s:i,s:o}",
		"index", 0, "content", answer_text(job), "tokens", tokens, "id_slot",
		(int)request->slot, "stop", 1, "model", job->model_name, "tokens_predicted",
		(int)request->predicted, "tokens_evaluated", (int)request->prompt_tokens,
		"generation_settings", "n_predict", (int)request->answer_tokens, "stream",
		job->streamed, "prompt", job->prompt_text.data ? job->prompt_text.data : "",
		"has_new_line", 0, "truncated", 0, "stop_type",
		strcmp(finish_reason(job), "stop") == 0 ? "eos" : "limit", "stopping_word", "",
		"tokens_cached", (int)(request->prompt_tokens + request->predicted - 1), "timings",
		reply_timings(job, finished));
}

json_t *reply_whole(const struct job *job, uint64_t finished)
{
	json_t *choice;

	if (!job->chat && !job->openai)
		return own_body(job, finished);
	if (job->chat)
		choice = json_pack("{s:s,s:i,s:{s:s,s:o}}", "finish_reason", finish_reason(job),
				   "index", 0, "message", "role", "assistant", "content",
				   answer_text(job));
	else
		choice = json_pack("{s:o,s:i,s:n,s:s}", "text", answer_text(job), "index", 0,
				   "logprobs", "finish_reason", finish_reason(job));
	return json_pack("{s:[o],s:I,s:s,s:s,s:s,s:o,s:s,s:o}", "choices", choice, "created",
			 (json_int_t)job->created, "model", job->model_name, "system_fingerprint",
			 "b1-simreplica", "object",
			 job->chat ? "chat.completion" : "text_completion", "usage", usage(job),
			 "id", job->id, "timings", reply_timings(job, finished));
}

static void add_event(struct bytes *out, json_t *event)
{
	char *text = json_dumps(event, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));

	bytes_text(out, "data: ");
	bytes_text(out, text ? text : "{}");
	bytes_text(out, "\n\n");
	free(text);
	json_decref(event);
}

static json_t *chunk(const struct job *job, json_t *choice)
{
	return json_pack("{s:o,s:I,s:s,s:s,s:s,s:s}", "choices",
			 choice ? json_pack("[o]", choice) : json_array(), "created",
			 (json_int_t)job->created, "id", job->id, "model", job->model_name,
			 "system_fingerprint", "b1-simreplica", "object",
			 job->chat ? "chat.completion.chunk" : "text_completion");
}

void reply_event_head(struct job *job, struct bytes *out)
{
	if (job->chat)
		add_event(out,
			  chunk(job, json_pack("{s:n,s:i,s:{s:s,s:n}}", "finish_reason", "index", 0,
					       "delta", "role", "assistant", "content")));
}

void reply_event_token(struct job *job, struct bytes *out)
{
	uint32_t index = job->request.predicted - 1;
	char word[WORD_LENGTH + 2] = " ";

	word_spell(word_token(job->answer_seed, index), word + 1);
	word[WORD_LENGTH + 1] = '\0';
	if (job->chat)
		add_event(out,
			  chunk(job, json_pack("{s:n,s:i,s:{s:s}}", "finish_reason", "index", 0,
					       "delta", "content", index ? word : word + 1)));
	else if (job->openai)
		add_event(out,
			  chunk(job, json_pack("{s:s,s:i,s:n,s:n}", "text", index ? word : word + 1,
					       "index", 0, "logprobs", "finish_reason")));
	else
		add_event(out, json_pack("{s:i,s:s,s:[i],s:b,s:i,s:i,s:i}", "index", 0, "content",
					 index ? word : word + 1, "tokens",
					 (int)word_token(job->answer_seed, index), "stop", 0,
					 "id_slot", (int)job->request.slot, "tokens_predicted",
					 (int)job->request.predicted, "tokens_evaluated",
					 (int)job->request.prompt_tokens));
}

void reply_event_progress(struct job *job, struct bytes *out, uint64_t when)
{
	const struct replica_request *request = &job->request;
	json_t *progress = json_pack("{s:i,s:i,s:i,s:I}", "total", (int)request->prompt_tokens,
				     "cache", (int)request->cached, "processed",
				     (int)(request->cached + request->processed), "time_ms",
				     (json_int_t)milliseconds(request->started, when));
	json_t *event =
		chunk(job, json_pack("{s:n,s:i,s:{}}", "finish_reason", "index", 0, "delta"));

	json_object_set_new(event, "prompt_progress", progress);
	add_event(out, event);
}

void reply_event_last(struct job *job, struct bytes *out, uint64_t finished)
{
	json_t *event;

	if (!job->chat && !job->openai) {
		add_event(out, own_body(job, finished));
		return;
	}
	if (job->chat)
		event = chunk(job, json_pack("{s:s,s:i,s:{}}", "finish_reason", finish_reason(job),
					     "index", 0, "delta"));
	else
		event = chunk(job, json_pack("{s:s,s:i,s:n,s:s}", "text", "", "index", 0,
					     "logprobs", "finish_reason", finish_reason(job)));
	if (!job->include_usage) {
		json_object_set_new(event, "timings", reply_timings(job, finished));
		add_event(out, event);
		return;
	}
	add_event(out, event);
	event = chunk(job, NULL);
	json_object_set_new(event, "usage", usage(job));
	json_object_set_new(event, "timings", reply_timings(job, finished));
	add_event(out, event);
}
