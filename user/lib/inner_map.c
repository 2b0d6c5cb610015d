/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/inner_map.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <unistd.h>

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
	if (!err && bpf_map_update_elem(outer, &key, &fd, BPF_ANY))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
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
