/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of the routing at run time: what the `replica` commands ask for, and the forgetting of removed replicas.
 */
#include "agent/routing.h"

#include <errno.h>
#include <string.h>

#include "agent/routing_slot.h"
#include "lib/address.h"

/* --- what may be added ---------------------------------------------------------------------------------- */

static bool has_family(const struct config_replica *wanted, bool ipv4)
{
	unsigned int i;

	for (i = 0; i < wanted->addresses.count; i++) {
		if (address_is_ipv4(&wanted->addresses.item[i].address) == ipv4)
			return true;
	}
	return false;
}

static int check_families(const struct routing *routing, __u32 service,
			  const struct config_replica *wanted, struct error *error)
{
	const struct config_service *settings = routing->settings[service];
	unsigned int i;

	for (i = 0; i < settings->addresses.count; i++) {
		bool ipv4 = address_is_ipv4(&settings->addresses.item[i].address);

		if (!has_family(wanted, ipv4))
			return error_set(
				error, -EINVAL,
				"replica %s has no %s address, but service %s has a public one",
				wanted->name, ipv4 ? "IPv4" : "IPv6", settings->name);
	}
	return 0;
}

/* Another replica of the service at the same address and port. */
static const struct replica *find_neighbour_at(const struct routing *routing, __u32 service,
					       const struct replica *replica)
{
	unsigned int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *other = &routing->replicas[slot];

		if (!replica_in_set(other) || other->service != service ||
		    other->port != replica->port || strcmp(other->name, replica->name) == 0)
			continue;
		if ((address_is_set(&other->ipv4) && address_equal(&other->ipv4, &replica->ipv4)) ||
		    (address_is_set(&other->ipv6) && address_equal(&other->ipv6, &replica->ipv6)))
			return other;
	}
	return NULL;
}

static int check_circle(const struct routing *routing, __u32 service,
			const struct config_replica *wanted, struct error *error)
{
	unsigned int i;

	for (i = 0; i < SERVICES_MAX; i++) {
		if (routing->settings[i] &&
		    config_find_circle(routing->settings[i], routing->settings[service], wanted))
			return error_set(
				error, -EINVAL,
				"replica %s is at a public address of service %s: requests would go "
				"round in a circle",
				wanted->name, routing->settings[i]->name);
	}
	return 0;
}

int routing_check_wanted(const struct routing *routing, __u32 service,
			 const struct config_replica *wanted, struct error *error)
{
	int result = check_families(routing, service, wanted, error);

	return result ? result : check_circle(routing, service, wanted, error);
}

int routing_add_replica(struct routing *routing, __u32 service, const struct config_replica *wanted,
			const struct slot_usage *usage, struct error *error)
{
	const char *service_name = routing->services[service].name;
	const struct replica *other;
	struct replica placed = {0};
	int slot = routing_find_slot(routing, service, wanted->name);
	int result;

	if (slot >= 0 && replica_in_set(&routing->replicas[slot]))
		return error_set(error, -EEXIST, "service %s has a replica %s already",
				 service_name, wanted->name);
	result = routing_check_wanted(routing, service, wanted, error);
	if (result)
		return result;
	memcpy(placed.name, wanted->name, sizeof(placed.name));
	routing_fill_addresses(&placed, wanted);
	other = find_neighbour_at(routing, service, &placed);
	if (other)
		return error_set(error, -EEXIST, "replica %s of service %s is at %s already",
				 other->name, service_name, other->address_text);
	return routing_place_replica(routing, service, wanted, REPLICA_FROM_COMMAND, usage, error);
}

int routing_drain_replica(struct routing *routing, __u32 service, const char *name,
			  struct error *error)
{
	int slot = routing_find_replica(routing, service, name, error);

	if (slot < 0)
		return slot;
	routing_hold(&routing->replicas[slot], HELD_BY_COMMAND, true);
	return 0;
}

int routing_undrain_replica(struct routing *routing, __u32 service, const char *name,
			    struct error *error)
{
	int slot = routing_find_replica(routing, service, name, error);

	if (slot < 0)
		return slot;
	if (routing->replicas[slot].state != REPLICA_DRAINING)
		return error_set(error, -EINVAL, "replica %s is not being drained", name);
	if (!(routing->replicas[slot].held & HELD_BY_COMMAND))
		return error_set(
			error, -EINVAL,
			"replica %s is draining because it is ending, as discovery says; that is not for a "
			"command to undo",
			name);
	routing_hold(&routing->replicas[slot], HELD_BY_COMMAND, false);
	return 0;
}

int routing_remove_replica(struct routing *routing, __u32 service, const char *name,
			   struct error *error)
{
	int slot = routing_find_replica(routing, service, name, error);
	struct replica *replica;

	if (slot < 0)
		return slot;
	replica = &routing->replicas[slot];
	routing_remove_from_set(replica,
				replica->source == REPLICA_FROM_COMMAND ? 0 : OVERRIDE_REMOVED);
	return 0;
}

int routing_weigh_replica(struct routing *routing, __u32 service, const char *name,
			  __u32 weight_thousandths, struct error *error)
{
	int slot = routing_find_replica(routing, service, name, error);

	if (slot < 0)
		return slot;
	routing->replicas[slot].weight_thousandths = weight_thousandths;
	routing->replicas[slot].overridden |= OVERRIDE_WEIGHT;
	return 0;
}

unsigned int routing_forget_removed(struct routing *routing, const bool in_use[REPLICAS_MAX])
{
	unsigned int slot, forgotten = 0;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		struct replica *replica = &routing->replicas[slot];
		__u32 incarnation = replica->incarnation;

		if (replica->state != REPLICA_REMOVED || in_use[slot] ||
		    !replica_has_traffic(replica))
			continue;
		if (replica->overridden & OVERRIDE_REMOVED) {
			memset(&replica->ipv4, 0, sizeof(replica->ipv4));
			memset(&replica->ipv6, 0, sizeof(replica->ipv6));
		} else {
			/* The slot's next user begins another life: old placements must not mean it. */
			memset(replica, 0, sizeof(*replica));
			replica->incarnation = incarnation;
		}
		forgotten++;
	}
	return forgotten;
}
