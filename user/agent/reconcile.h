/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeping loads true: requests that are not answered in time are ended, and charges whose request has been pushed out of the table are
 * found and taken back.
 *
 * Owns: the walk over `requests`, what counts as too much or too little. May not know: how a charge is given back (lib/calls.h).
 */
#ifndef WARMPATH_AGENT_RECONCILE_H
#define WARMPATH_AGENT_RECONCILE_H

#include "agent/datapath.h"
#include "agent/routing.h"

struct reconcile_result {
	unsigned int open; /* requests that stay open */
	unsigned int timed_out;
	unsigned int abandoned; /* of services or replicas that are gone */
	unsigned int forgotten; /* entries of ended requests that were taken away */
	unsigned int repaired;	/* replicas whose load was corrected */
	long long requests;	/* by how much: negative where there was too much */
	long long tokens;
};

/* What of a replica's load stands for requests that others than this router have sent to it (reported_load.h). */
struct foreign_load {
	__u32 requests;
	__u64 tokens;
};

/* What all passes of an agent have come to. */
struct reconcile_totals {
	unsigned long long passes;
	unsigned long long timed_out;
	unsigned long long abandoned;
	unsigned long long repaired;
};

/*
 * Walks over all open requests and ends those that are overdue or whose service or replica is gone; entries of ended ones that are not used again
 * soon are taken away. With `loads`, then compares the loads with
 * what was found and repairs what is certainly wrong. foreign: by replica slot, NULL: none. 0; or a negative errno with a sentence.
 */
int reconcile(const struct datapath *datapath, const struct routing *routing, bool loads,
	      const struct foreign_load *foreign, struct reconcile_result *result,
	      struct error *error);

#endif /* WARMPATH_AGENT_RECONCILE_H */
