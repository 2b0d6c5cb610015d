/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of a simulation share: simulation.c (replicas, what happens in mid-run, the run), request.c (a request's life),
 * users.c (who asks when).
 */
#ifndef SIMULATION_PARTS_H
#define SIMULATION_PARTS_H

#include <math.h>

#include "../lib/dialogue.h"
#include "event_queue.h"
#include "simulation.h"

enum event_kind_simulated {
	HAPPENS_SEND,	 /* a user's message, or (trace) a request: number is its index */
	HAPPENS_ARRIVE,	 /* a request is tokenised and joins its replica's queue */
	HAPPENS_WORK,	 /* a replica's next step is over */
	HAPPENS_ANSWER,	 /* an answer, or a failure, reaches the client */
	HAPPENS_TIMEOUT, /* the client gives up */
	HAPPENS_SCALE,	 /* a new replica is ready: number */
	HAPPENS_DRAIN,
	HAPPENS_KILL,
	HAPPENS_DETECT, /* of the killed replica */
};

#define NANOSECONDS 1e9

struct site { /* a replica and what the router thinks of it */
	char name[REPLICA_NAME_SIZE];
	struct replica *replica;
	bool member, dead;
	uint64_t due; /* of the WORK event that counts; older ones are stale */
};

struct talk {
	struct dialogue dialogue;
	uint32_t index, turn;
	struct plan_conversation plan;
	bool started;
};

struct asked {
	struct replica_request request;
	struct asked *next, *previous; /* of all under way */
	struct simulation *simulation;
	struct talk *talk;
	struct site *site;
	struct dialogue own; /* trace: a dialogue of its own */
	bool closed_loop, at_replica, over;
	uint64_t number;     /* for the engine */
	uint32_t references; /* events that point here */
	struct record record;
};

struct simulation {
	const struct simulation_settings *settings;
	struct simulation_result *result;
	struct engine *engine;
	struct event_queue queue;
	struct site sites[REPLICAS_MAX];
	uint32_t site_count;
	struct site *site_of_slot[REPLICAS_MAX];
	struct talk *talks;
	struct asked *under_way;
	uint64_t numbers, now;
	uint32_t talks_open, trace_next, in_flight;
	void (*each)(struct record *record, void *context);
	void *context;
	struct error *error;
	int failed; /* negative errno: the run ends */
};

static inline uint64_t nanoseconds(double seconds)
{
	return (uint64_t)llround(seconds * NANOSECONDS);
}

/* The run ends. sentence NULL: it is there already. */
static inline void fail(struct simulation *simulation, int code, const char *sentence)
{
	if (simulation->failed)
		return;
	simulation->failed = code;
	if (sentence)
		error_set(simulation->error, code, "%s", sentence);
}

/* simulation.c */
void schedule_work(struct simulation *simulation, struct site *site);

/* request.c */
extern const struct replica_observer request_observer;
struct asked *asked_new(struct simulation *simulation, struct talk *talk, uint32_t turn);
/* Sends the dialogue as it is: decides, and schedules its arrival. */
void send_request(struct asked *asked, struct dialogue *dialogue, uint32_t max_tokens,
		  double timeout_s);
void arrive(struct asked *asked);
void time_out(struct asked *asked);
/* The answer leaves the replica (or the failure becomes known there): the router sees it, the client a bit later. */
void leave_replica(struct asked *asked, uint64_t when, int status, const char *error);
void release_asked(struct asked *asked);

/* users.c: 0 or a negative errno with a sentence */
int start_traffic(struct simulation *simulation);
void send_next(struct simulation *simulation, uint32_t number);
void answer(struct asked *asked);
bool traffic_over(const struct simulation *simulation);
void end_traffic(struct simulation *simulation);

#endif /* SIMULATION_PARTS_H */
