/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bringing the routing to what the configuration says, at a start or a reload.
 */
#include "agent/routing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "agent/routing_slot.h"
#include "lib/address.h"
#include "lib/log.h"

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

/* A policy set at run time survives a restart of the agent, not a reload. */
static void fill_policy(struct service *service, const struct config_service *settings,
			const struct service *before, enum routing_merge merge)
{
	service->policy = settings->policy;
	if (merge != MERGE_START || before->state != SERVICE_ACTIVE || !before->policy_overridden)
		return;
	service->policy = before->policy;
	service->policy_overridden = 1;
	log_info("service %s keeps the policy set by command; reload to take the file's",
		 service->name);
}

static void fill_service(struct service *service, const struct config_service *settings,
			 enum routing_merge merge)
{
	const struct service before = *service;

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
	fill_policy(service, settings, &before, merge);
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
	int slot = routing_find_slot(routing, service, name);

	return slot >= 0 && routing->replicas[slot].state == REPLICA_REMOVED &&
	       (routing->replicas[slot].overridden & OVERRIDE_REMOVED);
}

static int merge_replica(struct routing *routing, __u32 service,
			 const struct config_replica *wanted, enum routing_merge merge,
			 const struct slot_usage *usage, struct error *error)
{
	int slot = routing_find_slot(routing, service, wanted->name);
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
	slot = routing_place_replica(routing, service, wanted, REPLICA_FROM_CONFIGURATION, usage,
				     error);
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

	/* What was found stays until its sources have spoken, also after a reload: nothing moves without cause. */
	if (replica->source == REPLICA_FROM_DISCOVERY) {
		if (!settings || settings->discovery_count == 0)
			return false;
	} else if (merge != MERGE_START || replica->source == REPLICA_FROM_CONFIGURATION ||
		   !settings) {
		return false;
	}
	for (i = 0; i < settings->addresses.count; i++) {
		bool ipv4 = address_is_ipv4(&settings->addresses.item[i].address);

		if (address_equal(ipv4 ? &replica->ipv4 : &replica->ipv6, &none))
			goto does_not_fit;
	}
	for (i = 0; i < settings->replica_count; i++) {
		struct replica configured = {0};

		routing_fill_addresses(&configured, &settings->replicas[i]);
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
		"replica %s, %s service %s %s, does not go with the configuration any more and is removed",
		replica->name, replica->source == REPLICA_FROM_DISCOVERY ? "found for" : "added to",
		settings->name,
		replica->source == REPLICA_FROM_DISCOVERY ? "by discovery" : "by command");
	return false;
}

static void remove_unconfigured(struct routing *routing, enum routing_merge merge)
{
	unsigned int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		struct replica *replica = &routing->replicas[slot];
		const struct config_service *settings = routing->settings[replica->service];
		bool configured = settings && find_configured(settings, replica->name);

		/* After a restart, discovery keeps what was removed by command out, as the configuration does. */
		if (replica->state == REPLICA_REMOVED && !configured &&
		    !(merge == MERGE_START && settings && settings->discovery_count > 0))
			replica->overridden = 0;
		if (merge == MERGE_RELOAD && replica_in_set(replica))
			replica->overridden =
				0; /* the weight of what was found becomes its source's again */
		if (replica_in_set(replica) && !configured &&
		    !stays_unconfigured(routing, replica, merge))
			routing_remove_from_set(replica, 0);
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
		fill_service(&routing->services[index], &config->services[i], merge);
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
