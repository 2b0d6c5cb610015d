/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many instructions the verifier walks through for each program of BPF objects: "OBJECT PROGRAM COUNT", a line for each. The limit is a
 * million; what it takes to load, and how near a change of compiler or kernel may come to the limit, goes with it.
 *
 *	verified OBJECT...
 *
 * Nothing is attached or pinned. Root only.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATISTICS 4 /* BPF_LOG_STATS of the kernel: only the summary */
#define LOG_SIZE   4096
#define MAPS_SMALL 1024

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
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
		unsigned long count;

		if (!err && summary && sscanf(summary, "processed %lu insns", &count) == 1)
			printf("%s %s %lu\n", path, bpf_program__name(program), count);
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
