/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Benchmarks of BPF programs by test runs: lines of a table, run in turn, round after round, on one processor; of each the fastest round
 * counts. Only ratios to the floor (line 0: a program that does nothing) of the same run can be compared between runs and machines.
 *
 * Owns: options, turns, clock, tables. May not know: what the programs do.
 */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_LINES_MAX 128

/* One line: a program, run on one packet in one setting. */
struct bench_line {
	char what[72];
	int program; /* descriptor */
	int base; /* the line that it builds on, whose time is taken off to get what is new; -1: none */
	int runs;	    /* in a round; 0: as many as the options say */
	int verdict;	    /* that every run has to end with */
	const void *packet; /* borrowed; NULL: 64 bytes of zeros */
	size_t packet_length;
	int interface;	    /* that it comes in over (XDP); 0: any */
	uint32_t values[4]; /* what the program is to be told; `prepare` knows their meaning */
	double nanoseconds; /* result: of one run */
};

struct bench {
	struct bench_line lines[BENCH_LINES_MAX];
	int count;
	int rounds;
	int runs;
	int processor; /* -1: the last one */
	bool json;
	const char *
		only; /* run lines with this text in their names, and what they build on; NULL: all */
	const char *output; /* file for the objects of JSON, besides what is printed; NULL: none */
	/* Called before a line is measured, and after: 0, or a negative errno that ends it all. Either may be NULL. */
	int (*prepare)(void *context, const struct bench_line *line);
	int (*check)(void *context, const struct bench_line *line);
	void *context;
};

/* Reads --rounds, --runs, --processor, --json and --output into `bench`, whose values are the defaults; pins the process. Ends it on wrong ones. */
void bench_options(struct bench *bench, const char *documentation, int argc, char **argv);

/* Adds a line; `what` is copied. Returns its number. Ends the process if there is no room. */
int bench_add(struct bench *bench, const char *what, struct bench_line line);

/* Is the line with that number asked for (`only`), or does one build on it that is? The floor always is. */
bool bench_is_wanted(const struct bench *bench, int number);

/* Measures all lines that are wanted. 0, or a negative errno: -EPROTO if a verdict was wrong; *failed is the line then. */
int bench_run(struct bench *bench, const struct bench_line **failed);

/* The table, or an object of JSON a line; the latter into the file as well. */
void bench_print(const struct bench *bench);

/* The file for JSON, to be closed; NULL if none is wanted. Ends the process if it cannot be written. */
FILE *bench_output(const struct bench *bench);

#endif /* TOOLS_BENCH_H */
