/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whose packet is it: to which service, from which replica.
 *
 * Owns: look-ups in service_addresses, services, replicas, replica_addresses. May not know: flows, rings, how packets are written.
 */
#ifndef WARMPATH_BPF_SERVICE_H
#define WARMPATH_BPF_SERVICE_H

#include "packet.h"

#define SERVICE_NONE (-1)

/*
 * The index of the service at (address, port, protocol); SERVICE_NONE if there is none. Exact addresses come before prefixes.
 * Port 0 with protocol 0 asks whether the address is a service's alone (struct service_address_key).
 */
static __always_inline int service_at(const struct address *address, __be16 port, __u8 protocol,
				      bool ipv6)
{
	struct service_address_key key = {
		.address = *address,
		.port = port,
		.protocol = protocol,
		.prefix_length = 128,
	};
	const struct service_address *found;

	found = bpf_map_lookup_elem(&service_addresses, &key);
	if (!found && ipv6) {
		key.address.word[2] = 0;
		key.address.word[3] = 0;
		key.prefix_length = 64;
		found = bpf_map_lookup_elem(&service_addresses, &key);
	}
	return found && found->service < SERVICES_MAX ? (int)found->service : SERVICE_NONE;
}

static __always_inline const struct service *service_get(__u32 index)
{
	return bpf_map_lookup_elem(&services, &index);
}

/* The service's only public address in the family; NULL if it has none, or several. */
static __always_inline const struct address *service_public_address(const struct service *service,
								    __u8 family)
{
	const struct address *address =
		family == AF_INET ? &service->public_ipv4 : &service->public_ipv6;

	return address_is_set(address) ? address : NULL;
}

static __always_inline const struct replica *replica_get(__u32 slot)
{
	return bpf_map_lookup_elem(&replicas, &slot);
}

/* Where the replica is in that family; NULL if it has no such address. */
static __always_inline const struct address *replica_address_in(const struct replica *replica,
								__u8 family)
{
	const struct address *address = family == AF_INET ? &replica->ipv4 : &replica->ipv6;

	return address_is_set(address) ? address : NULL;
}

/* Does the replica keep the flows it has? */
static __always_inline bool replica_keeps_flows(const struct replica *replica)
{
	return replica->state == REPLICA_ACTIVE || replica->state == REPLICA_DRAINING;
}

/* What is known about (address, port) as a replica; NULL if no replica is there. */
static __always_inline const struct replica_address *replica_at(const struct address *address,
								__be16 port)
{
	struct replica_address_key key = {.address = *address, .port = port};

	return bpf_map_lookup_elem(&replica_addresses, &key);
}

/* Are the service's TCP connections routed by what they carry? Then they are accepted here and handed over (docs/handoff.md). */
static __always_inline bool connection_service(const struct service *service)
{
	return service->id_from == ID_FROM_HEADER || service->id_from == ID_FROM_OFFSET;
}

/* Is nothing known of such connections but their first bytes? They are routed once, and answers are not understood. */
static __always_inline bool connection_is_opaque(const struct service *service)
{
	return service->id_from == ID_FROM_OFFSET;
}

#endif /* WARMPATH_BPF_SERVICE_H */
