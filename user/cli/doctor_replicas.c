/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath doctor: the way to the replicas, and what the agent says of their health.
 */
#include <linux/neighbour.h>

#include <string.h>

#include "cli/client.h"
#include "cli/doctor.h"
#include "lib/address.h"

#define DOWN_MAX 8 /* replicas that are named */

/* Returns whether the way is well. */
static bool check_address(struct doctor *doctor, const struct config_replica *replica,
			  const struct address *address)
{
	char text[INET6_ADDRSTRLEN], hop[INET6_ADDRSTRLEN];
	struct next_hop next_hop;
	uint16_t state = 0;
	bool managed, local;

	address_format(address, text);
	if (netlink_next_hop(&doctor->netlink, address, &next_hop) ||
	    next_hop.kind == NEXT_HOP_NONE) {
		doctor_find(doctor, FINDING_PROBLEM, "replica",
			    "add a route to %s, or correct the address", text,
			    "there is no route to replica %s at %s", replica->name, text);
		return false;
	}
	local = next_hop.kind == NEXT_HOP_LOCAL;
	if (local == doctor->inline_) {
		doctor_find(doctor, FINDING_PROBLEM, "replica",
			    local ? "set shape: node-local if the replicas run on this machine"
				  : "set shape: inline if the replicas are other machines",
			    NULL, "replica %s at %s is %s this machine, which shape %s is not for",
			    replica->name, text, local ? "on" : "not on",
			    local ? "inline" : "node-local");
		return false;
	}
	if (local)
		return true;
	if (netlink_neighbour_state(&doctor->netlink, &next_hop, &state, &managed))
		state = 0;
	if (state & NUD_FAILED) {
		doctor_find(
			doctor, FINDING_PROBLEM, "neighbour",
			"is the machine up, and on the same link? ip neigh show %s",
			address_format(&next_hop.address, hop),
			"the next hop to replica %s, %s, does not answer (ARP, neighbour discovery)",
			replica->name, hop);
		return false;
	}
	if (doctor->status && (state == 0 || (state & NUD_INCOMPLETE))) {
		doctor_find(doctor, FINDING_WARNING, "neighbour",
			    "look again in a moment: ip neigh show %s",
			    address_format(&next_hop.address, hop),
			    "the next hop to replica %s, %s, is not resolved yet", replica->name,
			    hop);
		return false;
	}
	return true;
}

void doctor_check_replicas(struct doctor *doctor)
{
	unsigned int addresses = 0, well = 0;

	if (!doctor->routes)
		return;
	for (unsigned int i = 0; i < doctor->config->service_count; i++) {
		const struct config_service *service = &doctor->config->services[i];

		for (unsigned int j = 0; j < service->replica_count; j++) {
			const struct config_replica *replica = &service->replicas[j];

			for (unsigned int k = 0; k < replica->addresses.count; k++) {
				addresses++;
				well += check_address(doctor, replica,
						      &replica->addresses.item[k].address);
			}
		}
	}
	if (addresses && well == addresses)
		doctor_find(doctor, FINDING_OK, "replica", NULL, NULL,
			    "there is a way to each of %u addresses of replicas", addresses);
}

/* Returns how many replicas are down. */
static unsigned int find_down(struct doctor *doctor)
{
	const json_t *unwell = json_object_get(doctor->status, "unwell"), *replica;
	unsigned int down = 0;
	size_t i;

	json_array_foreach(unwell, i, replica)
	{
		const char *failure = client_text(replica, "failure");

		if (strcmp(client_text(replica, "state"), "down") != 0)
			continue;
		if (down++ < DOWN_MAX)
			doctor_find(
				doctor, FINDING_WARNING, "health",
				"start its server, or correct its address, port or health check; it "
				"gets requests again when its checks are good",
				NULL, "replica %s of service %s is down%s%s",
				client_text(replica, "name"), client_text(replica, "service"),
				failure[0] ? ": " : "", failure);
	}
	if (down > DOWN_MAX)
		doctor_find(doctor, FINDING_WARNING, "health", "warmpath replica list", NULL,
			    "%u more replicas are down", down - DOWN_MAX);
	return down;
}

void doctor_check_health(struct doctor *doctor)
{
	const json_t *services = json_object_get(doctor->status, "services"), *service;
	unsigned int down, served = 0;
	size_t i;

	if (!doctor->routes || !doctor->status)
		return;
	down = find_down(doctor);
	json_array_foreach(services, i, service)
	{
		const json_t *replicas = json_object_get(service, "replicas");

		if (client_number(replicas, "active") > 0)
			served++;
		else
			doctor_find(doctor, FINDING_PROBLEM, "health",
				    "warmpath service show %s says where its replicas come from, "
				    "warmpath replica list what they do",
				    client_text(service, "name"),
				    "service %s has no active replica: its requests are refused",
				    client_text(service, "name"));
	}
	if (!down && served && served == json_array_size(services))
		doctor_find(doctor, FINDING_OK, "health", NULL, NULL,
			    "every service has active replicas, and none is down");
}
