/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/decide_core.h"

struct decide_source {
	struct decide_state *state;
	const struct decide_tables *tables;
};

static __always_inline struct service_load *decide_service_load(const struct decide_source *source)
{
	return source->tables->service_load;
}

static __always_inline struct replica_load *decide_replica_load(const struct decide_source *source,
								__u32 replica)
{
	return replica < REPLICAS_MAX ? &source->tables->loads[replica] : NULL;
}

static __always_inline bool decide_point(const struct decide_source *source, __u32 position,
					 __u32 *replica)
{
	if (position >= source->state->point_count)
		return false;
	*replica = source->tables->points[position].replica;
	return true;
}

static __always_inline bool decide_member(const struct decide_source *source, __u32 index,
					  __u32 *replica)
{
	if (index >= source->state->member_count)
		return false;
	*replica = source->tables->members[index].replica;
	return true;
}

static __always_inline bool decide_placement(const struct decide_source *source,
					     struct placement *placement)
{
	if (!source->tables->placement)
		return false;
	*placement = *source->tables->placement;
	return true;
}

static __always_inline __u32 decide_incarnation(const struct decide_source *source, __u32 replica)
{
	return replica < REPLICAS_MAX ? source->tables->incarnations[replica] : 0;
}

/* One thread has the tables to itself. */
static __always_inline void decide_lock(struct service_load *load)
{
	(void)load;
}

static __always_inline void decide_unlock(struct service_load *load)
{
	(void)load;
}

static __always_inline void decide_repeat(__u32 times, long (*step)(__u32 index, void *context),
					  struct decide_source *source)
{
	for (__u32 i = 0; i < times; i++) {
		if (step(i, source))
			break;
	}
}

#include <warmpath/decide.h>

void decide_run(const struct decide_tables *tables, struct decide_state *state)
{
	struct decide_source source = {.state = state, .tables = tables};

	state->first_replica =
		state->point_count > 0 ? tables->points[state->first_point].replica : REPLICA_NONE;
	decide(&source);
}

void decide_run_give_back(const struct decide_tables *tables, __u32 replica, __u64 number,
			  __u32 requests, __u32 tokens)
{
	if (replica < REPLICAS_MAX)
		decide_give_back(tables->service_load, &tables->loads[replica], number, requests,
				 tokens);
}

void decide_run_set_member(struct service_load *sums, struct replica_load *load, bool member)
{
	decide_set_member(sums, load, member);
}

enum load_metric decide_run_metric(const struct policy_settings *settings)
{
	return decide_metric(settings);
}

bool decide_run_fits(__u32 load, __u32 cost, __u64 sum, __u32 replica_count, __u32 epsilon,
		     enum load_metric metric)
{
	return decide_fits(load, cost, sum, replica_count, epsilon, metric);
}

const char *route_reason_text(enum route_reason reason)
{
	static const char *const texts[] = {
#define X(name, text) [REASON_##name] = text,
		WARMPATH_ROUTE_REASONS(X)
#undef X
	};

	return (unsigned int)reason < REASON_COUNT ? texts[reason] : "unknown";
}
