/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * analyze: from the CSV and JSON files of runs to tables and pictures.
 *
 * Owns: what the parts of the program share. The parts: main.c (options, reading), metrics.c (one run), tables.c (summary.md,
 * per_run.csv), pictures.c (gnuplot).
 */
#ifndef ANALYZE_H
#define ANALYZE_H

#include "../lib/records.h"
#include "../lib/run_file.h"
#include "../lib/statistics.h"

#define REPLICAS_SHOWN_MAX 64

/* A column of the tables: one number a run. */
enum metric {
	METRIC_ERRORS,
	METRIC_HIT_RATE,       /* % of the prompt tokens of follow-up turns */
	METRIC_HIT_RATE_AFTER, /* the same within a minute of the new replica */
	METRIC_MOVED,	       /* % of the conversations with turns before and after it */
	METRIC_REDIRECTS,      /* follow-up turns not served where the conversation's cache is */
	METRIC_STICKY,	       /* decisions with reason sticky or sticky-long */
	METRIC_LONG,	       /* with a reason that ends in -long */
	METRIC_P50,	       /* s */
	METRIC_P95,
	METRIC_IMBALANCE, /* busiest / mean, in tokens worked, before the new replica */
	METRIC_REQUESTS,
	METRIC_DURATION, /* s */
	METRIC_COUNT,
};

struct metric_description {
	const char *name;  /* as a column of per_run.csv */
	const char *title; /* as a column of summary.md */
	int decimals;
	bool in_differences;
};
extern const struct metric_description metrics[METRIC_COUNT];

struct result {
	struct run run;
	struct record *records; /* by start */
	uint32_t count, capacity;
	double values[METRIC_COUNT]; /* NAN: does not apply */
	/* tokens worked over the whole run */
	char replicas[REPLICAS_SHOWN_MAX][RECORD_NAME_SIZE];
	double work[REPLICAS_SHOWN_MAX];
	uint32_t replica_count;
};

struct policy {
	const char *name;
	const char *label; /* what the pictures call it */
	struct result **results;
	uint32_t count;
	struct mean means[METRIC_COUNT];
};

struct analysis {
	struct result *results;
	uint32_t count;
	struct policy *policies;
	uint32_t policy_count;
	uint32_t reference; /* the policy others are compared with */
	double bin_s, after_s;
	const char *out;
	bool scaled; /* at least one run got a new replica */
};

/* metrics.c: sorts the records and fills values and work */
void result_measure(struct result *result, double after_s);

/* tables.c, pictures.c: 0, or a negative errno after a sentence on standard error */
int tables_write(const struct analysis *analysis);
int pictures_draw(const struct analysis *analysis);

/* DIRECTORY/NAME opened for writing; NULL after a sentence. And closed: a negative errno if not all could be written. */
FILE *output_open(const struct analysis *analysis, const char *name);
int output_close(const struct analysis *analysis, const char *name, FILE *file);

#endif /* ANALYZE_H */
