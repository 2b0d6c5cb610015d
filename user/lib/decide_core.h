/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decision core (include/warmpath/decide.h) as compiled for user space.
 *
 * Owns: running it over tables in memory. May not know: where those come from (events, live maps, a trace).
 */
#ifndef WARMPATH_USER_DECIDE_CORE_H
#define WARMPATH_USER_DECIDE_CORE_H

#include <stdbool.h>
#include <warmpath/decide_state.h>
#include <warmpath/layout.h>

/* Everything is borrowed; the loads are charged. */
struct decide_tables {
	const struct ring_point *points;   /* state->point_count */
	const struct ring_member *members; /* state->member_count, by name */
	struct service_load *service_load;
	struct replica_load *loads;	   /* by slot, REPLICAS_MAX */
	const __u32 *incarnations;	   /* by slot, REPLICAS_MAX; 0: not active */
	const struct placement *placement; /* of the request's id, or NULL */
};

/* Decides on state->request and charges; the answer is state->decision. state->first_replica is filled in. */
void decide_run(const struct decide_tables *tables, struct decide_state *state);

/* Gives a charge back (decide_give_back() of the core). */
void decide_run_give_back(const struct decide_tables *tables, __u32 replica, __u64 number,
			  __u32 requests, __u32 tokens);

/* A replica enters or leaves the set (decide_set_member() of the core). */
void decide_run_set_member(struct service_load *sums, struct replica_load *load, bool member);

/* What the loads are counted in (decide_metric() of the core). */
enum load_metric decide_run_metric(const struct policy_settings *settings);

/* decide_fits() of the core. */
bool decide_run_fits(__u32 load, __u32 cost, __u64 sum, __u32 replica_count, __u32 epsilon,
		     enum load_metric metric);

/* "home", "sticky-long", ...; "unknown" for a number that is no reason. */
const char *route_reason_text(enum route_reason reason);

#endif /* WARMPATH_USER_DECIDE_CORE_H */
