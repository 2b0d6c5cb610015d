/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a look-up on a ring takes in the kernel: BPF_PROG_TEST_RUN of study.bpf.c on maps of its own that are pinned nowhere.
 *
 * Owns: the program, its maps. May not know: what rings are measured, and why.
 */
#ifndef WARMPATH_USER_RING_MEASURE_H
#define WARMPATH_USER_RING_MEASURE_H

#include "lib/error.h"
#include "lib/ring.h"

struct ring_measure;

/*
 * Loads the program. 0; or a negative errno (-EPERM without the privilege) with a sentence. ring_measure_close() takes NULL.
 */
int ring_measure_open(struct ring_measure **measure, struct error *error);
void ring_measure_close(struct ring_measure *measure);

/*
 * Puts the ring into the maps (which gives it a generation and a slot) and looks random keys up. Nanoseconds of a look-up: of several
 * rounds of runs the fastest, without what a run costs that does not look up. 0, or a negative errno with a sentence.
 */
int ring_measure_look_up(struct ring_measure *measure, struct ring *ring, double *nanoseconds,
			 struct error *error);

#endif /* WARMPATH_USER_RING_MEASURE_H */
