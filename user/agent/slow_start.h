/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slow start: a replica that is new, or back after it was down, begins with a tenth of its share of the ring and gets the rest in nine
 * equal steps over the configured time.
 *
 * Owns: who begins slowly, the steps. May not know: why a replica enters, sockets.
 *
 * A point of the ring is made of the replica's name and a number; a larger share only adds points. So a step moves conversations to the
 * rising replica and none away from it. With 100 points for each of N other replicas, a step moves about one conversation in ten N.
 */
#ifndef WARMPATH_AGENT_SLOW_START_H
#define WARMPATH_AGENT_SLOW_START_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/routing.h"

#define SLOW_START_STEPS 10 /* the first at once */

/*
 * Sets the shares of `next`, which is to follow `current`: who becomes active in a new life begins slowly if its service says so and
 * others that stay have their whole share already; where nobody has, all get theirs at once, as only proportions count.
 */
void slow_start_begin(const struct routing *current, struct routing *next);

/* The share in thousandths after so many milliseconds of `whole`; 0: all of it. */
__u16 slow_start_share(uint64_t elapsed, uint64_t whole);

/* The reverse: after how many milliseconds of `whole` a share is reached. */
uint64_t slow_start_elapsed(__u16 share_thousandths, uint64_t whole);

struct agent;
struct slow_start;

/* Raises the shares in the agent's loop as time goes by. 0, or a negative errno with a sentence. */
int slow_start_open(struct agent *agent, struct slow_start **slow_start, struct error *error);
void slow_start_close(struct slow_start *slow_start); /* NULL is fine; the loop then has to run */

/* The routing has changed. NULL is fine. */
void slow_start_follow(struct slow_start *slow_start);

#endif /* WARMPATH_AGENT_SLOW_START_H */
