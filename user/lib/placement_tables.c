/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/placement_tables.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/inner_map.h"
#include "lib/table_types.h"

int placement_table_replace(int placements, __u32 service, __u32 max_entries, struct error *error)
{
	struct inner_map map = {
		.type = BPF_MAP_TYPE_LRU_HASH,
		.name = "placement_table",
		.key_type = "__u64",
		.value_type = "placement",
		.key_size = sizeof(__u64),
		.value_size = sizeof(struct placement),
		.max_entries = max_entries,
	};
	struct btf *types = table_types_load();
	int fd = inner_map_install(placements, service, &map, types, NULL, NULL);

	btf__free(types);
	if (fd < 0)
		return error_set(error, fd,
				 "the memory of %u placements of service %u cannot be made: %s; a "
				 "smaller memory_max_entries may fit",
				 max_entries, service, strerror(-fd));
	close(fd);
	return 0;
}

int placement_table_clear(int placements, __u32 service, struct error *error)
{
	int result = inner_map_delete(placements, service);

	if (result && result != -ENOENT)
		return error_set(error, result,
				 "the memory of placements of service %u cannot be removed: %s",
				 service, strerror(-result));
	return 0;
}

int placement_table_open(int placements, __u32 service)
{
	return inner_map_open(placements, service);
}

__u32 placement_table_size(int placements, __u32 service)
{
	struct bpf_map_info info = {0};
	__u32 length = sizeof(info);
	int fd = placement_table_open(placements, service);

	if (fd < 0)
		return 0;
	if (bpf_obj_get_info_by_fd(fd, &info, &length))
		info.max_entries = 0;
	close(fd);
	return info.max_entries;
}
