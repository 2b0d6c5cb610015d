/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long to wait before what has failed is tried again: twice as long each time, spread at random so that many agents do not come at once.
 *
 * Owns: the arithmetic. May not know: what has failed.
 */
#ifndef WARMPATH_AGENT_BACKOFF_H
#define WARMPATH_AGENT_BACKOFF_H

#include <stdint.h>

#define BACKOFF_FIRST_MILLISECONDS 200
#define BACKOFF_MOST_MILLISECONDS  10000

struct backoff {
	unsigned int failures; /* in a row; 0 after a success */
	uint64_t
		waited; /* milliseconds, the last time: what then lasts longer than this was a success */
};

/*
 * Counts one more failure. The time to wait in milliseconds: the upper half of FIRST * 2^(failures - 1), or of MOST if that is less, at
 * random; but `at_least`.
 */
uint64_t backoff_next(struct backoff *backoff, uint64_t at_least);

#endif /* WARMPATH_AGENT_BACKOFF_H */
