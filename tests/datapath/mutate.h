/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames changed at random, from a seed: the same seed gives the same changes.
 *
 * Owns: the numbers, the kinds of changes. May not know: what frames mean.
 */
#ifndef WARMPATH_TESTS_MUTATE_H
#define WARMPATH_TESTS_MUTATE_H

#include <stdint.h>

#define MUTATE_LONGEST	1600 /* what a frame may grow to */
#define MUTATE_SHORTEST 14   /* a test run needs a link header */

/* Not 0. Changes with every number that is drawn. */
extern uint64_t mutate_seed;

/* 0 .. limit - 1; limit is not 0. */
uint32_t mutate_below(uint32_t limit);

/* Changes the frame in one to four places behind its link addresses; `bytes` has room for MUTATE_LONGEST. Returns its new length. */
int mutate_frame(uint8_t *bytes, int length);

#endif /* WARMPATH_TESTS_MUTATE_H */
