/* SPDX-License-Identifier: BSD-2-Clause */
/* simreplica: see simreplica.h. */
#include "simreplica.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/arguments.h"

enum {
	OPTION_CACHE_RAM = 256,
	OPTION_NO_CACHE_IDLE,
	OPTION_LOAD_TIME,
	OPTION_METRICS,
	OPTION_METRICS_DIALECT,
	OPTION_NO_SLOTS,
	OPTION_SAVE_PATH,
	OPTION_ANSWER,
	OPTION_SPEED,
	OPTION_NAME,
};

static const struct argp_option options[] = {
	{"host", 'H', "ADDRESS", 0, "listen here (default 127.0.0.1; :: for all of both families)",
	 0},
	{"port", 'p', "PORT", 0, "and on this port (default 8001)", 0},
	{"name", OPTION_NAME, "NAME", 0, "say so in each answer: X-Served-By: NAME", 0},
	{"model", 'm', "MODEL", 0,
	 "cost model: rand-25m, rand-70m or a JSON file (default rand-70m)", 0},
	{"speed", OPTION_SPEED, "FACTOR", 0,
	 "everything takes so many times less long, and is reported as if it did not", 0},
	{"slots", 'n', "N", 0,
	 "as llama-server's -np: N slots, each with its context (default: 4, of one pool)", 0},
	{"ctx-size", 'c', "TOKENS", 0, "context of a slot (default 4096)", 0},
	{"batch", 'b', "TOKENS", 0, "prompt tokens in one step (default 2048)", 0},
	{"slot-prompt-similarity", 's', "SHARE", 0, "0 to 1 (default 0.1; 0: never by similarity)",
	 0},
	{"cache-ram", OPTION_CACHE_RAM, "MIB", 0, "RAM cache (default 8192; 0: none)", 0},
	{"no-cache-idle-slots", OPTION_NO_CACHE_IDLE, NULL, 0,
	 "do not copy idle slots to the RAM cache at each task", 0},
	{"load-time", OPTION_LOAD_TIME, "SECONDS", 0, "503 for so long after the start (default 0)",
	 0},
	{"answer-tokens", OPTION_ANSWER, "N", 0,
	 "length of an answer whose request sets no lower limit (default 256)", 0},
	{"slot-save-path", OPTION_SAVE_PATH, "DIRECTORY", 0,
	 "allows POST /slots/N?action=save|restore|erase", 0},
	{"metrics-dialect", OPTION_METRICS_DIALECT, "SERVER", 0,
	 "with the names of llama.cpp (default), vllm or sglang", 0},
	{"metrics", OPTION_METRICS, NULL, 0, "serve /metrics", 0},
	{"no-slots", OPTION_NO_SLOTS, NULL, 0, "do not serve /slots", 0},
	{0},
};

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct options *o = state->input;
	struct replica_settings *r = &o->replica;

	switch (key) {
	case 'H':
		o->address = value;
		break;
	case 'p':
		o->port = value;
		break;
	case OPTION_NAME:
		if (!*value || strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					     "0123456789._-") != strlen(value))
			argp_error(state, "--name \"%s\": letters, digits, . _ - are allowed",
				   value);
		o->name = value;
		break;
	case 'm':
		o->model_name = value;
		break;
	case OPTION_SPEED:
		o->speed = argument_number(state, "--speed", value, 0.001, 10000);
		break;
	case 'n':
		r->slots = argument_count(state, "--slots", value, 1, REPLICA_SLOTS_MAX);
		r->unified = false;
		break;
	case 'c':
		r->context_tokens = argument_count(state, "--ctx-size", value, 16, 1 << 24);
		break;
	case 'b':
		r->batch_tokens = argument_count(state, "--batch", value, 1, 1 << 20);
		break;
	case 's':
		r->slot_similarity =
			argument_number(state, "--slot-prompt-similarity", value, 0, 1);
		break;
	case OPTION_CACHE_RAM:
		r->cache_ram_bytes =
			(uint64_t)argument_count(state, "--cache-ram", value, 0, 1 << 30) << 20;
		break;
	case OPTION_NO_CACHE_IDLE:
		r->cache_idle_slots = false;
		break;
	case OPTION_LOAD_TIME:
		o->load_seconds = argument_number(state, "--load-time", value, 0, 86400);
		break;
	case OPTION_ANSWER:
		o->answer_tokens = argument_count(state, "--answer-tokens", value, 1, 1 << 20);
		break;
	case OPTION_SAVE_PATH:
		o->slot_save_path = value;
		break;
	case OPTION_METRICS_DIALECT:
		if (strcmp(value, "llama.cpp") == 0)
			o->dialect = METRICS_LLAMA;
		else if (strcmp(value, "vllm") == 0)
			o->dialect = METRICS_VLLM;
		else if (strcmp(value, "sglang") == 0)
			o->dialect = METRICS_SGLANG;
		else
			argp_error(state, "--metrics-dialect %s: must be llama.cpp, vllm or sglang",
				   value);
		break;
	case OPTION_METRICS:
		o->metrics = true;
		break;
	case OPTION_NO_SLOTS:
		o->slots = false;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", value);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int count, char **arguments)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "An HTTP server that behaves like a llama-server replica, but sleeps where that one computes.",
	};
	static struct server server;
	char error[TOOLS_ERROR_SIZE];

	server.options = (struct options){
		.address = "127.0.0.1",
		.port = "8001",
		.model_name = "rand-70m",
		.replica = replica_defaults(),
		.speed = 1,
		.answer_tokens = 256,
		.slots = true,
	};
	argp_parse(&argp, count, arguments, 0, NULL, &server.options);
	if (cost_model_load(server.options.model_name, &server.options.model, error)) {
		fprintf(stderr, "simreplica: %s\n", error);
		return 1;
	}
	return server_run(&server) ? 1 : 0;
}
