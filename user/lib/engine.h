/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A router without packets: replicas come and go, requests are decided, answers end them. Two drivers do the deciding: the core
 * compiled for user space, and the program in the kernel.
 *
 * Owns: names and slots of replicas, the ring, what an event does. May not know: where events come from, what answers look like.
 */
#ifndef WARMPATH_USER_ENGINE_H
#define WARMPATH_USER_ENGINE_H

#include <warmpath/decision.h>

#include "lib/error.h"
#include "lib/recency_table.h"
#include "lib/ring.h"

struct engine_settings {
	struct policy_settings policy;
	enum ring_dialect dialect;
	__u32 vnodes;
	const void *hash_key; /* borrowed during engine_open() */
	size_t hash_key_length;
};

struct engine_request {
	__u64 request; /* number given by the caller; another one for each open request */
	const char *id;
	size_t id_length; /* 1 to ID_LENGTH_MAX */
	__u32 prompt_tokens;
	__u32 max_tokens;
};

struct engine;

/* What a driver does. Each: 0, or a negative errno with a sentence. */
struct engine_driver {
	const char *name;
	int (*open)(struct engine *engine, struct error *error);
	void (*close)(struct engine *engine);
	/* engine->ring is new */
	int (*load_ring)(struct engine *engine, struct error *error);
	/* a slot enters the set, or leaves it and starts a new incarnation */
	int (*set_member)(struct engine *engine, __u32 slot, bool member, struct error *error);
	int (*read_load)(struct engine *engine, __u32 slot, struct replica_load *load,
			 struct error *error);
	int (*request)(struct engine *engine, const struct engine_request *request,
		       struct decision *decision, struct error *error);
	int (*finish)(struct engine *engine, __u64 request, bool success, struct error *error);
};

extern const struct engine_driver engine_driver_user;
extern const struct engine_driver engine_driver_kernel;

struct engine_slot {
	char name[REPLICA_NAME_SIZE]; /* empty: free */
	bool member;
};

struct engine {
	const struct engine_driver *driver;
	void *driver_data;
	struct engine_settings settings;
	__u8 hash_key[RING_HASH_KEY_LENGTH_MAX];
	struct ring ring;
	struct recency_table *open; /* numbers of open requests */
	struct engine_slot slots[REPLICAS_MAX];
};

/* 0; or a negative errno with a sentence. On success the engine is to be closed; its set of replicas is empty. */
int engine_open(struct engine **engine, const struct engine_driver *driver,
		const struct engine_settings *settings, struct error *error);
void engine_close(struct engine *engine);

/* Replaces the whole set; names may come in any order and more than once. */
int engine_set_replicas(struct engine *engine, const char *const *names, size_t count,
			struct error *error);

/* -EEXIST: a request of this number is open. */
int engine_request(struct engine *engine, const struct engine_request *request,
		   struct decision *decision, struct error *error);

/* An unknown request is no error: nothing happens. */
int engine_finish(struct engine *engine, __u64 request, bool success, struct error *error);

/* The loads of the set in the policy's metric, in the order of engine->ring.names. */
int engine_loads(struct engine *engine, __u32 loads[REPLICAS_MAX], struct error *error);

#endif /* WARMPATH_USER_ENGINE_H */
