/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's driver without a kernel: tables in memory, the core compiled for user space, an exact LRU.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/decide_core.h"
#include "lib/engine.h"
#include "lib/recency_table.h"

struct open_charge {
	__u64 number;
	__u64 id_hash;
	__u32 replica;
	__u32 prompt_tokens;
	__u32 requests;
	__u32 tokens;
};

struct tables {
	struct service_load service_load;
	struct replica_load loads[REPLICAS_MAX];
	__u32 incarnations[REPLICAS_MAX]; /* of the life under way, or the next one */
	__u32 alive[REPLICAS_MAX];	  /* the same, 0 outside the set */
	struct recency_table *placements;
	struct recency_table *requests;
	struct decide_state state;
};

static int no_memory(struct error *error)
{
	return error_set(error, -ENOMEM, "there is no memory for the request");
}

static int user_open(struct engine *engine, struct error *error)
{
	struct tables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return no_memory(error);
	engine->driver_data = tables;
	tables->placements = recency_table_new(sizeof(__u64), sizeof(struct placement),
					       engine->settings.policy.memory_max_entries);
	tables->requests = recency_table_new(sizeof(__u64), sizeof(struct open_charge), 0);
	if (!tables->placements || !tables->requests)
		return no_memory(error);
	for (__u32 slot = 0; slot < REPLICAS_MAX; slot++)
		tables->incarnations[slot] = 1;
	return 0;
}

static void user_close(struct engine *engine)
{
	struct tables *tables = engine->driver_data;

	if (!tables)
		return;
	recency_table_free(tables->placements);
	recency_table_free(tables->requests);
	free(tables);
}

static int user_load_ring(struct engine *engine, struct error *error)
{
	(void)engine; /* the ring is asked where it is */
	(void)error;
	return 0;
}

static bool is_placed_on(const void *value, const void *context)
{
	const struct placement *placement = value;
	const __u32 *slot = context;

	return placement->replica == *slot;
}

static int user_set_member(struct engine *engine, __u32 slot, bool member, struct error *error)
{
	struct tables *tables = engine->driver_data;
	struct service_load *sums = &tables->service_load;
	struct replica_load *load = &tables->loads[slot];

	(void)error;
	decide_run_set_member(sums, load, member);
	if (!member) {
		tables->incarnations[slot]++;
		recency_table_remove_all(tables->placements, is_placed_on, &slot);
	}
	tables->alive[slot] = member ? tables->incarnations[slot] : 0;
	return 0;
}

static int user_read_load(struct engine *engine, __u32 slot, struct replica_load *load,
			  struct error *error)
{
	struct tables *tables = engine->driver_data;

	(void)error;
	*load = tables->loads[slot];
	return 0;
}

static struct decide_tables core_tables(struct engine *engine, const struct placement *placement)
{
	struct tables *tables = engine->driver_data;

	return (struct decide_tables){
		.points = engine->ring.points,
		.members = engine->ring.members,
		.service_load = &tables->service_load,
		.loads = tables->loads,
		.incarnations = tables->alive,
		.placement = placement,
	};
}

static int user_request(struct engine *engine, const struct engine_request *request,
			struct decision *decision, struct error *error)
{
	struct tables *tables = engine->driver_data;
	struct decide_state *state = &tables->state;
	const struct ring *ring = &engine->ring;
	__u64 hash = ring_hash(ring, request->id, request->id_length);
	struct decide_tables core =
		core_tables(engine, recency_table_find(tables->placements, &hash));
	struct open_charge charge;

	state->settings = engine->settings.policy;
	state->request = (struct decide_request){
		.id_hash = hash,
		.prompt_tokens = request->prompt_tokens,
		.max_tokens = request->max_tokens,
	};
	if (ring->header.dialect == RING_REPLICA_ROUTER)
		state->request.id_hash_low = md5(request->id, request->id_length).low;
	state->point_count = ring->header.point_count;
	state->member_count = ring->header.member_count;
	state->dialect = ring->header.dialect;
	state->first_point = state->point_count > 0 ? ring_lookup(ring, hash) : 0;
	decide_run(&core, state);
	*decision = state->decision;
	if (decision->number == 0)
		return 0;
	charge = (struct open_charge){
		.number = decision->number,
		.id_hash = hash,
		.replica = decision->replica,
		.prompt_tokens = decision->prompt_tokens,
		.requests = decision->flags & DECISION_CHARGED ? 1 : 0,
		.tokens = decision->charge,
	};
	if (recency_table_put(tables->requests, &request->request, &charge))
		return no_memory(error);
	return 0;
}

static int user_finish(struct engine *engine, __u64 request, bool success, struct error *error)
{
	const struct policy_settings *policy = &engine->settings.policy;
	struct tables *tables = engine->driver_data;
	struct open_charge *charge = recency_table_find(tables->requests, &request);
	struct decide_tables core = core_tables(engine, NULL);
	int err = 0;

	if (!charge)
		return 0;
	decide_run_give_back(&core, charge->replica, charge->number, charge->requests,
			     charge->tokens);
	if (success && policy->policy == POLICY_LLM_AWARE && policy->placement_memory &&
	    tables->alive[charge->replica] != 0) {
		struct placement placement = {
			.replica = charge->replica,
			.incarnation = tables->alive[charge->replica],
			.prompt_tokens = charge->prompt_tokens,
		};

		err = recency_table_put(tables->placements, &charge->id_hash, &placement);
	}
	recency_table_remove(tables->requests, &request);
	return err ? no_memory(error) : 0;
}

const struct engine_driver engine_driver_user = {
	.name = "user",
	.open = user_open,
	.close = user_close,
	.load_ring = user_load_ring,
	.set_member = user_set_member,
	.read_load = user_read_load,
	.request = user_request,
	.finish = user_finish,
};
