/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hashes `service_addresses` and `replica_addresses`: what they should hold, derived from the routing, and bringing the maps
 * there entry by entry.
 *
 * Owns: keys and values of the two maps. May not know: rings, programs.
 *
 * Adding and removing are two calls, because what is added must be there before a ring or a service leads to it, and what is
 * removed may go only after nothing does.
 */
#ifndef WARMPATH_AGENT_ADDRESS_TABLES_H
#define WARMPATH_AGENT_ADDRESS_TABLES_H

#include "agent/routing.h"

/* Writes entries that are missing or differ. 0 or a negative errno with a sentence. */
int service_addresses_add(int map, const struct routing *routing, struct error *error);
int replica_addresses_add(int map, const struct routing *routing, struct error *error);

/* Deletes entries that the routing does not ask for. 0 or a negative errno with a sentence. */
int service_addresses_remove(int map, const struct routing *routing, struct error *error);
int replica_addresses_remove(int map, const struct routing *routing, struct error *error);

#endif /* WARMPATH_AGENT_ADDRESS_TABLES_H */
