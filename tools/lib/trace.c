/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "random.h"

#define LINE_BYTES_MAX	  (1 << 20)
#define LENGTH_MAX	  100000000
#define SHARED_BLOCKS_MIN 2
#define NO_REQUEST	  UINT32_MAX

/* A request as the file has it; `blocks` index into raw->hashes. */
struct raw_request {
	double timestamp;
	uint32_t input, output;
	size_t first_block;
	uint32_t block_count;
	uint32_t conversation, turn;
	uint32_t next; /* the next turn's index, or NO_REQUEST */
};

struct raw {
	struct raw_request *requests;
	uint32_t count, capacity;
	int64_t *hashes;
	size_t hash_count, hash_capacity;
};

/* The request whose full blocks end with this hash: the end of a conversation so far. */
struct chain_end {
	int64_t hash;
	uint32_t request;
};

static int grow(void *array, size_t count, size_t *capacity, size_t size)
{
	void **place = array;
	size_t wanted = *capacity ? *capacity * 2 : 1024;
	void *larger;

	if (count < *capacity)
		return 0;
	larger = realloc(*place, wanted * size);
	if (!larger)
		return -ENOMEM;
	*place = larger;
	*capacity = wanted;
	return 0;
}

static bool read_length(const json_t *line, const char *name, double low, double high,
			double *value)
{
	const json_t *field = json_object_get(line, name);

	*value = json_number_value(field);
	return json_is_number(field) && *value >= low && *value <= high;
}

static const char *read_line(struct raw *raw, const json_t *line)
{
	const json_t *hashes = json_object_get(line, "hash_ids");
	struct raw_request *request = &raw->requests[raw->count];
	double input, output;

	if (!json_is_object(line))
		return "not a JSON object";
	if (!read_length(line, "timestamp", 0, 1e15, &request->timestamp))
		return "\"timestamp\" must be a number of milliseconds, 0 or more";
	if (!read_length(line, "input_length", 1, LENGTH_MAX, &input))
		return "\"input_length\" must be a number of tokens from 1 to 100000000";
	if (!read_length(line, "output_length", 0, LENGTH_MAX, &output))
		return "\"output_length\" must be a number of tokens from 0 to 100000000";
	request->input = (uint32_t)input;
	request->output = (uint32_t)output;
	if (!json_is_array(hashes) ||
	    json_array_size(hashes) !=
		    (request->input + TRACE_BLOCK_TOKENS - 1) / TRACE_BLOCK_TOKENS)
		return "\"hash_ids\" must be an array with one number for each 512 tokens of the input";
	if (raw->count && request->timestamp < raw->requests[raw->count - 1].timestamp)
		return "\"timestamp\" is earlier than that of the line before";
	request->first_block = raw->hash_count;
	request->block_count = (uint32_t)json_array_size(hashes);
	for (size_t i = 0; i < json_array_size(hashes); i++) {
		const json_t *hash = json_array_get(hashes, i);

		if (!json_is_integer(hash))
			return "\"hash_ids\" has something that is not a whole number";
		if (grow(&raw->hashes, raw->hash_count, &raw->hash_capacity, sizeof(*raw->hashes)))
			return "out of memory";
		raw->hashes[raw->hash_count++] = json_integer_value(hash);
	}
	raw->count++;
	return NULL;
}

static int read_file(const char *path, uint32_t limit, struct raw *raw, char *error)
{
	gzFile file = gzopen(path, "re");
	char *text = malloc(LINE_BYTES_MAX);
	int result = !text ? -ENOMEM : file ? 0 : errno ? -errno : -ENOMEM, number = 0;
	size_t capacity = 0;

	if (result)
		snprintf(error, TOOLS_ERROR_SIZE, "%s: cannot be read: %s", path,
			 strerror(-result));
	while (!result && (!limit || raw->count < limit) && gzgets(file, text, LINE_BYTES_MAX)) {
		const char *wrong = NULL;
		json_t *line;

		number++;
		if (text[strspn(text, " \t\r\n")] == '\0')
			continue;
		if (grow(&raw->requests, raw->count, &capacity, sizeof(*raw->requests)))
			wrong = "out of memory";
		line = json_loads(text, 0, NULL);
		if (!wrong)
			wrong = line ? read_line(raw, line) : "malformed JSON";
		json_decref(line);
		if (wrong) {
			snprintf(error, TOOLS_ERROR_SIZE, "%s, line %d: %s", path, number, wrong);
			result = -EINVAL;
		}
	}
	if (!result && !gzeof(file) && !(limit && raw->count == limit)) {
		snprintf(error, TOOLS_ERROR_SIZE, "%s: damaged behind line %d", path, number);
		result = -EIO;
	}
	if (!result && !raw->count) {
		snprintf(error, TOOLS_ERROR_SIZE, "%s: no request in it", path);
		result = -EINVAL;
	}
	free(text);
	if (file)
		gzclose(file);
	return result;
}

/* --- conversations ------------------------------------------------------------------------------------------- */

static int compare_ends(const void *a, const void *b)
{
	const struct chain_end *one = a, *other = b;

	return (one->hash > other->hash) - (one->hash < other->hash);
}

static struct chain_end *find_end(void **tree, int64_t hash)
{
	struct chain_end wanted = {.hash = hash};
	struct chain_end **found = tfind(&wanted, tree, compare_ends);

	return found ? *found : NULL;
}

/* The latest request that `request` goes on from. */
static uint32_t find_earlier(const struct raw *raw, void **tree, const struct raw_request *request)
{
	for (uint32_t blocks = request->block_count; blocks >= SHARED_BLOCKS_MIN; blocks--) {
		const struct chain_end *end =
			find_end(tree, raw->hashes[request->first_block + blocks - 1]);

		if (end && raw->requests[end->request].input / TRACE_BLOCK_TOKENS == blocks &&
		    raw->requests[end->request].input < request->input)
			return end->request;
	}
	return NO_REQUEST;
}

static int find_conversations(struct raw *raw, struct trace *trace)
{
	void *tree = NULL;
	int result = 0;

	for (uint32_t i = 0; i < raw->count && !result; i++) {
		struct raw_request *request = &raw->requests[i];
		uint32_t full = request->input / TRACE_BLOCK_TOKENS;
		uint32_t earlier = find_earlier(raw, &tree, request);
		struct chain_end *end;

		request->next = NO_REQUEST;
		request->turn = 0;
		if (earlier == NO_REQUEST) {
			request->conversation = trace->conversations++;
		} else {
			request->conversation = raw->requests[earlier].conversation;
			request->turn = raw->requests[earlier].turn + 1;
			raw->requests[earlier].next = i;
		}
		if (full < SHARED_BLOCKS_MIN)
			continue;
		end = find_end(&tree, raw->hashes[request->first_block + full - 1]);
		if (end) {
			end->request = i;
			continue;
		}
		end = malloc(sizeof(*end));
		if (end)
			/* before it is put in: its place follows from the hash */
			*end = (struct chain_end){
				.hash = raw->hashes[request->first_block + full - 1],
				.request = i,
			};
		if (!end || !tsearch(end, &tree, compare_ends)) {
			free(end);
			result = -ENOMEM;
			break;
		}
	}
	tdestroy(tree, free);
	return result;
}

/* --- scaling --------------------------------------------------------------------------------------------------- */

static void scale(const struct raw *raw, const struct trace_options *options, struct trace *trace)
{
	for (uint32_t i = 0; i < raw->count; i++) {
		const struct raw_request *from = &raw->requests[i];
		struct trace_request *to = &trace->requests[trace->count];
		uint32_t least = (from->block_count - 1) * trace->block_words + 1;
		uint32_t most = from->block_count * trace->block_words;

		*to = (struct trace_request){
			.at_s = from->timestamp / 1000 * options->time_scale,
			.conversation = from->conversation,
			.turn = from->turn,
			.words = (uint32_t)lround(from->input * options->size_scale),
			.answer_tokens = (uint32_t)lround(from->output * options->size_scale),
			.block_count = from->block_count,
			.first_block = from->first_block,
		};
		if (to->words < least)
			to->words = least;
		if (to->words > most)
			to->words = most;
		if (!to->answer_tokens)
			to->answer_tokens = 1;
		/* 16: the chat template */
		if (options->context_tokens &&
		    to->words + to->answer_tokens + 16 > options->context_tokens)
			trace->left_out++;
		else
			trace->count++;
	}
}

static void set_seeds(const struct raw *raw, struct trace *trace)
{
	/* backwards, as a partial block takes its words from the next turn */
	for (uint32_t i = raw->count; i-- > 0;) {
		const struct raw_request *request = &raw->requests[i];
		uint32_t last = request->block_count - 1;

		for (uint32_t block = 0; block <= last; block++)
			trace->seeds[request->first_block + block] =
				random_seed(0, 77,
					    (uint64_t)raw->hashes[request->first_block + block]) >>
				1;
		if (request->next != NO_REQUEST && request->input % TRACE_BLOCK_TOKENS)
			trace->seeds[request->first_block + last] =
				trace->seeds[raw->requests[request->next].first_block + last];
	}
}

int trace_read(const char *path, const struct trace_options *options, struct trace *trace,
	       char error[TOOLS_ERROR_SIZE])
{
	struct raw raw = {0};
	int result = read_file(path, options->limit, &raw, error);

	*trace = (struct trace){
		.block_words = (uint32_t)fmax(1, lround(TRACE_BLOCK_TOKENS * options->size_scale)),
	};
	if (!result) {
		trace->requests = calloc(raw.count, sizeof(*trace->requests));
		trace->seeds = calloc(raw.hash_count, sizeof(*trace->seeds));
		result =
			trace->requests && trace->seeds ? find_conversations(&raw, trace) : -ENOMEM;
		if (result)
			snprintf(error, TOOLS_ERROR_SIZE, "%s: out of memory", path);
	}
	if (!result) {
		scale(&raw, options, trace);
		set_seeds(&raw, trace);
	} else {
		trace_free(trace);
	}
	free(raw.requests);
	free(raw.hashes);
	return result;
}

void trace_free(struct trace *trace)
{
	free(trace->requests);
	free(trace->seeds);
	*trace = (struct trace){0};
}

void trace_conversation_id(uint64_t seed, uint32_t conversation, char id[PLAN_ID_SIZE])
{
	snprintf(id, PLAN_ID_SIZE, "t%llu-c%05u", (unsigned long long)(seed % 10000000000ull),
		 conversation);
}
