/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/ring_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "lib/hash_key.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

enum {
	OPTION_REPLICAS = 'r',
	OPTION_VNODES = 'n',
	OPTION_DIALECT = 'd',
	OPTION_WEIGHTS = 'w',
	OPTION_HASH_KEY_FILE = 'k',
};

static const struct argp_option option_list[] = {
	{"replicas", OPTION_REPLICAS, "NAME,...", 0, "The replicas on the ring", 0},
	{"vnodes", OPTION_VNODES, "NUMBER", 0,
	 "Virtual nodes of a replica of weight 1 (llm-ring: 100, replica-router: 3)", 0},
	{"dialect", OPTION_DIALECT, "DIALECT", 0, "llm-ring (the default) or replica-router", 0},
	{"weights", OPTION_WEIGHTS, "NAME=WEIGHT,...", 0,
	 "Weights that are not 1: 0.001 to 1000, at most three decimals", 0},
	{"hash-key-file", OPTION_HASH_KEY_FILE, "FILE", 0,
	 "The secret key of the hash: a file of 1 to 64 bytes (llm-ring only)", 0},
	{0},
};

__u32 ring_set_parse_vnodes(struct argp_state *state, const char *text)
{
	return argument_number(state, text, "virtual nodes", 1, RING_POINTS_MAX);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct ring_set_options *options = state->input;

	switch (key) {
	case OPTION_REPLICAS:
		options->replicas = argument;
		return 0;
	case OPTION_WEIGHTS:
		options->weights = argument;
		return 0;
	case OPTION_HASH_KEY_FILE:
		options->hash_key_file = argument;
		return 0;
	case OPTION_DIALECT:
		if (ring_parse_dialect(argument, &options->dialect))
			argp_error(
				state,
				"there is no ring dialect \"%s\": use llm-ring or replica-router",
				argument);
		return 0;
	case OPTION_VNODES:
		options->vnodes = ring_set_parse_vnodes(state, argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_live(int key, char *argument, struct argp_state *state)
{
	struct ring_set_options *options = state->input;

	(void)argument;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = options;
	state->child_inputs[1] = &options->client;
	return 0;
}

static const struct argp_child live_children[] = {
	{&ring_set_argp, 0, NULL, 0}, {&client_service_argp, 0, NULL, 0}, {0}};

const struct argp ring_set_argp = {.options = option_list, .parser = parse};
const struct argp ring_set_live_argp = {.parser = parse_live, .children = live_children};

/* --- the set -------------------------------------------------------------------------------------------------------- */

struct ring_set_replica *ring_set_find(const struct ring_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (strcmp(set->replicas[i].name, name) == 0)
			return &set->replicas[i];
	return NULL;
}

struct ring_set_replica *ring_set_add(struct ring_set *set, const char *name)
{
	struct ring_set_replica *replicas =
		realloc(set->replicas, (set->count + 1) * sizeof(*replicas));
	struct ring_set_replica *added;

	if (!replicas)
		return NULL;
	set->replicas = replicas;
	added = &replicas[set->count];
	*added = (struct ring_set_replica){
		.name = strdup(name),
		.state = "active",
		.weight_thousandths = RING_WEIGHT_ONE,
	};
	if (!added->name)
		return NULL;
	set->count++;
	return added;
}

void ring_set_free(struct ring_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->replicas[i].name);
	free(set->replicas);
	explicit_bzero(set, sizeof(*set));
}

static int no_memory(void)
{
	complain("not enough memory");
	return EXIT_FAILED;
}

/* "a=2,c=0.5" */
static int set_weights(struct ring_set *set, char *weights)
{
	struct error error;

	for (char *item; (item = strsep(&weights, ","));) {
		char *weight = strchr(item, '=');
		struct ring_set_replica *replica;
		__u32 thousandths;

		if (!weight) {
			complain("\"%s\" is not a weight: write NAME=WEIGHT", item);
			return EXIT_FAILED;
		}
		*weight++ = '\0';
		if (ring_parse_weight(weight, &thousandths, &error)) {
			complain("%s", error.text);
			return EXIT_FAILED;
		}
		replica = ring_set_find(set, item);
		if (!replica) {
			complain(
				"there is a weight for replica %s, which is not among the replicas",
				item);
			return EXIT_FAILED;
		}
		replica->weight_thousandths = thousandths;
	}
	return EXIT_DONE;
}

static int read_hash_key(struct ring_set *set, const char *file)
{
	struct error error;

	if (!file || hash_key_read(file, set->hash_key, &set->hash_key_length, &error) == 0)
		return EXIT_DONE;
	complain("%s", error.text);
	return EXIT_FAILED;
}

static int read_given(struct ring_set *set, const struct ring_set_options *options)
{
	char *text = options->replicas;
	int code;

	set->dialect = options->dialect;
	set->vnodes = options->vnodes ? options->vnodes : ring_default_vnodes(set->dialect);
	code = read_hash_key(set, options->hash_key_file);
	for (char *name; code == EXIT_DONE && (name = strsep(&text, ","));)
		if (!ring_set_find(set, name) && !ring_set_add(set, name))
			code = no_memory();
	if (code == EXIT_DONE && options->weights)
		code = set_weights(set, options->weights);
	return code;
}

static int take_members(struct ring_set *set, const json_t *list)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		struct ring_set_replica *replica = ring_set_add(set, client_text(item, "name"));

		if (!replica)
			return no_memory();
		snprintf(replica->state, sizeof(replica->state), "%s", client_text(item, "state"));
		replica->weight_thousandths =
			json_number_value(json_object_get(item, "weight")) * 1000 + 0.5;
	}
	return EXIT_DONE;
}

static int by_name(const void *a, const void *b)
{
	const struct ring_set_replica *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static int read_live(struct ring_set *set, const struct ring_set_options *options)
{
	struct client_options quiet = options->client;
	const char *file;
	json_t *answer;
	int code;

	quiet.json = false; /* what is printed is the subcommand's */
	code = client_ask(
		&quiet,
		json_pack("{s:s, s:s*}", "command", "ring", "service", options->client.service),
		&answer);
	if (code != EXIT_DONE)
		return code;
	ring_parse_dialect(client_text(answer, "dialect"), &set->dialect);
	set->vnodes = options->vnodes ? options->vnodes : client_number(answer, "vnodes");
	snprintf(set->service, sizeof(set->service), "%s", client_text(answer, "service"));
	file = json_string_value(json_object_get(answer, "hash_key_file"));
	code = read_hash_key(set, file);
	if (code == EXIT_DONE)
		code = take_members(set, json_object_get(answer, "replicas"));
	qsort(set->replicas, set->count, sizeof(*set->replicas), by_name);
	if (code == EXIT_DONE && options->weights)
		code = set_weights(set, options->weights);
	json_decref(answer);
	return code;
}

int ring_set_read(struct ring_set *set, const struct ring_set_options *options)
{
	int code;

	memset(set, 0, sizeof(*set));
	code = options->replicas ? read_given(set, options) : read_live(set, options);
	if (code != EXIT_DONE)
		ring_set_free(set);
	return code;
}

int ring_set_build(const struct ring_set *set, bool all, struct ring *ring)
{
	struct ring_settings settings = {
		.dialect = set->dialect,
		.vnodes = set->vnodes,
		.hash_key = set->hash_key,
		.hash_key_length = set->hash_key_length,
	};
	struct ring_replica *replicas = calloc(set->count + 1, sizeof(*replicas));
	struct error error;
	size_t count = 0;
	int result;

	if (!replicas)
		return no_memory();
	for (size_t i = 0; i < set->count; i++) {
		if (!all && strcmp(set->replicas[i].state, "active") != 0)
			continue;
		replicas[count++] = (struct ring_replica){
			.name = set->replicas[i].name,
			.slot = i,
			.weight_thousandths = set->replicas[i].weight_thousandths,
		};
	}
	result = ring_build(ring, &settings, replicas, count, &error);
	free(replicas);
	if (result == 0)
		return EXIT_DONE;
	complain("%s", error.text);
	return EXIT_FAILED;
}
