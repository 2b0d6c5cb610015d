/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traffic: chat clients that hold a plan's conversations over real HTTP, and write down every request.
 *
 * Owns: what the parts of the program share. The parts: main.c (options), run.c (who asks when), answer.c (reading answers),
 * http_client.c (libcurl in libuv's loop), address.c (ids as IPv6 addresses), context.c (does the profile fit the replica?).
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <stdio.h>
#include <uv.h>

#include "../lib/bytes.h"
#include "../lib/dialogue.h"
#include "../lib/plan.h"
#include "../lib/records.h"
#include "../lib/trace.h"
#include "http_client.h"

#define URLS_MAX 64

enum id_place {
	ID_IN_HEADER,  /* x-conversation-id */
	ID_IN_ADDRESS, /* the low half of the IPv6 address */
	ID_NOWHERE,
};

enum connection_use {
	CONNECTION_OWN,	   /* each conversation keeps one */
	CONNECTION_SHARED, /* all conversations take turns on a pool */
	CONNECTION_FRESH,  /* a new one for each request */
};

struct options {
	const char *profile_path, *trace_path, *csv_path, *summary_path, *answers_path;
	const char *run_id, *policy, *context_url;
	const char *urls[URLS_MAX];
	uint32_t url_count;
	uint64_t seed;
	double speed;
	struct trace_options trace;
	enum id_place id_place;
	enum connection_use connections;
	bool stream, token_headers, check_context;
};

struct traffic {
	uv_loop_t loop;
	uv_signal_t interrupt, terminate;
	uv_timer_t progress, arrivals;
	struct options options;
	struct profile profile;
	struct trace trace;
	struct http_client *shared;
	struct talk *talks;
	uint32_t talk_count, talks_open;
	uint32_t next_arrival; /* of the trace */
	FILE *csv, *answers;
	uint64_t started; /* uv_hrtime */
	uint32_t sent, done, errors, in_flight, planned;
	uint64_t cached, processed; /* tokens, follow-up turns */
	double *latencies;
	size_t latency_capacity;
	bool stopping, terminal;
	int result; /* of the program */
};

/* A conversation. */
struct talk {
	struct traffic *traffic;
	uint32_t index;
	uv_timer_t think;
	struct dialogue dialogue;
	struct plan_conversation plan;
	uint32_t turn;
	struct http_client *client;
	char url[256]; /* its own address; empty: the options' URLs in rotation */
};

/* run.c */
int traffic_run(struct traffic *traffic);

/* What an answer says. Strings belong to it. */
struct answer {
	char *content;
	bool has_timings;
	uint32_t cache_n, prompt_n, predicted_n;
	double prompt_ms, predicted_ms;
	char error[RECORD_ERROR_SIZE]; /* empty: a good answer */
};

/* answer.c: reads the body of a whole or a streamed answer */
void answer_read(const struct http_result *result, bool stream, struct answer *answer);
void answer_free(struct answer *answer);

/* address.c: the URL with the low 64 bits of its IPv6 address replaced by the id's hash. 0 or -EINVAL */
int address_url(const char *url, const char *id, char *out, size_t size);

/* context.c: asks a replica for its context; refuses a profile that does not fit it. 0, or a negative errno with a sentence */
int context_check(const char *url, uint32_t max_context_tokens, char error[TOOLS_ERROR_SIZE]);

#endif /* TRAFFIC_H */
