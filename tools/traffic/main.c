/* SPDX-License-Identifier: BSD-2-Clause */
/* traffic: see traffic.h. */
#include "traffic.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/arguments.h"

enum {
	OPTION_TRACE = 256,
	OPTION_TIME_SCALE,
	OPTION_SIZE_SCALE,
	OPTION_CONTEXT,
	OPTION_LIMIT,
	OPTION_TIMEOUT,
	OPTION_CSV,
	OPTION_SUMMARY,
	OPTION_ANSWERS,
	OPTION_RUN_ID,
	OPTION_POLICY,
	OPTION_SPEED,
	OPTION_ID_IN,
	OPTION_CONNECTIONS,
	OPTION_STREAM,
	OPTION_NO_TOKENS,
	OPTION_CONTEXT_FROM,
	OPTION_NO_CONTEXT,
};

static const struct argp_option options[] = {
	{"url", 'u', "URL", 0,
	 "where to: http://HOST:PORT; several are taken in rotation, request by request", 0},
	{"profile", 'p', "FILE", 0, "conversations made from a profile, closed loop", 0},
	{"trace", OPTION_TRACE, "FILE", 0,
	 "or requests of a trace (JSON lines, may be gzipped), open loop", 0},
	{"seed", 's', "N", 0, "of the profile's plan (default 1)", 0},
	{"csv", OPTION_CSV, "FILE", 0, "one row a request", 0},
	{"summary", OPTION_SUMMARY, "FILE", 0, "duration, requests and errors as JSON", 0},
	{"answers", OPTION_ANSWERS, "FILE", 0, "what was answered, a JSON line a request", 0},
	{"run-id", OPTION_RUN_ID, "TEXT", 0, "for the column of that name (default run)", 0},
	{"policy", OPTION_POLICY, "TEXT", 0, "for the column of that name", 0},
	{"id-in", OPTION_ID_IN, "PLACE", 0,
	 "header (x-conversation-id, default), address (the low half of the URL's IPv6 address), none",
	 0},
	{"connections", OPTION_CONNECTIONS, "USE", 0,
	 "own: each conversation keeps one (default); shared: a pool; fresh: one a request", 0},
	{"stream", OPTION_STREAM, NULL, 0, "ask for streamed answers", 0},
	{"no-token-headers", OPTION_NO_TOKENS, NULL, 0,
	 "do not send x-prompt-tokens and x-max-tokens", 0},
	{"speed", OPTION_SPEED, "FACTOR", 0,
	 "as the replicas' --speed: users think faster, and times are written down as if not", 0},
	{"time-scale", OPTION_TIME_SCALE, "FACTOR", 0, "trace: times between requests (default 1)",
	 0},
	{"size-scale", OPTION_SIZE_SCALE, "FACTOR", 0, "trace: lengths (default 1)", 0},
	{"context", OPTION_CONTEXT, "TOKENS", 0,
	 "trace: leave out what does not fit (default 4096; 0: nothing)", 0},
	{"limit", OPTION_LIMIT, "N", 0, "trace: only its first N requests", 0},
	{"timeout", OPTION_TIMEOUT, "SECONDS", 0, "trace: of a request (default 1200)", 0},
	{"context-from", OPTION_CONTEXT_FROM, "URL", 0,
	 "ask this replica for its context (default: the first --url)", 0},
	{"no-context-check", OPTION_NO_CONTEXT, NULL, 0, "do not ask", 0},
	{0},
};

static void parse_place(struct options *o, const char *value, struct argp_state *state)
{
	if (strcmp(value, "header") == 0)
		o->id_place = ID_IN_HEADER;
	else if (strcmp(value, "address") == 0)
		o->id_place = ID_IN_ADDRESS;
	else if (strcmp(value, "none") == 0)
		o->id_place = ID_NOWHERE;
	else
		argp_error(state, "--id-in \"%s\": header, address or none are allowed", value);
}

static void parse_connections(struct options *o, const char *value, struct argp_state *state)
{
	if (strcmp(value, "own") == 0)
		o->connections = CONNECTION_OWN;
	else if (strcmp(value, "shared") == 0)
		o->connections = CONNECTION_SHARED;
	else if (strcmp(value, "fresh") == 0)
		o->connections = CONNECTION_FRESH;
	else
		argp_error(state, "--connections \"%s\": own, shared or fresh are allowed", value);
}

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct traffic *traffic = state->input;
	struct options *o = &traffic->options;

	switch (key) {
	case 'u':
		if (o->url_count == URLS_MAX)
			argp_error(state, "more than %d --url", URLS_MAX);
		o->urls[o->url_count++] = value;
		break;
	case 'p':
		o->profile_path = value;
		break;
	case 's':
		o->seed = argument_count(state, "--seed", value, 0, UINT32_MAX);
		break;
	case OPTION_TRACE:
		o->trace_path = value;
		break;
	case OPTION_TIME_SCALE:
		o->trace.time_scale = argument_number(state, "--time-scale", value, 1e-6, 1e6);
		break;
	case OPTION_SIZE_SCALE:
		o->trace.size_scale = argument_number(state, "--size-scale", value, 1e-4, 10);
		break;
	case OPTION_CONTEXT:
		o->trace.context_tokens = argument_count(state, "--context", value, 0, 10000000);
		break;
	case OPTION_LIMIT:
		o->trace.limit = argument_count(state, "--limit", value, 1, UINT32_MAX);
		break;
	case OPTION_TIMEOUT:
		traffic->profile.request_timeout_s =
			argument_number(state, "--timeout", value, 0.001, 1e6);
		break;
	case OPTION_CSV:
		o->csv_path = value;
		break;
	case OPTION_SUMMARY:
		o->summary_path = value;
		break;
	case OPTION_ANSWERS:
		o->answers_path = value;
		break;
	case OPTION_RUN_ID:
		o->run_id = value;
		break;
	case OPTION_POLICY:
		o->policy = value;
		break;
	case OPTION_SPEED:
		o->speed = argument_number(state, "--speed", value, 0.001, 10000);
		break;
	case OPTION_ID_IN:
		parse_place(o, value, state);
		break;
	case OPTION_CONNECTIONS:
		parse_connections(o, value, state);
		break;
	case OPTION_STREAM:
		o->stream = true;
		break;
	case OPTION_NO_TOKENS:
		o->token_headers = false;
		break;
	case OPTION_CONTEXT_FROM:
		o->context_url = value;
		break;
	case OPTION_NO_CONTEXT:
		o->check_context = false;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", value);
		break;
	case ARGP_KEY_END:
		if (!o->url_count)
			argp_error(state, "--url is missing");
		if (!o->csv_path)
			argp_error(state, "--csv is missing");
		if (!o->profile_path == !o->trace_path)
			argp_error(state, "one of --profile and --trace is needed");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static FILE *create(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		fprintf(stderr, "traffic: cannot create %s: %s\n", path, strerror(errno));
	return file;
}

static int prepare(struct traffic *traffic, char *error)
{
	struct options *o = &traffic->options;
	const char *asked = o->context_url ? o->context_url : o->urls[0];
	int result;

	if (o->trace_path) {
		result = trace_read(o->trace_path, &o->trace, &traffic->trace, error);
		if (!result && traffic->trace.left_out)
			fprintf(stderr,
				"traffic: %u of the trace's requests do not fit %u tokens and are left out\n",
				traffic->trace.left_out, o->trace.context_tokens);
		if (!result && !traffic->trace.count) {
			snprintf(error, TOOLS_ERROR_SIZE, "%s: no request fits --context %u",
				 o->trace_path, o->trace.context_tokens);
			result = -EINVAL;
		}
	} else {
		result = profile_read(o->profile_path, &traffic->profile, error);
	}
	if (!result && o->check_context)
		result = context_check(asked,
				       o->trace_path ? o->trace.context_tokens - 1
						     : traffic->profile.max_context_tokens,
				       error);
	return result;
}

int main(int count, char **arguments)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Chat clients that hold a plan's conversations over real HTTP, and write down every request.",
	};
	static struct traffic traffic;
	char error[TOOLS_ERROR_SIZE];

	traffic.options = (struct options){
		.run_id = "run",
		.policy = "",
		.seed = 1,
		.speed = 1,
		.trace = {.time_scale = 1, .size_scale = 1, .context_tokens = 4096},
		.token_headers = true,
		.check_context = true,
	};
	traffic.profile.request_timeout_s = 1200;
	argp_parse(&argp, count, arguments, 0, NULL, &traffic);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	if (prepare(&traffic, error)) {
		fprintf(stderr, "traffic: %s\n", error);
		return 1;
	}
	traffic.csv = create(traffic.options.csv_path);
	if (!traffic.csv)
		return 1;
	if (traffic.options.answers_path) {
		traffic.answers = create(traffic.options.answers_path);
		if (!traffic.answers)
			return 1;
	}
	if (records_write_header(traffic.csv)) {
		fprintf(stderr, "traffic: cannot write %s: %s\n", traffic.options.csv_path,
			strerror(errno));
		return 1;
	}
	return traffic_run(&traffic);
}
