/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps of the replica side. Apart from maps.h, as a machine that only has replicas needs none of the router's tables.
 *
 * Owns: map types, sizes, names. May not know: what the values mean.
 */
#ifndef WARMPATH_BPF_HANDOFF_MAPS_H
#define WARMPATH_BPF_HANDOFF_MAPS_H

#include <warmpath/handoff_counters.h>

#include <warmpath/tcp_options.h>

#include "handoff_key_map.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct handoff_counters);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} handoff_counters SEC(".maps");

/* Not pinned: where the options of one segment are read. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tcp_options_walk);
} handoff_options SEC(".maps");

#endif /* WARMPATH_BPF_HANDOFF_MAPS_H */
