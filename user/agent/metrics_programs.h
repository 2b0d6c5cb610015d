/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel knows of the data path's programs that is no map of the router's: how long they took, and the counters of role replica.
 *
 * Owns: finding the programs. May not know: how the numbers are shown.
 */
#ifndef WARMPATH_AGENT_METRICS_PROGRAMS_H
#define WARMPATH_AGENT_METRICS_PROGRAMS_H

#include <warmpath/handoff_counters.h>

#include "agent/datapath.h"

struct program_time {
	const char *name;
	__u64 runs; /* that the kernel has timed */
	__u64 nanoseconds;
};

/* Gives the time of each program that packets go through to `take`. */
void metrics_programs_each(const struct datapath *datapath,
			   void (*take)(void *context, const struct program_time *time),
			   void *context);

/* Sums the counters of connections taken over on this machine. 0; -ENOENT where none are; or another negative errno. */
int metrics_handoff_counters(const struct datapath *datapath, struct handoff_counters *counters);

#endif /* WARMPATH_AGENT_METRICS_PROGRAMS_H */
