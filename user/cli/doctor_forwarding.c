/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath doctor: the kernel's own forwarding, which sends on what the programs cannot, and whose switches their route look-ups respect.
 */
#include "cli/doctor.h"

#include "lib/address.h"

static bool uses_family(const struct config *config, bool ipv4)
{
	for (unsigned int i = 0; i < config->service_count; i++) {
		const struct config_addresses *addresses = &config->services[i].addresses;

		for (unsigned int j = 0; j < addresses->count; j++) {
			if (address_is_ipv4(&addresses->item[j].address) == ipv4)
				return true;
		}
	}
	return false;
}

/* Returns whether anything is wrong. */
static bool check_switches(struct doctor *doctor, const char *interface)
{
	bool wrong = false;

	if (uses_family(doctor->config, true) &&
	    doctor_sysctl("net/ipv4/conf/%s/forwarding", interface) == 0) {
		wrong = true;
		doctor_find(doctor, FINDING_PROBLEM, "forwarding", "sysctl net.ipv4.ip_forward=1",
			    NULL, "IPv4 forwarding is off on %s: nothing reaches the replicas",
			    interface);
	}
	if (uses_family(doctor->config, false) &&
	    doctor_sysctl("net/ipv6/conf/%s/forwarding", interface) == 0) {
		wrong = true;
		doctor_find(doctor, FINDING_PROBLEM, "forwarding",
			    "sysctl net.ipv6.conf.all.forwarding=1", NULL,
			    "IPv6 forwarding is off on %s: nothing reaches the replicas",
			    interface);
	}
	return wrong;
}

/* The kernel takes the larger of the interface's and the common setting; 1 is strict, 2 is loose. */
static bool check_reverse_path(struct doctor *doctor, const char *interface)
{
	int own = doctor_sysctl("net/ipv4/conf/%s/rp_filter", interface);
	int all = doctor_sysctl("net/ipv4/conf/all/rp_filter");

	if ((own > all ? own : all) != 1)
		return false;
	doctor_find(
		doctor, doctor->inline_ ? FINDING_PROBLEM : FINDING_WARNING, "rp-filter",
		"sysctl net.ipv4.conf.%s.rp_filter=2", interface,
		doctor->inline_
			? "strict reverse-path filtering is on for %s: replies that the kernel has "
			  "to forward are dropped, as their source is a public address"
			: "strict reverse-path filtering is on for %s: requests of clients that are "
			  "not reached by it are dropped",
		interface);
	return true;
}

static void check_public_addresses(struct doctor *doctor)
{
	for (unsigned int i = 0; i < doctor->config->service_count; i++) {
		const struct config_service *service = &doctor->config->services[i];

		for (unsigned int j = 0; j < service->addresses.count; j++) {
			const struct config_address *public = &service->addresses.item[j];
			char text[INET6_ADDRSTRLEN];
			struct next_hop next_hop;

			if (public->prefix_length != 128 || !address_is_ipv4(&public->address) ||
			    netlink_next_hop(&doctor->netlink, &public->address, &next_hop) ||
			    next_hop.kind != NEXT_HOP_LOCAL)
				continue;
			doctor_find(
				doctor, FINDING_WARNING, "public-address",
				"route the address here without assigning it, or set accept_local=1 "
				"on the replicas' interface",
				NULL,
				"the public address %s of service %s is assigned to this machine: replies "
				"that the kernel has to forward are dropped as forged",
				address_format(&public->address, text), service->name);
		}
	}
}

void doctor_check_forwarding(struct doctor *doctor)
{
	const struct config *config = doctor->config;
	bool wrong = false;

	if (!doctor->inline_ && !doctor->takes_over)
		return;
	for (unsigned int i = 0; i < config->interface_count; i++) {
		const char *name = config->interfaces[i].name;

		if (!doctor_interface_index(name))
			continue;
		if (doctor->inline_)
			wrong |= check_switches(doctor, name);
		wrong |= check_reverse_path(doctor, name);
	}
	if (doctor->inline_)
		check_public_addresses(doctor);
	if (!wrong)
		doctor_find(doctor, FINDING_OK, "forwarding", NULL, NULL,
			    doctor->inline_
				    ? "packets are forwarded, and replies are not taken for forged"
				    : "requests of clients are not taken for forged");
}
