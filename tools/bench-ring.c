/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench-ring: what hash and ring look-up cost in the kernel (`tools/bench ring`).
 *
 * All programs run in turn, round after round, on one processor; of each the fastest round counts. Only ratios to the floor
 * (a program that does nothing) of the same run can be compared between runs and machines.
 */
#include <argp.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench-ring.skel.h"
#include "lib/ring.h"
#include "lib/ring_maps.h"

#define XDP_VERDICT_PASS     2
#define REFERENCE_INDEX_BITS 16 /* as in bench-ring.bpf.c */

struct options {
	int rounds;
	int repeat;
	int processor; /* -1: the last one */
	bool json;
};

/* One line of the table: a program, run on one ring. */
struct measurement {
	char what[64];
	struct bpf_program *program;
	__u32 service;
	__u32 id_length;
	int base; /* the measurement it is compared with; -1: none */
	double nanoseconds;
};

struct bench {
	struct bench_ring_bpf *skeleton;
	struct ring_maps maps;
	__u32 services; /* with a ring so far */
	struct measurement measurements[64];
	int count;
};

static int add(struct bench *bench, struct bpf_program *program, __u32 service, __u32 id_length,
	       int base, const char *what)
{
	struct measurement *measurement = &bench->measurements[bench->count];

	*measurement = (struct measurement){
		.program = program,
		.service = service,
		.id_length = id_length,
		.base = base,
	};
	snprintf(measurement->what, sizeof(measurement->what), "%s", what);
	return bench->count++;
}

static int load(struct bench *bench)
{
	struct bench_ring_bpf *skeleton = bench_ring_bpf__open();
	struct bpf_map *map;

	if (!skeleton)
		return -errno;
	bench->skeleton = skeleton;
	/* only the ring's maps and the program's own variables, and nothing pinned */
	bpf_object__for_each_map(map, skeleton->obj)
	{
		const char *name = bpf_map__name(map);

		bpf_map__set_pin_path(map, NULL);
		if (strncmp(name, "ring", 4) != 0 && strncmp(name, "reference", 9) != 0 &&
		    strcmp(name, "id_blocks") != 0 && !bpf_map__initial_value(map, &(size_t){0}))
			bpf_map__set_autocreate(map, false);
	}
	bench->maps.rings = -1;
	if (bench_ring_bpf__load(skeleton))
		return -errno;
	bench->maps = (struct ring_maps){
		.rings = bpf_map__fd(skeleton->maps.rings),
		.ring_points = bpf_map__fd(skeleton->maps.ring_points),
		.ring_index = bpf_map__fd(skeleton->maps.ring_index),
		.ring_index_large = bpf_map__fd(skeleton->maps.ring_index_large),
		.ring_members = bpf_map__fd(skeleton->maps.ring_members),
	};
	return 0;
}

/* Fills the reference's tables with the ring's points. */
static int fill_reference(struct bench *bench, const struct ring *ring)
{
	__u32 point = 0, count = ring->header.point_count;
	char name[64];
	int points, index, err = 0;

	snprintf(name, sizeof(name), "reference_points_%u", count);
	points = bpf_object__find_map_fd_by_name(bench->skeleton->obj, name);
	snprintf(name, sizeof(name), "reference_index_%u", count);
	index = bpf_object__find_map_fd_by_name(bench->skeleton->obj, name);
	for (__u32 i = 0; i < count && !err; i++)
		err = bpf_map_update_elem(points, &i, &ring->points[i], BPF_ANY);
	for (__u32 i = 0; i < 1 << REFERENCE_INDEX_BITS && !err; i++) {
		__u32 bucket[2] = {point, 0};

		for (;
		     point < count && ring->points[point].hash >> (64 - REFERENCE_INDEX_BITS) == i;
		     point++)
			bucket[1]++;
		err = bpf_map_update_elem(index, &i, bucket, BPF_ANY);
	}
	return err;
}

/* Puts a ring up as the next service; returns its number, or a negative errno. */
static int add_ring(struct bench *bench, const struct ring_settings *settings, __u32 replicas,
		    bool with_reference)
{
	struct ring_replica *list = calloc(replicas, sizeof(*list));
	char(*names)[REPLICA_NAME_SIZE] = calloc(replicas, sizeof(*names));
	struct error error = {"out of memory"};
	struct ring ring;
	int err = -ENOMEM;

	if (!list || !names)
		goto out;
	for (__u32 i = 0; i < replicas; i++) {
		snprintf(names[i], sizeof(names[i]), "llm-%u", i);
		list[i] = (struct ring_replica){
			.name = names[i],
			.slot = i,
			.weight_thousandths = RING_WEIGHT_ONE,
		};
	}
	err = ring_build(&ring, settings, list, replicas, &error);
	if (err)
		goto out;
	err = ring_maps_swap(&bench->maps, bench->services, &ring, &error);
	if (!err && with_reference) {
		err = fill_reference(bench, &ring);
		error_set(&error, err, "the reference's maps cannot be filled");
	}
	ring_free(&ring);
out:
	if (err)
		fprintf(stderr, "bench-ring: %s\n", error.text);
	free(list);
	free(names);
	return err ? err : (int)bench->services++;
}

/* What it costs to find a key's place on rings of several sizes. 0, or a negative errno. */
static int prepare_sizes(struct bench *bench)
{
	struct bench_ring_bpf *skeleton = bench->skeleton;
	const struct {
		__u32 replicas, vnodes;
		struct bpf_program *reference;
	} sizes[] = {
		{12, 100, skeleton->progs.bench_reference_1200},
		{150, 100, skeleton->progs.bench_reference_15000},
		{1000, 150, skeleton->progs.bench_reference_150000},
		{1000, 1000, skeleton->progs.bench_reference_1000000},
	};
	int key = add(bench, skeleton->progs.bench_key, 0, 16, -1, "a random key");

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ring_settings settings = {.dialect = RING_LLM, .vnodes = sizes[i].vnodes};
		int service = add_ring(bench, &settings, sizes[i].replicas, true);
		__u32 points = sizes[i].replicas * sizes[i].vnodes;
		char what[64];

		if (service < 0)
			return service;
		snprintf(what, sizeof(what), "  + its home among %u points", points);
		add(bench, skeleton->progs.bench_home, service, 16, key, what);
		add(bench, sizes[i].reference, service, 16, key, "    the reference layout");
	}
	return 0;
}

/* What it costs to hash an id. 0, or a negative errno. */
static int prepare_hashes(struct bench *bench)
{
	static const __u8 hash_key[32] = {17, 4, 99};
	const struct ring_settings settings[] = {
		{.dialect = RING_LLM, .vnodes = 100},
		{.dialect = RING_LLM, .vnodes = 100, .hash_key = hash_key, .hash_key_length = 32},
		{.dialect = RING_REPLICA_ROUTER, .vnodes = 100},
	};
	const struct bench_ring_bpf *skeleton = bench->skeleton;
	int plain = add_ring(bench, &settings[0], 8, false);
	int keyed = add_ring(bench, &settings[1], 8, false);
	int md5 = add_ring(bench, &settings[2], 8, false);
	int id;

	if (plain < 0 || keyed < 0 || md5 < 0)
		return -EIO;
	id = add(bench, skeleton->progs.bench_id, plain, 16, -1, "a random id, the ring's header");
	add(bench, skeleton->progs.bench_hash, plain, 16, id, "  + BLAKE2b");
	add(bench, skeleton->progs.bench_hash, plain, 128, id, "  + BLAKE2b, id of 128 bytes");
	add(bench, skeleton->progs.bench_hash, keyed, 16, id, "  + BLAKE2b with a key");
	add(bench, skeleton->progs.bench_hash, md5, 16, id, "  + MD5");
	add(bench, skeleton->progs.bench_hash, md5, 64, id, "  + MD5, id of 64 bytes");
	add(bench, skeleton->progs.bench_hash, md5, 128, id, "  + MD5, id of 128 bytes");
	add(bench, skeleton->progs.bench_id_home, plain, 16, id,
	    "  + BLAKE2b, home among 800 points");
	add(bench, skeleton->progs.bench_id_home, md5, 16, id, "  + MD5, home among 800 points");
	return 0;
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

/* 0, or a negative errno if the program did not do what it is measured for. */
static int measure(struct bench *bench, struct measurement *measurement, int repeat)
{
	char packet[64] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = repeat);
	double started, nanoseconds;
	int err;

	bench->skeleton->bss->service = measurement->service;
	bench->skeleton->data->id_length = measurement->id_length;
	started = now();
	err = bpf_prog_test_run_opts(bpf_program__fd(measurement->program), &options);
	nanoseconds = (now() - started) / repeat;
	if (err)
		return err;
	if (options.retval != XDP_VERDICT_PASS || bench->skeleton->bss->failures > 0)
		return -EPROTO;
	if (measurement->nanoseconds == 0 || nanoseconds < measurement->nanoseconds)
		measurement->nanoseconds = nanoseconds;
	return 0;
}

static void print_table(const struct bench *bench, const struct options *options)
{
	double floor = bench->measurements[0].nanoseconds;

	printf("Minimum of %d interleaved rounds of %d runs; \"alone\" is without the step before.\n\n",
	       options->rounds, options->repeat);
	printf("%-40s %8s %9s %8s %9s\n", "", "ns", "x floor", "alone", "x floor");
	for (int i = 0; i < bench->count; i++) {
		const struct measurement *line = &bench->measurements[i];

		printf("%-40s %8.1f %9.2f", line->what, line->nanoseconds,
		       line->nanoseconds / floor);
		if (line->base >= 0) {
			double alone =
				line->nanoseconds - bench->measurements[line->base].nanoseconds;

			printf(" %8.1f %9.2f", alone, alone / floor);
		}
		putchar('\n');
	}
}

static void print_json(const struct bench *bench)
{
	for (int i = 0; i < bench->count; i++) {
		const struct measurement *line = &bench->measurements[i];

		printf("{\"what\": \"%s\", \"nanoseconds\": %.2f",
		       line->what + strspn(line->what, " +"), line->nanoseconds);
		if (line->base >= 0)
			printf(", \"alone\": %.2f",
			       line->nanoseconds - bench->measurements[line->base].nanoseconds);
		puts("}");
	}
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'r':
		options->rounds = atoi(argument);
		return 0;
	case 'n':
		options->repeat = atoi(argument);
		return 0;
	case 'c':
		options->processor = atoi(argument);
		return 0;
	case 'j':
		options->json = true;
		return 0;
	case ARGP_KEY_END:
		if (options->rounds < 1 || options->repeat < 1)
			argp_error(state, "rounds and runs must be at least 1");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int pin_to_processor(int processor)
{
	cpu_set_t set;

	if (processor < 0)
		processor = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int main(int argc, char **argv)
{
	static const struct argp_option option_list[] = {
		{"rounds", 'r', "NUMBER", 0, "Rounds (11)", 0},
		{"runs", 'n', "NUMBER", 0, "Runs of each program in a round (500000)", 0},
		{"processor", 'c', "NUMBER", 0, "Processor to run on (the last one)", 0},
		{"json", 'j', NULL, 0, "Print a JSON object for each line", 0},
		{0},
	};
	static const struct argp argp = {
		.options = option_list,
		.parser = parse,
		.doc = "Measure hash and ring look-up in the kernel. Needs root.",
	};
	struct options options = {.rounds = 11, .repeat = 500000, .processor = -1};
	struct bench bench = {0};
	int err;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	err = pin_to_processor(options.processor);
	if (err) {
		fprintf(stderr, "bench-ring: processor %d cannot be used: %s\n", options.processor,
			strerror(-err));
		return 1;
	}
	err = load(&bench);
	if (!err)
		add(&bench, bench.skeleton->progs.bench_floor, 0, 16, -1, "floor: XDP_PASS");
	if (!err)
		err = prepare_sizes(&bench);
	if (!err)
		err = prepare_hashes(&bench);
	for (int round = 0; round < options.rounds && !err; round++)
		for (int i = 0; i < bench.count && !err; i++)
			err = measure(&bench, &bench.measurements[i], options.repeat);
	bench_ring_bpf__destroy(bench.skeleton);
	if (err) {
		fprintf(stderr, "bench-ring: %s\n",
			err == -EPROTO ? "a look-up failed or a verdict was wrong"
				       : strerror(-err));
		return 1;
	}
	if (options.json)
		print_json(&bench);
	else
		print_table(&bench, &options);
	return 0;
}
