/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/reported_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/text_hash.h"

#define COUNT_MAX 1e9 /* of requests: what is beyond is no number of them */

enum number {
	NUMBER_RUNNING = 1,
	NUMBER_WAITING = 2,
	NUMBER_CACHE = 4,
	NUMBER_START = 8,
};

/* Several names of one number are of different versions of a server, which has one of them. */
static const struct name {
	enum load_source source; /* 0: all */
	enum number number;
	const char *name;
} names[] = {
	{LOAD_FROM_VLLM, NUMBER_RUNNING, "vllm:num_requests_running"},
	{LOAD_FROM_VLLM, NUMBER_WAITING, "vllm:num_requests_waiting"},
	{LOAD_FROM_VLLM, NUMBER_CACHE, "vllm:kv_cache_usage_perc"},
	{LOAD_FROM_VLLM, NUMBER_CACHE, "vllm:gpu_cache_usage_perc"},
	{LOAD_FROM_SGLANG, NUMBER_RUNNING, "sglang:num_running_reqs"},
	{LOAD_FROM_SGLANG, NUMBER_WAITING, "sglang:num_queue_reqs"},
	{LOAD_FROM_SGLANG, NUMBER_CACHE, "sglang:token_usage"},
	{LOAD_FROM_LLAMA, NUMBER_RUNNING, "llamacpp:requests_processing"},
	{LOAD_FROM_LLAMA, NUMBER_WAITING, "llamacpp:requests_deferred"},
	{LOAD_FROM_LLAMA, NUMBER_CACHE, "llamacpp:kv_cache_usage_ratio"},
	{0, NUMBER_START, "process_start_time_seconds"},
};

void reported_begin(struct reported_reader *reader, enum load_source source)
{
	memset(reader, 0, sizeof(*reader));
	reader->source = source;
	reader->found.cache_usage = -1;
}

static void take_number(struct reported_reader *reader, enum number number, const char *text)
{
	struct reported_metrics *found = &reader->found;
	double value;
	char *end;

	value = strtod(text, &end);
	if (end == text || !isfinite(value) || value < 0)
		return;
	reader->seen |= number;
	switch (number) {
	case NUMBER_RUNNING: /* a sample for each engine, or model */
		found->running += value < COUNT_MAX ? value : COUNT_MAX;
		break;
	case NUMBER_WAITING:
		found->waiting += value < COUNT_MAX ? value : COUNT_MAX;
		break;
	case NUMBER_CACHE:
		if (value > found->cache_usage)
			found->cache_usage = value < 1 ? value : 1;
		break;
	case NUMBER_START:
		found->process = text_hash_end(text_hash_add(TEXT_HASH_START, text, end - text));
		break;
	}
}

/* Behind the name stand labels in braces or nothing, then the number. NULL: not such a line. */
static const char *value_of(const char *line, size_t name_length)
{
	const char *at = line + name_length;

	if (*at == '{') {
		at = strrchr(at, '}');
		if (!at)
			return NULL;
		at++;
	}
	return *at == ' ' || *at == '\t' ? at + strspn(at, " \t") : NULL;
}

static void take_line(struct reported_reader *reader)
{
	const char *value;

	reader->line[reader->length] = '\0';
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t length = strlen(names[i].name);

		if (names[i].source && names[i].source != reader->source)
			continue;
		if (strncmp(reader->line, names[i].name, length) != 0)
			continue;
		value = value_of(reader->line, length);
		if (value)
			take_number(reader, names[i].number, value);
	}
}

bool reported_take(struct reported_reader *reader, const char *bytes, size_t length)
{
	reader->total += length;
	if (reader->total > REPORTED_TEXT_MAX)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] == '\n') {
			if (!reader->too_long)
				take_line(reader);
			reader->length = 0;
			reader->too_long = false;
		} else if (reader->length + 1 < sizeof(reader->line)) {
			reader->line[reader->length++] = bytes[i];
		} else {
			reader->too_long = true;
		}
	}
	return true;
}

const struct reported_metrics *reported_end(struct reported_reader *reader)
{
	if (reader->length > 0 && !reader->too_long)
		take_line(reader);
	reader->length = 0;
	reader->found.complete = (reader->seen & NUMBER_RUNNING) && (reader->seen & NUMBER_WAITING);
	return &reader->found;
}
