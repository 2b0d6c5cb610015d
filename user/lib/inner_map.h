/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes one map and puts it into a map of maps.
 *
 * Owns: creation with or without types, whichever the kernel and the outer map accept. May not know: what the map is for.
 */
#ifndef WARMPATH_USER_INNER_MAP_H
#define WARMPATH_USER_INNER_MAP_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

struct btf;

struct inner_map {
	enum bpf_map_type type;
	const char *name;
	const char *key_type; /* as table_types_load() names them */
	const char *value_type;
	__u32 key_size;
	__u32 value_size;
	__u32 max_entries;
	__u32 flags;
};

/* Writes the entries of a map that no program can see yet. Returns 0 or a negative errno. */
typedef int (*inner_map_fill)(int fd, const void *entries);

/*
 * Creates the map, fills it and puts it under the key into the outer map; `fill` may be NULL. With types, so that bpftool prints field
 * names, unless the kernel or the outer map refuses them: a kernel before 6.2 takes a typed and an untyped map for different.
 * Returns the descriptor, which the caller closes, or a negative errno: the outer map is then as before.
 */
int inner_map_install(int outer, __u32 key, const struct inner_map *map, const struct btf *types,
		      inner_map_fill fill, const void *entries);

/*
 * A descriptor of the inner map at `key`, to be closed by the caller; -ENOENT: there is none; or another negative errno (-EPERM: it is
 * pinned nowhere, and this process may not open maps by their ids).
 */
int inner_map_open(int outer, __u32 key);

/* Takes the inner map at `key` away, with its pin. 0, -ENOENT or another negative errno. */
int inner_map_delete(int outer, __u32 key);

/*
 * Has all inner maps of this process pinned in `directory` (which exists, on a BPF file system), as OUTER-KEY, so that they can be
 * opened without CAP_SYS_ADMIN: by this process and the next. NULL, as at the beginning: they are pinned nowhere.
 */
void inner_map_pin_below(const char *directory);

#endif /* WARMPATH_USER_INNER_MAP_H */
