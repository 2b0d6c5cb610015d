/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/placement_tables.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/table_types.h"

/* With types if the kernel took them, so that bpftool prints field names; without, the map serves as well. */
static int create_table(__u32 max_entries)
{
	struct btf *types = table_types_load();
	int fd = -1;

	if (types) {
		LIBBPF_OPTS(bpf_map_create_opts, options, .btf_fd = btf__fd(types));

		options.btf_key_type_id = btf__find_by_name(types, "__u64");
		options.btf_value_type_id = btf__find_by_name(types, "placement");
		fd = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "placement_table", sizeof(__u64),
				    sizeof(struct placement), max_entries, &options);
		btf__free(types);
	}
	if (fd < 0)
		fd = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "placement_table", sizeof(__u64),
				    sizeof(struct placement), max_entries, NULL);
	return fd < 0 ? -errno : fd;
}

int placement_table_replace(int placements, __u32 service, __u32 max_entries, struct error *error)
{
	int fd = create_table(max_entries), err = 0;

	if (fd < 0)
		return error_set(error, fd,
				 "A memory of %u placements cannot be made: %s; a smaller "
				 "memory_max_entries may fit.",
				 max_entries, strerror(-fd));
	if (bpf_map_update_elem(placements, &service, &fd, BPF_ANY))
		err = error_set(error, -errno,
				"The memory of placements of service %u cannot be replaced: %s.",
				service, strerror(errno));
	close(fd);
	return err;
}

int placement_table_clear(int placements, __u32 service, struct error *error)
{
	if (bpf_map_delete_elem(placements, &service) && errno != ENOENT)
		return error_set(error, -errno,
				 "The memory of placements of service %u cannot be removed: %s.",
				 service, strerror(errno));
	return 0;
}

int placement_table_open(int placements, __u32 service)
{
	__u32 id;
	int fd;

	if (bpf_map_lookup_elem(placements, &service, &id))
		return -errno;
	fd = bpf_map_get_fd_by_id(id);
	return fd < 0 ? -errno : fd;
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
