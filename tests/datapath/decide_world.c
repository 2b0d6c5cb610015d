/* SPDX-License-Identifier: BSD-2-Clause */
#include "decide_world.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control.skel.h"
#include "lib/calls.h"
#include "lib/placement_tables.h"
#include "lib/ring_maps.h"

void decide_world_prepare(struct bpf_object *object, const char *const *unused)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		bpf_map__set_pin_path(map, NULL);
		for (size_t i = 0; unused && unused[i]; i++)
			if (strcmp(unused[i], bpf_map__name(map)) == 0)
				bpf_map__set_autocreate(map, false);
	}
}

int decide_world_map(const struct decide_world *world, const char *name)
{
	return bpf_object__find_map_fd_by_name(world->object, name);
}

static int load_control(struct decide_world *world)
{
	static const char *const unused[] = {"flows", "return_flows", "fragments", NULL};
	struct bpf_map *map;
	int err = 0;

	world->control = control_bpf__open();
	if (!world->control)
		return -errno;
	decide_world_prepare(world->control->obj, unused);
	bpf_object__for_each_map(map, world->control->obj)
	{
		struct bpf_map *other =
			bpf_object__find_map_by_name(world->object, bpf_map__name(map));

		if (!err && other && bpf_map__autocreate(other) &&
		    (bpf_map__type(map) != BPF_MAP_TYPE_PERCPU_ARRAY ||
		     strcmp(bpf_map__name(map), "counters") == 0))
			err = bpf_map__reuse_fd(map, bpf_map__fd(other));
	}
	if (!err)
		err = control_bpf__load(world->control);
	world->control_program = bpf_program__fd(world->control->progs.warmpath_control);
	return err;
}

static int load_ring(struct decide_world *world, __u32 vnodes, struct error *error)
{
	static char names[REPLICAS_MAX][REPLICA_NAME_SIZE];
	static struct ring_replica replicas[REPLICAS_MAX];
	struct ring_settings settings = {.dialect = RING_LLM, .vnodes = vnodes};
	struct ring_maps maps = ring_maps_of(world->object);
	int err;

	for (__u32 i = 0; i < world->replica_count; i++) {
		snprintf(names[i], sizeof(names[i]), "llm-%u", i);
		replicas[i] = (struct ring_replica){
			.name = names[i],
			.slot = DECIDE_WORLD_SLOT(i) % REPLICAS_MAX,
			.weight_thousandths = RING_WEIGHT_ONE,
		};
	}
	err = ring_build(&world->ring, &settings, replicas, world->replica_count, error);
	if (!err)
		err = ring_maps_swap(&maps, DECIDE_WORLD_SERVICE, &world->ring, error);
	for (__u32 i = 0; !err && i < world->replica_count; i++) {
		struct replica replica = {
			.state = REPLICA_ACTIVE,
			.service = DECIDE_WORLD_SERVICE,
			.incarnation = 1,
			.weight_thousandths = RING_WEIGHT_ONE,
		};

		strcpy(replica.name, names[i]);
		if (bpf_map_update_elem(decide_world_map(world, "replicas"), &replicas[i].slot,
					&replica, BPF_ANY))
			err = -errno;
		if (!err)
			err = control_set_member(world->control_program, DECIDE_WORLD_SERVICE,
						 replicas[i].slot, true, error);
	}
	return err;
}

static int empty_requests(const struct decide_world *world)
{
	int requests = decide_world_map(world, "requests");
	struct open_request_key key;

	while (!bpf_map_get_next_key(requests, NULL, &key))
		if (bpf_map_delete_elem(requests, &key) && errno != ENOENT)
			return -errno;
	return 0;
}

int decide_world_set_policy(struct decide_world *world, const struct policy_settings *policy)
{
	struct service service = {.name = "test", .state = SERVICE_ACTIVE, .policy = *policy};
	__u32 index = DECIDE_WORLD_SERVICE;
	struct error error = {""};
	int err = empty_requests(world);

	if (bpf_map_update_elem(decide_world_map(world, "services"), &index, &service, BPF_ANY))
		return -errno;
	for (__u32 i = 0; !err && i < world->replica_count; i++) {
		struct replica_load load = decide_world_load(world, i);

		err = control_repair(world->control_program, DECIDE_WORLD_SERVICE,
				     DECIDE_WORLD_SLOT(i), -(__s64)load.requests,
				     -(__s64)load.tokens, &error);
	}
	if (!err)
		err = placement_table_replace(decide_world_map(world, "placements"),
					      DECIDE_WORLD_SERVICE, policy->memory_max_entries,
					      &error);
	if (err)
		fprintf(stderr, "# policy: %s\n", error.text);
	return err;
}

int decide_world_make(struct decide_world *world, struct bpf_object *object,
		      const struct policy_settings *policy, __u32 replica_count, __u32 vnodes)
{
	struct error error = {""};
	int err;

	memset(world, 0, sizeof(*world));
	world->object = object;
	world->replica_count = replica_count;
	err = load_control(world);
	if (!err)
		err = load_ring(world, vnodes, &error);
	if (!err)
		err = decide_world_set_policy(world, policy);
	if (err)
		fprintf(stderr, "# world: %s %s\n", strerror(-err), error.text);
	return err;
}

void decide_world_unmake(struct decide_world *world)
{
	control_bpf__destroy(world->control);
	ring_free(&world->ring);
	memset(world, 0, sizeof(*world));
}

struct replica_load decide_world_load(const struct decide_world *world, __u32 number)
{
	struct replica_load load = {0};
	__u32 slot = DECIDE_WORLD_SLOT(number);

	bpf_map_lookup_elem(decide_world_map(world, "replica_loads"), &slot, &load);
	return load;
}

struct service_load decide_world_sums(const struct decide_world *world)
{
	struct service_load sums = {0};
	__u32 service = DECIDE_WORLD_SERVICE;

	bpf_map_lookup_elem(decide_world_map(world, "service_loads"), &service, &sums);
	return sums;
}
