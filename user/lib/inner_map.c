/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/inner_map.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The BPF file system allows no dots in names. */
#define NEW "+new"

static char pin_directory[PATH_MAX];

void inner_map_pin_below(const char *directory)
{
	snprintf(pin_directory, sizeof(pin_directory), "%s", directory ? directory : "");
}

/* --- pins ------------------------------------------------------------------------------------------------------- */

static __u32 id_of(int fd)
{
	struct bpf_map_info info = {0};
	__u32 length = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &length) ? 0 : info.id;
}

/* False: maps are not pinned. */
static bool pin_path(int outer, __u32 key, const char *suffix, char path[PATH_MAX])
{
	struct bpf_map_info info = {0};
	__u32 length = sizeof(info);

	if (!pin_directory[0] || bpf_obj_get_info_by_fd(outer, &info, &length))
		return false;
	snprintf(path, PATH_MAX, "%.3500s/%.16s-%u%s", pin_directory, info.name, key, suffix);
	return true;
}

static int open_pin(int outer, __u32 key, const char *suffix, __u32 id)
{
	char path[PATH_MAX];
	int fd;

	if (!pin_path(outer, key, suffix, path))
		return -1;
	fd = bpf_obj_get(path);
	if (fd >= 0 && id_of(fd) != id) {
		close(fd);
		return -1;
	}
	return fd;
}

static void pin(int outer, __u32 key, const char *suffix, int fd)
{
	char path[PATH_MAX];

	if (!pin_path(outer, key, suffix, path))
		return;
	unlink(path);
	bpf_obj_pin(fd, path);
}

/* One that is pinned as new is in its place now. */
static void settle_pin(int outer, __u32 key)
{
	char from[PATH_MAX], to[PATH_MAX];

	if (pin_path(outer, key, NEW, from) && pin_path(outer, key, "", to))
		rename(from, to);
}

/* --- opening, installing, deleting ------------------------------------------------------------------------------- */

int inner_map_open(int outer, __u32 key)
{
	__u32 id;
	int fd;

	if (bpf_map_lookup_elem(outer, &key, &id))
		return -errno;
	fd = open_pin(outer, key, "", id);
	if (fd < 0)
		fd = open_pin(outer, key, NEW, id);
	if (fd >= 0)
		return fd;
	/* One that nobody pinned: this needs CAP_SYS_ADMIN; the next time it will not. */
	fd = bpf_map_get_fd_by_id(id);
	if (fd < 0)
		return -errno;
	pin(outer, key, "", fd);
	return fd;
}

int inner_map_delete(int outer, __u32 key)
{
	char path[PATH_MAX];
	int result = bpf_map_delete_elem(outer, &key) ? -errno : 0;

	if (!result || result == -ENOENT) {
		if (pin_path(outer, key, "", path))
			unlink(path);
		if (pin_path(outer, key, NEW, path))
			unlink(path);
	}
	return result;
}

static int install(int outer, __u32 key, const struct inner_map *map, const struct btf *types,
		   inner_map_fill fill, const void *entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = map->flags);
	int fd, err = 0;

	if (types) {
		options.btf_fd = btf__fd(types);
		options.btf_key_type_id = btf__find_by_name(types, map->key_type);
		options.btf_value_type_id = btf__find_by_name(types, map->value_type);
	}
	fd = bpf_map_create(map->type, map->name, map->key_size, map->value_size, map->max_entries,
			    &options);
	if (fd < 0)
		return -errno;
	if (fill)
		err = fill(fd, entries);
	if (!err)
		pin(outer, key, NEW, fd);
	if (!err && bpf_map_update_elem(outer, &key, &fd, BPF_ANY))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	settle_pin(outer, key);
	return fd;
}

int inner_map_install(int outer, __u32 key, const struct inner_map *map, const struct btf *types,
		      inner_map_fill fill, const void *entries)
{
	int fd = -EINVAL;

	if (types)
		fd = install(outer, key, map, types, fill, entries);
	if (fd < 0)
		fd = install(outer, key, map, NULL, fill, entries);
	return fd;
}
