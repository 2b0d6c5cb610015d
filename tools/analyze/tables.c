/* SPDX-License-Identifier: BSD-2-Clause */
/* summary.md and per_run.csv. */
#include "analyze.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

FILE *output_open(const struct analysis *analysis, const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", analysis->out, name);
	file = fopen(path, "we");
	if (!file)
		fprintf(stderr, "analyze: cannot write %s: %s\n", path, strerror(errno));
	return file;
}

int output_close(const struct analysis *analysis, const char *name, FILE *file)
{
	bool failed = ferror(file);

	if (!fclose(file) && !failed)
		return 0;
	fprintf(stderr, "analyze: cannot write %s/%s: %s\n", analysis->out, name, strerror(errno));
	return -EIO;
}

static bool shown(const struct analysis *analysis, enum metric metric)
{
	return analysis->scaled || (metric != METRIC_HIT_RATE_AFTER && metric != METRIC_MOVED);
}

static void write_mean(FILE *file, const struct mean *mean, int decimals, bool sign)
{
	if (isnan(mean->mean))
		fputs(" – |", file);
	else if (isnan(mean->half_width))
		fprintf(file, sign ? " %+.*f |" : " %.*f |", decimals, mean->mean);
	else
		fprintf(file, sign ? " %+.*f ± %.*f |" : " %.*f ± %.*f |", decimals, mean->mean,
			decimals, mean->half_width);
}

static void write_means(FILE *file, const struct analysis *analysis)
{
	fputs("| policy | runs |", file);
	for (int metric = 0; metric < METRIC_COUNT; metric++)
		if (shown(analysis, metric))
			fprintf(file, " %s |", metrics[metric].title);
	fputs("\n| --- | ---: |", file);
	for (int metric = 0; metric < METRIC_COUNT; metric++)
		if (shown(analysis, metric))
			fputs(" ---: |", file);
	fputc('\n', file);
	for (uint32_t i = 0; i < analysis->policy_count; i++) {
		const struct policy *policy = &analysis->policies[i];

		fprintf(file, "| %s | %u |", policy->name, policy->count);
		for (int metric = 0; metric < METRIC_COUNT; metric++)
			if (shown(analysis, metric))
				write_mean(file, &policy->means[metric], metrics[metric].decimals,
					   false);
		fputc('\n', file);
	}
}

/* The run of the same seed and repeat. */
static const struct result *partner(const struct policy *policy, const struct run *run)
{
	for (uint32_t i = 0; i < policy->count; i++)
		if (policy->results[i]->run.seed == run->seed &&
		    policy->results[i]->run.repeat == run->repeat)
			return policy->results[i];
	return NULL;
}

static struct mean difference(const struct policy *policy, const struct policy *reference,
			      enum metric metric)
{
	double *values = calloc(policy->count, 2 * sizeof(*values)), *others;
	struct mean mean;

	if (!values)
		abort();
	others = values + policy->count;
	for (uint32_t i = 0; i < policy->count; i++) {
		const struct result *other = partner(reference, &policy->results[i]->run);

		values[i] = policy->results[i]->values[metric];
		others[i] = other ? other->values[metric] : NAN;
	}
	mean = mean_of_differences(values, others, policy->count);
	free(values);
	return mean;
}

static void write_differences(FILE *file, const struct analysis *analysis)
{
	const struct policy *reference = &analysis->policies[analysis->reference];

	fprintf(file,
		"\n## Against %s\n\nMean of the differences between runs of the same seed, with its 95 %% interval; "
		"\\* where the interval does not contain 0.\n\n| policy | pairs |",
		reference->name);
	for (int metric = 0; metric < METRIC_COUNT; metric++)
		if (metrics[metric].in_differences && shown(analysis, metric))
			fprintf(file, " %s |", metrics[metric].title);
	fputs("\n| --- | ---: |", file);
	for (int metric = 0; metric < METRIC_COUNT; metric++)
		if (metrics[metric].in_differences && shown(analysis, metric))
			fputs(" ---: |", file);
	fputc('\n', file);
	for (uint32_t i = 0; i < analysis->policy_count; i++) {
		const struct policy *policy = &analysis->policies[i];

		if (i == analysis->reference)
			continue;
		fprintf(file, "| %s | %zu |", policy->name,
			difference(policy, reference, METRIC_DURATION).count);
		for (int metric = 0; metric < METRIC_COUNT; metric++) {
			struct mean mean;

			if (!metrics[metric].in_differences || !shown(analysis, metric))
				continue;
			mean = difference(policy, reference, metric);
			if (fabs(mean.mean) > mean.half_width)
				fputs(" \\*", file);
			write_mean(file, &mean, metrics[metric].decimals, true);
		}
		fputc('\n', file);
	}
}

static int write_summary(const struct analysis *analysis)
{
	FILE *file = output_open(analysis, "summary.md");

	if (!file)
		return -EIO;
	fputs("# Summary\n\nMeans over runs ± half the 95 % interval. Look at the errors first.\n\n",
	      file);
	write_means(file, analysis);
	if (analysis->policy_count > 1)
		write_differences(file, analysis);
	fprintf(file,
		"\nhit rate: cached share of the prompt tokens of follow-up turns%s. redirects: follow-up turns not served where the "
		"conversation was served last. imbalance: work (prompt tokens processed and tokens answered) of the busiest "
		"replica over the mean%s. Latencies are of answered requests.\n",
		analysis->scaled
			? "; after: of those begun in the minute after the new replica was ready"
			: "",
		analysis->scaled ? ", before the new replica" : "");
	return output_close(analysis, "summary.md", file);
}

static int write_runs(const struct analysis *analysis)
{
	FILE *file = output_open(analysis, "per_run.csv");

	if (!file)
		return -EIO;
	fputs("run_id,policy,seed,repeat,profile,base_replicas", file);
	for (int metric = 0; metric < METRIC_COUNT; metric++)
		fprintf(file, ",%s", metrics[metric].name);
	fputc('\n', file);
	for (uint32_t p = 0; p < analysis->policy_count; p++)
		for (uint32_t i = 0; i < analysis->policies[p].count; i++) {
			const struct result *result = analysis->policies[p].results[i];
			const struct run *run = &result->run;

			fprintf(file, "\"%s\",\"%s\",%u,%u,\"%s\",%u", run->run_id, run->policy,
				run->seed, run->repeat, run->profile, run->base_replicas);
			for (int metric = 0; metric < METRIC_COUNT; metric++)
				if (isnan(result->values[metric]))
					fputc(',', file);
				else
					fprintf(file, ",%.6g", result->values[metric]);
			fputc('\n', file);
		}
	return output_close(analysis, "per_run.csv", file);
}

int tables_write(const struct analysis *analysis)
{
	int result = write_summary(analysis);

	return result ? result : write_runs(analysis);
}
