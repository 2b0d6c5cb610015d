/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Putting a ring in front of the data path: one whole generation replaces another (struct ring_header in layout.h).
 *
 * Owns: the order of the steps, the inner maps. May not know: how a ring is built, who asks for it.
 *
 * All state is in the maps: whoever has their descriptors can go on where another stopped, even in the middle of a swap.
 * Two at once for one service are not possible: the caller sees to that.
 */
#ifndef WARMPATH_USER_RING_MAPS_H
#define WARMPATH_USER_RING_MAPS_H

#include "lib/error.h"
#include "lib/ring.h"

/* Descriptors of the outer maps of the same names. */
struct ring_maps {
	int rings;
	int ring_points;
	int ring_index;
	int ring_index_large;
	int ring_members;
};

struct bpf_object;

/* Those of a loaded object. One that it does not have is a negative errno. */
struct ring_maps ring_maps_of(const struct bpf_object *object);

/*
 * Makes `ring` the current ring of the service: from one packet to the next, none sees half of it. Gives the ring its generation
 * (one more than the current one's) and slot. When it returns, no program uses the old ring any more; its maps stay under
 * their slot and serve the ring after the next, if that fits.
 *
 * 0; or a negative errno with a sentence, and the service's ring is as it was.
 */
int ring_maps_swap(const struct ring_maps *maps, __u32 service, struct ring *ring,
		   struct error *error);

/* Takes the service's ring away. 0, also if there is none; or a negative errno with a sentence. */
int ring_maps_clear(const struct ring_maps *maps, __u32 service, struct error *error);

/* Which of the two outer maps has the index of a ring with this header. */
int ring_maps_index(const struct ring_maps *maps, const struct ring_header *header);

/* Bytes of the entries of the kernel's tables that a ring with this header gets; a service has them in two slots. */
size_t ring_maps_bytes(const struct ring_header *header);

/* The header of the service's current ring. 0; or -ENOENT if it has none, or another negative errno. */
int ring_maps_current(const struct ring_maps *maps, __u32 service, struct ring_header *header);

#endif /* WARMPATH_USER_RING_MAPS_H */
