/* SPDX-License-Identifier: BSD-2-Clause */
#include "cost.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SHORT_FIRST 16
#define SHORT_LAST  32
#define LARGE_FIRST 64

/* Measured on one quiet core of the machine of docs/experiments.md: llama architecture, random weights. */
static const struct {
	const char *name;
	struct cost_model model;
} built_in[] = {
	{
		/* 256 wide, 8 layers */
		.name = "rand-25m",
		.model =
			{
				.prompt_token = 0.136,
				.prompt_token_depth = 2.09e-4,
				.short_token = 0.19,
				.short_token_depth = 5.4e-4,
				.same_fixed = 1.0,
				.same_depth = 9e-4,
				.decode_fixed = 1.34,
				.decode_depth = 8.3e-4,
				.decode_two_streams = 3.85,
				.decode_further_stream = 0.56,
				.request_fixed = 1.2,
				.tokenise_token = 0.01,
				.move_mebibyte = 4,
				.kv_bytes_per_token = 4096,
			},
	},
	{
		/* 512 wide, 12 layers */
		.name = "rand-70m",
		.model =
			{
				.prompt_token = 0.725,
				.prompt_token_depth = 6.06e-4,
				.short_token = 0.93,
				.short_token_depth = 1.59e-3,
				.same_fixed = 2.7,
				.same_depth = 2.6e-3,
				.decode_fixed = 2.47,
				.decode_depth = 2.14e-3,
				.decode_two_streams = 3.85,
				.decode_further_stream = 0.56,
				.request_fixed = 1.2,
				.tokenise_token = 0.01,
				.move_mebibyte = 4,
				.kv_bytes_per_token = 12288,
			},
	},
};

#define TIME(name, low, high)                                                           \
	{                                                                               \
#name "_ms", FIELD_NUMBER, offsetof(struct cost_model, name), low, high \
	}

static const struct field fields[] = {
	TIME(prompt_token, 1e-6, 1e4),
	TIME(prompt_token_depth, 0, 10),
	TIME(short_token, 1e-6, 1e4),
	TIME(short_token_depth, 0, 10),
	TIME(same_fixed, 1e-6, 1e5),
	TIME(same_depth, 0, 100),
	TIME(decode_fixed, 1e-6, 1e5),
	TIME(decode_depth, 0, 100),
	{"decode_two_streams", FIELD_NUMBER, offsetof(struct cost_model, decode_two_streams), 1,
	 100},
	{"decode_further_stream", FIELD_NUMBER, offsetof(struct cost_model, decode_further_stream),
	 0, 100},
	TIME(request_fixed, 0, 1e5),
	TIME(tokenise_token, 0, 100),
	TIME(move_mebibyte, 0, 1e4),
	{"kv_bytes_per_token", FIELD_COUNT, offsetof(struct cost_model, kv_bytes_per_token), 1,
	 1 << 30},
};

int cost_model_load(const char *name, struct cost_model *model, char error[TOOLS_ERROR_SIZE])
{
	int result;

	for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++)
		if (strcmp(name, built_in[i].name) == 0) {
			*model = built_in[i].model;
			return 0;
		}
	memset(model, 0, sizeof(*model));
	result = fields_read(name, fields, sizeof(fields) / sizeof(fields[0]), model, error);
	if (result == -ENOENT && !strchr(name, '/') && !strchr(name, '.'))
		snprintf(
			error, TOOLS_ERROR_SIZE,
			"model \"%.60s\" is neither rand-25m nor rand-70m nor a file with a cost model",
			name);
	return result;
}

double cost_prompt(const struct cost_model *model, uint32_t cached, uint32_t tokens)
{
	double m = tokens, span = m * (cached + m / 2);
	double same = model->same_fixed + model->same_depth * cached;
	double brief, large, share;

	if (tokens == 0)
		return 0;
	if (tokens == 1)
		return same;
	if (tokens < SHORT_FIRST) {
		m = SHORT_FIRST;
		brief = model->short_token * m + model->short_token_depth * m * (cached + m / 2);
		share = (double)(tokens - 1) / (SHORT_FIRST - 1);
		return same + share * (brief - same);
	}
	brief = model->short_token * m + model->short_token_depth * span;
	large = model->prompt_token * m + model->prompt_token_depth * span;
	if (tokens <= SHORT_LAST)
		return brief;
	if (tokens >= LARGE_FIRST)
		return large;
	share = (double)(tokens - SHORT_LAST) / (LARGE_FIRST - SHORT_LAST);
	return brief + share * (large - brief);
}

double cost_decode(const struct cost_model *model, uint32_t streams, double depth)
{
	double one = model->decode_fixed + model->decode_depth * depth;

	if (streams <= 1)
		return one;
	return one * (model->decode_two_streams + model->decode_further_stream * (streams - 2));
}

double cost_arrival(const struct cost_model *model, uint32_t prompt_tokens)
{
	return model->request_fixed + model->tokenise_token * prompt_tokens;
}

double cost_move(const struct cost_model *model, uint32_t tokens)
{
	return model->move_mebibyte * ((double)tokens * model->kv_bytes_per_token / (1 << 20));
}
