/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is remembered of a client's connection or UDP pair: the replica it is at, and how a reply finds back.
 *
 * Owns: the maps `flows` and `return_flows`, source port translation, the states of a flow. May not know: how a replica is chosen, how a
 * packet is rewritten.
 *
 * Two clients' connections may look alike to a replica (one client, the same source port, two public addresses): then the later one
 * gets another source port towards the replica. Who inserts the return entry first has the port.
 */
#ifndef WARMPATH_BPF_FLOW_H
#define WARMPATH_BPF_FLOW_H

#include <linux/errno.h>

#include "connection_maps.h"
#include "exit.h"
#include "packet.h"
#include "service.h"

#define FLOW_CHECK_NANOSECONDS 1000000000ULL
#define FLOW_PORT_ATTEMPTS     32
#define FLOW_PORT_FIRST	       1024

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

/* The flow of a packet from the client. */
static __always_inline void flow_key_of_request(struct flow_key *key, const struct packet *packet)
{
	address_copy(&key->client, &packet->source);
	address_copy(&key->service, &packet->destination);
	key->client_port = packet->source_port;
	key->service_port = packet->destination_port;
	key->protocol = packet->protocol;
	key->reserved[0] = key->reserved[1] = key->reserved[2] = 0;
}

/* The entry that a packet from a replica is looked up by. */
static __always_inline void return_key_of_reply(struct return_flow_key *key,
						const struct packet *packet)
{
	address_copy(&key->replica, &packet->source);
	address_copy(&key->client, &packet->destination);
	key->replica_port = packet->source_port;
	key->client_port = packet->destination_port;
	key->protocol = packet->protocol;
	key->reserved[0] = key->reserved[1] = key->reserved[2] = 0;
}

/* The client's side of a return entry. */
static __always_inline void flow_key_of_return(struct flow_key *key,
					       const struct return_flow_key *return_key,
					       const struct return_flow *entry)
{
	address_copy(&key->client, &return_key->client);
	address_copy(&key->service, &entry->service);
	key->client_port = entry->client_port;
	key->service_port = entry->service_port;
	key->protocol = return_key->protocol;
	key->reserved[0] = key->reserved[1] = key->reserved[2] = 0;
}

/* Is the return entry of the flow in `flow_key`? */
static __always_inline bool return_flow_is_of(const struct return_flow *entry,
					      const struct flow_key *flow_key)
{
	return entry->client_port == flow_key->client_port &&
	       entry->service_port == flow_key->service_port &&
	       address_equal(&entry->service, &flow_key->service);
}

/* Has the connection that a return entry belongs to ended? One whose flow is merely gone may still be alive. */
static __always_inline bool return_flow_is_over(const struct return_flow_key *return_key,
						const struct return_flow *entry)
{
	struct flow_key key;
	const struct connection *connection;
	const struct flow *flow;

	flow_key_of_return(&key, return_key, entry);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (flow)
		return flow->state == FLOW_CLOSED;
	connection = connection_get(&key);
	return connection && connection->state == CONNECTION_CLOSED;
}

/*
 * Tries to make the return entry in scratch->return_key one of the flow in scratch->flow_key. 0: it was already; 1: it is
 * now; -EADDRINUSE: it belongs to another flow; -ENOMEM: no room in the table.
 * A global function: verified once.
 */
__noinline int return_flow_try(__u32 service, __u32 replica)
{
	struct scratch *scratch = scratch_get();
	const struct return_flow *taken;
	struct return_flow entry = {
		.service_index = service,
		.replica = replica,
	};
	__u64 how = BPF_NOEXIST;
	long err;

	if (!scratch)
		return -ENOMEM;
	address_copy(&entry.service, &scratch->flow_key.service);
	entry.service_port = scratch->flow_key.service_port;
	entry.client_port = scratch->flow_key.client_port;

	taken = bpf_map_lookup_elem(&return_flows, &scratch->return_key);
	if (taken) {
		bool ours = return_flow_is_of(taken, &scratch->flow_key);

		if (ours && taken->replica == replica && taken->service_index == service)
			return 0;
		if (!ours && !return_flow_is_over(&scratch->return_key, taken))
			return -EADDRINUSE;
		how = BPF_ANY;
	}
	err = bpf_map_update_elem(&return_flows, &scratch->return_key, &entry, how);
	if (err == -EEXIST)
		return -EADDRINUSE;
	return err ? -ENOMEM : 1;
}

/*
 * Makes the return entry for the flow in scratch->flow_key at the replica in scratch->translation, under source port `port` if that is free,
 * else under another one. As return_flow_try(); the port is in scratch->translation.source_port.
 */
static __always_inline int return_flow_claim(struct scratch *scratch, __u32 service, __u32 replica,
					     __be16 port)
{
	struct return_flow_key *key = &scratch->return_key;
	int result = -EADDRINUSE;

	address_copy(&key->replica, &scratch->translation.destination);
	address_copy(&key->client, &scratch->flow_key.client);
	key->replica_port = scratch->translation.destination_port;
	key->client_port = port;
	key->protocol = scratch->flow_key.protocol;
	key->reserved[0] = key->reserved[1] = key->reserved[2] = 0;

	for (int attempt = 0; attempt <= FLOW_PORT_ATTEMPTS; attempt++) {
		result = return_flow_try(service, replica);
		if (result != -EADDRINUSE)
			break;
		key->client_port = bpf_htons(FLOW_PORT_FIRST +
					     bpf_get_prandom_u32() % (65536 - FLOW_PORT_FIRST));
	}
	scratch->translation.source_port = key->client_port;
	return result;
}

/*
 * Can a reply find its public address without a return entry? If the service has only one, and nobody else uses the replica's address
 * and port: then datagrams and connections routed by content need no entry.
 */
static __always_inline bool return_flow_needed(const struct scratch *scratch, __u32 service)
{
	const struct service *settings = service_get(service);
	const struct replica_address *users;
	const struct address *address;

	if (!settings || settings->id_from == ID_FROM_ADDRESS)
		return true;
	address = service_public_address(settings, scratch->packet.family);
	if (!address || !address_equal(address, &scratch->flow_key.service) ||
	    settings->public_port != scratch->flow_key.service_port)
		return true;
	users = replica_at(&scratch->translation.destination,
			   scratch->translation.destination_port);
	return !users || users->services != 1;
}

/*
 * Remembers that the flow in scratch->flow_key is at `replica`, and how its replies find back. state: FLOW_DATAGRAMS, that of a new
 * connection, or the one an old connection is in already. port: the source port the flow has towards replicas, or would like to have.
 * Sets scratch->translation.source_port. Returns OUTCOME_COUNT, or the outcome to drop the packet with.
 * A global function: verified once.
 */
__noinline int flow_remember(__u32 service, __u32 replica, __u32 state, __u32 port)
{
	struct scratch *scratch = scratch_get();
	const struct replica *target = replica_get(replica);
	struct flow *flow;
	struct flow fresh = {
		.service = service,
		.replica = replica,
		.state = state,
	};
	int claimed = 0;

	if (!scratch || !target)
		return OUTCOME_drop_internal;
	fresh.incarnation = target->incarnation;
	fresh.return_checked_nanoseconds = packet_now(scratch);
	scratch->translation.source_port = port;
	if (return_flow_needed(scratch, service)) {
		claimed = return_flow_claim(scratch, service, replica, port);
		if (claimed == -EADDRINUSE)
			return OUTCOME_drop_port_exhausted;
		if (claimed < 0)
			return OUTCOME_drop_flow_table_full;
		if (scratch->translation.source_port != (__be16)port)
			count(NOTE_note_port_translated);
	}
	fresh.translated_port = scratch->translation.source_port;

	flow = bpf_map_lookup_elem(&flows, &scratch->flow_key);
	if (flow && flow->service == service && flow->state == state &&
	    (flow->replica == replica || state == FLOW_DATAGRAMS)) {
		if (claimed && flow->replica == replica)
			count(NOTE_note_return_restored);
		flow->replica = replica;
		flow->incarnation = fresh.incarnation;
		flow->translated_port = fresh.translated_port;
		flow->return_checked_nanoseconds = fresh.return_checked_nanoseconds;
		return OUTCOME_COUNT;
	}
	if (bpf_map_update_elem(&flows, &scratch->flow_key, &fresh, BPF_ANY))
		return OUTCOME_drop_flow_table_full;
	count(NOTE_note_flow_created);
	return OUTCOME_COUNT;
}

/* Was the return entry of the flow seen to be there within the last second? */
static __always_inline bool flow_is_fresh(struct scratch *scratch, const struct flow *flow)
{
	return packet_now(scratch) - flow->return_checked_nanoseconds < FLOW_CHECK_NANOSECONDS;
}

/* Takes the flags of a segment into the state of its connection. side: FLOW_FIN_FROM_*. Returns true if that ended it. */
static __always_inline bool flow_follow(struct flow *flow, __u8 flags, __u32 side)
{
	__u32 seen;

	if (flags & TCP_RST) {
		seen = FLOW_FIN_FROM_CLIENT | FLOW_FIN_FROM_REPLICA;
	} else if (flags & TCP_FIN) {
		seen = __sync_fetch_and_or(&flow->fin_seen, side) | side;
	} else {
		if (side == FLOW_FIN_FROM_CLIENT && flow->state == FLOW_OPENING &&
		    (flags & (TCP_SYN | TCP_ACK)) == TCP_ACK)
			flow->state = FLOW_ESTABLISHED;
		return false;
	}
	if ((~seen & (FLOW_FIN_FROM_CLIENT | FLOW_FIN_FROM_REPLICA)) || flow->state == FLOW_CLOSED)
		return false;
	flow->state = FLOW_CLOSED;
	count(NOTE_note_flow_closed);
	return true;
}

#endif /* WARMPATH_BPF_FLOW_H */
