/* SPDX-License-Identifier: BSD-2-Clause */
/* analyze: see analyze.h. */
#include "analyze.h"

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../lib/arguments.h"

enum { OPTION_OUT = 256, OPTION_BIN, OPTION_AFTER, OPTION_REFERENCE, OPTION_NO_PICTURES };

static const struct argp_option options[] = {
	{"results-dir", 'd', "DIRECTORY", 0, "the runs: NAME.csv and NAME.json each", 0},
	{"out-dir", OPTION_OUT, "DIRECTORY", 0, "where tables and pictures go (default: the same)",
	 0},
	{"bin-s", OPTION_BIN, "SECONDS", 0,
	 "bins of hit_rate_over_time.png (default: a 40th of the longest run)", 0},
	{"after-s", OPTION_AFTER, "SECONDS", 0,
	 "how long after a new replica \"hit rate after\" looks (default 60)", 0},
	{"reference", OPTION_REFERENCE, "POLICY", 0,
	 "what the others are compared with (default: bounded if it is there, else the first)", 0},
	{"no-pictures", OPTION_NO_PICTURES, NULL, 0, "tables only", 0},
	{0},
};

struct options {
	struct analysis *analysis;
	const char *results, *reference;
	bool no_pictures;
};

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'd':
		o->results = value;
		break;
	case OPTION_OUT:
		o->analysis->out = value;
		break;
	case OPTION_BIN:
		o->analysis->bin_s = argument_number(state, "--bin-s", value, 0.001, 1e9);
		break;
	case OPTION_AFTER:
		o->analysis->after_s = argument_number(state, "--after-s", value, 0.001, 1e9);
		break;
	case OPTION_REFERENCE:
		o->reference = value;
		break;
	case OPTION_NO_PICTURES:
		o->no_pictures = true;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", value);
		break;
	case ARGP_KEY_END:
		if (!o->results)
			argp_error(state, "--results-dir is missing");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void add_record(const struct record *record, void *context)
{
	struct result *result = context;

	if (result->count == result->capacity) {
		result->capacity = result->capacity ? result->capacity * 2 : 1024;
		result->records = realloc(result->records, result->capacity * sizeof(*record));
		if (!result->records)
			abort();
	}
	result->records[result->count++] = *record;
}

static int is_run(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

static int read_results(struct analysis *analysis, const char *directory)
{
	char path[4096], error[TOOLS_ERROR_SIZE];
	struct dirent **entries;
	int count = scandir(directory, &entries, is_run, versionsort);

	if (count <= 0) {
		fprintf(stderr, "analyze: %s: %s\n", directory,
			count < 0 ? strerror(errno)
				  : "there is no run (NAME.json with NAME.csv) in it");
		return -ENOENT;
	}
	analysis->results = calloc((size_t)count, sizeof(*analysis->results));
	if (!analysis->results)
		return -ENOMEM;
	for (int i = 0; i < count; i++) {
		struct result *result = &analysis->results[i];

		snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
		if (run_read(path, &result->run, error))
			break;
		memcpy(path + strlen(path) - 5, ".csv", 5);
		if (records_read(path, add_record, result, error))
			break;
		analysis->count++;
		result_measure(result, analysis->after_s);
		analysis->scaled |= !isnan(result->run.new_replica_ready_s);
	}
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
	if (analysis->count == (uint32_t)count)
		return 0;
	fprintf(stderr, "analyze: %s\n", error);
	return -EINVAL;
}

/* Policies without regard to load first, then the others; ablations behind what they are of. */
static int policy_order(const void *a, const void *b)
{
	static const char *const known[] = {"round-robin", "mod-n", "consistent", "bounded",
					    "llm-aware"};
	const struct policy *one = a, *other = b;
	size_t rank[2] = {99, 99};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t length = strlen(known[i]);

		if (strncmp(one->name, known[i], length) == 0)
			rank[0] = i;
		if (strncmp(other->name, known[i], length) == 0)
			rank[1] = i;
	}
	if (rank[0] != rank[1])
		return rank[0] < rank[1] ? -1 : 1;
	return strcmp(one->name, other->name);
}

/* As gnuplot's double quotes take it. */
static char *label_of(const char *name)
{
	char *label = strdup(name);

	for (char *at = label; at && *at; at++)
		if (*at == '"' || *at == '\\' || *at == '`')
			*at = '\'';
	return label;
}

static void group(struct analysis *analysis)
{
	analysis->policies = calloc(analysis->count, sizeof(*analysis->policies));
	if (!analysis->policies)
		abort();
	for (uint32_t i = 0; i < analysis->count; i++) {
		struct result *result = &analysis->results[i];
		struct policy *policy = analysis->policies;

		while (policy->name && strcmp(policy->name, result->run.policy) != 0)
			policy++;
		if (!policy->name) {
			policy->name = result->run.policy;
			policy->label = label_of(policy->name);
			policy->results = calloc(analysis->count, sizeof(struct result *));
			analysis->policy_count++;
		}
		if (!policy->results)
			abort();
		policy->results[policy->count++] = result;
	}
	qsort(analysis->policies, analysis->policy_count, sizeof(*analysis->policies),
	      policy_order);
	for (uint32_t p = 0; p < analysis->policy_count; p++) {
		struct policy *policy = &analysis->policies[p];
		double *values = calloc(policy->count, sizeof(*values));

		if (!values)
			abort();
		for (int metric = 0; metric < METRIC_COUNT; metric++) {
			for (uint32_t i = 0; i < policy->count; i++)
				values[i] = policy->results[i]->values[metric];
			policy->means[metric] = mean_of(values, policy->count);
		}
		free(values);
	}
}

static int choose_reference(struct analysis *analysis, const char *name)
{
	for (uint32_t i = 0; i < analysis->policy_count; i++)
		if (strcmp(analysis->policies[i].name, name ? name : "bounded") == 0) {
			analysis->reference = i;
			return 0;
		}
	if (!name)
		return 0;
	fprintf(stderr, "analyze: there is no run of --reference %s\n", name);
	return -ENOENT;
}

int main(int count, char **arguments)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "From the CSV and JSON files of runs to tables and pictures.",
	};
	static struct analysis analysis = {.after_s = 60};
	struct options o = {.analysis = &analysis};

	argp_parse(&argp, count, arguments, 0, NULL, &o);
	if (!analysis.out)
		analysis.out = o.results;
	if (mkdir(analysis.out, 0777) && errno != EEXIST) {
		fprintf(stderr, "analyze: cannot make %s: %s\n", analysis.out, strerror(errno));
		return 1;
	}
	if (read_results(&analysis, o.results))
		return 1;
	group(&analysis);
	if (choose_reference(&analysis, o.reference) || tables_write(&analysis))
		return 1;
	return !o.no_pictures && pictures_draw(&analysis) ? 1 : 0;
}
