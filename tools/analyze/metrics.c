/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers of one run. */
#include "analyze.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

const struct metric_description metrics[METRIC_COUNT] = {
	[METRIC_ERRORS] = {"errors", "errors", 1, false},
	[METRIC_HIT_RATE] = {"hit_rate_percent", "hit rate %", 1, true},
	[METRIC_HIT_RATE_AFTER] = {"hit_rate_after_percent", "hit rate after %", 1, true},
	[METRIC_MOVED] = {"moved_percent", "moved %", 1, true},
	[METRIC_REDIRECTS] = {"redirects", "redirects", 1, true},
	[METRIC_STICKY] = {"sticky", "sticky", 1, false},
	[METRIC_LONG] = {"long", "-long", 1, false},
	[METRIC_P50] = {"p50_s", "p50 s", 2, true},
	[METRIC_P95] = {"p95_s", "p95 s", 2, true},
	[METRIC_IMBALANCE] = {"imbalance", "imbalance", 3, true},
	[METRIC_REQUESTS] = {"requests", "requests", 0, false},
	[METRIC_DURATION] = {"duration_s", "duration s", 0, true},
};

/* What a conversation has seen so far. */
struct talk {
	char id[RECORD_NAME_SIZE];
	char last[RECORD_NAME_SIZE];   /* replica of the last turn that was answered */
	char before[RECORD_NAME_SIZE]; /* of the last one begun before the new replica */
	bool after;
};

static int compare_talks(const void *a, const void *b)
{
	const struct talk *one = a, *other = b;

	return strcmp(one->id, other->id);
}

static struct talk *talk_of(void **tree, const char *id)
{
	struct talk *talk = calloc(1, sizeof(*talk));
	struct talk **found;

	if (!talk)
		abort();
	snprintf(talk->id, sizeof(talk->id), "%s", id);
	found = tsearch(talk, tree, compare_talks);
	if (*found != talk)
		free(talk);
	return *found;
}

static int by_start(const void *a, const void *b)
{
	const struct record *one = a, *other = b;

	return (one->t_start_s > other->t_start_s) - (one->t_start_s < other->t_start_s);
}

static uint32_t replica_index(struct result *result, const char *name)
{
	uint32_t i;

	for (i = 0; i < result->replica_count; i++)
		if (strcmp(result->replicas[i], name) == 0)
			return i;
	if (i == REPLICAS_SHOWN_MAX)
		return i - 1; /* the last one stands for the rest */
	snprintf(result->replicas[i], sizeof(result->replicas[i]), "%s", name);
	result->replica_count++;
	return i;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : NAN;
}

static void measure_latency(struct result *result)
{
	double *latencies = malloc((result->count + 1) * sizeof(*latencies));
	size_t count = 0;

	if (!latencies)
		abort();
	for (uint32_t i = 0; i < result->count; i++)
		if (!result->records[i].error[0])
			latencies[count++] = result->records[i].latency_ms / 1e3;
	sort_numbers(latencies, count);
	result->values[METRIC_P50] = percentile(latencies, count, 0.5);
	result->values[METRIC_P95] = percentile(latencies, count, 0.95);
	free(latencies);
}

static void measure_imbalance(struct result *result, double until)
{
	double work[REPLICAS_SHOWN_MAX] = {0}, most = 0, sum = 0;
	uint32_t replicas = result->run.base_replicas;

	for (uint32_t i = 0; i < result->count; i++) {
		const struct record *record = &result->records[i];
		uint32_t index;

		if (!record->has_timings || !record->replica[0])
			continue;
		index = replica_index(result, record->replica);
		result->work[index] += record->prompt_n + record->predicted_n;
		if (record->t_start_s < until)
			work[index] += record->prompt_n + record->predicted_n;
	}
	for (uint32_t i = 0; i < result->replica_count; i++) {
		sum += work[i];
		most = fmax(most, work[i]);
	}
	result->values[METRIC_IMBALANCE] = sum > 0 ? most / (sum / replicas) : NAN;
}

static void measure_turns(struct result *result, double ready, double after_s)
{
	double cached = 0, prompt = 0, cached_after = 0, prompt_after = 0;
	double redirects = 0, sticky = 0, longs = 0, errors = 0, moved = 0, pairs = 0;
	void *talks = NULL;

	for (uint32_t i = 0; i < result->count; i++) {
		const struct record *record = &result->records[i];
		struct talk *talk = talk_of(&talks, record->conversation_id);
		const char *reason = record->route_reason;
		size_t length = strlen(reason);

		errors += record->error[0] != '\0';
		sticky += strncmp(reason, "sticky", 6) == 0;
		longs += length > 5 && strcmp(reason + length - 5, "-long") == 0;
		if (record->turn > 1 && record->has_timings) {
			cached += record->cache_n;
			prompt += record->cache_n + record->prompt_n;
			if (record->t_start_s >= ready && record->t_start_s < ready + after_s) {
				cached_after += record->cache_n;
				prompt_after += record->cache_n + record->prompt_n;
			}
		}
		if (!record->replica[0])
			continue;
		if (record->turn > 1 && talk->last[0] && strcmp(talk->last, record->replica) != 0)
			redirects++;
		if (!record->error[0])
			memcpy(talk->last, record->replica, sizeof(talk->last));
		if (record->t_start_s < ready) {
			memcpy(talk->before, record->replica, sizeof(talk->before));
		} else if (!talk->after && talk->before[0]) {
			pairs++;
			moved += strcmp(talk->before, record->replica) != 0;
		}
		talk->after = record->t_start_s >= ready;
	}
	tdestroy(talks, free);
	result->values[METRIC_ERRORS] = errors;
	result->values[METRIC_HIT_RATE] = percent(cached, prompt);
	result->values[METRIC_HIT_RATE_AFTER] = percent(cached_after, prompt_after);
	result->values[METRIC_MOVED] = percent(moved, pairs);
	result->values[METRIC_REDIRECTS] = redirects;
	result->values[METRIC_STICKY] = sticky;
	result->values[METRIC_LONG] = longs;
}

void result_measure(struct result *result, double after_s)
{
	double ready = result->run.new_replica_ready_s;

	if (isnan(ready))
		ready = INFINITY;
	qsort(result->records, result->count, sizeof(*result->records), by_start);
	measure_turns(result, ready, after_s);
	measure_latency(result);
	measure_imbalance(result, ready);
	result->values[METRIC_REQUESTS] = result->count;
	result->values[METRIC_DURATION] = result->run.duration_s;
}
