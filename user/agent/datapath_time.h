/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the data path's programs take: the kernel's own statistic (run_time_ns, run_cnt of a program), which is off unless asked for.
 *
 * Owns: asking for it. May not know: who reads the programs' numbers.
 */
#ifndef WARMPATH_AGENT_DATAPATH_TIME_H
#define WARMPATH_AGENT_DATAPATH_TIME_H

#include <stdbool.h>

/* Called at the start while there are the privileges for it (CAP_SYS_ADMIN), and after reloads. A refusal is a warning. */
void datapath_time_configure(bool wanted);

#endif /* WARMPATH_AGENT_DATAPATH_TIME_H */
