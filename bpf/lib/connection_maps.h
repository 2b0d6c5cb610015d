/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The router's maps of connections that are routed by what they carry.
 *
 * Owns: map types, sizes, names, look-ups by key. May not know: what the values mean (include/warmpath/connection.h).
 * Sizes marked "limits.*" are defaults that the agent overrides from its configuration before loading.
 */
#ifndef WARMPATH_BPF_CONNECTION_MAPS_H
#define WARMPATH_BPF_CONNECTION_MAPS_H

#include <warmpath/connection.h>

#include "handoff_key_map.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct http_service);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} http_services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 262144); /* limits.flows */
	__type(key, struct flow_key);
	__type(value, struct connection);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct flow_key);
	__type(value, struct held_head);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} held_heads SEC(".maps");

/* Small, and LRU: what somebody sends to fill it costs nobody but himself an early answer. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow_key);
	__type(value, struct stranger);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} strangers SEC(".maps");

static __always_inline const struct http_service *http_service_get(__u32 index)
{
	return bpf_map_lookup_elem(&http_services, &index);
}

static __always_inline struct connection *connection_get(const struct flow_key *key)
{
	return bpf_map_lookup_elem(&connections, key);
}

/* What the other side of the connection changes in the same moment, on another processor, stays. */
static __always_inline void connection_set_flags(struct connection *entry, __u32 flags)
{
	if ((entry->flags & flags) != flags)
		__sync_fetch_and_or(&entry->flags, flags);
}

static __always_inline void connection_clear_flags(struct connection *entry, __u32 flags)
{
	if (entry->flags & flags)
		__sync_fetch_and_and(&entry->flags, ~flags);
}

static __always_inline struct held_head *held_head_get(const struct flow_key *key)
{
	return bpf_map_lookup_elem(&held_heads, key);
}

#endif /* WARMPATH_BPF_CONNECTION_MAPS_H */
