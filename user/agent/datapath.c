/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/datapath.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/btf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/handoff_settings.h"
#include "control.skel.h"
#include "lib/inner_map.h"
#include "lib/log.h"
#include "handoff.skel.h"
#include "handoff_local.skel.h"
#include "router_tc.skel.h"
#include "router_xdp.skel.h"

/* Maps whose size is a setting. */
static const struct sized_map {
	const char *map;
	const char *key;
	size_t offset; /* in struct config_limits */
} sized_maps[] = {
	{"flows", "limits.flows", offsetof(struct config_limits, flows)},
	{"return_flows", "limits.flows", offsetof(struct config_limits, flows)},
	{"connections", "limits.flows", offsetof(struct config_limits, flows)},
	{"requests", "limits.requests", offsetof(struct config_limits, requests)},
	{"fragments", "limits.fragments", offsetof(struct config_limits, fragments)},
};

static const struct sized_map *find_sized_map(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(sized_maps) / sizeof(sized_maps[0]); i++) {
		if (strcmp(sized_maps[i].map, name) == 0)
			return &sized_maps[i];
	}
	return NULL;
}

static int set_sizes(struct bpf_object *object, const struct config_limits *limits,
		     struct error *error)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		const struct sized_map *sized = find_sized_map(bpf_map__name(map));
		__u32 size;
		int result;

		if (!sized)
			continue;
		memcpy(&size, (const char *)limits + sized->offset, sizeof(size));
		result = bpf_map__set_max_entries(map, size);
		if (result)
			return error_set(error, result, "map %s cannot be given %s: %s", sized->map,
					 sized->key, strerror(-result));
	}
	return 0;
}

/* --- maps that are pinned already ------------------------------------------------------------------------- */

#define HOW_TO_LET_GO                                                                         \
	"`warmpathd --detach -c FILE` lets go of the running data path (its connections are " \
	"forgotten); then start again"

/* Compares the map pinned at `path` with what this build and configuration ask for. */
static int check_pinned_map(const struct bpf_map *map, const char *path, int descriptor,
			    struct error *error)
{
	const struct sized_map *sized = find_sized_map(bpf_map__name(map));
	struct bpf_map_info info = {0};
	__u32 length = sizeof(info);

	if (bpf_obj_get_info_by_fd(descriptor, &info, &length))
		return error_set(error, -errno, "pin %s is not a map that can be read: %s", path,
				 strerror(errno));
	if (info.type != bpf_map__type(map) || info.key_size != bpf_map__key_size(map) ||
	    info.value_size != bpf_map__value_size(map) ||
	    info.map_flags != bpf_map__map_flags(map))
		return error_set(
			error, -EINVAL,
			"the pinned map %s was made by another build of warmpath (type %u, key %u, "
			"value %u bytes; this build has type %u, key %u, value %u bytes): run that "
			"build, or: " HOW_TO_LET_GO,
			path, info.type, info.key_size, info.value_size, bpf_map__type(map),
			bpf_map__key_size(map), bpf_map__value_size(map));
	if (info.max_entries == bpf_map__max_entries(map))
		return 0;
	if (sized)
		return error_set(
			error, -EINVAL,
			"%s is %u, but the pinned map %s has room for %u and cannot be resized: set "
			"%s to %u, or: " HOW_TO_LET_GO,
			sized->key, bpf_map__max_entries(map), path, info.max_entries, sized->key,
			info.max_entries);
	return error_set(
		error, -EINVAL,
		"the pinned map %s was made by another build of warmpath (%u entries, this build "
		"has %u): run that build, or: " HOW_TO_LET_GO,
		path, info.max_entries, bpf_map__max_entries(map));
}

/* libbpf would take fitting pins by itself, but says of one that does not fit only that it does not. */
static int check_pinned_maps(struct datapath *datapath, struct bpf_object *object,
			     struct error *error)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		const char *path = bpf_map__pin_path(map);
		int descriptor, result;

		if (!path)
			continue;
		descriptor = bpf_obj_get(path);
		if (descriptor < 0) {
			if (errno != ENOENT)
				return error_set(error, -errno, "pin %s cannot be opened: %s", path,
						 strerror(errno));
			if (datapath->trial)
				bpf_map__set_pin_path(map, NULL);
			continue;
		}
		datapath->adopted = true;
		result = check_pinned_map(map, path, descriptor, error);
		close(descriptor);
		if (result)
			return result;
	}
	return 0;
}

const char *datapath_deleted_pin(const struct datapath *datapath)
{
	const struct bpf_map *map;

	bpf_object__for_each_map(map, datapath->tc->obj)
	{
		const char *path = bpf_map__pin_path(map);

		if (path && access(path, F_OK) && errno == ENOENT)
			return path;
	}
	return NULL;
}

/* --- opening and loading ---------------------------------------------------------------------------------- */

static int load_failed(const char *what, int result, struct error *error)
{
	if (result == -EPERM)
		return error_set(
			error, result,
			"the kernel does not let this process load the %s program: run as root, or "
			"with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON (-v shows the kernel's words)",
			what);
	return error_set(
		error, result,
		"the %s program cannot be loaded into this kernel: %s (-v shows the kernel's words)",
		what, strerror(-result));
}

static struct bpf_object_open_opts open_options(const struct datapath *datapath)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .pin_root_path = datapath->directory);

	return options;
}

struct router_xdp_bpf *datapath_open_xdp_copy(const struct datapath *datapath, struct error *error)
{
	struct bpf_object_open_opts options = open_options(datapath);
	struct router_xdp_bpf *copy = router_xdp_bpf__open_opts(&options);

	if (!copy) {
		load_failed("XDP router", -errno, error);
		return NULL;
	}
	copy->rodata->replicas_are_local = datapath->shape == SHAPE_NODE_LOCAL;
	if (set_sizes(copy->obj, &datapath->limits, error)) {
		router_xdp_bpf__destroy(copy);
		return NULL;
	}
	return copy;
}

static int prepare(struct datapath *datapath, struct bpf_object *object, struct error *error)
{
	int result = set_sizes(object, &datapath->limits, error);

	return result ? result : check_pinned_maps(datapath, object, error);
}

static int open_objects(struct datapath *datapath, struct error *error)
{
	struct bpf_object_open_opts options = open_options(datapath);
	int result;

	datapath->xdp = datapath_open_xdp_copy(datapath, error);
	if (!datapath->xdp)
		return -EINVAL;
	datapath->tc = router_tc_bpf__open_opts(&options);
	if (!datapath->tc)
		return load_failed("tc router", -errno, error);
	datapath->tc->rodata->replicas_are_local = datapath->shape == SHAPE_NODE_LOCAL;
	datapath->control = control_bpf__open_opts(&options);
	if (!datapath->control)
		return load_failed("control", -errno, error);

	result = prepare(datapath, datapath->tc->obj, error);
	if (!result)
		result = prepare(datapath, datapath->xdp->obj, error);
	if (!result)
		result = prepare(datapath, datapath->control->obj, error);
	return result;
}

static int load_objects(struct datapath *datapath, struct error *error)
{
	int result = router_xdp_bpf__load(datapath->xdp);

	if (result)
		return load_failed("XDP router", result, error);
	result = router_tc_bpf__load(datapath->tc);
	if (result)
		return load_failed("tc router", result, error);
	result = control_bpf__load(datapath->control);
	if (result)
		return load_failed("control", result, error);
	return 0;
}

/* --- handing connections over -------------------------------------------------------------------------------- */

bool kernel_takes_connections_over(void)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	bool there = kernel &&
		     btf__find_by_name_kind(kernel, "bpf_sk_assign_tcp_reqsk", BTF_KIND_FUNC) > 0;

	btf__free(kernel);
	return there;
}

static int open_handoff(struct datapath *datapath, struct error *error)
{
	struct bpf_object_open_opts options = open_options(datapath);
	const bool adopted = datapath->adopted;
	struct bpf_object *object;
	int result;

	if (datapath->role == ROLE_REPLICA) {
		datapath->handoff = handoff_bpf__open_opts(&options);
		if (!datapath->handoff)
			return load_failed("handoff", -errno, error);
		datapath->handoff_program = datapath->handoff->progs.warmpath_handoff_tc;
		object = datapath->handoff->obj;
	} else {
		datapath->handoff_local = handoff_local_bpf__open_opts(&options);
		if (!datapath->handoff_local)
			return load_failed("handoff", -errno, error);
		datapath->handoff_program = datapath->handoff_local->progs.warmpath_handoff_tc;
		object = datapath->handoff_local->obj;
	}
	result = prepare(datapath, object, error);
	/* the maps that it found pinned may be those that the other objects have pinned a moment ago */
	datapath->adopted = adopted;
	if (result)
		return result;
	result = bpf_object__load(object);
	return result ? load_failed("handoff", result, error) : 0;
}

/* The program of the replica's side, where servers are on this machine. A router without it still does everything else. */
static int load_handoff(struct datapath *datapath, struct error *error)
{
	static const char missing[] =
		"this kernel cannot take connections over for servers on this machine: "
		"bpf_sk_assign_tcp_reqsk is missing (Linux 6.9 or newer has it, where SYN cookies are built in)";
	int result;

	if (datapath->role != ROLE_REPLICA && datapath->shape != SHAPE_NODE_LOCAL)
		return 0;
	if (!kernel_takes_connections_over()) {
		if (datapath->role == ROLE_REPLICA)
			return error_set(error, -EOPNOTSUPP, "%s", missing);
		log_warning("%s; services with id.from: header will not work", missing);
		return 0;
	}
	result = open_handoff(datapath, error);
	if (!result || datapath->role == ROLE_REPLICA)
		return result;
	log_warning("%s; services with id.from: header will not work", error->text);
	handoff_local_bpf__destroy(datapath->handoff_local);
	datapath->handoff_local = NULL;
	datapath->handoff_program = NULL;
	return 0;
}

static int load_all(struct datapath *datapath, const struct pins *pins, const struct config *config,
		    struct error *error)
{
	int result;

	datapath->limits = config->limits;
	datapath->role = config->role;
	datapath->shape = config->shape;
	datapath->mtu = interfaces_smallest_mtu(config);
	memcpy(datapath->directory, pins->directory, sizeof(datapath->directory));

	result = open_objects(datapath, error);
	if (!result)
		result = load_objects(datapath, error);
	if (!result)
		result = load_handoff(datapath, error);
	if (result)
		datapath_close(datapath);
	return result;
}

int datapath_try(struct datapath *datapath, const struct pins *pins, const struct config *config,
		 struct error *error)
{
	int result;

	memset(datapath, 0, sizeof(*datapath));
	datapath->trial = true;
	result = load_all(datapath, pins, config, error);
	datapath_close(datapath);
	return result;
}

int datapath_open(struct datapath *datapath, const struct pins *pins, const struct config *config,
		  struct error *error)
{
	int result;

	memset(datapath, 0, sizeof(*datapath));
	inner_map_pin_below(pins->inner_directory);
	result = load_all(datapath, pins, config, error);
	if (result)
		return result;

	datapath->service_addresses = bpf_map__fd(datapath->tc->maps.service_addresses);
	datapath->services = bpf_map__fd(datapath->tc->maps.services);
	datapath->replicas = bpf_map__fd(datapath->tc->maps.replicas);
	datapath->replica_addresses = bpf_map__fd(datapath->tc->maps.replica_addresses);
	datapath->replica_loads = bpf_map__fd(datapath->tc->maps.replica_loads);
	datapath->service_loads = bpf_map__fd(datapath->tc->maps.service_loads);
	datapath->requests = bpf_map__fd(datapath->tc->maps.requests);
	datapath->placements = bpf_map__fd(datapath->tc->maps.placements);
	datapath->trace_settings = bpf_map__fd(datapath->tc->maps.trace_settings);
	datapath->events = bpf_map__fd(datapath->tc->maps.events);
	datapath->flows = bpf_map__fd(datapath->tc->maps.flows);
	datapath->redirect_devices = bpf_map__fd(datapath->tc->maps.redirect_devices);
	datapath->counters = bpf_map__fd(datapath->tc->maps.counters);
	datapath->handoff_keys = bpf_map__fd(datapath->tc->maps.handoff_keys);
	datapath->http_services = bpf_map__fd(datapath->tc->maps.http_services);
	datapath->connections = bpf_map__fd(datapath->tc->maps.connections);
	datapath->replica_contacts = bpf_map__fd(datapath->tc->maps.replica_contacts);
	datapath->ring_maps = ring_maps_of(datapath->tc->obj);
	datapath->control_program = bpf_program__fd(datapath->control->progs.warmpath_control);
	program_pins_begin(datapath, pins);
	return 0;
}

int datapath_open_pinned(struct datapath *datapath, const struct pins *pins,
			 const struct config *config, struct error *error)
{
	const struct {
		const char *name;
		int *descriptor;
	} maps[] = {
		{"services", &datapath->services},
		{"counters", &datapath->counters},
		{"replicas", &datapath->replicas},
		{"redirect_devices", &datapath->redirect_devices},
		{"handoff_keys", &datapath->handoff_keys},
	};
	unsigned int i;

	memset(datapath, 0, sizeof(*datapath));
	datapath->role = config->role;
	datapath->shape = config->shape;
	datapath->only_pinned = true;
	for (i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		*maps[i].descriptor = -1;
	for (i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%.3500s/%s", pins->directory, maps[i].name);
		*maps[i].descriptor = bpf_obj_get(path);
		if (*maps[i].descriptor < 0 && errno != ENOENT)
			return error_set(error, -errno, "pin %s cannot be opened: %s", path,
					 strerror(errno));
	}
	program_pins_find(datapath, pins);
	return 0;
}

void datapath_close(struct datapath *datapath)
{
	if (datapath->only_pinned) {
		if (datapath->services >= 0)
			close(datapath->services);
		if (datapath->counters >= 0)
			close(datapath->counters);
		if (datapath->replicas >= 0)
			close(datapath->replicas);
		if (datapath->redirect_devices >= 0)
			close(datapath->redirect_devices);
		if (datapath->handoff_keys >= 0)
			close(datapath->handoff_keys);
		datapath->only_pinned = false;
	}
	router_xdp_bpf__destroy(datapath->xdp);
	router_tc_bpf__destroy(datapath->tc);
	control_bpf__destroy(datapath->control);
	handoff_bpf__destroy(datapath->handoff);
	handoff_local_bpf__destroy(datapath->handoff_local);
	datapath->handoff = NULL;
	datapath->handoff_local = NULL;
	datapath->handoff_program = NULL;
	datapath->xdp = NULL;
	datapath->tc = NULL;
	datapath->control = NULL;
}
