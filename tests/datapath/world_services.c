/* SPDX-License-Identifier: BSD-2-Clause */
/* See world.h: services, replicas and rings in the maps, as the agent writes them. */
#include "world.h"

#include <bpf/bpf.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "lib/ring_maps.h"

static const struct world_service *configured;
static size_t configured_count;
static struct ring rings[SERVICES_MAX];
static enum replica_state states[SERVICES_MAX][WORLD_REPLICAS_MAX];

/* Slots are scattered, so that slot, position and port differ. */
uint32_t world_slot(size_t service, size_t position)
{
	return (service * 131 + position * 37 + 5) % REPLICAS_MAX;
}

static bool is_ipv4(const struct address *address)
{
	return !address->word[0] && !address->word[1] && address->word[2] == htonl(0xffff);
}

/* One entry for each protocol; a prefix has one that says the whole of it is ours. */
static int add_public_address(const struct world_service *from, size_t index, const char *text,
			      struct service *service)
{
	struct service_address value = {.service = index};
	struct service_address_key key = {.port = htons(from->port), .prefix_length = 128};
	const char *slash = strchr(text, '/');
	struct address *public;
	char plain[64];
	int map = world_map("service_addresses");
	int err = 0;

	snprintf(plain, sizeof(plain), "%.*s", slash ? (int)(slash - text) : (int)strlen(text),
		 text);
	key.address = world_address(plain);
	for (int i = 0; i < 2 && from->protocols[i] && !err; i++) {
		key.protocol = from->protocols[i];
		if (slash)
			key.prefix_length = 64;
		err = bpf_map_update_elem(map, &key, &value, 0);
	}
	if (err)
		return err;
	if (slash) {
		key.protocol = 0;
		key.port = 0;
		return bpf_map_update_elem(map, &key, &value, 0);
	}
	/* the second address of a family takes the first one's privilege away; counted here until the service is written */
	public = is_ipv4(&key.address) ? &service->public_ipv4 : &service->public_ipv6;
	service->policy_overridden += is_ipv4(&key.address) ? 1 : 0x100;
	if ((is_ipv4(&key.address) ? service->policy_overridden & 0xff
				   : service->policy_overridden >> 8) > 1)
		memset(public, 0, sizeof(*public));
	else
		*public = key.address;
	return 0;
}

static int add_replica_address(const struct address *address, uint16_t port, uint32_t slot)
{
	struct replica_address_key key = {.address = *address, .port = htons(port)};
	struct replica_address value = {.replica = slot};
	int map = world_map("replica_addresses");

	if (!bpf_map_lookup_elem(map, &key, &value))
		value.services++;
	else
		value.services = 1;
	return bpf_map_update_elem(map, &key, &value, 0);
}

static int add_replica(const struct world_replica *from, size_t service, uint32_t slot,
		       enum replica_state state)
{
	struct replica replica = {
		.state = state,
		.source = REPLICA_FROM_CONFIGURATION,
		.service = service,
		.incarnation = slot + 1000,
		.weight_thousandths = 1000,
		.port = htons(from->port),
	};
	int err = 0;

	snprintf(replica.name, sizeof(replica.name), "%s", from->name);
	if (from->ipv4) {
		replica.ipv4 = world_address(from->ipv4);
		err = add_replica_address(&replica.ipv4, from->port, slot);
	}
	if (from->ipv6 && !err) {
		replica.ipv6 = world_address(from->ipv6);
		err = add_replica_address(&replica.ipv6, from->port, slot);
	}
	return err ? err : bpf_map_update_elem(world_map("replicas"), &slot, &replica, 0);
}

static int make_ring(const struct world_service *from, size_t index)
{
	struct ring_replica members[WORLD_REPLICAS_MAX] = {};
	struct ring_settings settings = {.dialect = RING_LLM, .vnodes = 100};
	struct ring_maps maps = world_ring_maps();
	struct error error;
	size_t count = 0;
	int err;

	for (size_t i = 0; i < WORLD_REPLICAS_MAX && from->replicas[i].name; i++) {
		if (states[index][i] != REPLICA_ACTIVE)
			continue;
		members[count].name = from->replicas[i].name;
		members[count].slot = world_slot(index, i);
		members[count++].weight_thousandths = 1000;
	}
	ring_free(&rings[index]);
	err = ring_build(&rings[index], &settings, members, count, &error);
	if (!err)
		err = ring_maps_swap(&maps, index, &rings[index], &error);
	if (err)
		fprintf(stderr, "%s\n", error.text);
	return err;
}

static void reset_loads(const struct world_service *from, size_t index)
{
	struct service_load sums = {};
	__u32 service = index;

	for (size_t i = 0; i < WORLD_REPLICAS_MAX && from->replicas[i].name; i++) {
		struct replica_load load = {};
		__u32 slot = world_slot(index, i);

		load.counted = states[index][i] == REPLICA_ACTIVE;
		sums.replica_count += load.counted;
		bpf_map_update_elem(world_map("replica_loads"), &slot, &load, 0);
	}
	bpf_map_update_elem(world_map("service_loads"), &service, &sums, 0);
}

void world_reset_loads(void)
{
	for (size_t i = 0; i < configured_count; i++)
		reset_loads(&configured[i], i);
}

static void empty_map(const char *name)
{
	uint8_t key[64];
	int map = world_map(name);

	while (!bpf_map_get_next_key(map, NULL, key))
		bpf_map_delete_elem(map, key);
}

int world_configure(const struct world_service *services, size_t count)
{
	configured = services;
	configured_count = count;
	empty_map("service_addresses");
	empty_map("replica_addresses");
	empty_map("requests");
	for (uint32_t i = 0; i < count; i++) {
		const struct world_service *from = &services[i];
		struct service service = {
			.state = SERVICE_ACTIVE,
			.id_from = from->id_from,
			.id_offset = from->id_offset,
			.id_length = from->id_length,
			.prompt_tokens_offset = OFFSET_NONE,
			.max_tokens_offset = OFFSET_NONE,
			.request_timeout_milliseconds = from->timeout_milliseconds,
			.public_port = htons(from->port),
			.policy = {.policy = POLICY_CONSISTENT, .load_metric = LOAD_REQUESTS},
		};
		int err = 0;

		snprintf(service.name, sizeof(service.name), "%s", from->name);
		for (size_t j = 0; j < 4 && from->addresses[j] && !err; j++)
			err = add_public_address(from, i, from->addresses[j], &service);
		service.policy_overridden = 0;
		for (size_t j = 0; j < WORLD_REPLICAS_MAX && from->replicas[j].name && !err; j++) {
			states[i][j] =
				from->replicas[j].state ? from->replicas[j].state : REPLICA_ACTIVE;
			err = add_replica(&from->replicas[j], i, world_slot(i, j), states[i][j]);
		}
		if (!err)
			err = bpf_map_update_elem(world_map("services"), &i, &service, 0);
		if (!err)
			err = make_ring(from, i);
		if (err)
			return err;
	}
	world_reset_loads();
	return 0;
}

int world_set_state(size_t service, size_t position, enum replica_state state)
{
	uint32_t slot = world_slot(service, position);
	int map = world_map("replicas");
	struct replica replica;
	int err;

	states[service][position] = state;
	err = bpf_map_lookup_elem(map, &slot, &replica);
	if (err)
		return err;
	replica.state = state;
	err = bpf_map_update_elem(map, &slot, &replica, 0);
	reset_loads(&configured[service], service);
	return err ? err : make_ring(&configured[service], service);
}

const struct world_replica *world_home_of_key(size_t service, uint64_t key)
{
	int slot = ring_home_slot(&rings[service], key);

	for (size_t i = 0; i < WORLD_REPLICAS_MAX; i++)
		if (slot >= 0 && world_slot(service, i) == (uint32_t)slot)
			return &configured[service].replicas[i];
	return NULL;
}

const struct world_replica *world_home_of_bytes(size_t service, const void *id, size_t length)
{
	return world_home_of_key(service, ring_hash(&rings[service], id, length));
}

const struct world_replica *world_home(size_t service, const char *id)
{
	return world_home_of_bytes(service, id, strlen(id));
}
