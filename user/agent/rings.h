/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live ring of each service: built from its active replicas, loaded if it differs from what the kernel has, and asked
 * by the commands.
 *
 * Owns: which replicas are on a ring, whether a ring needs to be swapped. May not know: how rings are built, hashed and swapped
 * (lib/ring.h, lib/ring_maps.h).
 */
#ifndef WARMPATH_AGENT_RINGS_H
#define WARMPATH_AGENT_RINGS_H

#include "agent/routing.h"
#include "lib/ring_maps.h"

/*
 * Builds the ring of a service from its active replicas, those marked in `left_out` (may be NULL) not counted. 0, or a negative
 * errno with a sentence; the caller frees the ring.
 */
int rings_build(struct ring *ring, const struct routing *routing, __u32 service,
		const bool *left_out, struct error *error);

/* Whether the kernel has exactly this ring for the service. */
bool rings_is_loaded(const struct ring_maps *maps, __u32 service, const struct ring *ring);

#endif /* WARMPATH_AGENT_RINGS_H */
