/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `warmpath top` shows: made of two snapshots of the agent, sorted and filtered.
 *
 * Owns: rates, bars, hit estimates, order. May not know: the agent's socket, screens, keys.
 */
#ifndef WARMPATH_CLI_TOP_MODEL_H
#define WARMPATH_CLI_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <warmpath/layout.h>

enum top_column {
	TOP_NAME,
	TOP_LOAD, /* compared with the cap */
	TOP_REQUESTS,
	TOP_TOKENS,
	TOP_RATE,
	TOP_HITS,
	TOP_SHARE,
	TOP_MOVES,
	TOP_COLUMNS,
};

#define TOP_UNKNOWN (-1.0)

struct top_replica {
	const char *name; /* borrowed from the snapshot, as the others */
	const char *state;
	const char *address;
	double weight;
	double share;
	double fill; /* load compared with the cap, or, without a cap, with the fullest replica's; 1: full */
	long requests;
	long tokens;
	double rate; /* decisions a second; TOP_UNKNOWN: not known yet */
	double hits; /* part of the prompt tokens that were cached, 0 to 1; TOP_UNKNOWN: there were none */
	double moves_in; /* since the agent's start */
	double moves_out;
	double refusals;
};

/* A thing counted, with its rate, for those lists that have names. */
struct top_rate {
	const char *name;
	double rate; /* a second */
};
#define TOP_RATES_MAX 64

struct top_model {
	/* what the user chose */
	const char *service; /* NULL: the first; borrowed from the user, or from the snapshot */
	enum top_column sort;
	bool reverse;
	char filter[REPLICA_NAME_SIZE]; /* part of a name; "": all */
	bool paused;

	/* what came of it */
	json_t *before, *now; /* snapshots; NULL: none yet */
	const json_t
		*described; /* the service's own part of `now`; NULL: there is none of that name */
	unsigned int service_number; /* of service_count, from 1 */
	unsigned int service_count;
	struct top_replica replicas[REPLICAS_MAX];
	unsigned int count; /* that pass the filter */
	unsigned int all;
	bool capped;
	bool rates_known;
	double cap; /* a request of the present mean size is measured by this; 0: there is none */
	double decisions, answered, failed, moved, refused, traced; /* a second */
	double drops, packets;
	struct top_rate reasons[TOP_RATES_MAX], causes[TOP_RATES_MAX], drop_rates[TOP_RATES_MAX];
	unsigned int reason_count, cause_count,
		drop_count; /* those that are not 0, the highest first */
};

/* Takes a snapshot (the reference with it) and makes everything of it and the one before. While paused it is only dropped. */
void top_model_take(struct top_model *model, json_t *snapshot);

/* Whether a snapshot has a service of this name. */
bool top_model_has(const json_t *snapshot, const char *service);

/* Makes everything anew after the user's choices have changed. */
void top_model_refresh(struct top_model *model);

/* The service after (or before, -1) the one that is shown. */
void top_model_next_service(struct top_model *model, int step);

void top_model_free(struct top_model *model);

#endif /* WARMPATH_CLI_TOP_MODEL_H */
