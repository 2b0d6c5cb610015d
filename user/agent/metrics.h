/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics for Prometheus, over HTTP.
 *
 * Owns: listening, who may ask what, how often the text is made. May not know: where the numbers come from (metrics_text.h).
 *
 * Read only: GET and HEAD of /metrics. At most METRICS_CLIENTS_MAX connections, each closed after METRICS_IDLE_SECONDS without progress;
 * the text is made at most once a second, whoever asks.
 */
#ifndef WARMPATH_AGENT_METRICS_H
#define WARMPATH_AGENT_METRICS_H

#include "lib/config.h"
#include "lib/error.h"

#define METRICS_CLIENTS_MAX  16
#define METRICS_IDLE_SECONDS 10

struct agent;
struct metrics;

/* Begins to answer where the configuration says, in the agent's loop; nowhere is fine. A place that cannot be had is
 * logged. 0, or a negative errno with a sentence. */
int metrics_open(struct agent *agent, struct metrics **metrics, struct error *error);
void metrics_close(struct metrics *metrics); /* NULL is fine; the loop then has to run */

/*
 * Begins to answer at the places of `wanted` and ceases at others. 0; or a negative errno with a sentence that says which place cannot be
 * had, and everything is as before.
 */
int metrics_configure(struct metrics *metrics, const struct config_metrics *wanted,
		      struct error *error);

#endif /* WARMPATH_AGENT_METRICS_H */
