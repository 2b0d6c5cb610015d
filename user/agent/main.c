/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpathd: reading the command line, and which of its three works is to be done.
 */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/attach_dispatcher.h"
#include "agent/privileges.h"
#include "agent/upgrade.h"
#include "lib/cluster_secret.h"
#include "lib/config_schema.h"
#include "lib/log.h"

const char *argp_program_version = "warmpathd " WARMPATH_VERSION;

enum {
	OPTION_CHECK = 256,
	OPTION_CHECK_RUNNING,
	OPTION_LIST_KEYS,
	OPTION_DETACH,
	OPTION_FORCE,
	OPTION_FOREGROUND,
};

struct arguments {
	const char *config_path;
	bool check;
	bool check_running;
	bool list_keys;
	bool detach;
	bool force;
	int verbose;
};

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "The configuration (every key is explained in the example)", 0},
	{"check", OPTION_CHECK, NULL, 0, "Only check the configuration; 0 if it is good", 0},
	{"check-running", OPTION_CHECK_RUNNING, NULL, 0,
	 "Only check that this build, with this configuration, can take over the data path that is pinned; "
	 "0 if it can",
	 0},
	{"list-keys", OPTION_LIST_KEYS, NULL, 0,
	 "Print every key that the configuration may have, with what it means and what is allowed",
	 0},
	{"detach", OPTION_DETACH, NULL, 0,
	 "Take the data path away: detach everything, remove all pins", 0},
	{"force", OPTION_FORCE, NULL, 0,
	 "Replace XDP programs and tc filters of others that are in the way", 0},
	{"foreground", OPTION_FOREGROUND, NULL, 0, "Stay in the foreground (always the case)", 0},
	{"verbose", 'v', NULL, 0,
	 "Say more, whatever log_level is (twice: also what libbpf and libxdp say)", 0},
	{0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'c':
		arguments->config_path = argument;
		return 0;
	case OPTION_CHECK:
		arguments->check = true;
		return 0;
	case OPTION_CHECK_RUNNING:
		arguments->check_running = true;
		return 0;
	case OPTION_LIST_KEYS:
		arguments->list_keys = true;
		return 0;
	case OPTION_DETACH:
		arguments->detach = true;
		return 0;
	case OPTION_FORCE:
		arguments->force = true;
		return 0;
	case OPTION_FOREGROUND:
		return 0;
	case 'v':
		arguments->verbose++;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "%s: no arguments but options are taken", argument);
		return EINVAL;
	case ARGP_KEY_END:
		if (!arguments->config_path && !arguments->list_keys)
			argp_error(state, "the configuration is missing: -c FILE");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "The agent of warmpath: loads the data path from its configuration and keeps it up.\v"
	       "When it ends, the data path goes on; a new agent takes it over.\n"
	       "SIGHUP applies the configuration anew; SIGTERM ends the agent.",
};

static int check_config(const char *path)
{
	struct config_problems problems = {0};
	struct config config;
	struct error error;
	int result = config_load(path, &config, &problems);

	if (result)
		fprintf(stderr, "%s\n", problems.text ? problems.text : "not enough memory");
	if (problems.count > 1)
		fprintf(stderr, "%u problems\n", problems.count);
	/* what the agent would read as well, and end over */
	if (!result) {
		result = cluster_secrets_load(&config.handoff, &error);
		explicit_bzero(&config.handoff.keys, sizeof(config.handoff.keys));
		if (result)
			fprintf(stderr, "%s: %s\n", path, error.text);
	}
	if (!result)
		printf("%s: good; %u service%s, %u interface%s\n", path, config.service_count,
		       config.service_count == 1 ? "" : "s", config.interface_count,
		       config.interface_count == 1 ? "" : "s");
	config_problems_free(&problems);
	config_free(&config);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int list_keys(void)
{
	char allowed[512];
	unsigned int i;

	for (i = 0; i < config_schema_count; i++) {
		const struct schema_key *key = &config_schema[i];

		printf("%s\n    %s", key->path, key->description);
		if (key->kind != SCHEMA_SECTION)
			printf(": %s", schema_allowed(key, allowed, sizeof(allowed)));
		if (key->only_with)
			printf("; only with %s: %s", key->only_with, key->only_with_word);
		putchar('\n');
	}
	return EXIT_SUCCESS;
}

static int check_running(const char *path)
{
	struct error error;

	if (upgrade_check(path, &error)) {
		log_error("%s", error.text);
		return EXIT_FAILURE;
	}
	printf("%s: this build can take the data path over\n", path);
	return EXIT_SUCCESS;
}

static int detach(struct agent *agent)
{
	struct error error;
	int result = agent_open_pinned(agent, &error);

	if (!result)
		result = agent_detach_all(agent, &error);
	if (result)
		log_error("%s", error.text);
	agent_stop(agent);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The file of this program, by a path that also leads to what takes its place later. The caller frees it. */
static char *find_program(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length < 0)
		return NULL;
	path[length] = '\0';
	return strdup(path);
}

static int become(const struct agent *agent)
{
	int result = upgrade_become(agent->next_program, agent->config_path, agent->verbose);

	log_error("%s cannot be run: %s; the data path goes on without an agent",
		  agent->next_program, strerror(-result));
	return EXIT_FAILURE;
}

static int run(struct agent *agent)
{
	struct error error;
	int result = agent_start(agent, &error);

	if (!result) {
		drop_privileges(dispatcher_wanted(&agent->attachments));
		result = agent_run(agent, &error);
	}
	if (result)
		log_error("%s", error.text);
	agent_stop(agent);
	if (!result && agent->next_program)
		return become(agent);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* What was printed into a full disk is no success. */
static void close_output(void)
{
	int failed = ferror(stdout);

	if (fclose(stdout) == 0 && !failed)
		return;
	log_error("the output cannot be written: %s", strerror(errno));
	_exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	struct arguments arguments = {0};
	struct agent *agent;
	char *program;
	int result;

	atexit(close_output);
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	log_take_over_libraries();
	if (arguments.verbose > 0)
		log_set_level(LOG_LEVEL_DEBUG);
	log_set_library_details(arguments.verbose > 1);
	if (arguments.list_keys)
		return list_keys();
	if (arguments.check)
		return check_config(arguments.config_path);
	if (arguments.check_running)
		return check_running(arguments.config_path);

	signal(SIGPIPE, SIG_IGN);
	agent = calloc(1, sizeof(*agent));
	if (!agent)
		return EXIT_FAILURE;
	agent->config_path = arguments.config_path;
	program = find_program();
	agent->program_path = program;
	agent->verbose = arguments.verbose;
	agent->attachments.force = arguments.force;
	result = arguments.detach ? detach(agent) : run(agent);
	free(agent->next_program);
	free(agent);
	free(program);
	return result;
}
