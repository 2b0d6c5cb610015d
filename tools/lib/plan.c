/* SPDX-License-Identifier: BSD-2-Clause */
#include "plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "random.h"

/* What a stream of random numbers is for: each kind its own, so that a change of one does not move the others. */
enum stream {
	STREAM_TURNS = 1,
	STREAM_START,
	STREAM_THINK,
	STREAM_MESSAGE_LENGTH,
	STREAM_MESSAGE_WORDS,
	STREAM_SYSTEM_WORDS,
};

#define COUNT(name, low, high)                                                \
	{                                                                     \
#name, FIELD_COUNT, offsetof(struct profile, name), low, high \
	}
#define NUMBER(name, low, high)                                                \
	{                                                                      \
#name, FIELD_NUMBER, offsetof(struct profile, name), low, high \
	}

static const struct field fields[] = {
	COUNT(conversations, 1, 1000000),
	NUMBER(heavy_fraction, 0, 1),
	COUNT(turns_min, 1, 10000),
	COUNT(turns_max, 1, 10000),
	NUMBER(arrival_window_s, 0, 1e6),
	NUMBER(think_mean_s, 0, 1e6),
	NUMBER(think_max_s, 0, 1e6),
	COUNT(heavy_document_words, 0, 1000000),
	COUNT(system_prompt_words, 0, 1000000),
	COUNT(max_tokens, 1, 100000),
	COUNT(max_context_tokens, 16, 10000000),
	NUMBER(request_timeout_s, 0.001, 1e6),
};

int profile_read(const char *path, struct profile *profile, char error[TOOLS_ERROR_SIZE])
{
	int result = fields_read(path, fields, sizeof(fields) / sizeof(fields[0]), profile, error);

	if (!result && profile->turns_min > profile->turns_max) {
		snprintf(error, TOOLS_ERROR_SIZE,
			 "%s: turns_min (%u) is greater than turns_max (%u)", path,
			 profile->turns_min, profile->turns_max);
		result = -EINVAL;
	}
	return result;
}

static struct random stream(uint64_t seed, enum stream what, uint64_t index)
{
	return (struct random){.state = random_seed(seed, what, index)};
}

static uint64_t turn_index(uint32_t index, uint32_t turn)
{
	return (uint64_t)index << 32 | turn;
}

void plan_conversation(const struct profile *profile, uint64_t seed, uint32_t index,
		       struct plan_conversation *conversation)
{
	struct random turns = stream(seed, STREAM_TURNS, index);
	struct random start = stream(seed, STREAM_START, index);

	*conversation = (struct plan_conversation){0};
	snprintf(conversation->id, sizeof(conversation->id), "s%llu-c%03u",
		 (unsigned long long)(seed % 10000000000ull), index);
	conversation->heavy = index < lround(profile->conversations * profile->heavy_fraction);
	conversation->turns = random_between(&turns, profile->turns_min, profile->turns_max);
	conversation->start_s = random_unit(&start) * profile->arrival_window_s;
}

void plan_turn(const struct profile *profile, uint64_t seed, uint32_t index, uint32_t turn,
	       struct plan_turn *planned)
{
	struct random think = stream(seed, STREAM_THINK, turn_index(index, turn));
	struct random length = stream(seed, STREAM_MESSAGE_LENGTH, turn_index(index, turn));
	bool heavy = index < lround(profile->conversations * profile->heavy_fraction);

	planned->think_s = 0;
	if (turn)
		planned->think_s = fmin(random_exponential(&think, profile->think_mean_s),
					profile->think_max_s);
	planned->words = random_between(&length, MESSAGE_WORDS_MIN, MESSAGE_WORDS_MAX);
	if (heavy && turn == 0)
		planned->words += profile->heavy_document_words;
	planned->seed = random_seed(seed, STREAM_MESSAGE_WORDS, turn_index(index, turn)) >> 1;
}

uint64_t plan_system_seed(uint64_t seed)
{
	return random_seed(seed, STREAM_SYSTEM_WORDS, 0) >> 1;
}
