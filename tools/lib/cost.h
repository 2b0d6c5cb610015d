/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a replica computes: cost functions fitted to measurements of llama-server (docs/experiments.md, "cost models").
 *
 * Owns: the functions and their coefficients. May not know: slots, queues, clocks.
 */
#ifndef TOOLS_COST_H
#define TOOLS_COST_H

#include <stdint.h>

#include "fields.h"

/*
 * c = tokens cached already, m = tokens to process, d = depth in tokens. All in milliseconds.
 *
 *   prompt, m >= 64        prompt_token m + prompt_token_depth m (c + m/2)
 *   prompt, 16 <= m <= 32  short_token m + short_token_depth m (c + m/2)
 *   prompt, m = 1          same_fixed + same_depth c (the identical prompt again)
 *   decode, a token        decode_fixed + decode_depth d
 *
 * with straight lines between these ranges. Decoding k streams in one step costs the one-stream price times
 * 1, decode_two_streams, decode_two_streams + decode_further_stream, ...
 */
struct cost_model {
	double prompt_token, prompt_token_depth;
	double short_token, short_token_depth;
	double same_fixed, same_depth;
	double decode_fixed, decode_depth;
	double decode_two_streams, decode_further_stream;
	double request_fixed;  /* beside prompt and decode */
	double tokenise_token; /* per prompt token, cached or not */
	double move_mebibyte;  /* between a slot and the RAM cache */
	uint32_t kv_bytes_per_token;
};

/*
 * `name` is rand-25m, rand-70m, or the path of a JSON file with every coefficient (the field names above, suffix `_ms` where it is a
 * time). 0, or a negative errno with one plain sentence in `error`.
 */
int cost_model_load(const char *name, struct cost_model *model, char error[TOOLS_ERROR_SIZE]);

/* Milliseconds to process `tokens` (1 or more; 0 costs nothing) behind `cached` ones. */
double cost_prompt(const struct cost_model *model, uint32_t cached, uint32_t tokens);
/* Milliseconds of one decode step of `streams` (1 or more) whose mean depth is `depth`. */
double cost_decode(const struct cost_model *model, uint32_t streams, double depth);
/* Milliseconds from a request's arrival to its place in the queue: template, tokenising. */
double cost_arrival(const struct cost_model *model, uint32_t prompt_tokens);
/* Milliseconds to copy the state of `tokens` between slot and RAM. */
double cost_move(const struct cost_model *model, uint32_t tokens);

#endif /* TOOLS_COST_H */
