/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/forwarding.h"

#include <fcntl.h>
#include <stdarg.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/address.h"

struct check {
	void (*warn)(void *context, const char *sentence);
	void *context;
};

static void warn(const struct check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void warn(const struct check *check, const char *format, ...)
{
	char sentence[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	check->warn(check->context, sentence);
}

/* The number in /proc/sys/net/FAMILY/conf/INTERFACE/NAME; -1 if it cannot be read. */
static int setting(const char *family, const char *interface, const char *name)
{
	char path[128], text[16] = "";
	int descriptor, value = -1;

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", family, interface, name);
	descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (descriptor >= 0 && read(descriptor, text, sizeof(text) - 1) > 0)
		value = atoi(text);
	if (descriptor >= 0)
		close(descriptor);
	return value;
}

static bool uses_family(const struct routing *routing, bool ipv4)
{
	unsigned int i, j;

	for (i = 0; i < SERVICES_MAX; i++) {
		const struct config_service *settings = routing->settings[i];

		for (j = 0; settings && j < settings->addresses.count; j++) {
			if (address_is_ipv4(&settings->addresses.item[j].address) == ipv4)
				return true;
		}
	}
	return false;
}

static void check_interface(const struct check *check, const char *interface, bool ipv4, bool ipv6)
{
	int strict, all;

	if (ipv4 && setting("ipv4", interface, "forwarding") == 0)
		warn(check,
		     "IPv4 forwarding is off on %s: nothing reaches the replicas; set "
		     "net.ipv4.ip_forward=1 (or net.ipv4.conf.%s.forwarding=1)",
		     interface, interface);
	if (ipv6 && setting("ipv6", interface, "forwarding") == 0)
		warn(check,
		     "IPv6 forwarding is off on %s: nothing reaches the replicas; set "
		     "net.ipv6.conf.all.forwarding=1",
		     interface);
	/* The kernel takes the larger of the two; 1 is strict, 2 is loose. */
	strict = setting("ipv4", interface, "rp_filter");
	all = setting("ipv4", "all", "rp_filter");
	if (ipv4 && (strict > all ? strict : all) == 1)
		warn(check,
		     "strict reverse-path filtering is on for %s: replies that the kernel has to forward "
		     "are dropped, as their source is a public address; set "
		     "net.ipv4.conf.%s.rp_filter=2",
		     interface, interface);
}

/* An address of this machine as the source of a packet to be forwarded is taken for forged. */
static void check_public_addresses(const struct check *check, const struct routing *routing,
				   struct netlink *netlink)
{
	unsigned int i, j;

	for (i = 0; i < SERVICES_MAX; i++) {
		const struct config_service *settings = routing->settings[i];

		for (j = 0; settings && j < settings->addresses.count; j++) {
			const struct address *address = &settings->addresses.item[j].address;
			char text[INET6_ADDRSTRLEN];
			struct next_hop next_hop;

			if (settings->addresses.item[j].prefix_length != 128 ||
			    !address_is_ipv4(address) ||
			    netlink_next_hop(netlink, address, &next_hop) ||
			    next_hop.kind != NEXT_HOP_LOCAL)
				continue;
			warn(check,
			     "the public address %s of service %s is assigned to this machine: replies "
			     "that the kernel has to forward are dropped as forged; route the address "
			     "here without assigning it, or set accept_local=1 on the replicas' interface",
			     address_format(address, text), settings->name);
		}
	}
}

/* Replicas of shape inline are other machines, and there is a way to them. One warning names the first of each kind. */
struct stray {
	const struct replica *first;
	struct address address;
	unsigned int count;
};

static void note_stray(struct stray *stray, const struct replica *replica,
		       const struct address *address)
{
	if (stray->count++ == 0) {
		stray->first = replica;
		stray->address = *address;
	}
}

static void warn_of_strays(const struct check *check, const struct routing *routing,
			   const struct stray *stray, const char *what)
{
	char text[INET6_ADDRSTRLEN], others[32] = "";

	if (stray->count == 0)
		return;
	if (stray->count > 1)
		snprintf(others, sizeof(others), " (and %u more)", stray->count - 1);
	warn(check, "replica %s of service %s%s: %s %s", stray->first->name,
	     routing->services[stray->first->service].name, others,
	     address_format(&stray->address, text), what);
}

static void check_replicas(const struct check *check, const struct routing *routing,
			   struct netlink *netlink)
{
	struct stray local = {0}, lost = {0};
	struct next_hop next_hop;
	unsigned int slot, family;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &routing->replicas[slot];

		for (family = 0; family < 2 && replica_in_set(replica); family++) {
			const struct address *address = family ? &replica->ipv6 : &replica->ipv4;

			if (!address_is_set(address) ||
			    netlink_next_hop(netlink, address, &next_hop))
				continue;
			if (next_hop.kind == NEXT_HOP_LOCAL)
				note_stray(&local, replica, address);
			else if (next_hop.kind == NEXT_HOP_NONE)
				note_stray(&lost, replica, address);
		}
	}
	warn_of_strays(check, routing, &local,
		       "is an address of this machine, which shape: inline does not reach: use "
		       "shape: node-local");
	warn_of_strays(check, routing, &lost, "cannot be reached: this machine has no route to it");
}

void forwarding_check(const struct attachments *attachments, const struct routing *routing,
		      struct netlink *netlink, void (*warn_function)(void *, const char *),
		      void *context)
{
	const struct check check = {.warn = warn_function, .context = context};
	bool ipv4 = uses_family(routing, true), ipv6 = uses_family(routing, false);
	unsigned int i;

	if (attachments->datapath->shape != SHAPE_INLINE)
		return;
	for (i = 0; i < attachments->count; i++) {
		if (attachments->item[i].index)
			check_interface(&check, attachments->item[i].name, ipv4, ipv6);
	}
	check_public_addresses(&check, routing, netlink);
	check_replicas(&check, routing, netlink);
}
