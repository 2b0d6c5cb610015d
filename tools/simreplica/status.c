/* SPDX-License-Identifier: BSD-2-Clause */
/* What a replica says about itself. */
#include "simreplica.h"

#include <string.h>
#include <stdio.h>

void status_health(struct connection *connection)
{
	if (model_now(connection->server) < connection->server->ready)
		answer_error(connection, 503, "unavailable_error", "Loading model");
	else
		answer_json(connection, 200, json_pack("{s:s}", "status", "ok"));
}

static void add_metric(struct bytes *out, const char *kind, const char *name, const char *help,
		       double value)
{
	bytes_print(out, "# HELP llamacpp:%s %s\n# TYPE llamacpp:%s %s\nllamacpp:%s %.10g\n", name,
		    help, name, kind, name, value);
}

static double rate(uint64_t tokens, uint64_t nanoseconds)
{
	return nanoseconds ? (double)tokens / ((double)nanoseconds / 1e9) : 0;
}

/* How full its slots are. */
static double cache_usage(const struct server *server)
{
	const struct replica_settings *settings = &server->options.replica;
	double held = 0;

	for (uint32_t i = 0; i < settings->slots; i++) {
		const struct replica_request *request = replica_slot_request(server->replica, i);

		held += request ? (double)(request->prompt_tokens + request->predicted)
				: (double)replica_slot_content(server->replica, i).length;
	}
	return held / ((double)settings->slots * (double)settings->context_tokens);
}

/* As vLLM and SGLang give them: labels on all, and when the process started. */
static void answer_labelled(struct connection *connection)
{
	struct server *server = connection->server;
	bool vllm = server->options.dialect == METRICS_VLLM;
	const struct {
		const char *name, *help;
		double value;
	} gauges[] = {
		{vllm ? "vllm:num_requests_running" : "sglang:num_running_reqs",
		 "Number of requests that are running.", replica_processing(server->replica)},
		{vllm ? "vllm:num_requests_waiting" : "sglang:num_queue_reqs",
		 "Number of requests that are waiting.", replica_queued(server->replica)},
		{vllm ? "vllm:kv_cache_usage_perc" : "sglang:token_usage",
		 "KV-cache usage. 1 means 100 percent usage.", cache_usage(server)},
	};
	struct bytes out = {0};

	bytes_print(
		&out,
		"# HELP process_start_time_seconds Start time of the process since unix epoch in "
		"seconds.\n# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %lld.5\n",
		(long long)server->process_start);
	for (unsigned int i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		bytes_print(&out, "# HELP %s %s\n# TYPE %s gauge\n%s{%smodel_name=\"%s\"} %.10g\n",
			    gauges[i].name, gauges[i].help, gauges[i].name, gauges[i].name,
			    vllm ? "engine=\"0\"," : "", server->options.model_name,
			    gauges[i].value);
	connection_answer(connection, 200, "text/plain; version=0.0.4; charset=utf-8", "", out.data,
			  out.length);
	bytes_free(&out);
}

void status_metrics(struct connection *connection)
{
	struct server *server = connection->server;
	const struct replica_counters *c = replica_counters(server->replica);
	struct bytes out = {0};
	char header[80];

	if (!server->options.metrics) {
		answer_error(
			connection, 501, "not_supported_error",
			"This server does not support metrics endpoint. Start it with `--metrics`");
		return;
	}
	if (server->options.dialect != METRICS_LLAMA) {
		answer_labelled(connection);
		return;
	}
	server->last_result = model_now(server);
	add_metric(&out, "counter", "prompt_tokens_total", "Number of prompt tokens processed.",
		   (double)c->prompt_tokens);
	add_metric(&out, "counter", "prompt_tokens_cached_total",
		   "Number of prompt tokens taken from the cache.", (double)c->cached_tokens);
	add_metric(&out, "counter", "prompt_seconds_total", "Prompt process time",
		   (double)c->prompt_nanoseconds / 1e9);
	add_metric(&out, "counter", "tokens_predicted_total",
		   "Number of generation tokens processed.", (double)c->predicted_tokens);
	add_metric(&out, "counter", "tokens_predicted_seconds_total", "Predict process time",
		   (double)c->predicted_nanoseconds / 1e9);
	add_metric(&out, "counter", "n_decode_total", "Total number of llama_decode() calls",
		   (double)c->decode_calls);
	add_metric(&out, "counter", "n_tokens_max", "Largest observed n_tokens.",
		   (double)c->tokens_most);
	add_metric(&out, "counter", "spec_decode_num_draft_tokens_total",
		   "Number of draft tokens generated.", 0);
	add_metric(&out, "counter", "spec_decode_num_accepted_tokens_total",
		   "Number of draft tokens accepted.", 0);
	add_metric(&out, "counter", "spec_decode_num_drafts_total", "Number of drafts.", 0);
	/* averages since the last scrape: scraping resets them */
	add_metric(&out, "gauge", "prompt_tokens_seconds", "Average prompt throughput in tokens/s.",
		   rate(c->prompt_tokens - server->last_scrape.prompt_tokens,
			c->prompt_nanoseconds - server->last_scrape.prompt_nanoseconds));
	add_metric(&out, "gauge", "predicted_tokens_seconds",
		   "Average generation throughput in tokens/s.",
		   rate(c->predicted_tokens - server->last_scrape.predicted_tokens,
			c->predicted_nanoseconds - server->last_scrape.predicted_nanoseconds));
	add_metric(&out, "gauge", "requests_processing", "Number of requests processing.",
		   replica_processing(server->replica));
	add_metric(&out, "gauge", "requests_deferred", "Number of requests deferred.",
		   replica_queued(server->replica));
	add_metric(&out, "gauge", "n_busy_slots_per_decode",
		   "Average number of busy slots per llama_decode() call",
		   c->decode_calls ? (double)c->busy_slots / (double)c->decode_calls : 0);
	server->last_scrape.prompt_tokens = c->prompt_tokens;
	server->last_scrape.prompt_nanoseconds = c->prompt_nanoseconds;
	server->last_scrape.predicted_tokens = c->predicted_tokens;
	server->last_scrape.predicted_nanoseconds = c->predicted_nanoseconds;
	snprintf(header, sizeof(header), "Process-Start-Time-Unix: %lld\r\n",
		 (long long)server->process_start);
	connection_answer(connection, 200, "text/plain; version=0.0.4", header, out.data,
			  out.length);
	bytes_free(&out);
}

static json_t *slot_status(const struct server *server, uint32_t index)
{
	const struct replica_request *request = replica_slot_request(server->replica, index);
	struct span content = replica_slot_content(server->replica, index);
	json_t *slot = json_pack("{s:i,s:i,s:b,s:b}", "id", (int)index, "n_ctx",
				 (int)server->options.replica.context_tokens, "speculative", 0,
				 "is_processing", request != NULL);

	if (!request) {
		if (content.length)
			json_object_update_new(slot, json_pack("{s:i,s:i,s:i}", "n_prompt_tokens",
							       (int)content.length,
							       "n_prompt_tokens_processed", 0,
							       "n_prompt_tokens_cache", 0));
		return slot;
	}
	json_object_update_new(
		slot, json_pack("{s:i,s:i,s:i,s:{s:i},s:[{s:b,s:b,s:i,s:i}]}", "n_prompt_tokens",
				(int)(request->prompt_tokens + request->predicted),
				"n_prompt_tokens_processed", (int)request->processed,
				"n_prompt_tokens_cache", (int)request->cached, "params",
				"n_predict", (int)request->answer_tokens, "next_token",
				"has_next_token", 1, "has_new_line", 0, "n_remain",
				(int)(request->answer_tokens - request->predicted), "n_decoded",
				(int)request->predicted));
	return slot;
}

void status_slots(struct connection *connection)
{
	struct server *server = connection->server;
	json_t *slots;
	char value[8];

	if (!server->options.slots) {
		answer_error(
			connection, 501, "not_supported_error",
			"This server does not support slots endpoint. Start it without `--no-slots`");
		return;
	}
	server->last_result = model_now(server);
	if (query_value(connection, "fail_on_no_slot", value, sizeof(value)) &&
	    replica_processing(server->replica) == server->options.replica.slots) {
		answer_error(connection, 503, "unavailable_error", "no slot available");
		return;
	}
	slots = json_array();
	for (uint32_t i = 0; i < server->options.replica.slots; i++)
		json_array_append_new(slots, slot_status(server, i));
	answer_json(connection, 200, slots);
}

void status_properties(struct connection *connection)
{
	const struct options *options = &connection->server->options;

	answer_json(connection, 200,
		    json_pack("{s:{s:i},s:i,s:s,s:s}", "default_generation_settings", "n_ctx",
			      (int)options->replica.context_tokens, "total_slots",
			      (int)options->replica.slots, "model_path", options->model_name,
			      "build_info", "simreplica " WARMPATH_VERSION));
}

void status_models(struct connection *connection)
{
	const struct options *options = &connection->server->options;

	answer_json(connection, 200,
		    json_pack("{s:s,s:[{s:s,s:s,s:s,s:{s:i}}]}", "object", "list", "data", "id",
			      options->model_name, "object", "model", "owned_by", "llamacpp",
			      "meta", "n_ctx_train", (int)options->replica.context_tokens));
}
