/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench-decide: what a decision costs in the kernel (`tools/bench decide`): the id's bytes in hand, the replica found and charged.
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

#include "bench-decide.skel.h"
#include "lib/placement_tables.h"
#include "lib/policy.h"
#include "lib/ring.h"
#include "lib/ring_maps.h"

#define XDP_VERDICT_PASS 2
#define REPLICAS	 8
#define VNODES		 100

struct options {
	int rounds;
	int repeat;
	int processor; /* -1: the last one */
	bool json;
};

/* One line of the table: a program, run on one service. */
struct measurement {
	char what[64];
	struct bpf_program *program;
	__u32 service;
	__u32 ids;
	__u32 events_per_second;
	int base; /* the measurement it is compared with; -1: none */
	double nanoseconds;
};

struct bench {
	struct bench_decide_bpf *skeleton;
	struct ring_maps maps;
	__u32 services; /* made so far */
	struct measurement measurements[64];
	int count;
};

/* How loaded the replicas are, and stay. */
enum load_pattern {
	LOADS_EVEN,	/* all alike: the home takes it */
	LOADS_ONE_OVER, /* one of eight is over its cap: its ids go to the next one */
	LOADS_ALL_OVER, /* none can take it: all are walked over */
};

static int add(struct bench *bench, struct bpf_program *program, __u32 service, __u32 ids, int base,
	       const char *what)
{
	struct measurement *measurement = &bench->measurements[bench->count];

	*measurement = (struct measurement){
		.program = program,
		.service = service,
		.ids = ids,
		.base = base,
	};
	snprintf(measurement->what, sizeof(measurement->what), "%s", what);
	return bench->count++;
}

static int load(struct bench *bench)
{
	struct bench_decide_bpf *skeleton = bench_decide_bpf__open();
	struct bpf_map *map;

	if (!skeleton)
		return -errno;
	bench->skeleton = skeleton;
	bpf_object__for_each_map(map, skeleton->obj)
	{
		const char *name = bpf_map__name(map);

		bpf_map__set_pin_path(map, NULL);
		if (strstr(name, "flows") || strcmp(name, "fragments") == 0)
			bpf_map__set_autocreate(map, false);
	}
	if (bench_decide_bpf__load(skeleton))
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

/* --- services ----------------------------------------------------------------------------------------------------- */

static __u32 tokens_of(enum load_pattern pattern, __u32 replica)
{
	if (pattern == LOADS_ONE_OVER && replica == 3)
		return 40000;
	return pattern == LOADS_ALL_OVER ? 100 : 10000;
}

static int load_replicas(struct bench *bench, __u32 service, enum load_pattern pattern)
{
	struct service_load sums = {.replica_count = REPLICAS};
	int err = 0;

	for (__u32 i = 0; i < REPLICAS && !err; i++) {
		__u32 slot = service * REPLICAS + i;
		struct replica_load load = {
			.counted = 1,
			.requests = tokens_of(pattern, i) / 1000 + 1,
			.tokens = tokens_of(pattern, i),
		};
		struct replica replica = {
			.state = REPLICA_ACTIVE,
			.service = service,
			.incarnation = 1,
		};

		snprintf(replica.name, sizeof(replica.name), "llm-%u", i);
		sums.requests += load.requests;
		sums.tokens += load.tokens;
		err = bpf_map_update_elem(bpf_map__fd(bench->skeleton->maps.replica_loads), &slot,
					  &load, BPF_ANY);
		if (!err)
			err = bpf_map_update_elem(bpf_map__fd(bench->skeleton->maps.replicas),
						  &slot, &replica, BPF_ANY);
	}
	if (!err)
		err = bpf_map_update_elem(bpf_map__fd(bench->skeleton->maps.service_loads),
					  &service, &sums, BPF_ANY);
	return err;
}

static int load_ring(struct bench *bench, __u32 service, const struct ring_settings *settings,
		     struct error *error)
{
	struct ring_replica list[REPLICAS];
	char names[REPLICAS][REPLICA_NAME_SIZE];
	struct ring ring;
	int err;

	for (__u32 i = 0; i < REPLICAS; i++) {
		snprintf(names[i], sizeof(names[i]), "llm-%u", i);
		list[i] = (struct ring_replica){
			.name = names[i],
			.slot = service * REPLICAS + i,
			.weight_thousandths = RING_WEIGHT_ONE,
		};
	}
	err = ring_build(&ring, settings, list, REPLICAS, error);
	if (err)
		return err;
	err = ring_maps_swap(&bench->maps, service, &ring, error);
	ring_free(&ring);
	return err;
}

/* A service of its own; returns its number, or a negative errno after a line on stderr. */
static int add_service(struct bench *bench, const struct ring_settings *settings,
		       const struct policy_settings *policy, enum load_pattern pattern)
{
	struct service service = {.state = SERVICE_ACTIVE, .policy = *policy};
	struct error error = {"the maps cannot be filled"};
	__u32 number = bench->services++;
	int err = load_ring(bench, number, settings, &error);

	if (!err)
		err = load_replicas(bench, number, pattern);
	if (!err)
		err = bpf_map_update_elem(bpf_map__fd(bench->skeleton->maps.services), &number,
					  &service, BPF_ANY);
	if (!err)
		err = placement_table_replace(bpf_map__fd(bench->skeleton->maps.placements), number,
					      policy->memory_max_entries, &error);
	if (err)
		fprintf(stderr, "bench-decide: %s\n", error.text);
	return err ? err : (int)number;
}

static struct policy_settings policy_of(enum routing_policy name, enum load_metric metric)
{
	struct policy_settings policy = policy_published(name);

	policy.load_metric = metric;
	return policy;
}

/* --- what is measured ------------------------------------------------------------------------------------------------ */

/* The same steps for a ring with a plain hash and with a keyed one. */
static int prepare_policies(struct bench *bench, const struct ring_settings *settings,
			    const char *hash)
{
	const struct {
		const char *name;
		struct policy_settings policy;
		enum load_pattern pattern;
	} lines[] = {
		{"round-robin", policy_of(POLICY_ROUND_ROBIN, LOAD_REQUESTS), LOADS_EVEN},
		{"mod-n", policy_of(POLICY_MOD_N, LOAD_REQUESTS), LOADS_EVEN},
		{"consistent", policy_of(POLICY_CONSISTENT, LOAD_REQUESTS), LOADS_EVEN},
		{"bounded, requests", policy_of(POLICY_BOUNDED, LOAD_REQUESTS), LOADS_EVEN},
		{"bounded, tokens", policy_of(POLICY_BOUNDED, LOAD_TOKENS), LOADS_EVEN},
		{"llm-aware", policy_of(POLICY_LLM_AWARE, LOAD_TOKENS), LOADS_EVEN},
		{"llm-aware, one of 8 over its cap", policy_of(POLICY_LLM_AWARE, LOAD_TOKENS),
		 LOADS_ONE_OVER},
		{"llm-aware, all over: fallback", policy_of(POLICY_LLM_AWARE, LOAD_TOKENS),
		 LOADS_ALL_OVER},
	};
	struct bench_decide_bpf *skeleton = bench->skeleton;
	int base = -1, back = -1;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		int service = add_service(bench, settings, &lines[i].policy, lines[i].pattern);
		char what[64];

		if (service < 0)
			return service;
		if (base < 0) {
			snprintf(what, sizeof(what), "an id in hand, the ring's header (%s)", hash);
			base = add(bench, skeleton->progs.bench_id, service, 1000, -1, what);
			add(bench, skeleton->progs.bench_hash, service, 1000, base, "  + hash");
			back = add(bench, skeleton->progs.bench_give_back, service, 1000, -1,
				   "the same, and a charge given back");
		}
		snprintf(what, sizeof(what), "  + %s", lines[i].name);
		add(bench, skeleton->progs.bench_decide, service, 1000, back, what);
	}
	return 0;
}

/* llm-aware with more and more conversations: the memory holds 50,000 of them. */
static int prepare_memory(struct bench *bench)
{
	const struct ring_settings settings = {.dialect = RING_LLM, .vnodes = VNODES};
	const struct policy_settings policy = policy_published(POLICY_LLM_AWARE);
	static const __u32 ids[] = {1000, 50000, 1000000};
	struct bench_decide_bpf *skeleton = bench->skeleton;
	int base = -1;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		int service = add_service(bench, &settings, &policy, LOADS_EVEN);
		char what[64];

		if (service < 0)
			return service;
		if (base < 0)
			base = add(bench, skeleton->progs.bench_id, service, 1000, -1,
				   "an id in hand, of a whole request");
		snprintf(what, sizeof(what), "  + opened and answered, %u ids", ids[i]);
		add(bench, skeleton->progs.bench_request, service, ids[i], base, what);
		snprintf(what, sizeof(what), "  + decided and given back, %u ids", ids[i]);
		add(bench, skeleton->progs.bench_decide, service, ids[i], base, what);
	}
	base = add(bench, skeleton->progs.bench_request, bench->services - 3, 1000, base,
		   "  + opened and answered, every one traced");
	bench->measurements[base].events_per_second = 0xffffffff;
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

static int ignore_event(void *context, void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return 0;
}

/* Empties the ring buffer, so that a traced run finds room. */
static int drain_events(struct bench *bench)
{
	struct ring_buffer *buffer = ring_buffer__new(bpf_map__fd(bench->skeleton->maps.events),
						      ignore_event, NULL, NULL);

	if (!buffer)
		return -errno;
	ring_buffer__consume(buffer);
	ring_buffer__free(buffer);
	return 0;
}

/* 0, or a negative errno if the program did not do what it is measured for. */
static int measure(struct bench *bench, struct measurement *measurement, int repeat)
{
	char packet[64] = {0};
	struct trace_settings trace = {.events_per_second = measurement->events_per_second};
	/* a traced run must end before the ring buffer is full */
	int runs = measurement->events_per_second ? 4000 : repeat;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = runs);
	double started, nanoseconds;
	__u32 first = 0;
	int err;

	bench->skeleton->bss->service = measurement->service;
	bench->skeleton->data->ids = measurement->ids;
	err = bpf_map_update_elem(bpf_map__fd(bench->skeleton->maps.trace_settings), &first, &trace,
				  BPF_ANY);
	if (!err && measurement->events_per_second)
		err = drain_events(bench);
	if (err)
		return err;
	started = now();
	err = bpf_prog_test_run_opts(bpf_program__fd(measurement->program), &options);
	nanoseconds = (now() - started) / runs;
	if (err)
		return err;
	if (options.retval != XDP_VERDICT_PASS || bench->skeleton->bss->failures > 0)
		return -EPROTO;
	if (measurement->nanoseconds == 0 || nanoseconds < measurement->nanoseconds)
		measurement->nanoseconds = nanoseconds;
	return 0;
}

/* --- the table ----------------------------------------------------------------------------------------------------------- */

static void print_table(const struct bench *bench, const struct options *options)
{
	double floor = bench->measurements[0].nanoseconds;

	printf("%d replicas x %d points. Minimum of %d interleaved rounds of %d runs; \"alone\" is without "
	       "the line it\nbuilds on (of a decision: id, header and giving back).\n\n",
	       REPLICAS, VNODES, options->rounds, options->repeat);
	printf("%-48s %8s %9s %8s %9s\n", "", "ns", "x floor", "alone", "x floor");
	for (int i = 0; i < bench->count; i++) {
		const struct measurement *line = &bench->measurements[i];

		printf("%-48s %8.1f %9.2f", line->what, line->nanoseconds,
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

/* How many placements each memory holds after all that. */
static void print_memory(const struct bench *bench)
{
	for (__u32 service = bench->services - 3; service < bench->services; service++) {
		int table = placement_table_open(bpf_map__fd(bench->skeleton->maps.placements),
						 service);
		__u64 key, *last = NULL, count = 0;

		while (table >= 0 && !bpf_map_get_next_key(table, last, &key)) {
			last = &key;
			count++;
		}
		if (table >= 0)
			close(table);
		printf("%smemory %u: %llu placements, room for %u",
		       service > bench->services - 3 ? "; " : "\n",
		       service - (bench->services - 3) + 1, (unsigned long long)count,
		       placement_table_size(bpf_map__fd(bench->skeleton->maps.placements),
					    service));
	}
	putchar('\n');
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

static int prepare(struct bench *bench)
{
	static const __u8 hash_key[32] = {17, 4, 99};
	const struct ring_settings plain = {.dialect = RING_LLM, .vnodes = VNODES};
	const struct ring_settings keyed = {
		.dialect = RING_LLM, .vnodes = VNODES, .hash_key = hash_key, .hash_key_length = 32};
	int err;

	add(bench, bench->skeleton->progs.bench_floor, 0, 1, -1, "floor: XDP_PASS");
	err = prepare_policies(bench, &plain, "BLAKE2b");
	if (!err)
		err = prepare_policies(bench, &keyed, "keyed BLAKE2b");
	return err ? err : prepare_memory(bench);
}

int main(int argc, char **argv)
{
	static const struct argp_option option_list[] = {
		{"rounds", 'r', "NUMBER", 0, "Rounds (11)", 0},
		{"runs", 'n', "NUMBER", 0, "Runs of each program in a round (200000)", 0},
		{"processor", 'c', "NUMBER", 0, "Processor to run on (the last one)", 0},
		{"json", 'j', NULL, 0, "Print a JSON object for each line", 0},
		{0},
	};
	static const struct argp argp = {
		.options = option_list,
		.parser = parse,
		.doc = "Measure decisions in the kernel, by policy. Needs root.",
	};
	struct options options = {.rounds = 11, .repeat = 200000, .processor = -1};
	struct bench bench = {0};
	int err;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	err = pin_to_processor(options.processor);
	if (err) {
		fprintf(stderr, "bench-decide: processor %d cannot be used: %s\n",
			options.processor, strerror(-err));
		return 1;
	}
	err = load(&bench);
	if (!err)
		err = prepare(&bench);
	for (int round = 0; round < options.rounds && !err; round++)
		for (int i = 0; i < bench.count && !err; i++)
			err = measure(&bench, &bench.measurements[i], options.repeat);
	if (!err && options.json)
		print_json(&bench);
	else if (!err)
		print_table(&bench, &options);
	if (!err && !options.json)
		print_memory(&bench);
	bench_decide_bpf__destroy(bench.skeleton);
	if (err)
		fprintf(stderr, "bench-decide: %s\n",
			err == -EPROTO ? "a decision failed or a verdict was wrong"
				       : strerror(-err));
	return err ? 1 : 0;
}
