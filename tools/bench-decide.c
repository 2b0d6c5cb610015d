/* SPDX-License-Identifier: BSD-2-Clause */
/* bench-decide: what a decision costs in the kernel (`tools/bench decide`): the id's bytes in hand, the replica found and charged. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/bench.h"
#include "bench-decide.skel.h"
#include "lib/placement_tables.h"
#include "lib/policy.h"
#include "lib/ring.h"
#include "lib/ring_maps.h"

#define XDP_VERDICT_PASS 2
#define REPLICAS	 8
#define VNODES		 100

struct decisions {
	struct bench_decide_bpf *skeleton;
	struct ring_maps maps;
	__u32 services; /* made so far */
	struct bench bench;
};

/* How loaded the replicas are, and stay. */
enum load_pattern {
	LOADS_EVEN,	/* all alike: the home takes it */
	LOADS_ONE_OVER, /* one of eight is over its cap: its ids go to the next one */
	LOADS_ALL_OVER, /* none can take it: all are walked over */
};

enum { SERVICE, IDS, EVENTS_PER_SECOND }; /* of the values of a line */

static int add(struct decisions *decisions, struct bpf_program *program, __u32 service, __u32 ids,
	       int base, const char *what)
{
	return bench_add(&decisions->bench, what,
			 (struct bench_line){
				 .program = bpf_program__fd(program),
				 .base = base,
				 .verdict = XDP_VERDICT_PASS,
				 .values = {[SERVICE] = service, [IDS] = ids},
			 });
}

static int load(struct decisions *decisions)
{
	struct bench_decide_bpf *skeleton = bench_decide_bpf__open();
	struct bpf_map *map;

	if (!skeleton)
		return -errno;
	decisions->skeleton = skeleton;
	bpf_object__for_each_map(map, skeleton->obj)
	{
		const char *name = bpf_map__name(map);

		bpf_map__set_pin_path(map, NULL);
		if (strstr(name, "flows") || strcmp(name, "fragments") == 0)
			bpf_map__set_autocreate(map, false);
	}
	if (bench_decide_bpf__load(skeleton))
		return -errno;
	decisions->maps = ring_maps_of(skeleton->obj);
	return 0;
}

/* --- services ----------------------------------------------------------------------------------------------------- */

static __u32 tokens_of(enum load_pattern pattern, __u32 replica)
{
	if (pattern == LOADS_ONE_OVER && replica == 3)
		return 40000;
	return pattern == LOADS_ALL_OVER ? 100 : 10000;
}

static int load_replicas(struct decisions *decisions, __u32 service, enum load_pattern pattern)
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
		err = bpf_map_update_elem(bpf_map__fd(decisions->skeleton->maps.replica_loads),
					  &slot, &load, BPF_ANY);
		if (!err)
			err = bpf_map_update_elem(bpf_map__fd(decisions->skeleton->maps.replicas),
						  &slot, &replica, BPF_ANY);
	}
	if (!err)
		err = bpf_map_update_elem(bpf_map__fd(decisions->skeleton->maps.service_loads),
					  &service, &sums, BPF_ANY);
	return err;
}

static int load_ring(struct decisions *decisions, __u32 service,
		     const struct ring_settings *settings, struct error *error)
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
	err = ring_maps_swap(&decisions->maps, service, &ring, error);
	ring_free(&ring);
	return err;
}

/* A service of its own; returns its number, or a negative errno after a line on stderr. */
static int add_service(struct decisions *decisions, const struct ring_settings *settings,
		       const struct policy_settings *policy, enum load_pattern pattern)
{
	struct service service = {.state = SERVICE_ACTIVE, .policy = *policy};
	struct error error = {"the maps cannot be filled"};
	__u32 number = decisions->services++;
	int err = load_ring(decisions, number, settings, &error);

	if (!err)
		err = load_replicas(decisions, number, pattern);
	if (!err)
		err = bpf_map_update_elem(bpf_map__fd(decisions->skeleton->maps.services), &number,
					  &service, BPF_ANY);
	if (!err)
		err = placement_table_replace(bpf_map__fd(decisions->skeleton->maps.placements),
					      number, policy->memory_max_entries, &error);
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
static int prepare_policies(struct decisions *decisions, const struct ring_settings *settings,
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
	struct bench_decide_bpf *skeleton = decisions->skeleton;
	int base = -1, back = -1;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		int service = add_service(decisions, settings, &lines[i].policy, lines[i].pattern);
		char what[64];

		if (service < 0)
			return service;
		if (base < 0) {
			snprintf(what, sizeof(what), "an id in hand, the ring's header (%s)", hash);
			base = add(decisions, skeleton->progs.bench_id, service, 1000, -1, what);
			add(decisions, skeleton->progs.bench_hash, service, 1000, base, "  + hash");
			back = add(decisions, skeleton->progs.bench_give_back, service, 1000, -1,
				   "the same, and a charge given back");
		}
		snprintf(what, sizeof(what), "  + %s", lines[i].name);
		add(decisions, skeleton->progs.bench_decide, service, 1000, back, what);
	}
	return 0;
}

/* llm-aware with more and more conversations: the memory holds 50,000 of them. */
static int prepare_memory(struct decisions *decisions)
{
	const struct ring_settings settings = {.dialect = RING_LLM, .vnodes = VNODES};
	const struct policy_settings policy = policy_published(POLICY_LLM_AWARE);
	static const __u32 ids[] = {1000, 50000, 1000000};
	struct bench_decide_bpf *skeleton = decisions->skeleton;
	int base = -1;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		int service = add_service(decisions, &settings, &policy, LOADS_EVEN);
		char what[64];

		if (service < 0)
			return service;
		if (base < 0)
			base = add(decisions, skeleton->progs.bench_id, service, 1000, -1,
				   "an id in hand, of a whole request");
		snprintf(what, sizeof(what), "  + opened and answered, %u ids", ids[i]);
		add(decisions, skeleton->progs.bench_request, service, ids[i], base, what);
		snprintf(what, sizeof(what), "  + decided and given back, %u ids", ids[i]);
		add(decisions, skeleton->progs.bench_decide, service, ids[i], base, what);
	}
	base = add(decisions, skeleton->progs.bench_request, decisions->services - 3, 1000, base,
		   "  + opened and answered, every one traced");
	decisions->bench.lines[base].values[EVENTS_PER_SECOND] = 0xffffffff;
	/* it must end before the ring buffer is full */
	decisions->bench.lines[base].runs = 4000;
	return 0;
}

static int ignore_event(void *context, void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return 0;
}

/* Empties the ring buffer, so that a traced run finds room. */
static int drain_events(struct decisions *decisions)
{
	struct ring_buffer *buffer = ring_buffer__new(bpf_map__fd(decisions->skeleton->maps.events),
						      ignore_event, NULL, NULL);

	if (!buffer)
		return -errno;
	ring_buffer__consume(buffer);
	ring_buffer__free(buffer);
	return 0;
}

static int prepare(void *context, const struct bench_line *line)
{
	struct trace_settings trace = {.events_per_second = line->values[EVENTS_PER_SECOND]};
	struct decisions *decisions = context;
	__u32 first = 0;
	int err;

	decisions->skeleton->bss->service = line->values[SERVICE];
	decisions->skeleton->data->ids = line->values[IDS];
	err = bpf_map_update_elem(bpf_map__fd(decisions->skeleton->maps.trace_settings), &first,
				  &trace, BPF_ANY);
	return err || !trace.events_per_second ? err : drain_events(decisions);
}

/* Has every decision found a replica? */
static int check(void *context, const struct bench_line *line)
{
	const struct decisions *decisions = context;

	(void)line;
	return decisions->skeleton->bss->failures ? -EPROTO : 0;
}

/* How many placements each memory holds after all that. */
static void print_memory(const struct decisions *decisions)
{
	for (__u32 service = decisions->services - 3; service < decisions->services; service++) {
		int table = placement_table_open(bpf_map__fd(decisions->skeleton->maps.placements),
						 service);
		__u64 key, *last = NULL, count = 0;

		while (table >= 0 && !bpf_map_get_next_key(table, last, &key)) {
			last = &key;
			count++;
		}
		if (table >= 0)
			close(table);
		printf("%smemory %u: %llu placements, room for %u",
		       service > decisions->services - 3 ? "; " : "\n",
		       service - (decisions->services - 3) + 1, (unsigned long long)count,
		       placement_table_size(bpf_map__fd(decisions->skeleton->maps.placements),
					    service));
	}
	putchar('\n');
}

static int prepare_lines(struct decisions *decisions)
{
	static const __u8 hash_key[32] = {17, 4, 99};
	const struct ring_settings plain = {.dialect = RING_LLM, .vnodes = VNODES};
	const struct ring_settings keyed = {
		.dialect = RING_LLM, .vnodes = VNODES, .hash_key = hash_key, .hash_key_length = 32};
	int err;

	add(decisions, decisions->skeleton->progs.bench_floor, 0, 1, -1, "floor: XDP_PASS");
	err = prepare_policies(decisions, &plain, "BLAKE2b");
	if (!err)
		err = prepare_policies(decisions, &keyed, "keyed BLAKE2b");
	return err ? err : prepare_memory(decisions);
}

int main(int argc, char **argv)
{
	struct decisions decisions = {
		.bench = {.rounds = 11, .runs = 200000, .prepare = prepare, .check = check}};
	const struct bench_line *failed = NULL;
	int err;

	decisions.bench.context = &decisions;
	bench_options(&decisions.bench, "Measure decisions in the kernel, by policy. Needs root.",
		      argc, argv);
	err = load(&decisions);
	if (!err)
		err = prepare_lines(&decisions);
	if (!err)
		err = bench_run(&decisions.bench, &failed);
	if (!err && !decisions.bench.json)
		printf("%d replicas x %d points. Of a decision, \"alone\" is without id, header and giving back.\n",
		       REPLICAS, VNODES);
	if (!err)
		bench_print(&decisions.bench);
	if (!err && !decisions.bench.json)
		print_memory(&decisions);
	bench_decide_bpf__destroy(decisions.skeleton);
	if (err)
		fprintf(stderr, "bench-decide: %s%s%s\n", failed ? failed->what : "",
			failed ? ": " : "",
			err == -EPROTO ? "a decision failed or a verdict was wrong"
				       : strerror(-err));
	return err ? 1 : 0;
}
