/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/address_tables.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/address.h"

/* Both kinds of table: keys of 20 bytes, values of at most 8. */
#define KEY_SIZE 20
_Static_assert(sizeof(struct service_address_key) == KEY_SIZE, "one size of key");
_Static_assert(sizeof(struct replica_address_key) == KEY_SIZE, "one size of key");

struct entry {
	union {
		__u8 bytes[KEY_SIZE];
		struct service_address_key service;
		struct replica_address_key replica;
	} key;
	union {
		struct service_address service;
		struct replica_address replica;
	} value;
};

struct table {
	const char *name;
	size_t value_size;
	struct entry *entries;
	size_t count;
	size_t room;
};

/* A new entry with the key of `entry`, or the one that has it already (then *found). NULL: no memory. */
static struct entry *table_entry(struct table *table, const struct entry *entry, bool *found)
{
	size_t i;

	for (i = 0; i < table->count; i++) {
		if (memcmp(table->entries[i].key.bytes, entry->key.bytes, KEY_SIZE) == 0) {
			*found = true;
			return &table->entries[i];
		}
	}
	*found = false;
	if (table->count == table->room) {
		size_t room = table->room ? table->room * 2 : 64;
		struct entry *entries = realloc(table->entries, room * sizeof(*entries));

		if (!entries)
			return NULL;
		table->entries = entries;
		table->room = room;
	}
	table->entries[table->count] = *entry;
	return &table->entries[table->count++];
}

/* --- what the tables should hold ---------------------------------------------------------------------------- */

static bool add_public_address(struct table *table, __u32 service, const struct address *address,
			       __be16 port, __u8 protocol, __u8 prefix_length)
{
	struct entry entry;
	bool found;

	memset(&entry, 0, sizeof(entry));
	entry.key.service.address = *address;
	entry.key.service.port = port;
	entry.key.service.protocol = protocol;
	entry.key.service.prefix_length = prefix_length;
	entry.value.service.service = service;
	return table_entry(table, &entry, &found) != NULL;
}

static bool add_service(struct table *table, __u32 service, const struct config_service *settings)
{
	unsigned int i;

	for (i = 0; i < settings->addresses.count; i++) {
		const struct config_address *address = &settings->addresses.item[i];
		__u8 prefix_length = address->prefix_length;
		__be16 port = htons(settings->port);

		if ((settings->protocol & PROTOCOL_TCP) &&
		    !add_public_address(table, service, &address->address, port, IPPROTO_TCP,
					prefix_length))
			return false;
		if ((settings->protocol & PROTOCOL_UDP) &&
		    !add_public_address(table, service, &address->address, port, IPPROTO_UDP,
					prefix_length))
			return false;
		/* A prefix is nobody else's: layout.h says what this entry is for. */
		if (prefix_length != 128 &&
		    !add_public_address(table, service, &address->address, 0, 0, prefix_length))
			return false;
	}
	return true;
}

static bool wanted_service_addresses(struct table *table, const struct routing *routing)
{
	unsigned int i;

	for (i = 0; i < SERVICES_MAX; i++) {
		if (routing->settings[i] && !add_service(table, i, routing->settings[i]))
			return false;
	}
	return true;
}

/*
 * Is `replica` the one to name for an address that `other`, of a lower slot, has as well? One that is in the set goes before one that was
 * removed, then one whose replies may do without a return entry before others: so reply.h finds whose replies were on their way when
 * the address got its second user.
 */
static bool goes_before(const struct routing *routing, const struct replica *replica,
			const struct replica *other)
{
	const struct config_service *service = routing->settings[replica->service];
	const struct config_service *other_service = routing->settings[other->service];

	if (replica_in_set(replica) != replica_in_set(other))
		return replica_in_set(replica);
	return service && service->id_from == ID_FROM_OFFSET && other_service &&
	       other_service->id_from != ID_FROM_OFFSET;
}

static bool add_replica_address(struct table *table, const struct routing *routing, __u32 slot,
				const struct address *address)
{
	const struct replica *replica = &routing->replicas[slot];
	struct entry entry, *at;
	unsigned int other;
	bool found;

	if (!address_is_set(address))
		return true;
	memset(&entry, 0, sizeof(entry));
	entry.key.replica.address = *address;
	entry.key.replica.port = replica->port;
	entry.value.replica.replica = slot;
	at = table_entry(table, &entry, &found);
	if (!at)
		return false;
	/* Each service counts once, with the first of its slots that is at this address. */
	for (other = 0; other < slot; other++) {
		const struct replica *before = &routing->replicas[other];

		if (replica_has_traffic(before) && before->service == replica->service &&
		    before->port == replica->port &&
		    (address_equal(&before->ipv4, address) ||
		     address_equal(&before->ipv6, address)))
			break;
	}
	if (other == slot)
		at->value.replica.services++;
	if (found && goes_before(routing, replica, &routing->replicas[at->value.replica.replica]))
		at->value.replica.replica = slot;
	return true;
}

static bool wanted_replica_addresses(struct table *table, const struct routing *routing)
{
	unsigned int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &routing->replicas[slot];

		if (!replica_has_traffic(replica))
			continue;
		if (!add_replica_address(table, routing, slot, &replica->ipv4) ||
		    !add_replica_address(table, routing, slot, &replica->ipv6))
			return false;
	}
	return true;
}

/* --- bringing a map there ----------------------------------------------------------------------------------- */

static int add_missing(int map, const struct table *table, struct error *error)
{
	size_t i;

	for (i = 0; i < table->count; i++) {
		const struct entry *wanted = &table->entries[i];
		__u8 value[sizeof(wanted->value)];

		if (bpf_map_lookup_elem(map, wanted->key.bytes, value) == 0 &&
		    memcmp(value, &wanted->value, table->value_size) == 0)
			continue;
		if (bpf_map_update_elem(map, wanted->key.bytes, &wanted->value, BPF_ANY))
			return error_set(error, -errno, "map %s cannot be written: %s", table->name,
					 strerror(errno));
	}
	return 0;
}

static int remove_unwanted(int map, const struct table *table, struct error *error)
{
	struct table unwanted = {.name = table->name, .value_size = table->value_size};
	struct entry entry = {0};
	__u8 *previous = NULL;
	int result = 0;
	size_t i;
	bool found;

	/* Collected first: deleting while walking a hash makes the walk begin again. */
	while (bpf_map_get_next_key(map, previous, entry.key.bytes) == 0) {
		previous = entry.key.bytes;
		for (i = 0; i < table->count; i++) {
			if (memcmp(table->entries[i].key.bytes, entry.key.bytes, KEY_SIZE) == 0)
				break;
		}
		if (i == table->count && !table_entry(&unwanted, &entry, &found)) {
			result = error_set(error, -ENOMEM, "not enough memory");
			goto out;
		}
	}
	for (i = 0; i < unwanted.count; i++) {
		if (bpf_map_delete_elem(map, unwanted.entries[i].key.bytes) && errno != ENOENT) {
			result = error_set(error, -errno, "map %s cannot be written: %s",
					   table->name, strerror(errno));
			goto out;
		}
	}
out:
	free(unwanted.entries);
	return result;
}

typedef bool (*wanted_function)(struct table *table, const struct routing *routing);
typedef int (*bring_function)(int map, const struct table *table, struct error *error);

static int bring(int map, struct table table, const struct routing *routing, wanted_function wanted,
		 bring_function function, struct error *error)
{
	int result;

	if (wanted(&table, routing))
		result = function(map, &table, error);
	else
		result = error_set(error, -ENOMEM, "not enough memory");
	free(table.entries);
	return result;
}

static const struct table service_table = {
	.name = "service_addresses",
	.value_size = sizeof(struct service_address),
};

static const struct table replica_table = {
	.name = "replica_addresses",
	.value_size = sizeof(struct replica_address),
};

int service_addresses_add(int map, const struct routing *routing, struct error *error)
{
	return bring(map, service_table, routing, wanted_service_addresses, add_missing, error);
}

int service_addresses_remove(int map, const struct routing *routing, struct error *error)
{
	return bring(map, service_table, routing, wanted_service_addresses, remove_unwanted, error);
}

int replica_addresses_add(int map, const struct routing *routing, struct error *error)
{
	return bring(map, replica_table, routing, wanted_replica_addresses, add_missing, error);
}

int replica_addresses_remove(int map, const struct routing *routing, struct error *error)
{
	return bring(map, replica_table, routing, wanted_replica_addresses, remove_unwanted, error);
}
