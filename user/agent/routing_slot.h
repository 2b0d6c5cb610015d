/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the routing share: one slot, found, filled, emptied.
 *
 * Owns: how a slot passes from one state to another. May not know: why.
 */
#ifndef WARMPATH_AGENT_ROUTING_SLOT_H
#define WARMPATH_AGENT_ROUTING_SLOT_H

#include "agent/routing.h"

/* The slot that has this name in the service, in any state but unused; -ENOENT if there is none. */
int routing_find_slot(const struct routing *routing, __u32 service, const char *name);

/* Whether the service can have such a replica: the families it needs, no public address. 0, or a negative errno with a sentence. */
int routing_check_wanted(const struct routing *routing, __u32 service,
			 const struct config_replica *wanted, struct error *error);

/* Writes addresses, port and their text as wanted. */
void routing_fill_addresses(struct replica *replica, const struct config_replica *wanted);

/*
 * Puts the wanted replica into its slot. In the set already: its state stays, and another address begins another life. Not in the
 * set: it becomes active, in a new life. The slot, or a negative errno with a sentence.
 */
int routing_place_replica(struct routing *routing, __u32 service,
			  const struct config_replica *wanted, enum replica_source source,
			  const struct slot_usage *usage, struct error *error);

/* Takes the replica out of the set; `overridden` is what the slot is to remember (OVERRIDE_*). */
void routing_remove_from_set(struct replica *replica, __u32 overridden);

#endif /* WARMPATH_AGENT_ROUTING_SLOT_H */
