/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The results of `warmpath ring study`, between the study and its chart.
 *
 * Owns: the rows together. May not know: options, how rows are computed (lib/ring_study.h).
 */
#ifndef WARMPATH_CLI_RING_STUDY_H
#define WARMPATH_CLI_RING_STUDY_H

#include <stdbool.h>

#include "lib/ring_study.h"

#define RING_STUDY_ROWS_MAX 32

struct ring_study_results {
	struct ring_study study;
	struct ring_study_row rows[RING_STUDY_ROWS_MAX + 1]; /* by virtual nodes */
	size_t count;
	bool measured;
	double look_up_nanoseconds[RING_STUDY_ROWS_MAX + 1];
	int recommended; /* a row; -1: none was asked for */
	/* the running ring; live_spread 0: none */
	char service[SERVICE_NAME_SIZE];
	__u32 live_vnodes;
	double live_spread;
	double live_max_min;
};

/* Draws the rows as charts into a file (canvas.h). 0, or a negative errno with a sentence. */
int ring_study_draw(const struct ring_study_results *results, const char *path,
		    struct error *error);

#endif /* WARMPATH_CLI_RING_STUDY_H */
