/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/backoff.h"

#include <stdlib.h>
#include <sys/random.h>

uint64_t backoff_next(struct backoff *backoff, uint64_t at_least)
{
	uint64_t wait = BACKOFF_FIRST_MILLISECONDS, random = 0;
	unsigned int i;

	backoff->failures++;
	for (i = 1; i < backoff->failures && wait < BACKOFF_MOST_MILLISECONDS; i++)
		wait *= 2;
	if (wait > BACKOFF_MOST_MILLISECONDS)
		wait = BACKOFF_MOST_MILLISECONDS;
	/* without random numbers (never, once the machine is up) everybody waits half the time */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = 0;
	wait = wait / 2 + random % (wait / 2 + 1);
	backoff->waited = wait > at_least ? wait : at_least;
	return backoff->waited;
}
