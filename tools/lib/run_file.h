/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One JSON file a run: what was run, when the new replica was ready, how it ended. It stands beside the CSV of the same name.
 *
 * Owns: the fields. May not know: who runs.
 */
#ifndef TOOLS_RUN_FILE_H
#define TOOLS_RUN_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "fields.h"

struct run {
	char run_id[128];
	char policy[128]; /* the policy's specification, as given */
	uint32_t seed, repeat;
	char profile[128];
	uint32_t base_replicas, scale_to;
	double scale_at_s;	    /* NAN: no scale-up */
	double new_replica_ready_s; /* NAN: never */
	bool scale_skipped;
	double duration_s;
	uint32_t requests, errors;
};

/*
 * Reads the fields that the analysis needs; others (policy_params, started_at, router_state_at_end ...) may be there. 0, or a negative errno
 * with one plain sentence in `error`.
 */
int run_read(const char *path, struct run *run, char error[TOOLS_ERROR_SIZE]);

/* The object with the run's fields; the caller adds policy_params, started_at and router_state_at_end. NULL: no memory. */
json_t *run_json(const struct run *run);

#endif /* TOOLS_RUN_FILE_H */
