/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What servers say about their load in the text of their metrics: vLLM, SGLang, llama.cpp's llama-server.
 *
 * Owns: the names of their metrics, reading the text as it comes in pieces. May not know: where it comes from.
 */
#ifndef WARMPATH_AGENT_REPORTED_METRICS_H
#define WARMPATH_AGENT_REPORTED_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/config.h"

#define REPORTED_TEXT_MAX (4u << 20) /* bytes of one answer */
#define REPORTED_LINE_MAX 1024	     /* longer lines are none of those wanted */

struct reported_metrics {
	bool complete;	    /* running and waiting have been found */
	double running;	    /* requests being worked on */
	double waiting;	    /* requests in its queue */
	double cache_usage; /* of the KV cache, 0 to 1; negative: not told */
	__u32 process;	    /* made of process_start_time_seconds; 0: not told */
};

struct reported_reader {
	enum load_source source;
	struct reported_metrics found;
	unsigned int seen; /* which numbers */
	size_t total;
	size_t length;
	bool too_long;
	char line[REPORTED_LINE_MAX];
};

void reported_begin(struct reported_reader *reader, enum load_source source);

/* The next bytes. False: there have been too many. */
bool reported_take(struct reported_reader *reader, const char *bytes, size_t length);

/* The end of the text. */
const struct reported_metrics *reported_end(struct reported_reader *reader);

#endif /* WARMPATH_AGENT_REPORTED_METRICS_H */
