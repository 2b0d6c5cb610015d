/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of the sets of replicas, for those who watch.
 *
 * Owns: what a change is called, how much of the ring it moves. May not know: why it is made, how it is applied.
 */
#ifndef WARMPATH_AGENT_CHANGES_H
#define WARMPATH_AGENT_CHANGES_H

#include "agent/routing.h"

struct agent;
struct changes;

/* Before `next` is applied: what it will change. NULL without memory: then nothing is told. */
struct changes *changes_begin(struct agent *agent, const struct routing *next);

/* After it has become the agent's routing: tells it, and frees `changes` (NULL is fine). */
void changes_publish(struct agent *agent, struct changes *changes);
void changes_drop(struct changes *changes);

#endif /* WARMPATH_AGENT_CHANGES_H */
