/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/rings.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/inner_map.h"

int rings_build(struct ring *ring, const struct routing *routing, __u32 service,
		const bool *left_out, struct error *error)
{
	const struct config_ring *settings = &routing->settings[service]->ring;
	const struct ring_settings ring_settings = {
		.dialect = settings->dialect,
		.vnodes = settings->vnodes,
		.hash_key = settings->hash_key,
		.hash_key_length = settings->hash_key_length,
	};
	struct ring_replica *replicas = calloc(REPLICAS_MAX, sizeof(*replicas));
	unsigned int slot, count = 0;
	int result;

	if (!replicas)
		return error_set(error, -ENOMEM, "not enough memory");
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &routing->replicas[slot];

		if (replica->state != REPLICA_ACTIVE || replica->service != service ||
		    (left_out && left_out[slot]))
			continue;
		replicas[count].name = replica->name;
		replicas[count].slot = slot;
		replicas[count].weight_thousandths = replica_ring_weight(replica);
		count++;
	}
	result = ring_build(ring, &ring_settings, replicas, count, error);
	if (result)
		error_prefix(error, result, "service %s", routing->services[service].name);
	free(replicas);
	return result;
}

/* Whether the inner map at `slot` of the outer map begins with exactly these `count` values; it may be larger. */
static bool table_is(int outer, __u32 slot, const void *values, __u32 count, size_t value_size)
{
	struct bpf_map_info info = {0};
	__u32 length = sizeof(info), batch, got = count;
	bool same = false;
	__u32 *keys = NULL;
	void *read = NULL;
	int descriptor;

	if (count == 0)
		return true;
	descriptor = inner_map_open(outer, slot);
	if (descriptor < 0)
		return false;
	if (bpf_obj_get_info_by_fd(descriptor, &info, &length) || info.max_entries < count ||
	    info.value_size != value_size)
		goto out;
	keys = calloc(count, sizeof(*keys));
	read = calloc(count, value_size);
	if (!keys || !read)
		goto out;
	if (bpf_map_lookup_batch(descriptor, NULL, &batch, keys, read, &got, NULL) &&
	    errno != ENOENT)
		goto out;
	same = got == count && memcmp(read, values, count * value_size) == 0;
out:
	free(keys);
	free(read);
	close(descriptor);
	return same;
}

bool rings_is_loaded(const struct ring_maps *maps, __u32 service, const struct ring *ring)
{
	const struct ring_header *wanted = &ring->header;
	struct ring_header header;

	if (ring_maps_current(maps, service, &header))
		return false;
	if (header.dialect != wanted->dialect || header.point_count != wanted->point_count ||
	    header.index_bits != wanted->index_bits ||
	    header.member_count != wanted->member_count ||
	    header.hash_keyed != wanted->hash_keyed ||
	    memcmp(header.hash_state, wanted->hash_state, sizeof(header.hash_state)) != 0)
		return false;
	return table_is(maps->ring_points, header.slot, ring->points, header.point_count,
			sizeof(*ring->points)) &&
	       table_is(ring_maps_index(maps, &header), header.slot, ring->index,
			1U << header.index_bits, sizeof(*ring->index)) &&
	       table_is(maps->ring_members, header.slot, ring->members, header.member_count,
			sizeof(*ring->members));
}
