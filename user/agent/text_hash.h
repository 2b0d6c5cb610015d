/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small hash of a text, where all that is asked is whether two are the same: a pod's UID, when a process says it was started.
 *
 * Owns: the hash (FNV-1a, 32 bits). It is in maps (struct replica, `process` and `life`), so another one would look like another life.
 */
#ifndef WARMPATH_AGENT_TEXT_HASH_H
#define WARMPATH_AGENT_TEXT_HASH_H

#include <linux/types.h>
#include <stddef.h>

#define TEXT_HASH_START 2166136261U

/* Goes on from `hash`, TEXT_HASH_START at first. */
static inline __u32 text_hash_add(__u32 hash, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619U;
	return hash;
}

/* Never 0, which stands for not known. */
static inline __u32 text_hash_end(__u32 hash)
{
	return hash ? hash : 1;
}

#endif /* WARMPATH_AGENT_TEXT_HASH_H */
