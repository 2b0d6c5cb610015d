/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What reads and changes a single service or slot; the changes that are asked for are in routing_change.c (commands) and
 * routing_merge.c (the configuration).
 */
#include "agent/routing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/address.h"
#include "agent/routing_slot.h"

const char *replica_state_name(enum replica_state state)
{
	static const char *const names[] = {
		[REPLICA_UNUSED] = "unused",	 [REPLICA_ACTIVE] = "active",
		[REPLICA_DRAINING] = "draining", [REPLICA_DOWN] = "down",
		[REPLICA_REMOVED] = "removed",
	};

	return names[state];
}

bool replica_in_set(const struct replica *replica)
{
	return replica->state == REPLICA_ACTIVE || replica->state == REPLICA_DRAINING ||
	       replica->state == REPLICA_DOWN;
}

void routing_hold(struct replica *replica, enum replica_hold reason, bool held)
{
	if (held)
		replica->held |= reason;
	else
		replica->held &= ~reason;
	if (replica->held & (HELD_BY_COMMAND | HELD_BY_DISCOVERY))
		replica->state = REPLICA_DRAINING;
	else if (replica->held & HELD_BY_HEALTH)
		replica->state = REPLICA_DOWN;
	else
		replica->state = REPLICA_ACTIVE;
}

__u32 replica_ring_weight(const struct replica *replica)
{
	__u64 weight = replica->weight_thousandths;

	if (!replica->share_thousandths || replica->share_thousandths >= 1000)
		return weight;
	weight = weight * replica->share_thousandths / 1000;
	return weight ? weight : 1;
}

bool replica_has_traffic(const struct replica *replica)
{
	return replica->state != REPLICA_UNUSED &&
	       (address_is_set(&replica->ipv4) || address_is_set(&replica->ipv6));
}

/* --- finding services --------------------------------------------------------------------------------------- */

int routing_find_service(const struct routing *routing, const char *name, struct error *error)
{
	int i, found = -1;

	for (i = 0; i < SERVICES_MAX; i++) {
		if (!routing->settings[i])
			continue;
		if (name && name[0]) {
			if (strcmp(routing->services[i].name, name) == 0)
				return i;
			continue;
		}
		if (found >= 0)
			return error_set(error, -EINVAL,
					 "there are several services; name one with --service");
		found = i;
	}
	if (found >= 0)
		return found;
	if (name && name[0])
		return error_set(error, -ENOENT, "there is no service %s", name);
	return error_set(error, -ENOENT, "no service is configured");
}

/* --- slots ------------------------------------------------------------------------------------------------ */

/* The slot that has this name, whatever its state but unused; negative if there is none. */
int routing_find_slot(const struct routing *routing, __u32 service, const char *name)
{
	int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &routing->replicas[slot];

		if (replica->state != REPLICA_UNUSED && replica->service == service &&
		    strcmp(replica->name, name) == 0)
			return slot;
	}
	return -ENOENT;
}

static int find_unused_slot(const struct routing *routing)
{
	int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		if (routing->replicas[slot].state == REPLICA_UNUSED)
			return slot;
	}
	return -ENOENT;
}

/* A slot of a removed replica that nothing refers to; one that remembers a removal by command only if need be. */
static int find_reusable_slot(const struct routing *routing, const bool in_use[REPLICAS_MAX])
{
	int slot, last_resort = -ENOENT;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &routing->replicas[slot];

		if (replica->state != REPLICA_REMOVED || in_use[slot])
			continue;
		if (!(replica->overridden & OVERRIDE_REMOVED))
			return slot;
		last_resort = slot;
	}
	return last_resort;
}

static int allocate_slot(const struct routing *routing, __u32 service, const char *name,
			 const struct slot_usage *usage, struct error *error)
{
	bool *in_use;
	int slot = routing_find_slot(routing, service, name);
	int result;

	if (slot < 0)
		slot = find_unused_slot(routing);
	if (slot >= 0)
		return slot;

	in_use = calloc(REPLICAS_MAX, sizeof(*in_use));
	if (!in_use)
		return error_set(error, -ENOMEM, "not enough memory");
	result = usage->ask(usage->context, in_use);
	slot = result ? result : find_reusable_slot(routing, in_use);
	free(in_use);
	if (result)
		return error_set(error, result, "the flows cannot be read: %s", strerror(-result));
	if (slot < 0)
		return error_set(
			error, -ENOSPC,
			"replica %s cannot be added: all %d slots are taken, some by removed replicas "
			"that still have connections; try again later",
			name, REPLICAS_MAX);
	return slot;
}

int routing_find_replica(const struct routing *routing, __u32 service, const char *name,
			 struct error *error)
{
	int slot = routing_find_slot(routing, service, name);

	if (slot >= 0 && replica_in_set(&routing->replicas[slot]))
		return slot;
	return error_set(error, -ENOENT, "there is no replica %s in service %s", name,
			 routing->services[service].name);
}

/* --- one replica ------------------------------------------------------------------------------------------ */

void routing_fill_addresses(struct replica *replica, const struct config_replica *wanted)
{
	size_t used = 0;
	unsigned int i;

	memset(&replica->ipv4, 0, sizeof(replica->ipv4));
	memset(&replica->ipv6, 0, sizeof(replica->ipv6));
	memset(replica->address_text, 0, sizeof(replica->address_text));
	replica->port = htons(wanted->port);
	for (i = 0; i < wanted->addresses.count; i++) {
		const struct address *address = &wanted->addresses.item[i].address;
		char text[ENDPOINT_TEXT_SIZE];

		if (address_is_ipv4(address))
			replica->ipv4 = *address;
		else
			replica->ipv6 = *address;
		if (used < sizeof(replica->address_text))
			used += snprintf(replica->address_text + used,
					 sizeof(replica->address_text) - used, "%s%s",
					 used ? ", " : "",
					 endpoint_format(address, htons(wanted->port), text));
	}
}

static bool same_addresses(const struct replica *a, const struct replica *b)
{
	return a->port == b->port && address_equal(&a->ipv4, &b->ipv4) &&
	       address_equal(&a->ipv6, &b->ipv6);
}

/*
 * Puts the wanted replica into its slot. In the set already: its state stays, and another address begins another life. Not in the
 * set: it becomes active, in a new life.
 */
int routing_place_replica(struct routing *routing, __u32 service,
			  const struct config_replica *wanted, enum replica_source source,
			  const struct slot_usage *usage, struct error *error)
{
	int slot = allocate_slot(routing, service, wanted->name, usage, error);
	struct replica *replica, before;

	if (slot < 0)
		return slot;
	replica = &routing->replicas[slot];
	before = *replica;
	memset(replica, 0, sizeof(*replica));
	memcpy(replica->name, wanted->name, sizeof(replica->name));
	replica->source = source;
	replica->service = service;
	replica->weight_thousandths = wanted->weight_thousandths;
	routing_fill_addresses(replica, wanted);
	replica->state = before.state;
	replica->held = before.held;
	replica->life = before.life;
	replica->process = before.process;
	replica->share_thousandths = before.share_thousandths;
	replica->incarnation = before.incarnation;
	if (!replica_in_set(&before)) {
		replica->state = REPLICA_ACTIVE;
		replica->held = 0;
		replica->life = 0;
		replica->process = 0;
		replica->share_thousandths = 0;
		replica->incarnation++;
	} else {
		if (!same_addresses(replica, &before)) {
			replica->process = 0;
			replica->incarnation++;
		}
		routing_hold(replica, HELD_BY_DISCOVERY,
			     source == REPLICA_FROM_DISCOVERY && (before.held & HELD_BY_DISCOVERY));
	}
	return slot;
}

void routing_remove_from_set(struct replica *replica, __u32 overridden)
{
	replica->state = REPLICA_REMOVED;
	replica->overridden = overridden;
}
