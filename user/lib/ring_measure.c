/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ring_measure.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/ring_maps.h"
#include "study.skel.h"

#define ROUNDS	   7
#define RUNS	   100000
#define XDP_PASSED 2

struct ring_measure {
	struct study_bpf *skeleton;
	struct ring_maps maps;
};

/* Only the ring's maps and the program's variables, and nothing pinned: a running router is not touched. */
static void keep_private(struct bpf_object *object)
{
	struct bpf_map *map;
	size_t size;

	bpf_object__for_each_map(map, object)
	{
		bpf_map__set_pin_path(map, NULL);
		if (strncmp(bpf_map__name(map), "ring", 4) != 0 &&
		    !bpf_map__initial_value(map, &size))
			bpf_map__set_autocreate(map, false);
	}
}

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

int ring_measure_open(struct ring_measure **result, struct error *error)
{
	struct ring_measure *measure = calloc(1, sizeof(*measure));
	int err;

	*result = NULL;
	if (!measure)
		return error_set(error, -ENOMEM, "not enough memory");
	libbpf_set_print(quiet);
	measure->skeleton = study_bpf__open();
	err = measure->skeleton ? 0 : -errno;
	if (!err) {
		keep_private(measure->skeleton->obj);
		err = study_bpf__load(measure->skeleton);
	}
	if (err) {
		ring_measure_close(measure);
		if (err == -EPERM || err == -EACCES)
			return error_set(error, -EPERM, "measuring in the kernel needs root");
		return error_set(error, err, "this kernel does not take the measuring program: %s",
				 strerror(-err));
	}
	measure->maps = ring_maps_of(measure->skeleton->obj);
	*result = measure;
	return 0;
}

void ring_measure_close(struct ring_measure *measure)
{
	if (!measure)
		return;
	study_bpf__destroy(measure->skeleton);
	free(measure);
}

/* Of this thread: before and after a run the kernel waits for others, which is not the program's time. */
static double processor_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

/* The shorter of *nanoseconds and that of a round. 0 or a negative errno. */
static int run(const struct bpf_program *program, double *nanoseconds)
{
	char packet[64] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = RUNS);
	double started = processor_time(), took;

	if (bpf_prog_test_run_opts(bpf_program__fd(program), &options))
		return -errno;
	took = (processor_time() - started) / RUNS;
	if (options.retval != XDP_PASSED)
		return -EPROTO;
	if (took < *nanoseconds)
		*nanoseconds = took;
	return 0;
}

int ring_measure_look_up(struct ring_measure *measure, struct ring *ring, double *nanoseconds,
			 struct error *error)
{
	double key = 1e9, home = 1e9;
	int err = ring_maps_swap(&measure->maps, 0, ring, error);

	if (err)
		return err;
	for (int round = 0; round < ROUNDS && !err; round++) {
		err = run(measure->skeleton->progs.warmpath_study_key, &key);
		if (!err)
			err = run(measure->skeleton->progs.warmpath_study_home, &home);
	}
	if (!err && measure->skeleton->bss->failures > 0)
		err = -EPROTO;
	if (err)
		return error_set(error, err, "look-ups cannot be measured: %s", strerror(-err));
	*nanoseconds = home > key ? home - key : 0;
	return 0;
}
