/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath decide: feeds events to the decision core, in user space or in the kernel, and prints its decisions, for comparison with a
 * reference and for trying a policy out. It has its own maps: a running router is not disturbed.
 */
#include "cli/cli.h"

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/decide_text.h"
#include "lib/engine.h"
#include "lib/hash_key.h"
#include "lib/policy.h"

enum {
	OPTION_POLICY = 'p',
	OPTION_SET = 's',
	OPTION_ENGINE = 'e',
	OPTION_VNODES = 'n',
	OPTION_DIALECT = 'd',
	OPTION_HASH_KEY_FILE = 'k',
};

static const struct argp_option option_list[] = {
	{"policy", OPTION_POLICY, "POLICY", 0,
	 "round-robin, mod-n, consistent, bounded or llm-aware", 0},
	{"set", OPTION_SET, "KEY=VALUE", 0,
	 "A setting of the policy, as in the configuration file; may be repeated", 0},
	{"engine", OPTION_ENGINE, "ENGINE", 0,
	 "user (the default), or kernel: the program loaded into the kernel, which takes root", 0},
	{"vnodes", OPTION_VNODES, "NUMBER", 0, "Virtual nodes of a replica (100)", 0},
	{"dialect", OPTION_DIALECT, "DIALECT", 0, "llm-ring (the default) or replica-router", 0},
	{"hash-key-file", OPTION_HASH_KEY_FILE, "FILE", 0,
	 "The secret key of the hash: a file of 1 to 64 bytes (llm-ring only)", 0},
	{0},
};

struct options {
	bool policy_given;
	enum routing_policy policy;
	char *pairs[64]; /* KEY=VALUE, in the order given */
	size_t pair_count;
	const struct engine_driver *driver;
	enum ring_dialect dialect;
	__u32 vnodes;
	const char *hash_key_file;
};

static void take_vnodes(struct argp_state *state, struct options *options, const char *text)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end != '\0' || *text == '-' || number < 1 ||
	    number > RING_POINTS_MAX)
		argp_error(state, "\"%s\" is not a number of virtual nodes: give 1 to %u", text,
			   RING_POINTS_MAX);
	options->vnodes = number;
}

static void take_dialect(struct argp_state *state, struct options *options, const char *text)
{
	if (ring_parse_dialect(text, &options->dialect))
		argp_error(state, "there is no ring dialect \"%s\": use llm-ring or replica-router",
			   text);
}

/* The reference counts vnodes and dialect among the settings; the policy's own are read once the policy is known. */
static void take_pair(struct argp_state *state, struct options *options, char *pair)
{
	if (strncmp(pair, "vnodes=", 7) == 0)
		take_vnodes(state, options, pair + 7);
	else if (strncmp(pair, "dialect=", 8) == 0)
		take_dialect(state, options, pair + 8);
	else if (options->pair_count == sizeof(options->pairs) / sizeof(options->pairs[0]))
		argp_error(state, "there are too many settings: at most %zu", options->pair_count);
	else
		options->pairs[options->pair_count++] = pair;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_POLICY:
		if (policy_parse_name(argument, &options->policy))
			argp_error(state,
				   "there is no policy \"%s\": use round-robin, mod-n, consistent, "
				   "bounded or llm-aware",
				   argument);
		options->policy_given = true;
		return 0;
	case OPTION_SET:
		take_pair(state, options, argument);
		return 0;
	case OPTION_ENGINE:
		if (strcmp(argument, "user") == 0)
			options->driver = &engine_driver_user;
		else if (strcmp(argument, "kernel") == 0)
			options->driver = &engine_driver_kernel;
		else
			argp_error(state, "there is no engine \"%s\": use user or kernel",
				   argument);
		return 0;
	case OPTION_VNODES:
		take_vnodes(state, options, argument);
		return 0;
	case OPTION_DIALECT:
		take_dialect(state, options, argument);
		return 0;
	case OPTION_HASH_KEY_FILE:
		options->hash_key_file = argument;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\" is too much: events are read from standard input",
			   argument);
		return 0;
	case ARGP_KEY_END:
		if (!options->policy_given)
			argp_error(state, "say which policy: --policy POLICY");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- events ----------------------------------------------------------------------------------------------- */

static int event_replicas(struct engine *engine, json_t *event, struct error *error)
{
	json_t *list = json_object_get(event, "names"), *item;
	const char **names;
	size_t index, count = json_array_size(list);
	int err = 0;

	if (!json_is_array(list))
		return error_set(error, -EINVAL, "\"names\" is not a list of names");
	names = calloc(count + 1, sizeof(*names));
	if (!names)
		return error_set(error, -ENOMEM, "there is no memory for the replicas");
	json_array_foreach(list, index, item)
	{
		names[index] = json_string_value(item);
		if (!names[index])
			err = error_set(error, -EINVAL, "\"names\" is not a list of names");
	}
	if (!err)
		err = engine_set_replicas(engine, names, count, error);
	free(names);
	return err;
}

static int read_tokens(json_t *event, const char *key, __u32 *tokens, struct error *error)
{
	json_t *value = json_object_get(event, key);

	if (!value)
		return error_set(error, -EINVAL, "\"%s\" is missing", key);
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > REQUEST_TOKENS_MAX)
		return error_set(error, -EINVAL, "\"%s\" is not a whole number from 0 to %u", key,
				 REQUEST_TOKENS_MAX);
	*tokens = json_integer_value(value);
	return 0;
}

static int read_request_number(json_t *event, json_int_t *number, struct error *error)
{
	json_t *value = json_object_get(event, "req");

	if (!value)
		return error_set(error, -EINVAL, "\"req\" is missing");
	if (!json_is_integer(value))
		return error_set(error, -EINVAL, "\"req\" is not a whole number");
	*number = json_integer_value(value);
	return 0;
}

static int event_request(struct engine *engine, json_t *event, struct error *error)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
	const char *id = json_string_value(json_object_get(event, "id"));
	const struct policy_settings *policy = &engine->settings.policy;
	__u32 loads[REPLICAS_MAX];
	struct engine_request request = {.id = id};
	struct decision decision;
	json_int_t number = 0;
	int err;

	if (!json_object_get(event, "id"))
		return error_set(error, -EINVAL, "\"id\" is missing");
	request.id_length = id ? strlen(id) : 0;
	if (request.id_length < 1 || request.id_length > ID_LENGTH_MAX ||
	    strspn(id, allowed) != request.id_length)
		return error_set(
			error, -EINVAL,
			"\"id\" is not 1 to %d characters out of letters, digits and . _ : -",
			ID_LENGTH_MAX);
	err = read_request_number(event, &number, error);
	if (!err)
		err = read_tokens(event, "prompt_tokens", &request.prompt_tokens, error);
	if (!err)
		err = read_tokens(event, "max_tokens", &request.max_tokens, error);
	if (err)
		return err;
	request.request = number;
	/* before the decision, as nobody else is there to change them */
	err = engine_loads(engine, loads, error);
	if (!err)
		err = engine_request(engine, &request, &decision, error);
	if (err)
		return err;
	decision_print_json(stdout, number, id, &decision, policy, &engine->ring, loads);
	return 0;
}

static int event_finish(struct engine *engine, json_t *event, struct error *error)
{
	json_t *status = json_object_get(event, "status");
	json_int_t number = 0, code;
	int err = read_request_number(event, &number, error);

	if (err)
		return err;
	if (!status)
		return error_set(error, -EINVAL, "\"status\" is missing");
	if (!json_is_integer(status))
		return error_set(error, -EINVAL, "\"status\" is not a whole number");
	code = json_integer_value(status);
	return engine_finish(engine, number, code >= 200 && code < 300, error);
}

static int take_event(struct engine *engine, const char *line, size_t length, struct error *error)
{
	json_error_t problem;
	json_t *event = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
	const char *operation = json_string_value(json_object_get(event, "op"));
	int err;

	if (!event)
		err = error_set(error, -EINVAL, "not JSON: %s", problem.text);
	else if (!operation)
		err = error_set(error, -EINVAL, "not an event: \"op\" is missing");
	else if (strcmp(operation, "replicas") == 0)
		err = event_replicas(engine, event, error);
	else if (strcmp(operation, "request") == 0)
		err = event_request(engine, event, error);
	else if (strcmp(operation, "finish") == 0)
		err = event_finish(engine, event, error);
	else
		err = error_set(error, -EINVAL,
				"\"op\" is \"%s\"; allowed: replicas, request, finish", operation);
	json_decref(event);
	return err;
}

static int take_events(struct engine *engine)
{
	unsigned long number = 0;
	struct error error;
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int err = 0;

	while (!err && (length = getline(&line, &room, stdin)) >= 0) {
		number++;
		if (strspn(line, " \t\r\n") == (size_t)length)
			continue;
		err = take_event(engine, line, length, &error);
		if (err)
			complain("line %lu: %s", number, error.text);
	}
	free(line);
	if (!err && ferror(stdin)) {
		err = -errno;
		complain("the events cannot be read from standard input: %s", strerror(errno));
	}
	return err;
}

static int read_settings(const struct options *options, struct engine_settings *settings,
			 struct error *error)
{
	struct policy_settings *policy = &settings->policy;
	int err = 0;

	*policy = policy_published(options->policy);
	for (size_t i = 0; !err && i < options->pair_count; i++)
		err = policy_set_pair(policy, options->pairs[i], error);
	if (!err && policy->policy != options->policy)
		err = error_set(error, -EINVAL, "--policy says %s, and --set name says %s: say one",
				policy_name(options->policy), policy_name(policy->policy));
	/* where it has no say, the reference does not mind either */
	if (!err && policy->policy == POLICY_LLM_AWARE && policy->long_stickiness)
		err = policy_check(policy, error);
	return err;
}

int decide_main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_list,
		.parser = parse_option,
		.doc = "Read events from standard input, a JSON object a line, and print the decision "
		       "on each request.\v"
		       "Example:\n  warmpath decide --policy llm-aware <events.jsonl\n\n"
		       "Events:\n"
		       "  {\"op\":\"replicas\",\"names\":[\"llm-0\",\"llm-1\"]}\n"
		       "  {\"op\":\"request\",\"req\":7,\"id\":\"conv1\",\"prompt_tokens\":860,"
		       "\"max_tokens\":48}\n"
		       "  {\"op\":\"finish\",\"req\":7,\"status\":200}",
	};
	__u8 hash_key[RING_HASH_KEY_LENGTH_MAX];
	struct options options = {
		.driver = &engine_driver_user, .dialect = RING_LLM, .vnodes = RING_VNODES_LLM};
	struct engine_settings settings = {.hash_key = hash_key};
	struct engine *engine;
	struct error error;
	int err;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	err = read_settings(&options, &settings, &error);
	if (err) {
		complain("%s", error.text);
		return EXIT_USAGE;
	}
	settings.dialect = options.dialect;
	settings.vnodes = options.vnodes;
	if (options.hash_key_file)
		err = hash_key_read(options.hash_key_file, hash_key, &settings.hash_key_length,
				    &error);
	if (!err)
		err = engine_open(&engine, options.driver, &settings, &error);
	explicit_bzero(hash_key, sizeof(hash_key));
	if (err) {
		complain("%s", error.text);
		return EXIT_FAILED;
	}
	err = take_events(engine);
	engine_close(engine);
	if (fflush(stdout) && !err) {
		complain("the decisions cannot be written: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return err ? EXIT_FAILED : EXIT_DONE;
}
