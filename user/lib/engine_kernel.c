/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's driver with the program in the kernel, on maps of its own that are pinned nowhere: a running router is not disturbed.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control.skel.h"
#include "decide.skel.h"
#include "lib/calls.h"
#include "lib/engine.h"
#include "lib/placement_tables.h"
#include "lib/ring_maps.h"

#define SERVICE 0

struct programs {
	struct decide_bpf *decide;
	struct control_bpf *control;
	int decide_program;
	int control_program;
	struct ring_maps ring_maps;
};

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

static int load_failed(int err, struct error *error)
{
	if (err == -EPERM)
		return error_set(
			error, err,
			"the kernel does not let this process load programs: run as root, or "
			"use --engine user");
	return error_set(error, err,
			 "the program cannot be loaded into this kernel: %s; use --engine user",
			 strerror(-err));
}

/* Private maps; those that the program does not touch are not even made. */
static void keep_private(struct bpf_object *object)
{
	static const char *const unused[] = {"flows",
					     "return_flows",
					     "fragments",
					     "service_addresses",
					     "replica_addresses",
					     "redirect_devices"};
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		bpf_map__set_pin_path(map, NULL);
		for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
			if (strcmp(bpf_map__name(map), unused[i]) == 0)
				bpf_map__set_autocreate(map, false);
	}
}

/* The control program works on the maps of the deciding one; its working space stays its own. */
static int share_maps(struct bpf_object *from, struct bpf_object *to)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, to)
	{
		struct bpf_map *other = bpf_object__find_map_by_name(from, bpf_map__name(map));
		int err;

		if (!other || !bpf_map__autocreate(other) ||
		    bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_ARRAY)
			continue;
		err = bpf_map__reuse_fd(map, bpf_map__fd(other));
		if (err)
			return err;
	}
	return 0;
}

static int load_programs(struct programs *programs, struct error *error)
{
	int err;

	libbpf_set_print(quiet);
	programs->decide = decide_bpf__open();
	programs->control = control_bpf__open();
	if (!programs->decide || !programs->control)
		return load_failed(-errno, error);
	keep_private(programs->decide->obj);
	keep_private(programs->control->obj);
	err = decide_bpf__load(programs->decide);
	if (!err)
		err = share_maps(programs->decide->obj, programs->control->obj);
	if (!err)
		err = control_bpf__load(programs->control);
	if (err)
		return load_failed(err, error);
	programs->decide_program = bpf_program__fd(programs->decide->progs.warmpath_decide);
	programs->control_program = bpf_program__fd(programs->control->progs.warmpath_control);
	programs->ring_maps = ring_maps_of(programs->decide->obj);
	return 0;
}

static int kernel_open(struct engine *engine, struct error *error)
{
	struct programs *programs = calloc(1, sizeof(*programs));
	struct service service = {
		.name = "decide",
		.state = SERVICE_ACTIVE,
		.id_from = ID_FROM_OFFSET,
		.policy = engine->settings.policy,
	};
	__u32 index = SERVICE;
	int err;

	if (!programs)
		return error_set(error, -ENOMEM, "there is no memory for the programs");
	engine->driver_data = programs;
	err = load_programs(programs, error);
	if (err)
		return err;
	if (bpf_map_update_elem(bpf_map__fd(programs->decide->maps.services), &index, &service,
				BPF_ANY))
		return load_failed(-errno, error);
	return placement_table_replace(bpf_map__fd(programs->decide->maps.placements), SERVICE,
				       engine->settings.policy.memory_max_entries, error);
}

static void kernel_close(struct engine *engine)
{
	struct programs *programs = engine->driver_data;

	if (!programs)
		return;
	control_bpf__destroy(programs->control);
	decide_bpf__destroy(programs->decide);
	free(programs);
}

static int kernel_load_ring(struct engine *engine, struct error *error)
{
	struct programs *programs = engine->driver_data;

	return ring_maps_swap(&programs->ring_maps, SERVICE, &engine->ring, error);
}

static int kernel_set_member(struct engine *engine, __u32 slot, bool member, struct error *error)
{
	struct programs *programs = engine->driver_data;
	int replicas = bpf_map__fd(programs->decide->maps.replicas);
	struct replica replica;
	int err;

	if (bpf_map_lookup_elem(replicas, &slot, &replica))
		return error_set(error, -errno, "replica slot %u cannot be read", slot);
	strcpy(replica.name, engine->slots[slot].name);
	replica.service = SERVICE;
	replica.state = member ? REPLICA_ACTIVE : REPLICA_REMOVED;
	/* the first life is 1; leaving ends one */
	if (!member || replica.incarnation == 0)
		replica.incarnation++;
	/* in the set only while active: enter last, leave first */
	err = member ? 0
		     : control_set_member(programs->control_program, SERVICE, slot, false, error);
	if (!err && bpf_map_update_elem(replicas, &slot, &replica, BPF_ANY))
		err = error_set(error, -errno, "replica slot %u cannot be written", slot);
	if (!err && member)
		err = control_set_member(programs->control_program, SERVICE, slot, true, error);
	return err;
}

static int kernel_read_load(struct engine *engine, __u32 slot, struct replica_load *load,
			    struct error *error)
{
	struct programs *programs = engine->driver_data;

	if (bpf_map_lookup_elem(bpf_map__fd(programs->decide->maps.replica_loads), &slot, load))
		return error_set(error, -errno, "the load of replica slot %u cannot be read: %s",
				 slot, strerror(errno));
	return 0;
}

static int call_decide(struct programs *programs, struct decide_call *call, struct error *error)
{
	int err = call_program(programs->decide_program, call, sizeof(*call));

	if (err)
		return error_set(error, err, "the program in the kernel cannot be run: %s",
				 strerror(-err));
	return 0;
}

static int kernel_request(struct engine *engine, const struct engine_request *request,
			  struct decision *decision, struct error *error)
{
	struct programs *programs = engine->driver_data;
	struct decide_call call = {
		.operation = DECIDE_REQUEST,
		.service = SERVICE,
		.id_length = request->id_length,
		.request = request->request,
		.prompt_tokens = request->prompt_tokens,
		.max_tokens = request->max_tokens,
	};
	int err;

	memcpy(call.id, request->id, request->id_length);
	err = call_decide(programs, &call, error);
	if (err)
		return err;
	if (call.result)
		return error_set(error, call.result, "the program in the kernel cannot decide: %s",
				 strerror(-call.result));
	*decision = call.decision;
	return 0;
}

static int kernel_finish(struct engine *engine, __u64 request, bool success, struct error *error)
{
	struct programs *programs = engine->driver_data;
	struct decide_call call = {
		.operation = DECIDE_FINISH,
		.service = SERVICE,
		.request = request,
		.status = success ? COMPLETION_SUCCESS : COMPLETION_FAILED,
	};
	int err = call_decide(programs, &call, error);

	/* the table of open requests is bounded; who has more open than it holds is told */
	if (!err && call.result)
		err = error_set(
			error, call.result,
			"request %lld has been pushed out of the kernel's table of open requests",
			(long long)request);
	return err;
}

const struct engine_driver engine_driver_kernel = {
	.name = "kernel",
	.open = kernel_open,
	.close = kernel_close,
	.load_ring = kernel_load_ring,
	.set_member = kernel_set_member,
	.read_load = kernel_read_load,
	.request = kernel_request,
	.finish = kernel_finish,
};
