/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many instructions the verifier walks through for each program of BPF objects, and how many bytes of stack its deepest chain of
 * calls takes as Linux 6.1 counts: "OBJECT PROGRAM COUNT BYTES", a line for each. The limit of the first is a million; what it takes to load,
 * and how near a change of compiler or kernel may come to the limit, goes with it. The limit of the second is 512, which kernels from
 * 6.10 on apply to the calls of one function after the other and so never reach, where 6.1 adds them up.
 *
 *	verified OBJECT...
 *
 * Nothing is attached or pinned. Root only.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATISTICS 4 /* BPF_LOG_STATS of the kernel: only the summary */
#define LOG_SIZE   4096
#define MAPS_SMALL 1024

#define SUBPROGRAMS_MAX 256 /* as the kernel has it */
#define FRAME_STEP	32  /* what 6.1 rounds each frame up to */
#define CALL_DEPTH_MAX	8   /* frames, as the kernel has it */

/* A program as it was loaded: its functions, and what each takes of the stack. */
struct call_graph {
	const struct bpf_insn *instructions;
	size_t count;
	size_t starts[SUBPROGRAMS_MAX +
		      1]; /* first instruction of each function, and the end of the last */
	long frames[SUBPROGRAMS_MAX];
	int functions;
};

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

/* The function that an instruction calls, or hands to a helper that calls it: its first instruction. -1: none. */
static long called_at(const struct call_graph *graph, size_t at)
{
	const struct bpf_insn *instruction = &graph->instructions[at];
	bool calls = instruction->code == (BPF_JMP | BPF_CALL) &&
		     instruction->src_reg == BPF_PSEUDO_CALL;
	bool hands = instruction->code == (BPF_LD | BPF_IMM | BPF_DW) &&
		     instruction->src_reg == BPF_PSEUDO_FUNC;

	return calls || hands ? (long)at + 1 + instruction->imm : -1;
}

static int function_at(const struct call_graph *graph, size_t start)
{
	for (int i = 0; i < graph->functions; i++)
		if (graph->starts[i] == start)
			return i;
	return -1;
}

static int compare_starts(const void *one, const void *other)
{
	size_t a = *(const size_t *)one, b = *(const size_t *)other;

	return a < b ? -1 : a > b;
}

/* Finds the functions in the instructions and their frames in the verifier's summary ("stack depth 40+0+112"). False: they do not agree. */
static bool read_graph(struct call_graph *graph, const char *summary)
{
	const char *depths = strstr(summary, "stack depth ");
	char *end;
	int i;

	graph->starts[0] = 0;
	graph->functions = 1;
	for (size_t at = 0; at < graph->count; at++) {
		long start = called_at(graph, at);

		if (start < 0 || function_at(graph, start) >= 0)
			continue;
		if (graph->functions == SUBPROGRAMS_MAX)
			return false;
		graph->starts[graph->functions++] = start;
	}
	qsort(graph->starts, graph->functions, sizeof(graph->starts[0]), compare_starts);
	graph->starts[graph->functions] = graph->count;
	if (!depths)
		return false;
	depths += strlen("stack depth ");
	for (i = 0; i < graph->functions; i++) {
		graph->frames[i] = strtol(depths, &end, 10);
		if (end == depths)
			return false;
		depths = *end == '+' ? end + 1 : end;
	}
	return *depths == '\n' || *depths == '\0';
}

/* Bytes of stack of the deepest chain of calls that begins with a function. The kernel has seen to it that none goes round. */
static long stack_of(const struct call_graph *graph, int function, int depth)
{
	long own = graph->frames[function] ? graph->frames[function] : 1, deepest = 0, below;
	long start;

	if (depth > CALL_DEPTH_MAX)
		return 0;
	own = (own + FRAME_STEP - 1) / FRAME_STEP * FRAME_STEP;
	for (size_t at = graph->starts[function]; at < graph->starts[function + 1]; at++) {
		start = called_at(graph, at);
		if (start < 0)
			continue;
		below = stack_of(graph, function_at(graph, start), depth + 1);
		if (below > deepest)
			deepest = below;
	}
	return own + deepest;
}

/* Opens the object so that its maps are small and its own. */
static struct bpf_object *open_object(const char *path)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_map *map;

	if (!object)
		return NULL;
	bpf_object__for_each_map(map, object)
	{
		bpf_map__set_pin_path(map, NULL);
		if (bpf_map__max_entries(map) > MAPS_SMALL * 16)
			bpf_map__set_max_entries(map, MAPS_SMALL);
	}
	return object;
}

static int print_counts(const char *path)
{
	struct bpf_object *object = open_object(path);
	struct bpf_program *program;
	int err = 0;

	if (!object) {
		fprintf(stderr, "%s: not a BPF object: %s\n", path, strerror(errno));
		return -errno;
	}
	bpf_object__for_each_program(program, object)
	{
		char *log = calloc(1, LOG_SIZE);

		if (!log || bpf_program__set_log_buf(program, log, LOG_SIZE))
			err = -ENOMEM;
		bpf_program__set_log_level(program, STATISTICS);
	}
	if (!err)
		err = bpf_object__load(object);
	bpf_object__for_each_program(program, object)
	{
		size_t size;
		const char *log = bpf_program__log_buf(program, &size);
		const char *summary = log ? strstr(log, "processed ") : NULL;
		struct call_graph graph = {
			.instructions = bpf_program__insns(program),
			.count = bpf_program__insn_cnt(program),
		};
		unsigned long count;

		if (!err && summary && sscanf(summary, "processed %lu insns", &count) == 1 &&
		    read_graph(&graph, log))
			printf("%s %s %lu %ld\n", path, bpf_program__name(program), count,
			       stack_of(&graph, 0, 1));
		else
			fprintf(stderr, "%s: %s was not verified\n", path,
				bpf_program__name(program));
		free((char *)log);
	}
	if (err)
		fprintf(stderr, "%s: could not be loaded: %s\n", path, strerror(-err));
	bpf_object__close(object);
	return err;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: %s OBJECT...\n", argv[0]);
		return 2;
	}
	libbpf_set_print(print_nothing);
	for (int i = 1; i < argc; i++)
		failed |= print_counts(argv[i]) != 0;
	return failed;
}
