/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replica-busy: what a replica still has to do. `warmpath replica drain --wait` asks until it is nothing.
 */
#include <bpf/bpf.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/flow_table.h"
#include "agent/reported_load.h"
#include "lib/control.h"

int command_replica_busy(struct agent *agent, const json_t *message, json_t *answer,
			 struct error *error)
{
	const char *service_name, *name;
	struct replica_load load = {0};
	__u32 counts[REPLICAS_MAX], key;
	int service, slot, result;

	result = control_text(message, "service", false, &service_name, error);
	if (!result)
		result = control_text(message, "name", true, &name, error);
	if (result)
		return result;
	service = routing_find_service(&agent->routing, service_name, error);
	if (service < 0)
		return service;
	slot = routing_find_replica(&agent->routing, service, name, error);
	if (slot < 0)
		return slot;
	key = slot;
	bpf_map_lookup_elem(agent->datapath.replica_loads, &key, &load);
	reported_load_own(agent->reported_load, slot, &load);
	result = flow_table_count_bound(agent->datapath.flows, agent->datapath.connections, counts);
	if (result)
		return error_set(error, result, "the connections cannot be read: %s",
				 strerror(-result));
	json_object_set_new(answer, "service", json_string(agent->routing.services[service].name));
	json_object_set_new(answer, "name", json_string(name));
	json_object_set_new(answer, "draining",
			    json_boolean(agent->routing.replicas[slot].state == REPLICA_DRAINING));
	json_object_set_new(answer, "requests", json_integer(load.requests));
	json_object_set_new(answer, "connections", json_integer(counts[slot]));
	return 0;
}
