/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keys that routers and replicas of a cluster share, as the map `handoff_keys` holds them (array, one entry).
 *
 * Owns: the value. May not know: the secrets that the keys are derived from, files.
 *
 * Two generations are valid: what is made is made with the first, what is checked may be of either. With one secret configured `count` is 1.
 */
#ifndef WARMPATH_HANDOFF_KEYS_H
#define WARMPATH_HANDOFF_KEYS_H

#include "siphash.h"

#define HANDOFF_KEYS_MAX 2

struct handoff_keys {
	struct siphash_key cookie[HANDOFF_KEYS_MAX];
	struct siphash_key mark[HANDOFF_KEYS_MAX];
	__u32 count; /* 0: none loaded, nothing is accepted or handed over */
	__u32 reserved;
};
_Static_assert(sizeof(struct handoff_keys) == 72, "layout");

#endif /* WARMPATH_HANDOFF_KEYS_H */
