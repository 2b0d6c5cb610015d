/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans read from a trace of real traffic, in the form of the Mooncake project's public traces: one JSON object a line,
 * {"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [of each 512-token block of the input]}.
 *
 * Owns: the file format, which request belongs to which conversation, scaling. May not know: how requests are sent.
 *
 * Equal block hashes mean equal tokens up to and including the block. A request whose chain of blocks begins with all the full blocks of
 * an earlier request's (two or more: the first is the system prompt of all) is that conversation's next turn. The tokens of the
 * last, partial block of a request are those of the same block of its next turn, as far as it goes.
 */
#ifndef TOOLS_TRACE_H
#define TOOLS_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "plan.h"

#define TRACE_BLOCK_TOKENS 512

struct trace_options {
	double time_scale; /* timestamps are multiplied by this: 0.5 is twice as fast */
	double size_scale; /* lengths are multiplied by this */
	uint32_t
		context_tokens; /* requests whose prompt and answer do not fit are left out; 0: none is */
	uint32_t limit;		/* so many requests from the start; 0: all */
};

struct trace_request {
	double at_s;
	uint32_t conversation, turn; /* from 0 */
	uint32_t words;		     /* of the prompt */
	uint32_t answer_tokens;
	uint32_t block_count;
	size_t first_block; /* into trace->seeds */
};

struct trace {
	struct trace_request *requests; /* by time */
	uint32_t count;
	uint32_t conversations;
	uint32_t left_out; /* longer than the context */
	uint64_t *seeds;   /* of the words of each block */
	uint32_t block_words;
};

/*
 * Reads a trace, plain or gzipped. 0, or a negative errno with one plain sentence in `error` that names file and line. On error nothing
 * is left to be freed.
 */
int trace_read(const char *path, const struct trace_options *options, struct trace *trace,
	       char error[TOOLS_ERROR_SIZE]);
void trace_free(struct trace *trace);

/* t<seed>-c<number>: with another seed the same trace finds other homes on the ring. */
void trace_conversation_id(uint64_t seed, uint32_t conversation, char id[PLAN_ID_SIZE]);

#endif /* TOOLS_TRACE_H */
