/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/dns_members.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/address.h"

/* What a configuration would be refused with (the unspecified address, multicast, ...) is no replica's address here, either. */
static bool is_usable(const struct address *address)
{
	char text[INET6_ADDRSTRLEN];
	struct address same;

	return address_parse(address_format(address, text), &same, NULL, NULL) == 0;
}

/* --- targets --------------------------------------------------------------------------------------------------------- */

static int compare_targets(const void *left, const void *right)
{
	const struct dns_target *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order ? order : (a->port > b->port) - (a->port < b->port);
}

void dns_targets_take(struct dns_targets *targets, const struct dns_answer *answer)
{
	__u16 best = 65535;
	unsigned int i, kept = 0;

	memset(targets, 0, sizeof(*targets));
	for (i = 0; i < answer->count; i++) {
		if (answer->records[i].priority < best)
			best = answer->records[i].priority;
	}
	for (i = 0; i < answer->count; i++) {
		const struct dns_record *record = &answer->records[i];
		struct dns_target *target = &targets->item[targets->count];
		char *letter;

		/* An empty target (".") says that there is no such service (RFC 2782). */
		if (record->priority != best || !record->target[0])
			continue;
		memcpy(target->name, record->target, sizeof(target->name));
		for (letter = target->name; *letter; letter++)
			*letter = tolower((unsigned char)*letter);
		target->port = record->port;
		targets->count++;
	}
	qsort(targets->item, targets->count, sizeof(targets->item[0]), compare_targets);
	for (i = 0; i < targets->count; i++) {
		if (kept > 0 && compare_targets(&targets->item[kept - 1], &targets->item[i]) == 0)
			continue;
		targets->item[kept++] = targets->item[i];
	}
	targets->count = kept;
}

void dns_target_address(struct dns_target *target, const struct dns_answer *answer)
{
	unsigned int i;

	for (i = 0; i < answer->count; i++) {
		const struct address *address = &answer->records[i].address;
		struct address *into = address_is_ipv4(address) ? &target->ipv4 : &target->ipv6;

		if (!is_usable(address))
			continue;
		if (!address_is_set(into) || memcmp(address, into, sizeof(*into)) < 0)
			*into = *address;
	}
}

/* --- members --------------------------------------------------------------------------------------------------------- */

/* The name asked for without the labels "_http._tcp.", as what targets may be below of. */
static const char *domain_of(const char *name)
{
	while (*name == '_' && strchr(name, '.'))
		name = strchr(name, '.') + 1;
	return name;
}

/* Writes the replica's name; false if it cannot be one. */
static bool call_target(const struct config_discovery *settings, const char *target,
			char name[REPLICA_NAME_SIZE])
{
	const char *domain = domain_of(settings->name);
	size_t length = strlen(target), domain_length = strlen(domain);

	if (domain_length && domain[domain_length - 1] == '.')
		domain_length--;
	if (length > domain_length + 1 && target[length - domain_length - 1] == '.' &&
	    strncasecmp(target + length - domain_length, domain, domain_length) == 0)
		length -= domain_length + 1;
	if (length >= REPLICA_NAME_SIZE)
		return false;
	memcpy(name, target, length);
	name[length] = '\0';
	return config_name_valid(name, REPLICA_NAME_SIZE);
}

static void add_address(struct config_replica *replica, const struct address *address)
{
	struct config_addresses *addresses = &replica->addresses;

	if (!address_is_set(address))
		return;
	addresses->item[addresses->count].address = *address;
	addresses->item[addresses->count++].prefix_length = 128;
}

unsigned int dns_members_of_targets(const struct config_discovery *settings,
				    const struct dns_targets *targets,
				    struct discovered_member *members, struct error *note)
{
	unsigned int count = 0, i;

	note->text[0] = '\0';
	for (i = 0; i < targets->count; i++) {
		const struct dns_target *target = &targets->item[i];
		struct discovered_member *member = &members[count];

		memset(member, 0, sizeof(*member));
		if (!call_target(settings, target->name, member->replica.name)) {
			error_set(note, 0,
				  "target %.80s is left out: its name cannot be a replica's",
				  target->name);
			continue;
		}
		if (count > 0 &&
		    strcmp(members[count - 1].replica.name, member->replica.name) == 0) {
			error_set(
				note, 0,
				"target %s is left out with port %u: a name is one replica, at its lowest port",
				target->name, target->port);
			continue;
		}
		add_address(&member->replica, &target->ipv4);
		add_address(&member->replica, &target->ipv6);
		if (member->replica.addresses.count == 0 || target->port == 0) {
			error_set(note, 0, "target %s is left out: it has no %s", target->name,
				  target->port ? "address" : "port");
			continue;
		}
		member->replica.port = target->port;
		member->replica.weight_thousandths = settings->weight_thousandths;
		count++;
	}
	return count;
}

static int compare_members(const void *left, const void *right)
{
	const struct discovered_member *a = left, *b = right;

	return strcmp(a->replica.name, b->replica.name);
}

unsigned int dns_members_of_addresses(const struct config_discovery *settings,
				      const struct dns_answer *answer,
				      struct discovered_member *members, struct error *note)
{
	unsigned int count = 0, i;

	note->text[0] = '\0';
	for (i = 0; i < answer->count; i++) {
		const struct address *address = &answer->records[i].address;
		struct config_replica *replica = &members[count].replica;
		char text[INET6_ADDRSTRLEN], *letter;

		address_format(address, text);
		if (!is_usable(address)) {
			error_set(note, 0, "%s is left out: it cannot be a replica's address",
				  text);
			continue;
		}
		memset(&members[count++], 0, sizeof(*members));
		for (letter = text; *letter; letter++) {
			if (*letter == ':')
				*letter = '-';
		}
		/* "::1" is "0::1": no name begins with a dash */
		snprintf(replica->name, sizeof(replica->name), "%s%s", *text == '-' ? "0" : "",
			 text);
		add_address(replica, address);
		replica->port = settings->port;
		replica->weight_thousandths = settings->weight_thousandths;
	}
	/* Servers list addresses in turns; the order says nothing. */
	qsort(members, count, sizeof(*members), compare_members);
	return count;
}
