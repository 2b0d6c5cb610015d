/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From one routing to the next, in the kernel's maps, so that no packet sees half of it.
 *
 * Owns: the order of the writes, for every kind of change. May not know: who asked for the change.
 *
 * What comes in is written from the bottom up: service settings, replica slots, the addresses their replies come from, then the ring
 * that leads to them, then the public address that leads to the ring. What goes out is written from the top down.
 * A replica whose address changes leaves the ring, is rewritten, and comes back: its value is larger than what is written at once.
 */
#ifndef WARMPATH_AGENT_APPLY_H
#define WARMPATH_AGENT_APPLY_H

#include "agent/datapath.h"
#include "agent/routing.h"
#include "lib/ring.h"

/* The rings as the kernel has them, by service index; `built` says which are there. */
struct live_rings {
	struct ring ring[SERVICES_MAX];
	bool built[SERVICES_MAX];
};

/* Reads what a former agent left in the maps (all zero in new ones); `settings` are cleared. 0 or a negative errno. */
int apply_read_routing(const struct datapath *datapath, struct routing *routing,
		       struct error *error);

/*
 * Makes `next` the routing in the kernel, where `current` is now, and replaces the live rings. Everything that can be
 * refused (too many points) is found before the first write. `first`: `current` is what a former agent left. 0, or a negative errno with a sentence; if a map could not be
 * written in the middle, the maps are between the two and the next call goes on from there.
 */
int apply_routing(const struct datapath *datapath, const struct routing *current,
		  const struct routing *next, bool first, struct live_rings *rings,
		  struct error *error);

void live_rings_free(struct live_rings *rings);

#endif /* WARMPATH_AGENT_APPLY_H */
