/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How often, and for how long, a START goes round through its interface's queue for a stale socket that its server is using: the reset waits for the
 * socket's lock then, mostly for microseconds, while a segment that is dropped costs its client 200 ms.
 *
 * Owns: the 16 bits that say what a segment has left (docs/handoff.md, section 5). May not know: where in a packet they are, the clock.
 *
 *    15 .. 8       7 .. 0
 *    rounds left   when they end, in units of 4,096 ns
 *
 * The number bounds the work, each round being a pass through the interface's programs. The time bounds it where passes are slow, and
 * ends it also if somebody else writes the same value again and again. 0 is no round.
 */
#ifndef WARMPATH_ROUNDS_H
#define WARMPATH_ROUNDS_H

#include "portable.h"

#define ROUNDS_COUNT	 255
#define ROUNDS_TIME	 62 /* units: 254 us */
#define ROUNDS_UNIT_LOG2 12
#define ROUNDS_SHIFT	 8

/* All of them. now: nanoseconds of a clock that is not set. */
static __always_inline __u16 rounds_begin(__u64 now)
{
	__u8 end = (now >> ROUNDS_UNIT_LOG2) + ROUNDS_TIME;

	return ROUNDS_COUNT << ROUNDS_SHIFT | end;
}

/* Takes one. False: there is none. */
static __always_inline bool rounds_take(__u16 *rounds, __u64 now)
{
	__u8 end = *rounds, left = end - (now >> ROUNDS_UNIT_LOG2);

	if (*rounds >> ROUNDS_SHIFT == 0 || left > ROUNDS_TIME)
		return false;
	*rounds -= 1 << ROUNDS_SHIFT;
	return true;
}

#endif /* WARMPATH_ROUNDS_H */
