/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath decide: feeds events to the decision core, in user space or in the kernel, and prints its decisions, for comparison with a
 * reference and for trying a policy out. It has its own maps: a running router is not disturbed.
 */
#include "cli/cli.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/decide_events.h"
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
		err = decide_event_take(engine, line, length, stdout, &error);
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
