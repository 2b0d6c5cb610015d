/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/neighbours.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <string.h>

#include "lib/address.h"
#include "lib/log.h"

/* States in which the entry is someone's decision, or there is nothing to resolve. */
#define FIXED_STATES (NUD_PERMANENT | NUD_NOARP)

static bool same_neighbour(const struct next_hop *a, const struct next_hop *b)
{
	return a->kind == b->kind && a->index == b->index &&
	       address_equal(&a->address, &b->address);
}

static bool is_shared(const struct neighbours *neighbours, const struct neighbour *neighbour)
{
	unsigned int slot, family;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		for (family = 0; family < 2; family++) {
			const struct neighbour *other = &neighbours->item[slot][family];

			if (other != neighbour && other->kept &&
			    same_neighbour(&other->next_hop, &neighbour->next_hop))
				return true;
		}
	}
	return false;
}

static void let_go(struct neighbours *neighbours, struct neighbour *neighbour)
{
	if (neighbour->kept && !is_shared(neighbours, neighbour))
		netlink_resolve_neighbour(neighbours->netlink, &neighbour->next_hop, false);
	memset(neighbour, 0, sizeof(*neighbour));
}

/* Has the kernel keep the neighbour; finds out on the way whether it can. */
static void keep(struct neighbours *neighbours, struct neighbour *neighbour)
{
	uint16_t state;
	bool managed;
	int result;

	result = netlink_neighbour_state(neighbours->netlink, &neighbour->next_hop, &state,
					 &managed);
	if (result || (state & FIXED_STATES) || managed) {
		neighbour->kept = managed;
		return;
	}
	if (!neighbours->not_managed) {
		result = netlink_resolve_neighbour(neighbours->netlink, &neighbour->next_hop, true);
		if (!result)
			result = netlink_neighbour_state(neighbours->netlink, &neighbour->next_hop,
							 &state, &managed);
		if (!result && managed) {
			neighbour->kept = true;
			return;
		}
		/* The interface being down says nothing of the kernel. */
		if (result == -ENETDOWN || result == -ENODEV)
			return;
		neighbours->not_managed = true;
		log_info(
			"this kernel does not keep neighbours resolved by itself (Linux 5.16 does): "
			"probing them every few seconds");
	}
	netlink_resolve_neighbour(neighbours->netlink, &neighbour->next_hop, false);
}

static void refresh_one(struct neighbours *neighbours, struct neighbour *neighbour,
			const struct address *address)
{
	struct next_hop next_hop = {0};

	if (address_is_set(address) && netlink_next_hop(neighbours->netlink, address, &next_hop))
		return; /* no answer: better the old one than none */
	if (!same_neighbour(&next_hop, &neighbour->next_hop)) {
		let_go(neighbours, neighbour);
		neighbour->next_hop = next_hop;
	}
	if (next_hop.kind == NEXT_HOP_NEIGHBOUR)
		keep(neighbours, neighbour);
}

void neighbours_refresh(struct neighbours *neighbours, const struct routing *routing)
{
	static const struct address none;
	unsigned int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &routing->replicas[slot];
		bool wanted = replica_in_set(replica);

		refresh_one(neighbours, &neighbours->item[slot][0],
			    wanted ? &replica->ipv4 : &none);
		refresh_one(neighbours, &neighbours->item[slot][1],
			    wanted ? &replica->ipv6 : &none);
	}
}

void neighbours_release(struct neighbours *neighbours)
{
	unsigned int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		let_go(neighbours, &neighbours->item[slot][0]);
		let_go(neighbours, &neighbours->item[slot][1]);
	}
}

static const char *state_name(uint16_t state)
{
	static const struct {
		uint16_t state;
		const char *name;
	} names[] = {
		{NUD_PERMANENT, "permanent"},	{NUD_NOARP, "needs none"},
		{NUD_REACHABLE, "reachable"},	{NUD_PROBE, "probe"},
		{NUD_DELAY, "delay"},		{NUD_STALE, "stale"},
		{NUD_INCOMPLETE, "incomplete"}, {NUD_FAILED, "failed"},
	};
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (state & names[i].state)
			return names[i].name;
	}
	return "unknown";
}

const char *neighbour_state_name(struct neighbours *neighbours, __u32 slot, bool ipv6)
{
	const struct neighbour *neighbour = &neighbours->item[slot][ipv6];
	uint16_t state;
	bool managed;

	switch (neighbour->next_hop.kind) {
	case NEXT_HOP_NONE:
		return "no route";
	case NEXT_HOP_LOCAL:
		return "local";
	default:
		if (netlink_neighbour_state(neighbours->netlink, &neighbour->next_hop, &state,
					    &managed))
			return "unknown";
		return state_name(state);
	}
}
