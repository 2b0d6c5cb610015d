/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench-control: what a change of the set of replicas costs outside the data path (`tools/bench control`): building a ring, putting it in
 * front of the data path, the memory of maps; and how each grows.
 *
 * The maps are the router's own, with the sizes they have by default; no program is loaded and nothing is pinned.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/ring.h"
#include "lib/ring_maps.h"
#include "router_tc.skel.h"

#define ROUNDS 9

struct control {
	struct router_tc_bpf *router;
	struct ring_maps maps;
};

/* Results of one size, in milliseconds and bytes. */
struct result {
	double build, swap, slowest_swap;
	unsigned long ring_bytes; /* the arrays in this process */
	long long map_bytes;	  /* of both slots, once both were used */
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

/* What the kernel has for a map: the line "memlock" of its fdinfo. 0 if it is not said. */
static long long map_memory(int descriptor)
{
	char path[64], line[128];
	long long bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", descriptor);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "memlock: %lld", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes;
}

/* Of the map that an outer map has under that key. */
static long long inner_memory(int outer, __u32 key)
{
	__u32 identifier;
	long long bytes = 0;
	int inner;

	if (bpf_map_lookup_elem(outer, &key, &identifier))
		return 0;
	inner = bpf_map_get_fd_by_id(identifier);
	if (inner < 0)
		return 0;
	bytes = map_memory(inner);
	close(inner);
	return bytes;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static int load(struct control *control)
{
	struct bpf_program *program;
	struct bpf_map *map;

	control->router = router_tc_bpf__open();
	if (!control->router)
		return -errno;
	bpf_object__for_each_program(program, control->router->obj)
		bpf_program__set_autoload(program, false);
	bpf_object__for_each_map(map, control->router->obj) bpf_map__set_pin_path(map, NULL);
	if (router_tc_bpf__load(control->router))
		return -errno;
	control->maps = ring_maps_of(control->router->obj);
	return 0;
}

static long long ring_map_memory(const struct control *control, __u32 service)
{
	long long bytes = inner_memory(control->maps.rings, service);

	for (__u32 slot = service * 2; slot < service * 2 + 2; slot++)
		bytes += inner_memory(control->maps.ring_points, slot) +
			 inner_memory(control->maps.ring_index, slot) +
			 inner_memory(control->maps.ring_index_large, slot) +
			 inner_memory(control->maps.ring_members, slot);
	return bytes;
}

/* One replica is left out in turn, so that each ring differs from the last. 0, or a negative errno with a sentence. */
static int measure(struct control *control, __u32 service, __u32 replicas, __u32 vnodes,
		   struct result *result, struct error *error)
{
	struct ring_replica *list = calloc(replicas, sizeof(*list));
	char(*names)[REPLICA_NAME_SIZE] = calloc(replicas, sizeof(*names));
	const struct ring_settings settings = {.dialect = RING_LLM, .vnodes = vnodes};
	double builds[ROUNDS], swaps[ROUNDS];
	int err = list && names ? 0 : -ENOMEM;

	for (int round = 0; round < ROUNDS && !err; round++) {
		struct ring ring;
		double started;
		__u32 count = 0;

		for (__u32 i = 0; i < replicas; i++) {
			if (round % 2 && i == (__u32)round % replicas)
				continue;
			snprintf(names[i], sizeof(names[i]), "llm-%u", i);
			list[count++] = (struct ring_replica){
				.name = names[i],
				.slot = i,
				.weight_thousandths = RING_WEIGHT_ONE,
			};
		}
		started = now();
		err = ring_build(&ring, &settings, list, count, error);
		builds[round] = now() - started;
		if (err)
			break;
		started = now();
		err = ring_maps_swap(&control->maps, service, &ring, error);
		swaps[round] = now() - started;
		result->ring_bytes =
			ring.header.point_count * sizeof(*ring.points) +
			(sizeof(*ring.index) << ring.header.index_bits) +
			ring.header.member_count * (sizeof(*ring.members) + sizeof(*ring.names));
		ring_free(&ring);
	}
	free(list);
	free(names);
	if (err)
		return err;
	qsort(builds, ROUNDS, sizeof(*builds), compare);
	qsort(swaps, ROUNDS, sizeof(*swaps), compare);
	result->build = builds[ROUNDS / 2];
	result->swap = swaps[ROUNDS / 2];
	result->slowest_swap = swaps[ROUNDS - 1];
	result->map_bytes = ring_map_memory(control, service);
	return 0;
}

static void print_maps(const struct control *control, bool json)
{
	long long sum = 0, all = 0;
	struct bpf_map *map;

	bpf_object__for_each_map(map, control->router->obj) all += map_memory(bpf_map__fd(map));
	if (!json)
		printf("\nMaps with their default sizes, the larger ones:\n\n%-20s %10s %10s\n", "",
		       "entries", "MB");
	bpf_object__for_each_map(map, control->router->obj)
	{
		long long bytes = map_memory(bpf_map__fd(map));

		sum += bytes;
		if (bytes < 1 << 20)
			continue;
		if (json)
			printf("{\"map\": \"%s\", \"entries\": %u, \"bytes\": %lld}\n",
			       bpf_map__name(map), bpf_map__max_entries(map), bytes);
		else
			printf("%-20s %10u %10.1f\n", bpf_map__name(map), bpf_map__max_entries(map),
			       bytes / 1e6);
	}
	if (json)
		printf("{\"map\": \"all\", \"bytes\": %lld}\n", all);
	else
		printf("%-20s %10s %10.1f\n", "all", "", sum / 1e6);
}

int main(int argc, char **argv)
{
	static const struct {
		__u32 replicas, vnodes;
	} sizes[] = {{8, 100}, {100, 150}, {300, 150}, {1000, 150}, {1000, 1000}};
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
	struct error error = {"the maps could not be made"};
	struct control control = {0};
	int err;

	if (argc > 1 && !json) {
		fprintf(stderr,
			"Usage: bench-control [--json]\n"
			"Measure building and replacing rings, and the memory of maps. Needs root.\n");
		return 2;
	}
	err = load(&control);
	if (!err && !json)
		printf("Medians of %d; one replica less and one more in turn.\n\n%-24s %9s %9s %9s %12s %12s\n",
		       ROUNDS, "replicas x points", "build ms", "swap ms", "slowest", "ring KB",
		       "maps KB");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !err; i++) {
		struct result result = {0};

		err = measure(&control, i, sizes[i].replicas, sizes[i].vnodes, &result, &error);
		if (err)
			break;
		if (json)
			printf("{\"replicas\": %u, \"vnodes\": %u, \"build_ms\": %.3f, \"swap_ms\": %.3f, "
			       "\"slowest_swap_ms\": %.3f, \"ring_bytes\": %lu, \"map_bytes\": %lld}\n",
			       sizes[i].replicas, sizes[i].vnodes, result.build, result.swap,
			       result.slowest_swap, result.ring_bytes, result.map_bytes);
		else
			printf("%8u x %-13u %9.2f %9.2f %9.2f %12.0f %12.0f\n", sizes[i].replicas,
			       sizes[i].vnodes, result.build, result.swap, result.slowest_swap,
			       result.ring_bytes / 1e3, result.map_bytes / 1e3);
	}
	if (!err)
		print_maps(&control, json);
	router_tc_bpf__destroy(control.router);
	if (err)
		fprintf(stderr, "bench-control: %s\n", error.text);
	return err ? 1 : 0;
}
