/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ring_maps.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/inner_map.h"
#include "lib/table_types.h"

#define BATCH_ENTRIES	 65536 /* written by one system call */
#define REUSE_FACTOR_MAX 4     /* a map this many times too large is not used again */

/* One of the three tables of a ring besides its header. */
struct table {
	int outer;
	const char *name;
	const char *type_name;
	const void *entries;
	__u32 entry_size;
	__u32 count;
	__u32 room; /* entries of its map; 0: as many as needed, of BPF_F_INNER_MAP */
	int inner;  /* its map once created, else -1 */
};

enum {
	TABLE_POINTS,
	TABLE_INDEX,
	TABLE_MEMBERS,
	TABLE_COUNT,
};

struct ring_maps ring_maps_of(const struct bpf_object *object)
{
	return (struct ring_maps){
		.rings = bpf_object__find_map_fd_by_name(object, "rings"),
		.ring_points = bpf_object__find_map_fd_by_name(object, "ring_points"),
		.ring_index = bpf_object__find_map_fd_by_name(object, "ring_index"),
		.ring_index_large = bpf_object__find_map_fd_by_name(object, "ring_index_large"),
		.ring_members = bpf_object__find_map_fd_by_name(object, "ring_members"),
	};
}

static bool is_small(const struct ring_header *header)
{
	return header->index_bits <= RING_INDEX_BITS_SMALL;
}

int ring_maps_index(const struct ring_maps *maps, const struct ring_header *header)
{
	return is_small(header) ? maps->ring_index : maps->ring_index_large;
}

static void list_tables(struct table tables[TABLE_COUNT], const struct ring_maps *maps,
			const struct ring *ring)
{
	tables[TABLE_POINTS] = (struct table){
		.outer = maps->ring_points,
		.name = "ring_points",
		.type_name = "ring_point",
		.entry_size = sizeof(struct ring_point),
		.entries = ring->points,
		.count = ring->header.point_count,
		.inner = -1,
	};
	tables[TABLE_INDEX] = (struct table){
		.outer = ring_maps_index(maps, &ring->header),
		.name = "ring_index",
		.type_name = "ring_bucket",
		.entry_size = sizeof(struct ring_bucket),
		.entries = ring->index,
		.count = 1u << ring->header.index_bits,
		.room = is_small(&ring->header) ? 1u << RING_INDEX_BITS_SMALL : 0,
		.inner = -1,
	};
	tables[TABLE_MEMBERS] = (struct table){
		.outer = maps->ring_members,
		.name = "ring_members",
		.type_name = "ring_member",
		.entry_size = sizeof(struct ring_member),
		.entries = ring->members,
		.count = ring->header.member_count,
		.inner = -1,
	};
}

static int fill_table(int fd, const void *entries_of)
{
	const struct table *table = entries_of;
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	const char *entries = table->entries;
	__u32 *keys;
	int err = 0;

	if (table->count == 0)
		return 0;
	keys = malloc(BATCH_ENTRIES * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	for (__u32 first = 0; first < table->count && !err; first += BATCH_ENTRIES) {
		__u32 count = table->count - first;

		if (count > BATCH_ENTRIES)
			count = BATCH_ENTRIES;
		for (__u32 i = 0; i < count; i++)
			keys[i] = first + i;
		err = bpf_map_update_batch(fd, keys, entries + (size_t)first * table->entry_size,
					   &count, &options);
	}
	free(keys);
	return err;
}

static __u32 round_up(__u32 count)
{
	__u32 size = 1;

	while (size < count)
		size *= 2;
	return size;
}

size_t ring_maps_bytes(const struct ring_header *header)
{
	struct table tables[TABLE_COUNT];
	struct ring ring = {.header = *header};
	struct ring_maps none = {0};
	size_t bytes = sizeof(*header);

	list_tables(tables, &none, &ring);
	for (int i = 0; i < TABLE_COUNT; i++) {
		__u32 entries = tables[i].room ? tables[i].room : round_up(tables[i].count);

		bytes += (size_t)entries * tables[i].entry_size;
	}
	return bytes;
}

/*
 * The map that the slot has from two rings ago, if it can serve again: large enough, not by far too large. No program reads it:
 * the current header names the other slot, and those that saw an older header have finished (see ring_maps.h).
 * Its descriptor, or a negative errno.
 */
static int find_reusable(const struct table *table, __u32 slot)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	int fd = inner_map_open(table->outer, slot), err;

	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &info, &size);
	if (!err && !table->room &&
	    (info.max_entries < table->count ||
	     info.max_entries / REUSE_FACTOR_MAX > round_up(table->count)))
		err = -ENOSPC;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/*
 * Fills the table under the slot. Refilling a map is much faster than replacing it, as every change of an outer map waits for
 * the programs that are running; hence also the sizes in powers of two, which the next rings are likely to fit.
 */
static int load_table(struct table *table, __u32 slot, const struct btf *types)
{
	struct inner_map map = {
		.type = BPF_MAP_TYPE_ARRAY,
		.name = table->name,
		.key_type = "__u32",
		.value_type = table->type_name,
		.key_size = sizeof(__u32),
		.value_size = table->entry_size,
		.max_entries = table->room ? table->room : round_up(table->count),
		.flags = table->room ? 0 : BPF_F_INNER_MAP,
	};

	table->inner = find_reusable(table, slot);
	if (table->inner >= 0)
		return fill_table(table->inner, table);
	table->inner = inner_map_install(table->outer, slot, &map, types, fill_table, table);
	return table->inner < 0 ? table->inner : 0;
}

/* The kernel keeps the tables until every program that has found them has finished. */
static void delete_slot(const struct ring_maps *maps, __u32 slot)
{
	inner_map_delete(maps->ring_points, slot);
	inner_map_delete(maps->ring_index, slot);
	inner_map_delete(maps->ring_index_large, slot);
	inner_map_delete(maps->ring_members, slot);
}

static int fill_header(int fd, const void *header)
{
	__u32 first = 0;

	return bpf_map_update_elem(fd, &first, header, BPF_ANY);
}

static int replace_header(const struct ring_maps *maps, const struct btf *types, __u32 service,
			  const struct ring_header *header)
{
	struct inner_map map = {
		.type = BPF_MAP_TYPE_ARRAY,
		.name = "ring_header",
		.key_type = "__u32",
		.value_type = "ring_header",
		.key_size = sizeof(__u32),
		.value_size = sizeof(*header),
		.max_entries = 1,
	};
	int fd = inner_map_install(maps->rings, service, &map, types, fill_header, header);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int ring_maps_current(const struct ring_maps *maps, __u32 service, struct ring_header *header)
{
	__u32 first = 0;
	int fd = inner_map_open(maps->rings, service), err;

	if (fd < 0)
		return fd;
	err = bpf_map_lookup_elem(fd, &first, header);
	close(fd);
	return err;
}

int ring_maps_swap(const struct ring_maps *maps, __u32 service, struct ring *ring,
		   struct error *error)
{
	struct ring_header *header = &ring->header;
	struct table tables[TABLE_COUNT];
	struct ring_header old = {0};
	struct btf *types = NULL;
	bool had_ring;
	int err;

	if (service >= SERVICES_MAX)
		return error_set(error, -EINVAL, "there is no service number %u", service);
	err = ring_maps_current(maps, service, &old);
	had_ring = !err;
	if (err && err != -ENOENT)
		return error_set(
			error, err, "the current ring of service number %u cannot be read: %s",
			service,
			err == -EPERM ? "the pin of its map was deleted, or is not for this user"
				      : strerror(-err));
	header->generation = old.generation + 1;
	header->slot = service * 2;
	if (had_ring && old.slot == header->slot)
		header->slot++;

	list_tables(tables, maps, ring);
	types = table_types_load();
	for (int i = 0; i < TABLE_COUNT; i++) {
		err = load_table(&tables[i], header->slot, types);
		if (err) {
			error_set(error, err,
				  "the table %s of a ring with %u points cannot be loaded: %s",
				  tables[i].name, header->point_count, strerror(-err));
			goto out;
		}
	}
	err = replace_header(maps, types, service, header);
	if (err)
		error_set(error, err, "the ring of service number %u cannot be replaced: %s",
			  service, strerror(-err));
out:
	for (int i = 0; i < TABLE_COUNT; i++)
		if (tables[i].inner >= 0)
			close(tables[i].inner);
	btf__free(types);
	return err;
}

int ring_maps_clear(const struct ring_maps *maps, __u32 service, struct error *error)
{
	int err;

	if (service >= SERVICES_MAX)
		return error_set(error, -EINVAL, "there is no service number %u", service);
	err = inner_map_delete(maps->rings, service);
	if (err && err != -ENOENT)
		return error_set(error, err, "the ring of service number %u cannot be removed: %s",
				 service, strerror(-err));
	delete_slot(maps, service * 2);
	delete_slot(maps, service * 2 + 1);
	return 0;
}
