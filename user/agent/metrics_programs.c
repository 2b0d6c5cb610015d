/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/metrics_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handoff.skel.h"
#include "handoff_local.skel.h"
#include "router_tc.skel.h"
#include "router_xdp.skel.h"

void metrics_programs_each(const struct datapath *datapath,
			   void (*take)(void *context, const struct program_time *time),
			   void *context)
{
	const struct bpf_program *programs[] = {
		datapath->xdp ? datapath->xdp->progs.warmpath_router_xdp : NULL,
		datapath->tc ? datapath->tc->progs.warmpath_router_tc : NULL,
		datapath->tc ? datapath->tc->progs.warmpath_return_tc : NULL,
		datapath->handoff_program,
	};

	for (unsigned int i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct bpf_prog_info info = {0};
		__u32 length = sizeof(info);
		struct program_time time;

		if (!programs[i] || bpf_program__fd(programs[i]) < 0 ||
		    bpf_obj_get_info_by_fd(bpf_program__fd(programs[i]), &info, &length))
			continue;
		time.name = bpf_program__name(programs[i]);
		time.runs = info.run_cnt;
		time.nanoseconds = info.run_time_ns;
		take(context, &time);
	}
}

int metrics_handoff_counters(const struct datapath *datapath, struct handoff_counters *counters)
{
	int cpus = libbpf_num_possible_cpus(), map = -1, cpu, result;
	struct handoff_counters *each;
	const __u32 first = 0;
	unsigned int i;

	memset(counters, 0, sizeof(*counters));
	if (datapath->handoff)
		map = bpf_map__fd(datapath->handoff->maps.handoff_counters);
	else if (datapath->handoff_local)
		map = bpf_map__fd(datapath->handoff_local->maps.handoff_counters);
	if (map < 0 || cpus < 0)
		return -ENOENT;
	each = calloc(cpus, sizeof(*each));
	if (!each)
		return -ENOMEM;
	result = bpf_map_lookup_elem(map, &first, each) ? -errno : 0;
	for (cpu = 0; cpu < cpus && !result; cpu++) {
		for (i = 0; i < HANDOFF_COUNTER_COUNT; i++)
			((__u64 *)counters)[i] += ((const __u64 *)&each[cpu])[i];
	}
	free(each);
	return result;
}
