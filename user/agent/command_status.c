/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status, service-list, counters, version, reload.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/discovery.h"
#include "agent/health.h"
#include "lib/address.h"
#include "lib/config_schema.h"
#include "lib/control.h"
#include "lib/counters.h"

static json_t *interface_json(const struct attachment *attachment)
{
	json_t *interface = json_pack(
		"{s:s, s:s, s:s, s:b, s:s, s:i, s:b, s:b, s:b}", "name", attachment->name, "mode",
		schema_word(choices_attach_mode, attachment->wanted), "attached",
		attached_kind_name(attachment->kind), "dispatcher", attachment->dispatched,
		"driver", attachment->driver, "program_id", (int)attachment->program_id,
		"redirect_target", attachment->redirect_target, "redirect_peer",
		attachment->redirect_peer, "configured", !attachment->by_command);

	if (!attachment->index)
		json_object_set_new(interface, "problem",
				    json_string("there is no such interface at present"));
	else if (attachment->problem.text[0])
		json_object_set_new(interface, "problem", json_string(attachment->problem.text));
	return interface;
}

static json_t *public_addresses_json(const struct config_service *settings)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < settings->addresses.count; i++) {
		const struct config_address *address = &settings->addresses.item[i];
		char text[INET6_ADDRSTRLEN];

		address_format(&address->address, text);
		if (address->prefix_length < 128)
			json_array_append_new(list,
					      json_sprintf("%s/%u", text, address->prefix_length));
		else
			json_array_append_new(list, json_string(text));
	}
	return list;
}

static json_t *service_json(const struct agent *agent, __u32 index)
{
	const struct config_service *settings = agent->routing.settings[index];
	const struct ring_header *header = &agent->rings.ring[index].header;
	int counts[REPLICA_REMOVED + 1] = {0};
	unsigned int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &agent->routing.replicas[slot];

		if (replica->state != REPLICA_UNUSED && replica->service == index)
			counts[replica->state]++;
	}
	return json_pack(
		"{s:s, s:i, s:o, s:i, s:s, s:s, s:s, s:s, s:i, s:b, s:I, s:i, s:{s:i, s:i, s:i}, s:o, s:o}",
		"name", settings->name, "index", (int)index, "addresses",
		public_addresses_json(settings), "port", settings->port, "protocol",
		schema_word(choices_protocol, settings->protocol), "id_from",
		schema_word(choices_id_from, settings->id_from), "policy",
		schema_word(choices_policy, settings->policy.policy), "dialect",
		schema_word(choices_dialect, settings->ring.dialect), "vnodes",
		(int)settings->ring.vnodes, "hash_keyed", settings->ring.hash_key_length > 0,
		"generation", (json_int_t)header->generation, "points", (int)header->point_count,
		"replicas", "active", counts[REPLICA_ACTIVE], "draining", counts[REPLICA_DRAINING],
		"down", counts[REPLICA_DOWN], "discovery",
		discovery_sources_json(agent->discovery, settings->name), "discovery_notes",
		discovery_notes_json(agent->discovery, settings->name));
}

static json_t *services_json(const struct agent *agent)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < SERVICES_MAX; i++) {
		if (agent->routing.settings[i])
			json_array_append_new(list, service_json(agent, i));
	}
	return list;
}

/* The replicas that are down, and those that begin slowly. */
static json_t *unwell_json(const struct agent *agent)
{
	json_t *list = json_array();
	__u32 slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &agent->routing.replicas[slot];
		bool down = replica->state == REPLICA_DOWN;
		json_t *object, *health;

		if (!replica_in_set(replica) || (!down && !replica->share_thousandths))
			continue;
		object = json_pack("{s:s, s:s, s:s}", "service",
				   agent->routing.services[replica->service].name, "name",
				   replica->name, "state", down ? "down" : "active");
		health = health_json(agent->health, slot);
		if (down)
			json_object_update_missing(object, health);
		else
			json_object_set_new(object, "slow_start",
					    json_real(replica->share_thousandths / 1000.0));
		json_decref(health);
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *time_json(const struct timespec *time)
{
	char text[32];
	struct tm parts;

	gmtime_r(&time->tv_sec, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return json_string(text);
}

int command_status(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	json_t *interfaces = json_array(), *warnings = json_array();
	struct timespec now;
	unsigned int i;

	(void)message;
	(void)error;
	agent_refresh_warnings(agent);
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (i = 0; i < agent->attachments.count; i++)
		json_array_append_new(interfaces, interface_json(&agent->attachments.item[i]));
	for (i = 0; i < agent->warning_count; i++)
		json_array_append_new(warnings, json_string(agent->warnings[i]));
	json_object_set_new(answer, "version", json_string(WARMPATH_VERSION));
	json_object_set_new(answer, "process", json_integer(getpid()));
	json_object_set_new(answer, "uptime_seconds",
			    json_integer(now.tv_sec - agent->started.tv_sec));
	json_object_set_new(answer, "configuration", json_string(agent->config_path));
	json_object_set_new(answer, "configuration_applied", time_json(&agent->loaded));
	json_object_set_new(answer, "shape",
			    json_string(schema_word(choices_shape, agent->config->shape)));
	json_object_set_new(answer, "pin_path", json_string(agent->config->pin_path));
	json_object_set_new(answer, "adopted", json_boolean(agent->datapath.adopted));
	json_object_set_new(answer, "interfaces", interfaces);
	json_object_set_new(answer, "services", services_json(agent));
	json_object_set_new(answer, "unwell", unwell_json(agent));
	json_object_set_new(answer, "warnings", warnings);
	return 0;
}

int command_service_list(struct agent *agent, const json_t *message, json_t *answer,
			 struct error *error)
{
	const char *name;
	int index, result = control_text(message, "service", false, &name, error);
	json_t *list;

	if (result)
		return result;
	if (!name) {
		json_object_set_new(answer, "services", services_json(agent));
		return 0;
	}
	index = routing_find_service(&agent->routing, name, error);
	if (index < 0)
		return index;
	list = json_array();
	json_array_append_new(list, service_json(agent, index));
	json_object_set_new(answer, "services", list);
	return 0;
}

int command_counters(struct agent *agent, const json_t *message, json_t *answer,
		     struct error *error)
{
	struct counters counters;
	int result = counters_read(agent->datapath.counters, &counters);

	(void)message;
	if (result)
		return error_set(error, result, "the counters cannot be read: %s",
				 strerror(-result));
	json_object_set_new(answer, "counters", counters_json(&counters));
	return 0;
}

int command_version(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	(void)message;
	(void)error;
	json_object_set_new(answer, "version", json_string(WARMPATH_VERSION));
	/* no two agents of one machine have the same */
	json_object_set_new(answer, "instance",
			    json_sprintf("%lld.%09ld", (long long)agent->started.tv_sec,
					 agent->started.tv_nsec));
	json_object_set_new(answer, "layout", json_integer(WARMPATH_LAYOUT_VERSION));
	return 0;
}

int command_reload(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	(void)message;
	(void)answer;
	return agent_reload(agent, error);
}
