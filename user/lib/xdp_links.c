/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/xdp_links.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

static bool holds(int link, int interface_index, __u32 program)
{
	struct bpf_link_info info = {0};
	__u32 length = sizeof(info);

	return bpf_obj_get_info_by_fd(link, &info, &length) == 0 &&
	       info.type == BPF_LINK_TYPE_XDP && (int)info.xdp.ifindex == interface_index &&
	       info.prog_id == program;
}

int xdp_link_detach_next(__u32 *id, int interface_index, __u32 program)
{
	while (bpf_link_get_next_id(*id, id) == 0) {
		int link = bpf_link_get_fd_by_id(*id);
		int result;

		if (link < 0)
			continue;
		if (!holds(link, interface_index, program)) {
			close(link);
			continue;
		}
		result = bpf_link_detach(link) ? -errno : 0;
		close(link);
		return result;
	}
	return errno == EPERM ? -EPERM : -ENOENT;
}
