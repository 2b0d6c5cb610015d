/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that span several keys. Each names the two things that do not go together, and what to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <warmpath/http_settings.h>

#include "lib/address.h"
#include "lib/config.h"
#include "lib/config_check.h"
#include "lib/config_schema.h"
#include "lib/hash_key.h"
#include "lib/ring.h"

static bool has_family(const struct config_addresses *addresses, bool ipv4)
{
	unsigned int i;

	for (i = 0; i < addresses->count; i++) {
		if (address_is_ipv4(&addresses->item[i].address) == ipv4)
			return true;
	}
	return false;
}

static const char *public_text(const struct config_address *address, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN];

	address_format(&address->address, host);
	if (address->prefix_length < 128)
		snprintf(text, size, "%s/%u", host, address->prefix_length);
	else
		snprintf(text, size, "%s", host);
	return text;
}

/* --- interfaces ----------------------------------------------------------------------------------------- */

/* The replica's side is a tc program: an skb becomes a connection. */
static void check_replica_modes(struct check *check)
{
	const struct config *config = check->config;
	unsigned int i;

	for (i = 0; config->role == ROLE_REPLICA && i < config->interface_count; i++) {
		if (config->interfaces[i].mode != ATTACH_TC &&
		    config->interfaces[i].mode != ATTACH_AUTO)
			PROBLEM(check, config->interfaces[i].line,
				"interface %s: role: replica attaches with mode: tc (or auto) only",
				config->interfaces[i].name);
	}
	if (config->role == ROLE_REPLICA && config->service_count > 0)
		PROBLEM(check, config->services[0].line,
			"role: replica routes nothing: state services: [] (the routers have the services)");
}

static void check_interfaces(struct check *check)
{
	struct config *config = check->config;
	unsigned int i, j;

	for (i = 0; i < config->interface_count; i++) {
		for (j = 0; j < i; j++) {
			if (strcmp(config->interfaces[i].name, config->interfaces[j].name) == 0)
				PROBLEM(check, config->interfaces[i].line,
					"interface %s is listed twice (first on line %d)",
					config->interfaces[i].name, config->interfaces[j].line);
		}
	}
}

/* --- one service ---------------------------------------------------------------------------------------- */

static void check_public_addresses(struct check *check, const struct config_service *service)
{
	unsigned int i, j;

	for (i = 0; i < service->addresses.count; i++) {
		const struct config_address *address = &service->addresses.item[i];
		char text[64];

		public_text(address, text, sizeof(text));
		if (service->id_from == ID_FROM_ADDRESS && address->prefix_length == 128)
			PROBLEM(check, service->line,
				"service %s: %s is a single address, but with id.from: address the id is in "
				"the address, so state an IPv6 prefix such as fd00:9::/64",
				service->name, text);
		else if (service->id_from != ID_FROM_ADDRESS && address->prefix_length < 128)
			PROBLEM(check, service->line,
				"service %s: the prefix %s is only allowed with id.from: address",
				service->name, text);
		else if (address->prefix_length != 128 && address->prefix_length != 64)
			PROBLEM(check, service->line,
				"service %s: the prefix %s is not a /64, which leaves exactly the 64 bits of "
				"the id",
				service->name, text);
		for (j = 0; j < i; j++) {
			if (address_equal(&address->address, &service->addresses.item[j].address))
				PROBLEM(check, service->line, "service %s: %s is listed twice",
					service->name, text);
		}
	}
}

bool config_service_is_handed_over(const struct config_service *service)
{
	return service->id_from == ID_FROM_HEADER ||
	       (service->id_from == ID_FROM_OFFSET && service->protocol != PROTOCOL_UDP);
}

static void check_id(struct check *check, const struct config_service *service)
{
	const char *from = service->id_from == ID_FROM_HEADER ? "header" : "offset over TCP";
	unsigned int i;

	if (service->id_from == ID_FROM_HEADER && service->protocol != PROTOCOL_TCP)
		PROBLEM(check, service->line,
			"service %s: id.from: header needs protocol: tcp, as only HTTP has headers",
			service->name);
	if (!config_service_is_handed_over(service))
		return;
	if (!check->config->handoff.secret_file[0])
		PROBLEM(check, service->line,
			"service %s: id.from: %s needs handoff.secret_file, which routers and replicas "
			"share; `head -c 32 /dev/urandom` makes a good one",
			service->name, from);
	/* generic XDP hands packets on without their link header, and then they cannot be queued once more */
	for (i = 0; check->config->shape == SHAPE_NODE_LOCAL && i < check->config->interface_count;
	     i++) {
		if (check->config->interfaces[i].mode == ATTACH_GENERIC)
			PROBLEM(check, check->config->interfaces[i].line,
				"interface %s: mode: generic does not go with shape: node-local and service "
				"%s (id.from: %s); use mode: tc",
				check->config->interfaces[i].name, service->name, from);
	}
}

static void make_http_settings(struct check *check, struct config_service *service)
{
	unsigned int i;

	if (service->id_from != ID_FROM_HEADER)
		return;
	http_settings_init(&service->http, service->key_bytes);
	for (i = 0; i < service->header_names.count; i++) {
		const char *name = service->header_names.item[i];
		int result = http_settings_add_name(&service->http, name);

		if (result == -EEXIST)
			PROBLEM(check, service->line,
				"service %s: id.names has %s twice (letter case does not matter)",
				service->name, name);
		else if (result)
			PROBLEM(check, service->line,
				"service %s: id.names: \"%s\" is not the name of an HTTP header: letters, "
				"digits and ! # $ %% & ' * + - . ^ _ ` | ~ are possible",
				service->name, name);
	}
}

static void check_handoff(struct check *check)
{
	const struct config_handoff *handoff = &check->config->handoff;

	if (handoff->second_secret_file[0] && !handoff->secret_file[0])
		PROBLEM(check, 0,
			"handoff.second_secret_file is stated without handoff.secret_file, which is the one "
			"that is used");
	if (check->config->role == ROLE_REPLICA && !handoff->secret_file[0])
		PROBLEM(check, 0,
			"role: replica needs handoff.secret_file, the secret of the routers' own "
			"configuration");
}

static void check_metrics(struct check *check)
{
	const struct config_addresses *addresses = &check->config->metrics.addresses;
	unsigned int i, j;

	for (i = 0; i < addresses->count; i++) {
		char text[INET6_ADDRSTRLEN];

		for (j = 0; j < i; j++) {
			if (address_equal(&addresses->item[i].address, &addresses->item[j].address))
				PROBLEM(check, 0, "metrics.addresses has %s twice",
					address_format(&addresses->item[i].address, text));
		}
	}
}

static void check_policy(struct check *check, const struct config_service *service)
{
	if (service->policy.long_epsilon_millionths < service->policy.epsilon_millionths)
		PROBLEM(check, service->line,
			"service %s: policy.long_epsilon must not be smaller than policy.epsilon",
			service->name);
}

static void check_health(struct check *check, const struct config_service *service)
{
	const struct config_health *health = &service->health;

	if (strpbrk(service->reported_load.path, " \t\r\n#") != NULL)
		PROBLEM(check, service->line,
			"service %s: reported_load.path \"%s\" has a character that no path of a request has",
			service->name, service->reported_load.path);
	if (health->check == HEALTH_CHECK_NONE)
		return;
	if (health->timeout_milliseconds > health->interval_milliseconds)
		PROBLEM(check, service->line,
			"service %s: health.timeout must not be longer than health.interval, or checks of one "
			"replica would overlap",
			service->name);
	if (strpbrk(health->path, " \t\r\n#") != NULL)
		PROBLEM(check, service->line,
			"service %s: health.path \"%s\" has a character that no path of a request has",
			service->name, health->path);
}

static void check_ring(struct check *check, struct config_service *service)
{
	__u64 points = 0, smallest = 0;
	unsigned int i;

	for (i = 0; i < service->replica_count; i++) {
		__u32 weight = service->replicas[i].weight_thousandths;

		points += ring_weight_points(service->ring.vnodes, weight);
		smallest += weight;
	}
	if (points > RING_POINTS_MAX)
		PROBLEM(check, service->line,
			"service %s: its ring would have %llu points, at most %u are possible; with these "
			"replicas and weights set ring.vnodes to %llu or less",
			service->name, (unsigned long long)points, RING_POINTS_MAX,
			(unsigned long long)(RING_POINTS_MAX * 1000ULL / smallest));
	if (service->ring.hash_key_file[0] && service->ring.dialect != RING_LLM)
		PROBLEM(check, service->line,
			"service %s: ring.hash_key_file is only allowed with ring.dialect: llm-ring, whose "
			"hash has a key; state none",
			service->name);
}

static void load_hash_key(struct check *check, struct config_service *service)
{
	struct config_ring *ring = &service->ring;
	struct error error;
	size_t length;

	if (!ring->hash_key_file[0])
		return;
	if (hash_key_read(ring->hash_key_file, ring->hash_key, &length, &error))
		PROBLEM(check, service->line, "service %s: %s", service->name, error.text);
	else
		ring->hash_key_length = length;
}

/* --- replicas ------------------------------------------------------------------------------------------- */

static void check_replica_families(struct check *check, const struct config_service *service,
				   const struct config_replica *replica)
{
	static const char *const family_names[] = {"IPv6", "IPv4"};
	int ipv4;

	if (replica->addresses.count == 2 &&
	    address_is_ipv4(&replica->addresses.item[0].address) ==
		    address_is_ipv4(&replica->addresses.item[1].address))
		PROBLEM(check, replica->line,
			"replica %s of service %s has two addresses of one family; one IPv4 and one IPv6 "
			"address are possible",
			replica->name, service->name);
	for (ipv4 = 0; ipv4 <= 1; ipv4++) {
		if (has_family(&service->addresses, ipv4) && !has_family(&replica->addresses, ipv4))
			PROBLEM(check, replica->line,
				"replica %s of service %s has no %s address, but the service has a public "
				"one; give it one, or take the public one away",
				replica->name, service->name, family_names[ipv4]);
	}
}

static void check_replica_addresses_differ(struct check *check,
					   const struct config_service *service, unsigned int index)
{
	const struct config_replica *replica = &service->replicas[index];
	unsigned int i, j, k;

	for (i = 0; i < index; i++) {
		const struct config_replica *other = &service->replicas[i];

		if (strcmp(replica->name, other->name) == 0) {
			PROBLEM(check, replica->line,
				"service %s has two replicas named %s (first on line %d)",
				service->name, replica->name, other->line);
			return;
		}
		if (replica->port != other->port)
			continue;
		for (j = 0; j < replica->addresses.count; j++) {
			for (k = 0; k < other->addresses.count; k++) {
				char text[ENDPOINT_TEXT_SIZE];

				if (!address_equal(&replica->addresses.item[j].address,
						   &other->addresses.item[k].address))
					continue;
				PROBLEM(check, replica->line,
					"replicas %s and %s of service %s both have %s",
					other->name, replica->name, service->name,
					endpoint_format(&replica->addresses.item[j].address,
							htons(replica->port), text));
			}
		}
	}
}

/* --- between services ----------------------------------------------------------------------------------- */

static bool public_address_equal(const struct config_address *a, const struct config_address *b)
{
	return a->prefix_length == b->prefix_length && address_equal(&a->address, &b->address);
}

static bool public_covers(const struct config_address *public_address,
			  const struct address *address)
{
	struct address network = address_network(address);

	if (public_address->prefix_length == 64)
		return address_equal(&public_address->address, &network);
	return address_equal(&public_address->address, address);
}

static void check_services_differ(struct check *check, unsigned int index)
{
	const struct config_service *service = &check->config->services[index];
	unsigned int i, j, k;

	for (i = 0; i < index; i++) {
		const struct config_service *other = &check->config->services[i];

		if (strcmp(service->name, other->name) == 0)
			PROBLEM(check, service->line,
				"two services are named %s (first on line %d)", service->name,
				other->line);
		if (service->port != other->port || !(service->protocol & other->protocol))
			continue;
		for (j = 0; j < service->addresses.count; j++) {
			for (k = 0; k < other->addresses.count; k++) {
				char text[64];

				if (!public_address_equal(&service->addresses.item[j],
							  &other->addresses.item[k]))
					continue;
				PROBLEM(check, service->line,
					"services %s and %s both have %s port %u (%s)", other->name,
					service->name,
					public_text(&service->addresses.item[j], text,
						    sizeof(text)),
					service->port,
					schema_word(choices_protocol,
						    service->protocol & other->protocol));
			}
		}
	}
}

const struct address *config_find_circle(const struct config_service *public_service,
					 const struct config_service *service,
					 const struct config_replica *replica)
{
	unsigned int j, k;

	if (public_service->port != replica->port ||
	    !(public_service->protocol & service->protocol))
		return NULL;
	for (j = 0; j < public_service->addresses.count; j++) {
		for (k = 0; k < replica->addresses.count; k++) {
			if (public_covers(&public_service->addresses.item[j],
					  &replica->addresses.item[k].address))
				return &replica->addresses.item[k].address;
		}
	}
	return NULL;
}

static void check_no_circle(struct check *check, const struct config_service *service,
			    const struct config_replica *replica)
{
	unsigned int i;

	for (i = 0; i < check->config->service_count; i++) {
		const struct config_service *other = &check->config->services[i];
		const struct address *address = config_find_circle(other, service, replica);
		char text[ENDPOINT_TEXT_SIZE];

		if (address)
			PROBLEM(check, replica->line,
				"replica %s of service %s is at %s, which is public in service %s: "
				"requests would go round in a circle",
				replica->name, service->name,
				endpoint_format(address, htons(replica->port), text), other->name);
	}
}

static void check_replica_total(struct check *check)
{
	unsigned int total = 0, i;

	for (i = 0; i < check->config->service_count; i++)
		total += check->config->services[i].replica_count;
	if (total > REPLICAS_MAX)
		PROBLEM(check, 0,
			"%u replicas in all services together, at most %d are possible; remove %u of them",
			total, REPLICAS_MAX, total - REPLICAS_MAX);
}

void config_check(struct config *config, const char *name, struct config_problems *problems)
{
	struct check check = {.config = config, .name = name, .problems = problems};
	unsigned int i, j;

	check_interfaces(&check);
	check_replica_modes(&check);
	check_replica_total(&check);
	check_handoff(&check);
	check_metrics(&check);
	for (i = 0; i < config->service_count; i++) {
		struct config_service *service = &config->services[i];

		check_public_addresses(&check, service);
		check_id(&check, service);
		make_http_settings(&check, service);
		check_policy(&check, service);
		check_health(&check, service);
		check_ring(&check, service);
		load_hash_key(&check, service);
		config_check_discovery(&check, service);
		check_services_differ(&check, i);
		for (j = 0; j < service->replica_count; j++) {
			check_replica_families(&check, service, &service->replicas[j]);
			check_replica_addresses_differ(&check, service, j);
			check_no_circle(&check, service, &service->replicas[j]);
		}
	}
}
