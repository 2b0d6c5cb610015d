// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fuzzes the events of `warmpath decide`, and the decision core under them. Input: one byte for policy, metric and dialect, one for
 * epsilon, then events, one a line. After each, every replica's load is what its open requests were charged, and in the end nothing is left.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/decide_events.h"
#include "lib/policy.h"

#define OPEN_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct charge {
	__u64 request;
	__u32 replica;
	__u32 requests;
	__u64 tokens;
};

static struct charge open_charges[OPEN_MAX];
static size_t open_count;
static FILE *nowhere;

static void check(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "it does not hold that %s\n", what);
		__builtin_trap();
	}
}

/* --- the engine's driver, with an eye on what it does -------------------------------------------------------- */

static int watched_request(struct engine *engine, const struct engine_request *request,
			   struct decision *decision, struct error *error)
{
	int err = engine_driver_user.request(engine, request, decision, error);

	if (err || decision->number == 0)
		return err;
	check(decision->replica < REPLICAS_MAX, "the replica is one of the table");
	check(engine->slots[decision->replica].member, "the replica is in the set");
	check(decision->reason < REASON_COUNT, "the reason has a name");
	check(open_count < OPEN_MAX, "no more requests are open than lines were read");
	open_charges[open_count++] = (struct charge){
		.request = request->request,
		.replica = decision->replica,
		.requests = decision->flags & DECISION_CHARGED ? 1 : 0,
		.tokens = decision->charge,
	};
	return 0;
}

static int watched_finish(struct engine *engine, __u64 request, bool success, struct error *error)
{
	for (size_t i = 0; i < open_count; i++) {
		if (open_charges[i].request != request)
			continue;
		open_charges[i] = open_charges[--open_count];
		break;
	}
	return engine_driver_user.finish(engine, request, success, error);
}

/* --- what has to hold ---------------------------------------------------------------------------------------- */

static void check_loads(struct engine *engine)
{
	static struct replica_load expected[REPLICAS_MAX];
	struct replica_load load;
	struct error error;

	memset(expected, 0, sizeof(expected));
	for (size_t i = 0; i < open_count; i++) {
		expected[open_charges[i].replica].requests += open_charges[i].requests;
		expected[open_charges[i].replica].tokens += open_charges[i].tokens;
	}
	for (__u32 slot = 0; slot < REPLICAS_MAX; slot++) {
		check(!engine->driver->read_load(engine, slot, &load, &error),
		      "a load can be read");
		check(load.requests == expected[slot].requests &&
			      load.tokens == expected[slot].tokens,
		      "a replica's load is that of its open requests");
	}
}

static void finish_all(struct engine *engine)
{
	struct error error;

	while (open_count)
		check(!engine_finish(engine, open_charges[0].request, open_count % 2, &error),
		      "an open request can be finished");
	check_loads(engine);
}

static struct engine_settings settings_of(uint8_t how, uint8_t epsilon)
{
	static const enum routing_policy policies[] = {POLICY_ROUND_ROBIN, POLICY_MOD_N,
						       POLICY_CONSISTENT, POLICY_BOUNDED,
						       POLICY_LLM_AWARE};
	struct engine_settings settings = {
		.policy = policy_published(policies[how % 5]),
		.dialect = how & 0x40 ? RING_REPLICA_ROUTER : RING_LLM,
		.vnodes = 1 + how % 7,
	};

	settings.policy.load_metric = how & 0x80 ? LOAD_TOKENS : LOAD_REQUESTS;
	settings.policy.epsilon_millionths = 1 + epsilon * (EPSILON_MAX / 256);
	if (settings.policy.long_epsilon_millionths < settings.policy.epsilon_millionths)
		settings.policy.long_epsilon_millionths = settings.policy.epsilon_millionths;
	settings.policy.memory_max_entries = 1 + epsilon % 4;
	return settings;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct engine_driver driver;
	struct engine_settings settings;
	const char *at, *end;
	struct engine *engine;
	struct error error;
	int lines = 0;

	if (size < 3)
		return 0;
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	driver = engine_driver_user;
	driver.request = watched_request;
	driver.finish = watched_finish;
	settings = settings_of(data[0], data[1]);
	open_count = 0;
	check(!engine_open(&engine, &driver, &settings, &error), "an engine can be opened");
	end = (const char *)data + size;
	for (at = (const char *)data + 2; at < end && lines < OPEN_MAX; lines++) {
		const char *newline = memchr(at, '\n', end - at);
		size_t length = newline ? newline - at : end - at;
		/* in a buffer of its own size, so that a byte read beyond it is seen */
		char *line = malloc(length + !length);

		memcpy(line, at, length);
		decide_event_take(engine, line, length, nowhere, &error);
		free(line);
		at += length + 1;
	}
	check_loads(engine);
	finish_all(engine);
	engine_close(engine);
	return 0;
}
