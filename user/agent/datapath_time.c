/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/datapath_time.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"

/* One for the process, as the statistic is one for the machine. It lasts as long as the descriptor is open. */
static int statistic = -1;

void datapath_time_configure(bool wanted)
{
	static bool told;

	if (!wanted && statistic >= 0) {
		close(statistic);
		statistic = -1;
	}
	if (!wanted || statistic >= 0)
		return;
	statistic = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (statistic < 0 && !told)
		log_warning(
			"metrics.datapath_time: the kernel does not time programs for this process (%s); "
			"it does at a start with CAP_SYS_ADMIN, or with sysctl kernel.bpf_stats_enabled=1",
			strerror(errno));
	told = statistic < 0;
}
