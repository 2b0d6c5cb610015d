/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring: of what the live ring of a service is made. Whoever has this (and, of a keyed ring, the key) can build it again, point by point.
 */
#include <errno.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "lib/config_schema.h"
#include "lib/control.h"

static json_t *members_json(const struct agent *agent, __u32 service)
{
	const struct ring *ring = &agent->rings.ring[service];
	double shares[REPLICAS_MAX];
	json_t *list = json_array();

	if (agent->rings.built[service])
		ring_shares(ring, shares);
	for (__u32 slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &agent->routing.replicas[slot];
		int member = -1;

		if (replica->service != service || !replica_in_set(replica))
			continue;
		if (replica->state == REPLICA_ACTIVE && agent->rings.built[service])
			member = ring_find_member(ring, replica->name);
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:f, s:f}", "name", replica->name,
						"state", replica_state_name(replica->state),
						"weight", replica_ring_weight(replica) / 1000.0,
						"share", member >= 0 ? shares[member] : 0.0));
	}
	return list;
}

int command_ring(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	const struct config_service *settings;
	const struct ring_header *header;
	const char *name;
	int service, result = control_text(message, "service", false, &name, error);

	if (result)
		return result;
	service = routing_find_service(&agent->routing, name, error);
	if (service < 0)
		return service;
	settings = agent->routing.settings[service];
	header = &agent->rings.ring[service].header;
	json_object_set_new(answer, "service", json_string(settings->name));
	json_object_set_new(answer, "dialect",
			    json_string(schema_word(choices_dialect, settings->ring.dialect)));
	json_object_set_new(answer, "vnodes", json_integer(settings->ring.vnodes));
	if (settings->ring.hash_key_length > 0)
		json_object_set_new(answer, "hash_key_file",
				    json_string(settings->ring.hash_key_file));
	json_object_set_new(answer, "generation", json_integer((json_int_t)header->generation));
	json_object_set_new(answer, "points", json_integer(header->point_count));
	json_object_set_new(answer, "replicas", members_json(agent, service));
	return 0;
}
