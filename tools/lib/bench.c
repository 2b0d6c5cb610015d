/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <argp.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct bench *bench = state->input;

	switch (key) {
	case 'r':
		bench->rounds = argument_count(state, "--rounds", argument, 1, 10000);
		return 0;
	case 'n':
		bench->runs = argument_count(state, "--runs", argument, 1, 100000000);
		return 0;
	case 'c':
		bench->processor = argument_count(state, "--processor", argument, 0, 4095);
		return 0;
	case 'j':
		bench->json = true;
		return 0;
	case 'o':
		bench->output = argument;
		return 0;
	case 'O':
		bench->only = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void bench_options(struct bench *bench, const char *documentation, int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"rounds", 'r', "NUMBER", 0, "Rounds", 0},
		{"runs", 'n', "NUMBER", 0, "Runs of each program in a round", 0},
		{"processor", 'c', "NUMBER", 0, "Processor to run on (the last one)", 0},
		{"only", 'O', "TEXT", 0, "Only lines with this text in their names", 0},
		{"json", 'j', NULL, 0, "Print a JSON object for each line", 0},
		{"output", 'o', "FILE", 0, "Write them to a file, besides what is printed", 0},
		{0},
	};
	const struct argp argp = {.options = options, .parser = parse, .doc = documentation};
	cpu_set_t set;

	bench->processor = -1;
	argp_parse(&argp, argc, argv, 0, NULL, bench);
	if (bench->processor < 0)
		bench->processor = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	CPU_ZERO(&set);
	CPU_SET(bench->processor, &set);
	if (!sched_setaffinity(0, sizeof(set), &set))
		return;
	fprintf(stderr, "%s: processor %d cannot be used: %s\n", program_invocation_short_name,
		bench->processor, strerror(errno));
	exit(1);
}

int bench_add(struct bench *bench, const char *what, struct bench_line line)
{
	if (bench->count == BENCH_LINES_MAX) {
		fprintf(stderr, "%s: more than %d lines\n", program_invocation_short_name,
			BENCH_LINES_MAX);
		exit(1);
	}
	snprintf(line.what, sizeof(line.what), "%s", what);
	bench->lines[bench->count] = line;
	return bench->count++;
}

/*
 * The processor time of this thread: the kernel waits for others before and after a test run (it patches the program into its
 * dispatcher), and what it reports itself are whole nanoseconds.
 */
static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static int measure(const struct bench *bench, struct bench_line *line)
{
	static const char zeros[64];
	int runs = line->runs ? line->runs : bench->runs, err = 0;
	struct xdp_md context = {.ingress_ifindex = line->interface};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = line->packet ? line->packet : zeros,
		    .data_size_in = line->packet ? line->packet_length : sizeof(zeros),
		    .repeat = runs);
	double started, nanoseconds;

	if (line->interface) {
		context.data_end = options.data_size_in;
		options.ctx_in = &context;
		options.ctx_size_in = sizeof(context);
	}
	if (bench->prepare)
		err = bench->prepare(bench->context, line);
	if (err)
		return err;
	started = now();
	err = bpf_prog_test_run_opts(line->program, &options);
	nanoseconds = (now() - started) / runs;
	if (!err && (int)options.retval != line->verdict)
		err = -EPROTO;
	if (!err && bench->check)
		err = bench->check(bench->context, line);
	if (!err && (line->nanoseconds == 0 || nanoseconds < line->nanoseconds))
		line->nanoseconds = nanoseconds;
	return err;
}

bool bench_is_wanted(const struct bench *bench, int number)
{
	if (!bench->only || number == 0 || strstr(bench->lines[number].what, bench->only))
		return true;
	for (int i = number + 1; i < bench->count; i++) {
		if (bench->lines[i].base == number && bench_is_wanted(bench, i))
			return true;
	}
	return false;
}

int bench_run(struct bench *bench, const struct bench_line **failed)
{
	for (int round = 0; round < bench->rounds; round++) {
		for (int i = 0; i < bench->count; i++) {
			int err;

			if (!bench_is_wanted(bench, i))
				continue;
			err = measure(bench, &bench->lines[i]);
			*failed = &bench->lines[i];
			if (err)
				return err;
		}
	}
	return 0;
}

FILE *bench_output(const struct bench *bench)
{
	FILE *file = bench->output ? fopen(bench->output, "we") : NULL;

	if (file || !bench->output)
		return file;
	fprintf(stderr, "%s: %s cannot be written: %s\n", program_invocation_short_name,
		bench->output, strerror(errno));
	exit(1);
}

static void print_json(const struct bench *bench, FILE *file)
{
	for (int i = 0; i < bench->count; i++) {
		const struct bench_line *line = &bench->lines[i];

		if (!bench_is_wanted(bench, i))
			continue;
		fprintf(file, "{\"what\": \"%s\", \"nanoseconds\": %.2f",
			line->what + strspn(line->what, " +"), line->nanoseconds);
		if (line->base >= 0)
			fprintf(file, ", \"alone\": %.2f",
				line->nanoseconds - bench->lines[line->base].nanoseconds);
		fputs("}\n", file);
	}
}

void bench_print(const struct bench *bench)
{
	double floor = bench->lines[0].nanoseconds;
	FILE *file = bench_output(bench);

	if (file) {
		print_json(bench, file);
		fclose(file);
	}
	if (bench->json) {
		print_json(bench, stdout);
		return;
	}
	printf("Minimum of %d interleaved rounds of %d runs; \"alone\" is without the line that it builds on.\n\n",
	       bench->rounds, bench->runs);
	printf("%-48s %8s %9s %8s %9s\n", "", "ns", "x floor", "alone", "x floor");
	for (int i = 0; i < bench->count; i++) {
		const struct bench_line *line = &bench->lines[i];

		if (!bench_is_wanted(bench, i))
			continue;
		printf("%-48s %8.1f %9.2f", line->what, line->nanoseconds,
		       line->nanoseconds / floor);
		if (line->base >= 0) {
			double alone = line->nanoseconds - bench->lines[line->base].nanoseconds;

			printf(" %8.1f %9.2f", alone, alone / floor);
		}
		putchar('\n');
	}
}
