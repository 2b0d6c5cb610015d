/* SPDX-License-Identifier: BSD-2-Clause */
/* bench-ring: what hash and ring look-up cost in the kernel (`tools/bench ring`). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bench.h"
#include "bench-ring.skel.h"
#include "lib/ring.h"
#include "lib/ring_maps.h"

#define XDP_VERDICT_PASS     2
#define REFERENCE_INDEX_BITS 16 /* as in bench-ring.bpf.c */

struct rings {
	struct bench_ring_bpf *skeleton;
	struct ring_maps maps;
	__u32 services; /* with a ring so far */
	struct bench bench;
};

enum { SERVICE, ID_LENGTH }; /* of the values of a line */

static int add(struct rings *rings, struct bpf_program *program, __u32 service, __u32 id_length,
	       int base, const char *what)
{
	return bench_add(&rings->bench, what,
			 (struct bench_line){
				 .program = bpf_program__fd(program),
				 .base = base,
				 .verdict = XDP_VERDICT_PASS,
				 .values = {[SERVICE] = service, [ID_LENGTH] = id_length},
			 });
}

static int load(struct rings *rings)
{
	struct bench_ring_bpf *skeleton = bench_ring_bpf__open();
	struct bpf_map *map;

	if (!skeleton)
		return -errno;
	rings->skeleton = skeleton;
	/* only the ring's maps and the program's own variables, and nothing pinned */
	bpf_object__for_each_map(map, skeleton->obj)
	{
		const char *name = bpf_map__name(map);

		bpf_map__set_pin_path(map, NULL);
		if (strncmp(name, "ring", 4) != 0 && strncmp(name, "reference", 9) != 0 &&
		    strcmp(name, "id_blocks") != 0 && strcmp(name, "remembered_ids") != 0 &&
		    !bpf_map__initial_value(map, &(size_t){0}))
			bpf_map__set_autocreate(map, false);
	}
	rings->maps.rings = -1;
	if (bench_ring_bpf__load(skeleton))
		return -errno;
	rings->maps = ring_maps_of(skeleton->obj);
	return 0;
}

/* Fills the reference's tables with the ring's points. */
static int fill_reference(struct rings *rings, const struct ring *ring)
{
	__u32 point = 0, count = ring->header.point_count;
	char name[64];
	int points, index, err = 0;

	snprintf(name, sizeof(name), "reference_points_%u", count);
	points = bpf_object__find_map_fd_by_name(rings->skeleton->obj, name);
	snprintf(name, sizeof(name), "reference_index_%u", count);
	index = bpf_object__find_map_fd_by_name(rings->skeleton->obj, name);
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
static int add_ring(struct rings *rings, const struct ring_settings *settings, __u32 replicas,
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
	err = ring_maps_swap(&rings->maps, rings->services, &ring, &error);
	if (!err && with_reference) {
		err = fill_reference(rings, &ring);
		error_set(&error, err, "the reference's maps cannot be filled");
	}
	ring_free(&ring);
out:
	if (err)
		fprintf(stderr, "bench-ring: %s\n", error.text);
	free(list);
	free(names);
	return err ? err : (int)rings->services++;
}

/* What it costs to find a key's place on rings of several sizes. 0, or a negative errno. */
static int prepare_sizes(struct rings *rings)
{
	struct bench_ring_bpf *skeleton = rings->skeleton;
	const struct {
		__u32 replicas, vnodes;
		struct bpf_program *reference;
	} sizes[] = {
		{12, 100, skeleton->progs.bench_reference_1200},
		{150, 100, skeleton->progs.bench_reference_15000},
		{1000, 150, skeleton->progs.bench_reference_150000},
		{1000, 1000, skeleton->progs.bench_reference_1000000},
	};
	int key = add(rings, skeleton->progs.bench_key, 0, 16, -1, "a random key");

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ring_settings settings = {.dialect = RING_LLM, .vnodes = sizes[i].vnodes};
		int service = add_ring(rings, &settings, sizes[i].replicas, true);
		__u32 points = sizes[i].replicas * sizes[i].vnodes;
		char what[64];

		if (service < 0)
			return service;
		snprintf(what, sizeof(what), "  + its home among %u points", points);
		add(rings, skeleton->progs.bench_home, service, 16, key, what);
		add(rings, sizes[i].reference, service, 16, key, "    the reference layout");
	}
	return 0;
}

/* What it costs to hash an id. 0, or a negative errno. */
static int prepare_hashes(struct rings *rings)
{
	static const __u8 hash_key[32] = {17, 4, 99};
	const struct ring_settings settings[] = {
		{.dialect = RING_LLM, .vnodes = 100},
		{.dialect = RING_LLM, .vnodes = 100, .hash_key = hash_key, .hash_key_length = 32},
		{.dialect = RING_REPLICA_ROUTER, .vnodes = 100},
	};
	const struct bench_ring_bpf *skeleton = rings->skeleton;
	int plain = add_ring(rings, &settings[0], 8, false);
	int keyed = add_ring(rings, &settings[1], 8, false);
	int md5 = add_ring(rings, &settings[2], 8, false);
	int id;

	if (plain < 0 || keyed < 0 || md5 < 0)
		return -EIO;
	id = add(rings, skeleton->progs.bench_id, plain, 16, -1, "a random id, the ring's header");
	add(rings, skeleton->progs.bench_hash, plain, 16, id, "  + BLAKE2b");
	add(rings, skeleton->progs.bench_recall, plain, 16, id, "  + BLAKE2b, remembered");
	add(rings, skeleton->progs.bench_hash, plain, 128, id, "  + BLAKE2b, id of 128 bytes");
	add(rings, skeleton->progs.bench_hash, keyed, 16, id, "  + BLAKE2b with a key");
	add(rings, skeleton->progs.bench_hash, md5, 16, id, "  + MD5");
	add(rings, skeleton->progs.bench_hash, md5, 64, id, "  + MD5, id of 64 bytes");
	add(rings, skeleton->progs.bench_hash, md5, 128, id, "  + MD5, id of 128 bytes");
	add(rings, skeleton->progs.bench_id_home, plain, 16, id,
	    "  + BLAKE2b, home among 800 points");
	add(rings, skeleton->progs.bench_id_home, md5, 16, id, "  + MD5, home among 800 points");
	return 0;
}

static int prepare(void *context, const struct bench_line *line)
{
	struct rings *rings = context;

	rings->skeleton->bss->service = line->values[SERVICE];
	rings->skeleton->data->id_length = line->values[ID_LENGTH];
	return 0;
}

/* Has every look-up found something? */
static int check(void *context, const struct bench_line *line)
{
	const struct rings *rings = context;

	(void)line;
	return rings->skeleton->bss->failures ? -EPROTO : 0;
}

int main(int argc, char **argv)
{
	struct rings rings = {
		.bench = {.rounds = 11, .runs = 500000, .prepare = prepare, .check = check}};
	const struct bench_line *failed = NULL;
	int err;

	rings.bench.context = &rings;
	bench_options(&rings.bench, "Measure hash and ring look-up in the kernel. Needs root.",
		      argc, argv);
	err = load(&rings);
	if (!err)
		add(&rings, rings.skeleton->progs.bench_floor, 0, 16, -1, "floor: XDP_PASS");
	if (!err)
		err = prepare_sizes(&rings);
	if (!err)
		err = prepare_hashes(&rings);
	if (!err)
		err = bench_run(&rings.bench, &failed);
	bench_ring_bpf__destroy(rings.skeleton);
	if (err) {
		fprintf(stderr, "bench-ring: %s%s%s\n", failed ? failed->what : "",
			failed ? ": " : "",
			err == -EPROTO ? "a look-up failed or a verdict was wrong"
				       : strerror(-err));
		return 1;
	}
	bench_print(&rings.bench);
	return 0;
}
