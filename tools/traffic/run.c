/* SPDX-License-Identifier: BSD-2-Clause */
/* Who asks when, and what is written down of it. */
#include "traffic.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/statistics.h"

#define PROGRESS_MILLISECONDS 500

/* A request under way. */
struct asked {
	struct talk *talk;
	struct traffic *traffic;
	struct dialogue *dialogue; /* the talk's, or (trace) its own */
	struct dialogue own;
	struct record record;
	uint32_t max_tokens;
};

static double model_seconds(const struct traffic *traffic)
{
	return (double)(uv_hrtime() - traffic->started) / 1e9 * traffic->options.speed;
}

static uint64_t real_milliseconds(const struct traffic *traffic, double model_seconds)
{
	return model_seconds > 0 ? (uint64_t)llround(model_seconds / traffic->options.speed * 1e3)
				 : 0;
}

/* --- what is written down ------------------------------------------------------------------------------------ */

static void stop(struct traffic *traffic);

static void write_down(struct traffic *traffic, const struct record *record)
{
	int result = records_write(traffic->csv, record);

	if (result && !traffic->result) {
		fprintf(stderr,
			"traffic: cannot write %s: %s; the %u requests before are in it, here it stops\n",
			traffic->options.csv_path, strerror(-result), traffic->done);
		traffic->result = 1;
		stop(traffic);
		return;
	}
	if (traffic->done == traffic->latency_capacity) {
		size_t capacity = traffic->latency_capacity ? traffic->latency_capacity * 2 : 1024;
		double *latencies = realloc(traffic->latencies, capacity * sizeof(*latencies));

		if (!latencies)
			return;
		traffic->latencies = latencies;
		traffic->latency_capacity = capacity;
	}
	traffic->latencies[traffic->done++] = record->latency_ms;
	traffic->errors += record->error[0] != '\0';
	if (record->turn > 1 && record->has_timings) {
		traffic->cached += record->cache_n;
		traffic->processed += record->prompt_n;
	}
}

static void write_answer(struct traffic *traffic, const struct record *record, const char *content)
{
	json_t *line;

	if (!traffic->answers)
		return;
	line = json_pack("{s:s,s:i,s:s}", "conversation_id", record->conversation_id, "turn",
			 (int)record->turn, "content", content ? content : "");
	json_dumpf(line, traffic->answers, JSON_COMPACT | JSON_PRESERVE_ORDER);
	fputc('\n', traffic->answers);
	json_decref(line);
}

/* --- asking -------------------------------------------------------------------------------------------------- */

static void talk_next(struct talk *talk);
static void talk_end(struct talk *talk);

static struct curl_slist *headers_for(const struct asked *asked)
{
	const struct options *options = &asked->traffic->options;
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	char line[200];

	/* a body larger than 1 MiB would otherwise wait a second for a 100 Continue */
	headers = curl_slist_append(headers, "Expect:");
	if (options->id_place == ID_IN_HEADER) {
		snprintf(line, sizeof(line), "x-conversation-id: %s",
			 asked->record.conversation_id);
		headers = curl_slist_append(headers, line);
	}
	snprintf(line, sizeof(line), "x-turn: %u", asked->record.turn);
	headers = curl_slist_append(headers, line);
	if (options->token_headers) {
		snprintf(line, sizeof(line), "x-prompt-tokens: %u",
			 asked->record.est_prompt_tokens);
		headers = curl_slist_append(headers, line);
		snprintf(line, sizeof(line), "x-max-tokens: %u", asked->max_tokens);
		headers = curl_slist_append(headers, line);
	}
	return headers;
}

static void on_answer(void *owner, const struct http_result *result)
{
	struct asked *asked = owner;
	struct traffic *traffic = asked->traffic;
	struct talk *talk = asked->talk;
	struct record *record = &asked->record;
	bool one_of_many = asked->dialogue == &asked->own;
	struct answer answer;

	traffic->in_flight--;
	record->t_end_s = model_seconds(traffic);
	record->latency_ms = (record->t_end_s - record->t_start_s) * 1e3;
	record->status = result->status;
	snprintf(record->replica, sizeof(record->replica), "%s", result->served_by);
	snprintf(record->route_reason, sizeof(record->route_reason), "%s", result->route_reason);
	answer_read(result, traffic->options.stream, &answer);
	snprintf(record->error, sizeof(record->error), "%s", answer.error);
	record->has_timings = answer.has_timings && !answer.error[0];
	record->cache_n = answer.cache_n;
	record->prompt_n = answer.prompt_n;
	record->prompt_ms = answer.prompt_ms;
	record->predicted_n = answer.predicted_n;
	record->predicted_ms = answer.predicted_ms;
	write_down(traffic, record);
	write_answer(traffic, record, answer.content);
	if (one_of_many)
		dialogue_end(&asked->own);
	else if (answer.error[0] || dialogue_answered(asked->dialogue, answer.content))
		dialogue_unanswered(asked->dialogue);
	answer_free(&answer);
	free(asked);
	if (traffic->stopping)
		return;
	if (!one_of_many)
		talk_next(talk);
	else if (traffic->next_arrival == traffic->trace.count && !traffic->in_flight)
		stop(traffic);
}

/* What was asked when all ended: nothing is written down of it. */
static void on_broken_off(void *owner)
{
	struct asked *asked = owner;

	if (asked->dialogue == &asked->own)
		dialogue_end(&asked->own);
	free(asked);
}

static const char *url_for(const struct talk *talk)
{
	const struct options *options = &talk->traffic->options;

	return talk->url[0] ? talk->url : options->urls[talk->traffic->sent % options->url_count];
}

static int send_request(struct asked *asked)
{
	struct traffic *traffic = asked->traffic;
	struct talk *talk = asked->talk;
	const struct options *options = &traffic->options;
	struct bytes body = {0}, url = {0};
	int result;

	if (!talk->client) {
		talk->client = options->connections == CONNECTION_OWN
				       ? http_client_new(&traffic->loop, false, on_broken_off)
				       : traffic->shared;
		if (!talk->client)
			return -ENOMEM;
	}
	dialogue_body(asked->dialogue, asked->max_tokens, options->stream, &body);
	bytes_print(&url, "%s/v1/chat/completions", url_for(talk));
	asked->record.t_start_s = model_seconds(traffic);
	result = http_client_post(
		talk->client, url.data, headers_for(asked), &body,
		(long)fmax(1,
			   (double)real_milliseconds(traffic, traffic->profile.request_timeout_s)),
		on_answer, asked);
	bytes_free(&body);
	bytes_free(&url);
	if (result)
		return result;
	traffic->sent++;
	traffic->in_flight++;
	return 0;
}

static struct asked *asked_new(struct talk *talk, struct dialogue *dialogue, uint32_t turn,
			       uint32_t max_tokens)
{
	struct asked *asked = calloc(1, sizeof(*asked));
	const struct options *options = &talk->traffic->options;

	if (!asked)
		return NULL;
	asked->talk = talk;
	asked->traffic = talk->traffic;
	asked->dialogue = dialogue ? dialogue : &asked->own;
	asked->max_tokens = max_tokens;
	snprintf(asked->record.run_id, sizeof(asked->record.run_id), "%s", options->run_id);
	snprintf(asked->record.policy, sizeof(asked->record.policy), "%s", options->policy);
	snprintf(asked->record.conversation_id, sizeof(asked->record.conversation_id), "%s",
		 talk->plan.id);
	asked->record.heavy = talk->plan.heavy;
	asked->record.turn = turn + 1;
	return asked;
}

static void out_of_memory(struct traffic *traffic)
{
	fprintf(stderr, "traffic: out of memory\n");
	traffic->result = 1;
	stop(traffic);
}

/* --- closed loop: a profile's conversations -------------------------------------------------------------------- */

static void on_think(uv_timer_t *timer)
{
	struct talk *talk = timer->data;
	struct traffic *traffic = talk->traffic;
	const struct profile *profile = &traffic->profile;
	struct plan_turn planned;
	struct asked *asked;
	uint32_t estimate;

	plan_turn(profile, traffic->options.seed, talk->index, talk->turn, &planned);
	if (dialogue_say(&talk->dialogue, ROLE_USER, planned.seed, planned.words)) {
		out_of_memory(traffic);
		return;
	}
	estimate = dialogue_estimate(&talk->dialogue, profile->max_tokens, traffic->options.stream);
	if (estimate + profile->max_tokens > profile->max_context_tokens) {
		talk_end(talk);
		return;
	}
	asked = asked_new(talk, &talk->dialogue, talk->turn++, profile->max_tokens);
	if (asked)
		asked->record.est_prompt_tokens = estimate;
	if (!asked || send_request(asked)) {
		free(asked);
		out_of_memory(traffic);
	}
}

static void talk_next(struct talk *talk)
{
	struct plan_turn planned;

	if (talk->turn == talk->plan.turns) {
		talk_end(talk);
		return;
	}
	plan_turn(&talk->traffic->profile, talk->traffic->options.seed, talk->index, talk->turn,
		  &planned);
	uv_timer_start(&talk->think, on_think, real_milliseconds(talk->traffic, planned.think_s),
		       0);
}

static void close_client(struct talk *talk)
{
	if (talk->client && talk->client != talk->traffic->shared)
		http_client_close(talk->client);
	talk->client = NULL;
}

/* Closing a curl client from within its own callback is not allowed: at the loop's next turn. */
static void on_end(uv_timer_t *timer)
{
	close_client(timer->data);
}

static void talk_end(struct talk *talk)
{
	dialogue_end(&talk->dialogue);
	uv_timer_start(&talk->think, on_end, 0, 0);
	if (--talk->traffic->talks_open == 0)
		stop(talk->traffic);
}

static int set_address(struct traffic *traffic, struct talk *talk)
{
	if (traffic->options.id_place != ID_IN_ADDRESS)
		return 0;
	if (address_url(traffic->options.urls[0], talk->plan.id, talk->url, sizeof(talk->url)) == 0)
		return 0;
	fprintf(stderr,
		"traffic: with --id-in address, --url must be like http://[fd00:a::]:8000, not %s\n",
		traffic->options.urls[0]);
	return -EINVAL;
}

static int start_profile(struct traffic *traffic)
{
	const struct profile *profile = &traffic->profile;
	uint64_t seed = traffic->options.seed;

	traffic->talk_count = traffic->talks_open = profile->conversations;
	traffic->talks = calloc(traffic->talk_count, sizeof(*traffic->talks));
	if (!traffic->talks)
		return -ENOMEM;
	for (uint32_t i = 0; i < traffic->talk_count; i++) {
		struct talk *talk = &traffic->talks[i];

		talk->traffic = traffic;
		talk->index = i;
		plan_conversation(profile, seed, i, &talk->plan);
		traffic->planned += talk->plan.turns;
		uv_timer_init(&traffic->loop, &talk->think);
		talk->think.data = talk;
		if (set_address(traffic, talk))
			return -EINVAL;
		if (dialogue_start(&talk->dialogue, false) ||
		    (profile->system_prompt_words &&
		     dialogue_say(&talk->dialogue, ROLE_SYSTEM, plan_system_seed(seed),
				  profile->system_prompt_words)))
			return -ENOMEM;
		uv_timer_start(&talk->think, on_think,
			       real_milliseconds(traffic, talk->plan.start_s), 0);
	}
	return 0;
}

/* --- open loop: a trace's requests ------------------------------------------------------------------------------ */

static void send_from_trace(struct traffic *traffic, const struct trace_request *request)
{
	struct talk *talk = &traffic->talks[request->conversation];
	struct asked *asked = asked_new(talk, NULL, request->turn, request->answer_tokens);

	if (!asked || dialogue_start(&asked->own, false) ||
	    dialogue_say_blocks(&asked->own, traffic->trace.seeds + request->first_block,
				request->block_count, traffic->trace.block_words, request->words)) {
		free(asked);
		out_of_memory(traffic);
		return;
	}
	asked->record.est_prompt_tokens =
		dialogue_estimate(&asked->own, asked->max_tokens, traffic->options.stream);
	if (send_request(asked)) {
		dialogue_end(&asked->own);
		free(asked);
		out_of_memory(traffic);
	}
}

static void on_arrival(uv_timer_t *timer)
{
	struct traffic *traffic = timer->data;
	double now = model_seconds(traffic);

	while (traffic->next_arrival < traffic->trace.count && !traffic->stopping) {
		const struct trace_request *request =
			&traffic->trace.requests[traffic->next_arrival];

		if (request->at_s > now) {
			uv_timer_start(timer, on_arrival,
				       real_milliseconds(traffic, request->at_s - now) + 1, 0);
			return;
		}
		traffic->next_arrival++;
		send_from_trace(traffic, request);
	}
}

static int start_trace(struct traffic *traffic)
{
	traffic->talk_count = traffic->trace.conversations;
	traffic->planned = traffic->trace.count;
	traffic->talks = calloc(traffic->talk_count, sizeof(*traffic->talks));
	if (!traffic->talks)
		return -ENOMEM;
	for (uint32_t i = 0; i < traffic->talk_count; i++) {
		struct talk *talk = &traffic->talks[i];

		talk->traffic = traffic;
		talk->index = i;
		trace_conversation_id(traffic->options.seed, i, talk->plan.id);
		uv_timer_init(&traffic->loop, &talk->think);
		talk->think.data = talk;
		if (set_address(traffic, talk))
			return -EINVAL;
	}
	uv_timer_start(&traffic->arrivals, on_arrival, 0, 0);
	return 0;
}

/* --- the run ----------------------------------------------------------------------------------------------------- */

static double hit_rate(const struct traffic *traffic)
{
	uint64_t all = traffic->cached + traffic->processed;

	return all ? 100.0 * (double)traffic->cached / (double)all : 0;
}

static void show_progress(uv_timer_t *timer)
{
	const struct traffic *traffic = timer->data;

	fprintf(stderr,
		"\r%6.0f s: %u of %s%u requests, %u in flight, %u errors, hit rate %.1f %%   ",
		model_seconds(traffic), traffic->done, traffic->trace.count ? "" : "at most ",
		traffic->planned, traffic->in_flight, traffic->errors, hit_rate(traffic));
}

static void on_signal(uv_signal_t *signal, int number)
{
	struct traffic *traffic = signal->data;

	fprintf(stderr, "%straffic: stopped by a signal; what was measured so far is kept\n",
		traffic->terminal ? "\n" : "");
	traffic->result = 128 + number;
	stop(traffic);
}

static void stop(struct traffic *traffic)
{
	traffic->stopping = true;
	uv_stop(&traffic->loop);
}

static void write_summary(struct traffic *traffic, double duration)
{
	double p50, p95;
	json_t *summary;

	sort_numbers(traffic->latencies, traffic->done);
	p50 = percentile(traffic->latencies, traffic->done, 0.5);
	p95 = percentile(traffic->latencies, traffic->done, 0.95);
	printf("%u requests in %.1f s, %u errors, hit rate %.1f %% (follow-up turns), p50 %.0f ms, p95 %.0f ms\n",
	       traffic->done, duration, traffic->errors, hit_rate(traffic), p50, p95);
	if (!traffic->options.summary_path)
		return;
	summary = json_pack("{s:f,s:i,s:i}", "duration_s", duration, "requests", (int)traffic->done,
			    "errors", (int)traffic->errors);
	if (json_dump_file(summary, traffic->options.summary_path, JSON_INDENT(2))) {
		fprintf(stderr, "traffic: cannot write %s\n", traffic->options.summary_path);
		traffic->result = 1;
	}
	json_decref(summary);
}

int traffic_run(struct traffic *traffic)
{
	double duration;

	uv_loop_init(&traffic->loop);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	traffic->terminal = isatty(STDERR_FILENO);
	uv_timer_init(&traffic->loop, &traffic->progress);
	uv_timer_init(&traffic->loop, &traffic->arrivals);
	uv_signal_init(&traffic->loop, &traffic->interrupt);
	uv_signal_init(&traffic->loop, &traffic->terminate);
	traffic->progress.data = traffic->arrivals.data = traffic;
	traffic->interrupt.data = traffic->terminate.data = traffic;
	uv_signal_start(&traffic->interrupt, on_signal, SIGINT);
	uv_signal_start(&traffic->terminate, on_signal, SIGTERM);
	if (traffic->terminal)
		uv_timer_start(&traffic->progress, show_progress, PROGRESS_MILLISECONDS,
			       PROGRESS_MILLISECONDS);
	if (traffic->options.connections != CONNECTION_OWN)
		traffic->shared = http_client_new(&traffic->loop,
						  traffic->options.connections == CONNECTION_FRESH,
						  on_broken_off);
	uv_update_time(&traffic->loop);
	traffic->started = uv_hrtime();
	if (traffic->trace.count ? start_trace(traffic) : start_profile(traffic))
		return 1;
	uv_run(&traffic->loop, UV_RUN_DEFAULT);
	duration = model_seconds(traffic);
	if (traffic->terminal)
		fputs("\n", stderr);
	for (uint32_t i = 0; i < traffic->talk_count; i++)
		close_client(&traffic->talks[i]);
	http_client_close(traffic->shared);
	write_summary(traffic, duration);
	return traffic->result;
}
