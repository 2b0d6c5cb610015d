/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route, address: what the live ring says of an id.
 */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "lib/address.h"
#include "lib/control.h"

int command_read_id(const json_t *message, char id[ID_LENGTH_MAX + 1], struct error *error)
{
	const char *text;
	size_t length;
	int result = control_text(message, "id", true, &text, error);

	if (result)
		return result;
	text += strspn(text, " ");
	length = strlen(text);
	while (length > 0 && text[length - 1] == ' ')
		length--;
	if (length < 1 || length > ID_LENGTH_MAX ||
	    strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-") <
		    length)
		return error_set(error, -EINVAL,
				 "\"%.140s\" is not an id: 1 to %d letters, digits and . _ : -",
				 text, ID_LENGTH_MAX);
	memcpy(id, text, length);
	id[length] = '\0';
	return 0;
}

int command_route(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	__u32 members[REPLICAS_MAX];
	char id[ID_LENGTH_MAX + 1];
	const char *service_name;
	const struct ring *ring;
	bool all = false;
	json_t *walk;
	size_t count, i;
	int service, by_number, result;
	__u64 hash;

	result = command_read_id(message, id, error);
	if (!result)
		result = control_text(message, "service", false, &service_name, error);
	if (!result)
		result = control_flag(message, "all", &all, error);
	if (result)
		return result;
	service = routing_find_service(&agent->routing, service_name, error);
	if (service < 0)
		return service;
	ring = &agent->rings.ring[service];
	hash = ring_hash(ring, id, strlen(id));
	count = ring_walk(ring, hash, members, REPLICAS_MAX);
	if (count == 0)
		return error_set(error, -ENOENT, "no replica is active in service %s",
				 agent->routing.services[service].name);

	json_object_set_new(answer, "service", json_string(agent->routing.services[service].name));
	json_object_set_new(answer, "id", json_string(id));
	json_object_set_new(answer, "hash", json_sprintf("0x%016llx", (unsigned long long)hash));
	json_object_set_new(answer, "generation",
			    json_integer((json_int_t)ring->header.generation));
	json_object_set_new(answer, "home", json_string(ring->names[members[0]]));
	if (agent->routing.services[service].policy.policy == POLICY_MOD_N) {
		by_number = ring_mod_n_of_id(ring, id, strlen(id));
		json_object_set_new(answer, "mod_n", json_string(ring->names[by_number]));
	}
	if (!all)
		return 0;
	walk = json_array();
	for (i = 0; i < count; i++)
		json_array_append_new(walk, json_string(ring->names[members[i]]));
	json_object_set_new(answer, "walk", walk);
	return 0;
}

/* The service that is meant: the one named, else the only one with the id in the address. */
static int find_address_service(const struct agent *agent, const char *name, struct error *error)
{
	int i, found = -1;

	if (name) {
		found = routing_find_service(&agent->routing, name, error);
		if (found >= 0 && agent->routing.services[found].id_from != ID_FROM_ADDRESS)
			return error_set(error, -EINVAL,
					 "service %s does not take the id from the address", name);
		return found;
	}
	for (i = 0; i < SERVICES_MAX; i++) {
		if (!agent->routing.settings[i] ||
		    agent->routing.services[i].id_from != ID_FROM_ADDRESS)
			continue;
		if (found >= 0)
			return error_set(
				error, -EINVAL,
				"several services take the id from the address; name one with "
				"--service");
		found = i;
	}
	if (found < 0)
		return error_set(error, -ENOENT, "no service takes the id from the address");
	return found;
}

int command_address(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	const struct config_service *settings;
	json_t *addresses = json_array();
	char id[ID_LENGTH_MAX + 1];
	const char *service_name;
	int service, result;
	unsigned int i;
	__u64 hash;

	json_object_set_new(answer, "addresses", addresses);
	result = command_read_id(message, id, error);
	if (!result)
		result = control_text(message, "service", false, &service_name, error);
	if (result)
		return result;
	service = find_address_service(agent, service_name, error);
	if (service < 0)
		return service;
	settings = agent->routing.settings[service];
	hash = ring_hash(&agent->rings.ring[service], id, strlen(id));
	for (i = 0; i < settings->addresses.count; i++) {
		struct address address = settings->addresses.item[i].address;
		__u64 low = htobe64(hash);
		char text[INET6_ADDRSTRLEN];

		memcpy(&address.word[2], &low, sizeof(low));
		json_array_append_new(addresses, json_string(address_format(&address, text)));
	}
	json_object_set_new(answer, "service", json_string(settings->name));
	json_object_set_new(answer, "id", json_string(id));
	json_object_set_new(answer, "hash", json_sprintf("0x%016llx", (unsigned long long)hash));
	json_object_set_new(answer, "port", json_integer(settings->port));
	return 0;
}
