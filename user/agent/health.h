/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The health of the replicas: checks them as configured, takes those that are down off their rings and puts them back, in a new life.
 *
 * Owns: when a check is due, how many run at once, what becomes of results. May not know: how a check is made (health_check.h), how results
 * are counted (health_record.h).
 *
 * A replica that was down, or says that it has been started anew, has lost its cache: it gets another incarnation, which voids its placements.
 */
#ifndef WARMPATH_AGENT_HEALTH_H
#define WARMPATH_AGENT_HEALTH_H

#include <jansson.h>
#include <stdint.h>

#include "agent/health_record.h"
#include "lib/error.h"

struct agent;
struct health;

/*
 * Begins in the agent's loop. 0, or a negative errno with a sentence. health_close() may be given NULL; the loop then has to run to free the
 * rest. The others do nothing with NULL.
 */
int health_open(struct agent *agent, struct health **health, struct error *error);
void health_close(struct health *health);

/* The routing has changed. */
void health_follow(struct health *health);

/* Somebody else than a check has heard from the process that serves as the replica (health_check.h says what `process` is).
 * Does not count where checks say it themselves. */
void health_heard(struct health *health, __u32 slot, __u32 process);

/* The data path says that the replica has refused or reset connections of users; how many is in the map replica_contacts. */
void health_refused(struct health *health, __u32 slot);

/* NULL: the replica is not checked. */
const struct health_record *health_of(const struct health *health, __u32 slot);

/* {"state": "up", "since": ..., ...}; a new reference. */
json_t *health_json(const struct health *health, __u32 slot);

#endif /* WARMPATH_AGENT_HEALTH_H */
