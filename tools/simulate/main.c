/* SPDX-License-Identifier: BSD-2-Clause */
/* simulate: runs of an experiment in virtual time, as fast as they go. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../lib/arguments.h"
#include "../lib/run_file.h"
#include "policy_specification.h"
#include "growth.h"
#include "simulation.h"

#define POLICIES_MAX 64

struct options {
	const char *profile_path, *trace_path, *model_name, *out, *seeds;
	const char *policies[POLICIES_MAX];
	uint32_t policy_count, growth_replicas;
	uint32_t scale_to, conversations;
	double scale_at_s;
	struct trace_options trace;
	struct simulation_settings settings;
	struct profile profile;
	bool quiet;
};

enum {
	OPTION_TRACE = 256,
	OPTION_TIME_SCALE,
	OPTION_SIZE_SCALE,
	OPTION_LIMIT,
	OPTION_TIMEOUT,
	OPTION_VNODES,
	OPTION_SEEDS,
	OPTION_OUT,
	OPTION_SCALE_TO,
	OPTION_SCALE_AT,
	OPTION_LOAD_TIME,
	OPTION_DRAIN,
	OPTION_KILL,
	OPTION_DETECT,
	OPTION_SLOTS,
	OPTION_CACHE_RAM,
	OPTION_ANSWER,
	OPTION_NETWORK,
	OPTION_GROWTH,
	OPTION_NO_SIZES,
	OPTION_CONVERSATIONS,
};

static const struct argp_option options[] = {
	{"profile", 'p', "FILE", 0, "conversations made from a profile, closed loop", 0},
	{"conversations", OPTION_CONVERSATIONS, "N", 0,
	 "so many of them instead of the profile's number", 0},
	{"trace", OPTION_TRACE, "FILE", 0, "or requests of a trace, open loop", 0},
	{"time-scale", OPTION_TIME_SCALE, "FACTOR", 0, "trace: times between requests (default 1)",
	 0},
	{"size-scale", OPTION_SIZE_SCALE, "FACTOR", 0, "trace: lengths (default 1)", 0},
	{"limit", OPTION_LIMIT, "N", 0, "trace: only its first N requests", 0},
	{"timeout", OPTION_TIMEOUT, "SECONDS", 0, "trace: of a request (default 1200)", 0},
	{"policy", 'P', "NAME[:KEY=VALUE,...]", 0,
	 "round-robin, mod-n, consistent, bounded, llm-aware; may be given several times", 0},
	{"seeds", OPTION_SEEDS, "LIST", 0, "such as 1-20 or 1,2,42 (default 1)", 0},
	{"replicas", 'r', "N", 0, "llm-0 to llm-(N-1) (default 3)", 0},
	{"vnodes", OPTION_VNODES, "N", 0, "virtual nodes of a replica (default 100)", 0},
	{"model", 'm', "MODEL", 0,
	 "cost model of the replicas: rand-25m, rand-70m or a file (default rand-70m)", 0},
	{"slots", OPTION_SLOTS, "N", 0, "as simreplica's (default: 4, of one pool)", 0},
	{"ctx-size", 'c', "TOKENS", 0, "context of a slot (default 4096)", 0},
	{"slot-prompt-similarity", 's', "SHARE", 0, "as simreplica's (default 0.1)", 0},
	{"cache-ram", OPTION_CACHE_RAM, "MIB", 0, "as simreplica's (default 8192)", 0},
	{"answer-tokens", OPTION_ANSWER, "N", 0, "as simreplica's (default 256)", 0},
	{"network", OPTION_NETWORK, "MS", 0, "there and back (default 0.2)", 0},
	{"no-sizes", OPTION_NO_SIZES, NULL, 0,
	 "the router sees no prompt and answer sizes, as where ids are in addresses", 0},
	{"scale-to", OPTION_SCALE_TO, "N", 0, "start further replicas in mid-run, up to N", 0},
	{"scale-at", OPTION_SCALE_AT, "SECOND", 0, "then; they answer --load-time later", 0},
	{"load-time", OPTION_LOAD_TIME, "SECONDS", 0, "(default 1.2)", 0},
	{"drain", OPTION_DRAIN, "N@SECOND", 0, "drain llm-N then", 0},
	{"kill", OPTION_KILL, "N@SECOND", 0, "kill llm-N then", 0},
	{"detect", OPTION_DETECT, "SECONDS", 0, "after which its death is known (default 2)", 0},
	{"out", OPTION_OUT, "DIRECTORY", 0,
	 "a CSV and a JSON file a run; runs whose JSON is there are not repeated", 0},
	{"growth", OPTION_GROWTH, "N", 0,
	 "show how the cost grows, up to N replicas with --conversations (default 1,000) each", 0},
	{0},
};

static double parse_at(struct argp_state *state, const char *option, const char *value,
		       uint32_t *number)
{
	char *at;
	double second = -1;

	*number = (uint32_t)strtoul(value, &at, 10);
	if (at != value && *at == '@')
		second = strtod(at + 1, &at);
	if (*at || second < 0)
		argp_error(state, "%s \"%s\": a replica's number, @ and a second, such as 1@30",
			   option, value);
	return second;
}

static void check_together(const struct options *o, struct argp_state *state)
{
	const struct simulation_settings *s = &o->settings;

	if (!o->profile_path == !o->trace_path)
		argp_error(state, "one of --profile and --trace is needed");
	if (!o->policy_count)
		argp_error(state, "--policy is missing");
	if (!o->out && !o->growth_replicas)
		argp_error(state, "--out is missing");
	if (isnan(o->scale_at_s) != !o->scale_to)
		argp_error(state, "--scale-to and --scale-at go together");
	if (o->scale_to && o->scale_to <= s->replicas)
		argp_error(state, "--scale-to %u is not more than --replicas %u", o->scale_to,
			   s->replicas);
	if (!isnan(s->drain_at_s) && s->drained >= s->replicas)
		argp_error(state, "--drain %u: there are only %u replicas", s->drained,
			   s->replicas);
	if (!isnan(s->kill_at_s) && s->killed >= s->replicas)
		argp_error(state, "--kill %u: there are only %u replicas", s->killed, s->replicas);
}

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct options *o = state->input;
	struct simulation_settings *s = &o->settings;

	switch (key) {
	case 'p':
		o->profile_path = value;
		break;
	case OPTION_CONVERSATIONS:
		o->conversations = argument_count(state, "--conversations", value, 1, 1000000);
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
	case OPTION_LIMIT:
		o->trace.limit = argument_count(state, "--limit", value, 1, UINT32_MAX);
		break;
	case OPTION_TIMEOUT:
		s->trace_timeout_s = argument_number(state, "--timeout", value, 0.001, 1e6);
		break;
	case 'P':
		if (o->policy_count == POLICIES_MAX)
			argp_error(state, "more than %d --policy", POLICIES_MAX);
		o->policies[o->policy_count++] = value;
		break;
	case OPTION_SEEDS:
		o->seeds = value;
		break;
	case 'r':
		s->replicas = argument_count(state, "--replicas", value, 1, REPLICAS_MAX);
		break;
	case OPTION_VNODES:
		s->engine.vnodes = argument_count(state, "--vnodes", value, 1, RING_POINTS_MAX);
		break;
	case 'm':
		o->model_name = value;
		break;
	case OPTION_SLOTS:
		s->replica.slots = argument_count(state, "--slots", value, 1, REPLICA_SLOTS_MAX);
		s->replica.unified = false;
		break;
	case 'c':
		s->replica.context_tokens = argument_count(state, "--ctx-size", value, 16, 1 << 24);
		break;
	case 's':
		s->replica.slot_similarity =
			argument_number(state, "--slot-prompt-similarity", value, 0, 1);
		break;
	case OPTION_CACHE_RAM:
		s->replica.cache_ram_bytes =
			(uint64_t)argument_count(state, "--cache-ram", value, 0, 1 << 30) << 20;
		break;
	case OPTION_ANSWER:
		s->answer_tokens = argument_count(state, "--answer-tokens", value, 1, 1 << 20);
		break;
	case OPTION_NETWORK:
		s->network_ms = argument_number(state, "--network", value, 0, 1e6);
		break;
	case OPTION_NO_SIZES:
		s->sizes_unseen = true;
		break;
	case OPTION_SCALE_TO:
		o->scale_to = argument_count(state, "--scale-to", value, 2, REPLICAS_MAX);
		break;
	case OPTION_SCALE_AT:
		o->scale_at_s = argument_number(state, "--scale-at", value, 0, 1e9);
		break;
	case OPTION_LOAD_TIME:
		s->load_s = argument_number(state, "--load-time", value, 0, 1e6);
		break;
	case OPTION_DRAIN:
		s->drain_at_s = parse_at(state, "--drain", value, &s->drained);
		break;
	case OPTION_KILL:
		s->kill_at_s = parse_at(state, "--kill", value, &s->killed);
		break;
	case OPTION_DETECT:
		s->detect_s = argument_number(state, "--detect", value, 0, 1e6);
		break;
	case OPTION_OUT:
		o->out = value;
		break;
	case OPTION_GROWTH:
		o->growth_replicas = argument_count(state, "--growth", value, 1, 1000);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", value);
		break;
	case ARGP_KEY_END:
		check_together(o, state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* --- files of a run ------------------------------------------------------------------------------------------------- */

struct output {
	FILE *csv;
	const struct run *run;
	int failed; /* negative errno */
};

static void write_record(struct record *record, void *context)
{
	struct output *output = context;

	snprintf(record->run_id, sizeof(record->run_id), "%s", output->run->run_id);
	snprintf(record->policy, sizeof(record->policy), "%s", output->run->policy);
	if (!output->failed)
		output->failed = records_write(output->csv, record);
}

/* The policy's specification as part of a file name. */
static void name_run(struct run *run, const char *policy, uint32_t seed)
{
	size_t length = (size_t)snprintf(run->run_id, sizeof(run->run_id), "%.96s", policy);

	for (size_t i = 0; i < length; i++)
		if (run->run_id[i] == ':' || run->run_id[i] == ',' || run->run_id[i] == '/')
			run->run_id[i] = '_';
	snprintf(run->run_id + length, sizeof(run->run_id) - length, "-s%u-r1", seed);
}

static json_t *settings_json(const struct options *o)
{
	const struct engine_settings *engine = &o->settings.engine;
	char value[POLICY_VALUE_TEXT_SIZE];
	json_t *params = json_object();
	const char *key;

	for (size_t i = 0; (key = policy_key(&engine->policy, i, value)); i++)
		json_object_set_new(params, key, json_string(value));
	json_object_set_new(params, "vnodes", json_integer(engine->vnodes));
	return params;
}

static int write_run(const char *path, const struct options *o, const struct run *run,
		     const struct simulation_result *result)
{
	json_t *json = run_json(run), *loads = json_object();
	char started[32];
	time_t now = time(NULL);
	struct tm utc;
	int failed;

	for (uint32_t i = 0; i < result->replica_count; i++)
		if (result->replicas[i].counted)
			json_object_set_new(loads, result->replicas[i].name,
					    json_integer(result->replicas[i].load));
	strftime(started, sizeof(started), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	json_object_set_new(json, "policy_params", settings_json(o));
	json_object_set_new(json, "started_at", json_string(started));
	json_object_set_new(json, "simulated", json_true());
	json_object_set_new(json, "router_state_at_end", json_pack("{s:o}", "loads", loads));
	failed = json_dump_file(json, path, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(json);
	return failed ? -EIO : 0;
}

static void fill_run(struct run *run, const struct options *o, const char *policy, uint32_t seed)
{
	*run = (struct run){
		.seed = seed,
		.repeat = 1,
		.base_replicas = o->settings.replicas,
		.scale_to = o->scale_to,
		.scale_at_s = o->scale_at_s,
	};
	name_run(run, policy, seed);
	snprintf(run->policy, sizeof(run->policy), "%s", policy);
	snprintf(run->profile, sizeof(run->profile), "%s",
		 o->profile_path ? o->profile_path : o->trace_path);
}

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* 0, or -1 after a sentence. */
static int run_one(struct options *o, const char *policy, uint32_t seed)
{
	static struct simulation_result result;
	struct output output = {0};
	struct error error;
	struct run run;
	char csv[4096], json[4096];
	double started = now_seconds(), took;

	fill_run(&run, o, policy, seed);
	snprintf(csv, sizeof(csv), "%s/%s.csv", o->out, run.run_id);
	snprintf(json, sizeof(json), "%s/%s.json", o->out, run.run_id);
	if (access(json, F_OK) == 0) {
		printf("%-60s is there already\n", run.run_id);
		return 0;
	}
	o->settings.seed = seed;
	output.run = &run;
	output.csv = fopen(csv, "we");
	if (!output.csv || records_write_header(output.csv)) {
		fprintf(stderr, "simulate: cannot write %s: %s\n", csv, strerror(errno));
		return -1;
	}
	if (simulation_run(&o->settings, write_record, &output, &result, &error)) {
		fprintf(stderr, "simulate: %s: %s\n", run.run_id, error.text);
		fclose(output.csv);
		return -1;
	}
	if (fclose(output.csv) && !output.failed)
		output.failed = -errno;
	run.duration_s = result.duration_s;
	run.requests = result.requests;
	run.errors = result.errors;
	run.new_replica_ready_s = result.new_replica_ready_s;
	run.scale_skipped = result.scale_skipped;
	if (output.failed || write_run(json, o, &run, &result)) {
		fprintf(stderr, "simulate: cannot write %s: %s; the runs before are complete\n",
			output.failed ? csv : json,
			output.failed ? strerror(-output.failed) : "disk full?");
		return -1;
	}
	took = now_seconds() - started;
	printf("%-60s %7u requests %4u errors, %8.0f s in %.3f s\n", run.run_id, run.requests,
	       run.errors, run.duration_s, took);
	fflush(stdout);
	return 0;
}

/* Calls for each seed of "1-3,7"; false: malformed. */
static bool next_seed(const char **text, uint32_t *low, uint32_t *high)
{
	char *end;

	*low = *high = (uint32_t)strtoul(*text, &end, 10);
	if (end == *text)
		return false;
	if (*end == '-') {
		*text = end + 1;
		*high = (uint32_t)strtoul(*text, &end, 10);
		if (end == *text || *high < *low)
			return false;
	}
	if (*end && *end != ',')
		return false;
	*text = *end ? end + 1 : end;
	return true;
}

static int run_all(struct options *o)
{
	const char *seeds = o->seeds;
	uint32_t low, high;
	struct error error;

	while (*seeds) {
		if (!next_seed(&seeds, &low, &high)) {
			fprintf(stderr,
				"simulate: --seeds \"%s\": numbers and ranges, such as 1-20 or 1,2,42\n",
				o->seeds);
			return 1;
		}
		for (uint32_t seed = low; seed <= high; seed++)
			for (uint32_t i = 0; i < o->policy_count; i++) {
				if (policy_specification_parse(
					    o->policies[i], &o->settings.engine.policy, &error)) {
					fprintf(stderr, "simulate: %s\n", error.text);
					return 1;
				}
				if (run_one(o, o->policies[i], seed))
					return 1;
			}
	}
	return 0;
}

static int prepare(struct options *o, struct trace *trace)
{
	char error[TOOLS_ERROR_SIZE];
	int result = cost_model_load(o->model_name, &o->settings.model, error);

	o->settings.scale_to = o->scale_to;
	o->settings.scale_at_s = o->scale_at_s;
	o->trace.context_tokens = o->settings.replica.context_tokens;
	if (!result && o->trace_path) {
		result = trace_read(o->trace_path, &o->trace, trace, error);
		o->settings.trace = trace;
		if (!result && trace->left_out)
			fprintf(stderr,
				"simulate: %u of the trace's requests do not fit %u tokens and are left out\n",
				trace->left_out, o->trace.context_tokens);
		if (!result && !trace->count) {
			snprintf(error, sizeof(error), "%s: no request fits --ctx-size %u",
				 o->trace_path, o->trace.context_tokens);
			result = -EINVAL;
		}
	} else if (!result) {
		result = profile_read(o->profile_path, &o->profile, error);
		if (o->conversations && !o->growth_replicas)
			o->profile.conversations = o->conversations;
		if (!result &&
		    o->profile.max_context_tokens >= o->settings.replica.context_tokens) {
			snprintf(
				error, sizeof(error),
				"%s: max_context_tokens is %u, but a slot has a context of %u tokens: it must be below that",
				o->profile_path, o->profile.max_context_tokens,
				o->settings.replica.context_tokens);
			result = -E2BIG;
		}
	}
	if (!result && o->out && mkdir(o->out, 0777) && errno != EEXIST) {
		snprintf(error, sizeof(error), "cannot make %s: %s", o->out, strerror(errno));
		result = -EIO;
	}
	if (result)
		fprintf(stderr, "simulate: %s\n", error);
	return result;
}

static int growth(struct options *o)
{
	struct error error;

	if (!o->profile_path)
		error_set(&error, -EINVAL, "--growth needs a profile");
	else if (!policy_specification_parse(o->policies[0], &o->settings.engine.policy, &error) &&
		 !growth_show(&o->settings, &o->profile, o->growth_replicas,
			      o->conversations ? o->conversations : GROWTH_CONVERSATIONS, &error))
		return 0;
	fprintf(stderr, "simulate: %s\n", error.text);
	return 1;
}

int main(int count, char **arguments)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Runs of an experiment in virtual time: the same plan, replicas and decisions as on the real data path.",
	};
	static struct options o;
	static struct trace trace;

	o = (struct options){
		.model_name = "rand-70m",
		.seeds = "1",
		.scale_at_s = NAN,
		.trace = {.time_scale = 1, .size_scale = 1},
		.settings =
			{
				.engine = {.dialect = RING_LLM, .vnodes = RING_VNODES_LLM},
				.replicas = 3,
				.replica = replica_defaults(),
				.answer_tokens = 256,
				.network_ms = 0.2,
				.profile = &o.profile,
				.trace_timeout_s = 1200,
				.load_s = 1.2,
				.scale_at_s = NAN,
				.drain_at_s = NAN,
				.kill_at_s = NAN,
				.detect_s = 2,
			},
	};
	argp_parse(&argp, count, arguments, 0, NULL, &o);
	signal(SIGXFSZ, SIG_IGN);
	if (prepare(&o, &trace))
		return 1;
	return o.growth_replicas ? growth(&o) : run_all(&o);
}
