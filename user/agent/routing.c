/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/routing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/address.h"
#include "lib/log.h"

bool replica_in_set(const struct replica *replica)
{
	return replica->state == REPLICA_ACTIVE || replica->state == REPLICA_DRAINING ||
	       replica->state == REPLICA_DOWN;
}

bool replica_has_traffic(const struct replica *replica)
{
	return replica->state != REPLICA_UNUSED &&
	       (address_is_set(&replica->ipv4) || address_is_set(&replica->ipv6));
}

/* --- services --------------------------------------------------------------------------------------------- */

static bool service_has_replicas(const struct routing *routing, __u32 service)
{
	unsigned int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		if (routing->replicas[slot].state != REPLICA_UNUSED &&
		    routing->replicas[slot].service == service)
			return true;
	}
	return false;
}

/* The index that had this name, else one never used, else one that nothing refers to. */
static int allocate_service(const struct routing *routing, const char *name, struct error *error)
{
	int i, unused = -1;

	for (i = 0; i < SERVICES_MAX; i++) {
		if (strcmp(routing->services[i].name, name) == 0)
			return i;
	}
	for (i = 0; i < SERVICES_MAX; i++) {
		if (routing->services[i].name[0] == '\0')
			return i;
		if (unused < 0 && routing->services[i].state == SERVICE_UNUSED &&
		    !routing->settings[i] && !service_has_replicas(routing, i))
			unused = i;
	}
	if (unused >= 0)
		return unused;
	return error_set(
		error, -ENOSPC,
		"service %s cannot be added: all %d places are taken, some by services just removed "
		"that still have connections; try again later",
		name, SERVICES_MAX);
}

/* The one public address of a family, or zero if there are several or prefixes (struct service says why). */
static struct address only_public_address(const struct config_service *settings, bool ipv4)
{
	struct address none = {0};
	const struct address *only = NULL;
	unsigned int i;

	for (i = 0; i < settings->addresses.count; i++) {
		const struct config_address *address = &settings->addresses.item[i];

		if (address_is_ipv4(&address->address) != ipv4)
			continue;
		if (only || address->prefix_length != 128)
			return none;
		only = &address->address;
	}
	return only ? *only : none;
}

static void fill_service(struct service *service, const struct config_service *settings)
{
	memset(service, 0, sizeof(*service));
	memcpy(service->name, settings->name, sizeof(service->name));
	service->state = SERVICE_ACTIVE;
	service->id_from = settings->id_from;
	service->id_offset = settings->id_offset;
	service->id_length = settings->id_length;
	service->prompt_tokens_offset = settings->prompt_tokens_offset;
	service->max_tokens_offset = settings->max_tokens_offset;
	if (settings->id_from == ID_FROM_ADDRESS) {
		service->prompt_tokens_offset = OFFSET_NONE;
		service->max_tokens_offset = OFFSET_NONE;
	}
	service->request_timeout_milliseconds = settings->request_timeout_milliseconds;
	service->public_ipv4 = only_public_address(settings, true);
	service->public_ipv6 = only_public_address(settings, false);
	service->public_port = htons(settings->port);
	service->policy = settings->policy;
}

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
static int find_slot(const struct routing *routing, __u32 service, const char *name)
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
	int slot = find_slot(routing, service, name);
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
	int slot = find_slot(routing, service, name);

	if (slot >= 0 && replica_in_set(&routing->replicas[slot]))
		return slot;
	return error_set(error, -ENOENT, "there is no replica %s in service %s", name,
			 routing->services[service].name);
}

/* --- one replica ------------------------------------------------------------------------------------------ */

static void fill_addresses(struct replica *replica, const struct config_replica *wanted)
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
static int place_replica(struct routing *routing, __u32 service,
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
	fill_addresses(replica, wanted);
	replica->state = before.state;
	replica->incarnation = before.incarnation;
	if (!replica_in_set(&before)) {
		replica->state = REPLICA_ACTIVE;
		replica->incarnation++;
	} else if (!same_addresses(replica, &before)) {
		replica->incarnation++;
	}
	return slot;
}

static void remove_from_set(struct replica *replica, __u32 overridden)
{
	replica->state = REPLICA_REMOVED;
	replica->overridden = overridden;
}

/* --- changes at run time ---------------------------------------------------------------------------------- */

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

int routing_add_replica(struct routing *routing, __u32 service, const struct config_replica *wanted,
			const struct slot_usage *usage, struct error *error)
{
	const char *service_name = routing->services[service].name;
	const struct replica *other;
	struct replica placed = {0};
	int slot = find_slot(routing, service, wanted->name);
	int result;

	if (slot >= 0 && replica_in_set(&routing->replicas[slot]))
		return error_set(error, -EEXIST, "service %s has a replica %s already",
				 service_name, wanted->name);
	result = check_families(routing, service, wanted, error);
	if (!result)
		result = check_circle(routing, service, wanted, error);
	if (result)
		return result;
	memcpy(placed.name, wanted->name, sizeof(placed.name));
	fill_addresses(&placed, wanted);
	other = find_neighbour_at(routing, service, &placed);
	if (other)
		return error_set(error, -EEXIST, "replica %s of service %s is at %s already",
				 other->name, service_name, other->address_text);
	return place_replica(routing, service, wanted, REPLICA_FROM_COMMAND, usage, error);
}

int routing_drain_replica(struct routing *routing, __u32 service, const char *name,
			  struct error *error)
{
	int slot = routing_find_replica(routing, service, name, error);

	if (slot < 0)
		return slot;
	routing->replicas[slot].state = REPLICA_DRAINING;
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
	routing->replicas[slot].state = REPLICA_ACTIVE;
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
	remove_from_set(replica,
			replica->source == REPLICA_FROM_CONFIGURATION ? OVERRIDE_REMOVED : 0);
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

/* --- the configuration's set ------------------------------------------------------------------------------- */

static const struct config_replica *find_configured(const struct config_service *settings,
						    const char *name)
{
	unsigned int i;

	for (i = 0; i < settings->replica_count; i++) {
		if (strcmp(settings->replicas[i].name, name) == 0)
			return &settings->replicas[i];
	}
	return NULL;
}

static bool removed_by_command(const struct routing *routing, __u32 service, const char *name)
{
	int slot = find_slot(routing, service, name);

	return slot >= 0 && routing->replicas[slot].state == REPLICA_REMOVED &&
	       (routing->replicas[slot].overridden & OVERRIDE_REMOVED);
}

static int merge_replica(struct routing *routing, __u32 service,
			 const struct config_replica *wanted, enum routing_merge merge,
			 const struct slot_usage *usage, struct error *error)
{
	int slot = find_slot(routing, service, wanted->name);
	bool keep_weight = false;
	__u32 weight = 0;

	if (merge == MERGE_START && removed_by_command(routing, service, wanted->name)) {
		log_info(
			"replica %s of service %s stays removed, as commanded; reload to add it again",
			wanted->name, routing->services[service].name);
		return 0;
	}
	if (merge == MERGE_START && slot >= 0 && replica_in_set(&routing->replicas[slot]) &&
	    (routing->replicas[slot].overridden & OVERRIDE_WEIGHT)) {
		keep_weight = true;
		weight = routing->replicas[slot].weight_thousandths;
	}
	slot = place_replica(routing, service, wanted, REPLICA_FROM_CONFIGURATION, usage, error);
	if (slot < 0)
		return slot;
	if (keep_weight) {
		routing->replicas[slot].weight_thousandths = weight;
		routing->replicas[slot].overridden = OVERRIDE_WEIGHT;
	}
	return 0;
}

/* Whether a replica that the file does not have stays: added by command, the agent only restarted, and still fitting. */
static bool stays_unconfigured(const struct routing *routing, const struct replica *replica,
			       enum routing_merge merge)
{
	const struct config_service *settings = routing->settings[replica->service];
	struct address none = {0};
	unsigned int i;

	if (merge != MERGE_START || replica->source == REPLICA_FROM_CONFIGURATION || !settings)
		return false;
	for (i = 0; i < settings->addresses.count; i++) {
		bool ipv4 = address_is_ipv4(&settings->addresses.item[i].address);

		if (address_equal(ipv4 ? &replica->ipv4 : &replica->ipv6, &none))
			goto does_not_fit;
	}
	for (i = 0; i < settings->replica_count; i++) {
		struct replica configured = {0};

		fill_addresses(&configured, &settings->replicas[i]);
		if (configured.port != replica->port)
			continue;
		if ((address_is_set(&replica->ipv4) &&
		     address_equal(&configured.ipv4, &replica->ipv4)) ||
		    (address_is_set(&replica->ipv6) &&
		     address_equal(&configured.ipv6, &replica->ipv6)))
			goto does_not_fit;
	}
	return true;
does_not_fit:
	log_warning(
		"replica %s, added to service %s by command, does not go with the configuration any "
		"more and is removed",
		replica->name, settings->name);
	return false;
}

static void remove_unconfigured(struct routing *routing, enum routing_merge merge)
{
	unsigned int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		struct replica *replica = &routing->replicas[slot];
		const struct config_service *settings = routing->settings[replica->service];
		bool configured = settings && find_configured(settings, replica->name);

		if (replica->state == REPLICA_REMOVED && !configured)
			replica->overridden = 0;
		if (replica_in_set(replica) && !configured &&
		    !stays_unconfigured(routing, replica, merge))
			remove_from_set(replica, 0);
	}
}

static void retire_unconfigured_services(struct routing *routing, const struct config *config)
{
	unsigned int i, j;

	for (i = 0; i < SERVICES_MAX; i++) {
		for (j = 0; j < config->service_count; j++) {
			if (strcmp(routing->services[i].name, config->services[j].name) == 0)
				break;
		}
		if (j == config->service_count)
			routing->services[i].state = SERVICE_UNUSED;
	}
}

int routing_merge(struct routing *routing, const struct config *config, enum routing_merge merge,
		  const struct slot_usage *usage, struct error *error)
{
	unsigned int i, j;
	int index, result;

	memset(routing->settings, 0, sizeof(routing->settings));
	retire_unconfigured_services(routing, config);
	for (i = 0; i < config->service_count; i++) {
		index = allocate_service(routing, config->services[i].name, error);
		if (index < 0)
			return index;
		fill_service(&routing->services[index], &config->services[i]);
		routing->settings[index] = &config->services[i];
	}
	remove_unconfigured(routing, merge);
	for (i = 0; i < SERVICES_MAX; i++) {
		const struct config_service *settings = routing->settings[i];

		for (j = 0; settings && j < settings->replica_count; j++) {
			result = merge_replica(routing, i, &settings->replicas[j], merge, usage,
					       error);
			if (result < 0)
				return result;
		}
	}
	return 0;
}
