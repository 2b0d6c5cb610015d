/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the cost of a simulation grows with its size.
 *
 * Owns: the sizes, the table. May not know: command lines.
 */
#ifndef SIMULATE_GROWTH_H
#define SIMULATE_GROWTH_H

#include "simulation.h"

#define GROWTH_CONVERSATIONS 1000 /* of each replica, unless said otherwise */

/*
 * Runs the profile on 1, 3, 10 ... replicas, up to `most`, with `each` conversations for each of them, and prints what that
 * cost. settings and profile (settings->profile) are changed on the way. 0, or a negative errno with a sentence.
 */
int growth_show(struct simulation_settings *settings, struct profile *profile, uint32_t most,
		uint32_t each, struct error *error);

#endif /* SIMULATE_GROWTH_H */
