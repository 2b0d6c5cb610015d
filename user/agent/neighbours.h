/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the next hop of every replica resolved (ARP, neighbour discovery), so that no request has to wait for it: the programs can only
 * hand a packet to the kernel when the next hop's MAC address is not known.
 *
 * Owns: which neighbours are wanted, their upkeep, their state for people. May not know: programs, rings.
 */
#ifndef WARMPATH_AGENT_NEIGHBOURS_H
#define WARMPATH_AGENT_NEIGHBOURS_H

#include "lib/netlink.h"
#include "agent/routing.h"

struct neighbour {
	struct next_hop next_hop;
	bool kept; /* asked the kernel to keep it resolved */
};

struct neighbours {
	struct netlink *netlink;
	bool not_managed; /* the kernel does not keep neighbours by itself: they are probed at each refresh */
	struct neighbour item[REPLICAS_MAX][2]; /* by slot; IPv4, IPv6 */
};

/*
 * Looks up the next hops of all replicas in the set and has those resolved that are not; lets go of those of replicas that are no
 * longer there. To be called after every change of replicas, routes or links, and every few seconds.
 */
void neighbours_refresh(struct neighbours *neighbours, const struct routing *routing);

/* Lets go of all. */
void neighbours_release(struct neighbours *neighbours);

/* "reachable", "stale", ..., "failed", "local", "no route": what the kernel says now of the replica's next hop. */
const char *neighbour_state_name(struct neighbours *neighbours, __u32 slot, bool ipv6);

#endif /* WARMPATH_AGENT_NEIGHBOURS_H */
