/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A decision as one line of JSON, to the letter as the reference implementation prints it.
 *
 * Owns: keys, order, number formats. May not know: how decisions are made.
 */
#ifndef WARMPATH_USER_DECIDE_TEXT_H
#define WARMPATH_USER_DECIDE_TEXT_H

#include <stdio.h>
#include <warmpath/decision.h>

#include "lib/ring.h"

/*
 * (1 + epsilon) x (sum + cost) / replica_count: a whole number where requests are counted (rounded up), else as a double,
 * computed as the reference does, so that both round alike. replica_count: at least 1.
 */
double decision_cap(__u64 sum, __u32 cost, __u32 replica_count, __u32 epsilon_millionths,
		    enum load_metric metric);

/*
 * request: as it stands in the event. id: only characters that an id may have. loads: of ring's members, before the charge.
 */
void decision_print_json(FILE *to, long long request, const char *id,
			 const struct decision *decision, const struct policy_settings *settings,
			 const struct ring *ring, const __u32 *loads);

#endif /* WARMPATH_USER_DECIDE_TEXT_H */
