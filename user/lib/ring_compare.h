/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two rings beside each other: which keys have another home on the second.
 *
 * Owns: walking the arcs of both at once. May not know: why the rings differ, how that is shown.
 */
#ifndef WARMPATH_USER_RING_COMPARE_H
#define WARMPATH_USER_RING_COMPARE_H

#include "lib/ring.h"

/* Keys from `first` to `last`, both included, whose homes are these members (indices into names) of the two rings. */
typedef void (*ring_span_function)(void *context, __u64 first, __u64 last, __u32 before,
				   __u32 after);

/*
 * Gives all keys, from 0 upwards, to `take`, cut where either ring has a point. Neither ring may be empty; both are of one dialect and
 * key, or the answer means nothing.
 */
void ring_compare(const struct ring *before, const struct ring *after, ring_span_function take,
		  void *context);

/* The share of all keys, 0 to 1, whose home has another name on the second ring. 1 if just one of the two is empty. */
double ring_moved_share(const struct ring *before, const struct ring *after);

#endif /* WARMPATH_USER_RING_COMPARE_H */
