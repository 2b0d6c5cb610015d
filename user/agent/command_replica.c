/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replica-list, replica-add, replica-drain, replica-undrain, replica-remove, replica-weight.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/flow_table.h"
#include "agent/health.h"
#include "agent/reported_load.h"
#include "lib/address.h"
#include "lib/control.h"
#include "lib/log.h"

static const char *source_name(enum replica_source source)
{
	switch (source) {
	case REPLICA_FROM_CONFIGURATION:
		return "configuration";
	case REPLICA_FROM_COMMAND:
		return "command";
	case REPLICA_FROM_DISCOVERY:
		return "discovery";
	}
	return "unknown";
}

/* --- listing ----------------------------------------------------------------------------------------------------- */

static json_t *addresses_json(struct agent *agent, __u32 slot)
{
	const struct replica *replica = &agent->routing.replicas[slot];
	const struct address *addresses[] = {&replica->ipv4, &replica->ipv6};
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < 2; i++) {
		char text[INET6_ADDRSTRLEN];

		if (!address_is_set(addresses[i]))
			continue;
		json_array_append_new(
			list, json_pack("{s:s, s:s}", "address", address_format(addresses[i], text),
					"neighbour",
					replica_in_set(replica)
						? neighbour_state_name(&agent->neighbours, slot, i)
						: "not asked"));
	}
	return list;
}

static json_t *replica_json(struct agent *agent, __u32 slot, const double *shares,
			    const __u32 *flows)
{
	const struct replica *replica = &agent->routing.replicas[slot];
	const struct ring *ring = &agent->rings.ring[replica->service];
	struct replica_load load = {0};
	int member = -1;
	json_t *object;

	bpf_map_lookup_elem(agent->datapath.replica_loads, &slot, &load);
	reported_load_own(agent->reported_load, slot, &load);
	if (replica->state == REPLICA_ACTIVE && agent->rings.built[replica->service])
		member = ring_find_member(ring, replica->name);
	object = json_pack(
		"{s:s, s:s, s:s, s:s, s:o, s:i, s:f, s:f, s:i, s:i, s:i, s:i, s:i, s:I, s:I}",
		"service", agent->routing.services[replica->service].name, "name", replica->name,
		"state", replica_state_name(replica->state), "source", source_name(replica->source),
		"addresses", addresses_json(agent, slot), "port", ntohs(replica->port), "weight",
		replica->weight_thousandths / 1000.0, "share", member >= 0 ? shares[member] : 0.0,
		"points",
		member >= 0 ? (int)ring_weight_points(
				      agent->routing.settings[replica->service]->ring.vnodes,
				      replica_ring_weight(replica))
			    : 0,
		"slot", (int)slot, "incarnation", (int)replica->incarnation, "flows",
		(int)flows[slot], "requests", (int)load.requests, "tokens", (json_int_t)load.tokens,
		"decisions", (json_int_t)load.decisions);
	json_object_set_new(object, "health", health_json(agent->health, slot));
	json_object_set_new(object, "reported", reported_load_json(agent->reported_load, slot));
	json_object_set_new(
		object, "slow_start",
		json_real(replica->share_thousandths ? replica->share_thousandths / 1000.0 : 1.0));
	return object;
}

static int by_name(const void *a, const void *b, void *context)
{
	const struct replica *replicas = context;

	return strcmp(replicas[*(const __u32 *)a].name, replicas[*(const __u32 *)b].name);
}

static void list_service(struct agent *agent, __u32 service, bool removed, const __u32 *flows,
			 json_t *list)
{
	double shares[REPLICAS_MAX];
	__u32 slots[REPLICAS_MAX], slot;
	unsigned int count = 0, i;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &agent->routing.replicas[slot];

		if (replica->service == service &&
		    (replica_in_set(replica) || (removed && replica->state == REPLICA_REMOVED)))
			slots[count++] = slot;
	}
	if (agent->rings.built[service])
		ring_shares(&agent->rings.ring[service], shares);
	qsort_r(slots, count, sizeof(slots[0]), by_name, agent->routing.replicas);
	for (i = 0; i < count; i++)
		json_array_append_new(list, replica_json(agent, slots[i], shares, flows));
}

int command_replica_list(struct agent *agent, const json_t *message, json_t *answer,
			 struct error *error)
{
	const char *service_name;
	__u32 flows[REPLICAS_MAX];
	bool removed = false;
	json_t *list;
	int only = -1, result, i;

	result = control_text(message, "service", false, &service_name, error);
	if (!result)
		result = control_flag(message, "removed", &removed, error);
	if (!result && service_name) {
		only = routing_find_service(&agent->routing, service_name, error);
		result = only < 0 ? only : 0;
	}
	if (result)
		return result;
	result = flow_table_count(agent->datapath.flows, agent->datapath.connections, flows);
	if (result)
		return error_set(error, result, "the flows cannot be read: %s", strerror(-result));
	list = json_array();
	for (i = 0; i < SERVICES_MAX; i++) {
		if (agent->routing.settings[i] && (only < 0 || only == i))
			list_service(agent, i, removed, flows, list);
	}
	json_object_set_new(answer, "replicas", list);
	return 0;
}

/* --- changes ----------------------------------------------------------------------------------------------------- */

struct replica_request {
	__u32 service;
	struct config_replica wanted; /* of it, only the name, where the command needs no more */
};

static int read_request(struct agent *agent, const json_t *message, struct replica_request *request,
			struct error *error)
{
	const char *service_name, *name;
	int service, result;

	memset(request, 0, sizeof(*request));
	result = control_text(message, "service", false, &service_name, error);
	if (!result)
		result = control_text(message, "name", true, &name, error);
	if (result)
		return result;
	if (!config_name_valid(name, sizeof(request->wanted.name)))
		return error_set(
			error, -EINVAL,
			"\"%.80s\" is not a replica's name: 1 to %zu letters, digits and . _ -",
			name, sizeof(request->wanted.name) - 1);
	service = routing_find_service(&agent->routing, service_name, error);
	if (service < 0)
		return service;
	request->service = service;
	strcpy(request->wanted.name, name);
	return 0;
}

static int read_addresses(const json_t *message, struct config_replica *wanted, struct error *error)
{
	const json_t *list = json_object_get(message, "addresses");
	size_t i, count = json_array_size(list);

	if (count < 1 || count > CONFIG_REPLICA_ADDRESSES_MAX)
		return error_set(
			error, -EINVAL,
			"the argument \"addresses\" is not a list of one or two addresses");
	for (i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(list, i));
		int result;

		if (!text)
			return error_set(error, -EINVAL, "an address is not text");
		result = address_parse(text, &wanted->addresses.item[i].address, NULL, error);
		if (result)
			return result;
		wanted->addresses.item[i].prefix_length = 128;
	}
	wanted->addresses.count = count;
	if (count == 2 && address_is_ipv4(&wanted->addresses.item[0].address) ==
				  address_is_ipv4(&wanted->addresses.item[1].address))
		return error_set(
			error, -EINVAL,
			"two addresses of one family; one IPv4 and one IPv6 address are possible");
	return 0;
}

static int read_weight(const json_t *message, bool required, struct config_replica *wanted,
		       struct error *error)
{
	json_int_t weight = RING_WEIGHT_ONE;
	int result = control_thousandths(message, "weight", required, 1, RING_WEIGHT_MAX, &weight,
					 error);

	wanted->weight_thousandths = weight;
	return result;
}

static int add(struct agent *agent, struct routing *next, void *context, struct error *error)
{
	const struct replica_request *request = context;
	const struct slot_usage usage = agent_slot_usage(agent);
	int slot = routing_add_replica(next, request->service, &request->wanted, &usage, error);

	return slot < 0 ? slot : 0;
}

static int drain(struct agent *agent, struct routing *next, void *context, struct error *error)
{
	const struct replica_request *request = context;

	(void)agent;
	return routing_drain_replica(next, request->service, request->wanted.name, error);
}

static int undrain(struct agent *agent, struct routing *next, void *context, struct error *error)
{
	const struct replica_request *request = context;

	(void)agent;
	return routing_undrain_replica(next, request->service, request->wanted.name, error);
}

static int take_away(struct agent *agent, struct routing *next, void *context, struct error *error)
{
	const struct replica_request *request = context;

	(void)agent;
	return routing_remove_replica(next, request->service, request->wanted.name, error);
}

static int weigh(struct agent *agent, struct routing *next, void *context, struct error *error)
{
	const struct replica_request *request = context;

	(void)agent;
	return routing_weigh_replica(next, request->service, request->wanted.name,
				     request->wanted.weight_thousandths, error);
}

/* Applies the change and answers with the replica as it is then. */
static int change_replica(struct agent *agent, agent_change change, struct replica_request *request,
			  const char *what, json_t *answer, struct error *error)
{
	const char *service = agent->routing.services[request->service].name;
	int result = agent_change_routing(agent, change, request, error);

	if (result)
		return result;
	log_info("replica %s of service %s: %s, by command", request->wanted.name, service, what);
	json_object_set_new(answer, "service", json_string(service));
	json_object_set_new(answer, "name", json_string(request->wanted.name));
	json_object_set_new(answer, "done", json_string(what));
	return 0;
}

int command_replica_add(struct agent *agent, const json_t *message, json_t *answer,
			struct error *error)
{
	struct replica_request request;
	json_int_t port = 0;
	int result = read_request(agent, message, &request, error);

	if (!result)
		result = read_addresses(message, &request.wanted, error);
	if (!result)
		result = control_number(message, "port", true, 1, 65535, &port, error);
	if (!result)
		result = read_weight(message, false, &request.wanted, error);
	if (result)
		return result;
	request.wanted.port = port;
	return change_replica(agent, add, &request, "added", answer, error);
}

int command_replica_drain(struct agent *agent, const json_t *message, json_t *answer,
			  struct error *error)
{
	struct replica_request request;
	int result = read_request(agent, message, &request, error);

	return result ? result : change_replica(agent, drain, &request, "draining", answer, error);
}

int command_replica_undrain(struct agent *agent, const json_t *message, json_t *answer,
			    struct error *error)
{
	struct replica_request request;
	int result = read_request(agent, message, &request, error);

	return result ? result : change_replica(agent, undrain, &request, "active", answer, error);
}

int command_replica_remove(struct agent *agent, const json_t *message, json_t *answer,
			   struct error *error)
{
	struct replica_request request;
	int result = read_request(agent, message, &request, error);

	return result ? result
		      : change_replica(agent, take_away, &request, "removed", answer, error);
}

int command_replica_weight(struct agent *agent, const json_t *message, json_t *answer,
			   struct error *error)
{
	struct replica_request request;
	int result = read_request(agent, message, &request, error);

	if (!result)
		result = read_weight(message, true, &request.wanted, error);
	return result ? result : change_replica(agent, weigh, &request, "weighted", answer, error);
}
