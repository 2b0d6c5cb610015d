/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one map that routers and replicas both have: the keys of their cluster.
 *
 * Owns: its type and name. May not know: what is made with them.
 */
#ifndef WARMPATH_BPF_HANDOFF_KEY_MAP_H
#define WARMPATH_BPF_HANDOFF_KEY_MAP_H

#include <warmpath/handoff_keys.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct handoff_keys);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} handoff_keys SEC(".maps");

static __always_inline const struct handoff_keys *handoff_keys_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&handoff_keys, &first);
}

#endif /* WARMPATH_BPF_HANDOFF_KEY_MAP_H */
