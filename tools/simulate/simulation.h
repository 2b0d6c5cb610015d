/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of an experiment in virtual time: the plan of the traffic program, the replicas of simreplica, the decisions of the data path.
 *
 * Owns: who asks, decides and answers when. May not know: command lines, files.
 */
#ifndef SIMULATION_H
#define SIMULATION_H

#include "../lib/plan.h"
#include "../lib/records.h"
#include "../lib/replica.h"
#include "../lib/trace.h"
#include "lib/engine.h"

struct simulation_settings {
	struct engine_settings engine;
	uint32_t replicas; /* llm-0 ... */
	struct replica_settings replica;
	struct cost_model model;
	uint32_t answer_tokens; /* of an answer whose request sets no lower limit */
	bool sizes_unseen;	/* the router sees the id only, as where it is in the address */
	double network_ms;	/* there and back, beside the router */
	/* closed loop, or a trace */
	const struct profile *profile;
	const struct trace *trace; /* NULL: the profile */
	double trace_timeout_s;
	uint64_t seed;
	/* in mid-run; times in seconds, NAN: never */
	uint32_t scale_to;
	double scale_at_s, load_s; /* a new replica answers load_s after its start */
	double drain_at_s, kill_at_s;
	uint32_t drained, killed;
	double detect_s; /* from the death of a replica to its leaving the set */
};

struct simulation_result {
	double duration_s, new_replica_ready_s;
	uint32_t requests, errors;
	bool scale_skipped; /* the traffic was over before */
	uint64_t events;
	uint32_t replica_count;
	struct {
		char name[REPLICA_NAME_SIZE];
		uint32_t load; /* at the end, in the policy's metric */
		bool counted;
	} replicas[REPLICAS_MAX];
};

/*
 * Runs it. `each` gets every request as it ends (run_id and policy are left to it; NULL: nobody). 0, or a negative errno
 * with a sentence.
 */
int simulation_run(const struct simulation_settings *settings,
		   void (*each)(struct record *record, void *context), void *context,
		   struct simulation_result *result, struct error *error);

#endif /* SIMULATION_H */
