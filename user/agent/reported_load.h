/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What replicas themselves say about their load: read from their metrics, shown beside the router's own numbers, and, where configured, used to
 * correct the load by what others have sent to them.
 *
 * Owns: when a replica is asked, how many are asked at once, the foreign part of its load. May not know: what the metrics are called
 * (reported_metrics.h), how a load is changed (lib/calls.h).
 */
#ifndef WARMPATH_AGENT_REPORTED_LOAD_H
#define WARMPATH_AGENT_REPORTED_LOAD_H

#include <jansson.h>

#include "agent/reconcile.h"
#include "agent/reported_metrics.h"
#include "lib/error.h"

struct agent;
struct reported_load;

/* 0, or a negative errno with a sentence. Closing takes the foreign loads back; NULL is fine; the loop then has to run. */
int reported_load_open(struct agent *agent, struct reported_load **loads, struct error *error);
void reported_load_close(struct reported_load *loads);

/* The routing has changed. NULL is fine. */
void reported_load_follow(struct reported_load *loads);

/* By replica slot; NULL before it is open. */
const struct foreign_load *reported_load_foreign(const struct reported_load *loads);

/* Takes the foreign part off a load that was read from the map. NULL is fine. */
void reported_load_own(const struct reported_load *loads, __u32 slot, struct replica_load *load);

/* The last that a replica has said and its age in seconds; NULL: nothing, or too long ago. */
const struct reported_metrics *reported_load_of(const struct reported_load *loads, __u32 slot,
						double *age);

/* {"running": ..., "waiting": ..., "cache_usage": ..., "age_seconds": ..., "failure": ...}; NULL if the replica is not asked. */
json_t *reported_load_json(const struct reported_load *loads, __u32 slot);

#endif /* WARMPATH_AGENT_REPORTED_LOAD_H */
