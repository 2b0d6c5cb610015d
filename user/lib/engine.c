/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/decide_core.h"

static int build_ring(struct engine *engine, struct ring *ring, struct error *error)
{
	struct ring_settings settings = {
		.dialect = engine->settings.dialect,
		.vnodes = engine->settings.vnodes,
		.hash_key = engine->hash_key,
		.hash_key_length = engine->settings.hash_key_length,
	};
	struct ring_replica *replicas = calloc(REPLICAS_MAX, sizeof(*replicas));
	size_t count = 0;
	int err;

	if (!replicas)
		return error_set(error, -ENOMEM, "there is no memory for the replicas");
	for (__u32 slot = 0; slot < REPLICAS_MAX; slot++) {
		if (!engine->slots[slot].member)
			continue;
		replicas[count++] = (struct ring_replica){
			.name = engine->slots[slot].name,
			.slot = slot,
			.weight_thousandths = RING_WEIGHT_ONE,
		};
	}
	err = ring_build(ring, &settings, replicas, count, error);
	free(replicas);
	return err;
}

int engine_open(struct engine **result, const struct engine_driver *driver,
		const struct engine_settings *settings, struct error *error)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int err;

	if (!engine)
		return error_set(error, -ENOMEM, "there is no memory for the engine");
	engine->driver = driver;
	engine->settings = *settings;
	if (settings->hash_key_length > 0)
		memcpy(engine->hash_key, settings->hash_key, settings->hash_key_length);
	engine->settings.hash_key = engine->hash_key;
	engine->open = recency_table_new(sizeof(__u64), sizeof(__u8), 0);
	err = engine->open ? build_ring(engine, &engine->ring, error)
			   : error_set(error, -ENOMEM, "there is no memory for the engine");
	if (err) {
		recency_table_free(engine->open);
		free(engine);
		return err;
	}
	err = driver->open(engine, error);
	if (!err)
		err = driver->load_ring(engine, error);
	if (err) {
		engine_close(engine);
		return err;
	}
	*result = engine;
	return 0;
}

void engine_close(struct engine *engine)
{
	if (!engine)
		return;
	engine->driver->close(engine);
	ring_free(&engine->ring);
	recency_table_free(engine->open);
	explicit_bzero(engine->hash_key, sizeof(engine->hash_key));
	free(engine);
}

static __u32 find_slot(const struct engine *engine, const char *name)
{
	for (__u32 slot = 0; slot < REPLICAS_MAX; slot++)
		if (strcmp(engine->slots[slot].name, name) == 0)
			return slot;
	return REPLICA_NONE;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* A replica that left keeps its slot while it has load: a name that comes back finds its own again. */
static int take_slot(struct engine *engine, const char *name, __u32 *slot, struct error *error)
{
	*slot = find_slot(engine, name);
	if (*slot != REPLICA_NONE)
		return 0;
	for (__u32 i = 0; i < REPLICAS_MAX; i++) {
		struct replica_load load;
		int err;

		if (engine->slots[i].member)
			continue;
		err = engine->driver->read_load(engine, i, &load, error);
		if (err)
			return err;
		if (load.requests > 0 || load.tokens > 0)
			continue;
		*slot = i;
		memset(engine->slots[i].name, 0, REPLICA_NAME_SIZE);
		strncpy(engine->slots[i].name, name, REPLICA_NAME_SIZE - 1);
		return 0;
	}
	return error_set(error, -ENOSPC, "there is no room for replica %s: at most %d are possible",
			 name, REPLICAS_MAX);
}

int engine_set_replicas(struct engine *engine, const char *const *names, size_t count,
			struct error *error)
{
	bool stays[REPLICAS_MAX];
	struct ring ring;
	__u32 slot;
	int err;

	for (size_t i = 0; i < count; i++) {
		err = ring_check_name(names[i], error);
		if (err)
			return err;
	}
	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		struct engine_slot *entry = &engine->slots[slot];

		stays[slot] = entry->member && is_among(entry->name, names, count);
		if (!entry->member || stays[slot])
			continue;
		entry->member = false;
		err = engine->driver->set_member(engine, slot, false, error);
		if (err)
			return err;
	}
	for (size_t i = 0; i < count; i++) {
		err = take_slot(engine, names[i], &slot, error);
		if (err)
			return err;
		engine->slots[slot].member = true;
	}
	err = build_ring(engine, &ring, error);
	if (err)
		return err;
	ring_free(&engine->ring);
	engine->ring = ring;
	err = engine->driver->load_ring(engine, error);
	for (slot = 0; !err && slot < REPLICAS_MAX; slot++)
		if (engine->slots[slot].member && !stays[slot])
			err = engine->driver->set_member(engine, slot, true, error);
	return err;
}

int engine_request(struct engine *engine, const struct engine_request *request,
		   struct decision *decision, struct error *error)
{
	__u8 open = 1;
	int err;

	if (recency_table_find(engine->open, &request->request))
		return error_set(error, -EEXIST, "request %lld is open already",
				 (long long)request->request);
	err = engine->driver->request(engine, request, decision, error);
	if (!err && decision->number > 0 &&
	    recency_table_put(engine->open, &request->request, &open))
		err = error_set(error, -ENOMEM, "there is no memory for the request");
	return err;
}

int engine_finish(struct engine *engine, __u64 request, bool success, struct error *error)
{
	if (!recency_table_find(engine->open, &request))
		return 0;
	recency_table_remove(engine->open, &request);
	return engine->driver->finish(engine, request, success, error);
}

int engine_loads(struct engine *engine, __u32 values[REPLICAS_MAX], struct error *error)
{
	enum load_metric metric = decide_run_metric(&engine->settings.policy);
	struct replica_load load;
	int err;

	for (__u32 i = 0; i < engine->ring.header.member_count; i++) {
		err = engine->driver->read_load(engine, engine->ring.members[i].replica, &load,
						error);
		if (err)
			return err;
		values[i] = metric == LOAD_TOKENS ? load.tokens : load.requests;
	}
	return 0;
}
