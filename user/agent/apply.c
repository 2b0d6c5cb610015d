/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/apply.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/address_tables.h"
#include "agent/handoff_settings.h"
#include "agent/membership.h"
#include "agent/rings.h"
#include "lib/address.h"
#include "lib/placement_tables.h"
#include "lib/policy.h"
#include "lib/log.h"

struct change {
	const struct datapath *datapath;
	const struct routing *current;
	const struct routing *next;
	bool moving[REPLICAS_MAX]; /* on the ring before and after, but at another address */
	bool first;		   /* nobody knows how far a former agent came */
	struct live_rings rings;   /* of `next` */
	struct error *error;
};

static int write_failed(struct change *change, const char *map)
{
	return error_set(change->error, -errno, "map %s cannot be written: %s", map,
			 strerror(errno));
}

/* --- reading ------------------------------------------------------------------------------------------------ */

int apply_read_routing(const struct datapath *datapath, struct routing *routing,
		       struct error *error)
{
	__u32 i;

	memset(routing, 0, sizeof(*routing));
	for (i = 0; i < SERVICES_MAX; i++) {
		if (bpf_map_lookup_elem(datapath->services, &i, &routing->services[i]))
			return error_set(error, -errno, "map services cannot be read: %s",
					 strerror(errno));
	}
	for (i = 0; i < REPLICAS_MAX; i++) {
		struct replica *replica = &routing->replicas[i];

		if (bpf_map_lookup_elem(datapath->replicas, &i, replica))
			return error_set(error, -errno, "map replicas cannot be read: %s",
					 strerror(errno));
		if (replica->service >= SERVICES_MAX || replica->state > REPLICA_REMOVED ||
		    memchr(replica->name, '\0', sizeof(replica->name)) == NULL)
			return error_set(
				error, -EINVAL,
				"the pinned map replicas has an entry (%u) that no agent has written",
				i);
		/* Older agents had no reasons, and drained by command only. */
		if (replica->state == REPLICA_DRAINING && !replica->held)
			replica->held = HELD_BY_COMMAND;
	}
	return 0;
}

/* --- single steps ------------------------------------------------------------------------------------------- */

static bool is_active(const struct routing *routing, __u32 slot)
{
	return routing->replicas[slot].state == REPLICA_ACTIVE;
}

static int write_service(struct change *change, __u32 index)
{
	const struct service *service = &change->next->services[index];

	const struct config_service *settings = change->next->settings[index];
	int result;

	if (settings && config_service_is_handed_over(settings)) {
		result = http_service_write(change->datapath->http_services, index, settings,
					    change->datapath->mtu, change->error);
		if (result)
			return result;
	}
	if (memcmp(service, &change->current->services[index], sizeof(*service)) == 0)
		return 0;
	if (bpf_map_update_elem(change->datapath->services, &index, service, BPF_ANY))
		return write_failed(change, "services");
	return 0;
}

static int write_services(struct change *change, enum service_state state)
{
	__u32 i;
	int result = 0;

	for (i = 0; i < SERVICES_MAX && !result; i++) {
		if (change->next->services[i].state == state)
			result = write_service(change, i);
	}
	return result;
}

static int write_replica(struct change *change, __u32 slot)
{
	const struct replica *replica = &change->next->replicas[slot];

	if (memcmp(replica, &change->current->replicas[slot], sizeof(*replica)) == 0)
		return 0;
	if (bpf_map_update_elem(change->datapath->replicas, &slot, replica, BPF_ANY))
		return write_failed(change, "replicas");
	return 0;
}

static bool remembers(const struct service *service)
{
	return service->state == SERVICE_ACTIVE && service->policy.policy == POLICY_LLM_AWARE &&
	       service->policy.placement_memory;
}

/* A service that remembers placements has a table for them; it starts empty when what was remembered is of no use any more. */
static int prepare_memory(struct change *change, __u32 index)
{
	const struct service *before = &change->current->services[index];
	const struct service *after = &change->next->services[index];
	int placements = change->datapath->placements;

	if (!remembers(after))
		return placement_table_clear(placements, index, change->error);
	if (remembers(before) && strcmp(before->name, after->name) == 0 &&
	    !policy_clears_memory(&before->policy, &after->policy) &&
	    placement_table_size(placements, index) > 0)
		return 0;
	return placement_table_replace(placements, index, after->policy.memory_max_entries,
				       change->error);
}

static int prepare_memories(struct change *change)
{
	__u32 i;
	int result = 0;

	for (i = 0; i < SERVICES_MAX && !result; i++)
		result = prepare_memory(change, i);
	return result;
}

/* Replicas that are (or become) active before the ring leads to them; all others after it has ceased to. */
static int write_replicas(struct change *change, bool active)
{
	__u32 slot;
	int result = 0;

	for (slot = 0; slot < REPLICAS_MAX && !result; slot++) {
		if (is_active(change->next, slot) == active)
			result = write_replica(change, slot);
	}
	return result;
}

/*
 * In the set is only who is on the ring, so that caps count whom a walk can reach: who leaves does so before the ring goes, who
 * enters after it has come. Only where none of the old ones stays is it the other way round: better a cap that is too low for some milliseconds than
 * no replica at all.
 */
static bool nobody_stays(const struct change *change, __u32 service)
{
	__u32 slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		if (is_active(change->current, slot) && is_active(change->next, slot) &&
		    !change->moving[slot] && change->next->replicas[slot].service == service)
			return false;
	}
	return true;
}

/* Both kinds of change say the same again without harm, so the first time they are said for all. */
static int members_enter(struct change *change, bool replaced)
{
	__u32 slot;
	int result = 0;

	for (slot = 0; slot < REPLICAS_MAX && !result; slot++) {
		const struct replica *after = &change->next->replicas[slot];

		if (is_active(change->next, slot) &&
		    nobody_stays(change, after->service) == replaced &&
		    (!is_active(change->current, slot) || change->moving[slot] || change->first))
			result = membership_changed(change->datapath, slot, after, true,
						    change->error);
	}
	return result;
}

static int members_leave(struct change *change, bool replaced)
{
	__u32 slot;
	int result = 0;

	for (slot = 0; slot < REPLICAS_MAX && !result; slot++) {
		const struct replica *before = &change->current->replicas[slot];

		if (!is_active(change->next, slot) &&
		    nobody_stays(change, before->service) == replaced &&
		    (is_active(change->current, slot) ||
		     (change->first && before->state != REPLICA_UNUSED)))
			result = membership_changed(change->datapath, slot, before, false,
						    change->error);
	}
	return result;
}

static int swap_ring(struct change *change, __u32 service, struct ring *ring)
{
	const struct ring_maps *maps = &change->datapath->ring_maps;
	int result;

	if (rings_is_loaded(maps, service, ring))
		return ring_maps_current(maps, service, &ring->header);
	result = ring_maps_swap(maps, service, ring, change->error);
	if (!result)
		log_info("service %s: ring %llu with %u replica%s, %u points",
			 change->next->services[service].name,
			 (unsigned long long)ring->header.generation, ring->header.member_count,
			 ring->header.member_count == 1 ? "" : "s", ring->header.point_count);
	return result;
}

static int swap_rings(struct change *change)
{
	__u32 i;
	int result = 0;

	for (i = 0; i < SERVICES_MAX && !result; i++) {
		if (change->rings.built[i])
			result = swap_ring(change, i, &change->rings.ring[i]);
	}
	return result;
}

static int clear_rings(struct change *change)
{
	__u32 i;
	int result = 0;

	for (i = 0; i < SERVICES_MAX && !result; i++) {
		if (!change->rings.built[i])
			result = ring_maps_clear(&change->datapath->ring_maps, i, change->error);
	}
	return result;
}

/* --- replicas whose address changes -------------------------------------------------------------------------- */

static bool same_place(const struct replica *a, const struct replica *b)
{
	return a->port == b->port && address_equal(&a->ipv4, &b->ipv4) &&
	       address_equal(&a->ipv6, &b->ipv6) && strcmp(a->name, b->name) == 0;
}

/* Takes the moving replicas of a service off the ring and marks them down, still at their old address. */
static int move_aside(struct change *change, __u32 service)
{
	struct ring without;
	__u32 slot;
	int result = rings_build(&without, change->next, service, change->moving, change->error);

	if (result)
		return result;
	for (slot = 0; slot < REPLICAS_MAX && !result; slot++) {
		if (change->moving[slot] && change->current->replicas[slot].service == service)
			result = membership_changed(change->datapath, slot,
						    &change->current->replicas[slot], false,
						    change->error);
	}
	if (!result)
		result = ring_maps_swap(&change->datapath->ring_maps, service, &without,
					change->error);
	ring_free(&without);
	for (slot = 0; slot < REPLICAS_MAX && !result; slot++) {
		struct replica replica = change->current->replicas[slot];

		if (!change->moving[slot] || replica.service != service)
			continue;
		replica.state = REPLICA_DOWN;
		if (bpf_map_update_elem(change->datapath->replicas, &slot, &replica, BPF_ANY))
			result = write_failed(change, "replicas");
	}
	return result;
}

static int move_all_aside(struct change *change)
{
	bool affected[SERVICES_MAX] = {false};
	__u32 slot, service;
	int result = 0;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		change->moving[slot] = is_active(change->current, slot) &&
				       is_active(change->next, slot) &&
				       !same_place(&change->current->replicas[slot],
						   &change->next->replicas[slot]);
		if (change->moving[slot])
			affected[change->next->replicas[slot].service] = true;
	}
	for (service = 0; service < SERVICES_MAX && !result; service++) {
		if (affected[service])
			result = move_aside(change, service);
	}
	return result;
}

/* --- the whole ---------------------------------------------------------------------------------------------- */

static int build_rings(struct change *change)
{
	__u32 i;

	for (i = 0; i < SERVICES_MAX; i++) {
		int result;

		if (!change->next->settings[i])
			continue;
		result = rings_build(&change->rings.ring[i], change->next, i, NULL, change->error);
		if (result)
			return result;
		change->rings.built[i] = true;
	}
	return 0;
}

static int come_in(struct change *change)
{
	int result = write_services(change, SERVICE_ACTIVE);

	if (!result)
		result = prepare_memories(change);
	if (!result)
		result = move_all_aside(change);
	/* The slots of removed services' replicas may be wanted by new ones: see go_out() for the rest. */
	if (!result)
		result = write_replicas(change, true);
	if (!result)
		result = replica_addresses_add(change->datapath->replica_addresses, change->next,
					       change->error);
	if (!result)
		result = members_leave(change, false);
	if (!result)
		result = members_enter(change, true);
	if (!result)
		result = swap_rings(change);
	if (!result)
		result = members_enter(change, false);
	if (!result)
		result = members_leave(change, true);
	if (!result)
		result = service_addresses_add(change->datapath->service_addresses, change->next,
					       change->error);
	return result;
}

static int go_out(struct change *change)
{
	int result = service_addresses_remove(change->datapath->service_addresses, change->next,
					      change->error);

	if (!result)
		result = clear_rings(change);
	if (!result)
		result = write_replicas(change, false);
	if (!result)
		result = write_services(change, SERVICE_UNUSED);
	if (!result)
		result = replica_addresses_remove(change->datapath->replica_addresses, change->next,
						  change->error);
	return result;
}

int apply_routing(const struct datapath *datapath, const struct routing *current,
		  const struct routing *next, bool first, struct live_rings *rings,
		  struct error *error)
{
	struct change *change = calloc(1, sizeof(*change));
	int result;

	if (!change)
		return error_set(error, -ENOMEM, "not enough memory");
	change->datapath = datapath;
	change->current = current;
	change->next = next;
	change->first = first;
	change->error = error;

	result = build_rings(change);
	if (!result)
		result = come_in(change);
	if (!result)
		result = go_out(change);
	if (result) {
		live_rings_free(&change->rings);
	} else {
		live_rings_free(rings);
		*rings = change->rings;
	}
	free(change);
	return result;
}

void live_rings_free(struct live_rings *rings)
{
	unsigned int i;

	for (i = 0; i < SERVICES_MAX; i++) {
		if (rings->built[i])
			ring_free(&rings->ring[i]);
		rings->built[i] = false;
	}
}
