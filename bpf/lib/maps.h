/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every map of the data path, once. Pinned by name below the pin path's layout directory, so that all objects of all agents
 * share them and `bpftool map dump pinned .../replicas` works.
 *
 * Owns: map types, sizes, names. May not know: what the values mean (include/warmpath/layout.h).
 * Sizes marked "limits.*" are defaults that the agent overrides from its configuration before loading.
 */
#ifndef WARMPATH_BPF_MAPS_H
#define WARMPATH_BPF_MAPS_H

#include <warmpath/layout.h>
#include <warmpath/outcome.h>

#ifndef BPF_F_INNER_MAP
#define BPF_F_INNER_MAP (1U << 12)
#endif

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, struct service_address_key);
	__type(value, struct service_address);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} service_addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct service);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REPLICAS_MAX);
	__type(key, __u32);
	__type(value, struct replica);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} replicas SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, REPLICAS_MAX * 4);
	__type(key, struct replica_address_key);
	__type(value, struct replica_address);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} replica_addresses SEC(".maps");

/* --- rings: see struct ring_header for how these are swapped as one ------------------------------------- */

/* Sizes, not types: clang leaves a struct that only an inner map names undefined, and libbpf then refuses the object. */
struct ring_header_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ring_header));
};

struct ring_points_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ring_point));
};

/* Of one size, so that the kernel inlines the look-up. */
struct ring_index_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << RING_INDEX_BITS_SMALL);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ring_bucket));
};

struct ring_index_large_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ring_bucket));
};

struct ring_members_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct ring_member));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__array(values, struct ring_header_table);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, RING_SLOTS_MAX);
	__type(key, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__array(values, struct ring_points_table);
} ring_points SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, RING_SLOTS_MAX);
	__type(key, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__array(values, struct ring_index_table);
} ring_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, RING_SLOTS_MAX);
	__type(key, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__array(values, struct ring_index_large_table);
} ring_index_large SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, RING_SLOTS_MAX);
	__type(key, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__array(values, struct ring_members_table);
} ring_members SEC(".maps");

/* --- flows ------------------------------------------------------------------------------------------------ */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 262144); /* limits.flows */
	__type(key, struct flow_key);
	__type(value, struct flow);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 262144); /* limits.flows */
	__type(key, struct return_flow_key);
	__type(value, struct return_flow);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} return_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192); /* limits.fragments */
	__type(key, struct fragment_key);
	__type(value, struct fragment);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fragments SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, REDIRECT_DEVICES_MAX);
	__type(key, __u32);
	__type(value, struct redirect_device);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} redirect_devices SEC(".maps");

/* --- load, requests, placements, events ------------------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct service_load);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} service_loads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REPLICAS_MAX);
	__type(key, __u32);
	__type(value, struct replica_load);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} replica_loads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* limits.requests */
	__type(key, struct open_request_key);
	__type(value, struct open_request);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} requests SEC(".maps");

/* What the outer map's values look like; the agent makes them with policy.memory_max_entries entries. */
struct placement_table {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct placement);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__array(values, struct placement_table);
} placements SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_settings);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} trace_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} events SEC(".maps");

/*
 * Emits the values of inner maps into the BTF of every object, also of one that does not use them: libbpf makes each inner
 * map's template from there.
 */
const struct ring_header *inner_ring_header __attribute__((unused));
const struct ring_point *inner_ring_point __attribute__((unused));
const struct ring_bucket *inner_ring_bucket __attribute__((unused));
const struct ring_member *inner_ring_member __attribute__((unused));
const struct placement *inner_placement __attribute__((unused));

/* --- counters --------------------------------------------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} counters SEC(".maps");

#endif /* WARMPATH_BPF_MAPS_H */
