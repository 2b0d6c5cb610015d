/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metrics as text: the format of Prometheus, version 0.0.4.
 *
 * Owns: which numbers, their labels, the format. May not know: HTTP.
 */
#ifndef WARMPATH_AGENT_METRICS_TEXT_H
#define WARMPATH_AGENT_METRICS_TEXT_H

#include <stddef.h>

struct agent;

/* What the agent has counted itself. */
struct metrics_counts {
	unsigned long long scrapes;
};

/* All metrics, closed by NUL; *length without that. The caller frees; NULL without memory. */
char *metrics_text(const struct agent *agent, const struct metrics_counts *counts, size_t *length);

#endif /* WARMPATH_AGENT_METRICS_TEXT_H */
