/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From DNS records to replicas: their names, addresses, ports.
 *
 * Owns: how a replica found by DNS is called. May not know: how DNS is asked.
 */
#ifndef WARMPATH_AGENT_DNS_MEMBERS_H
#define WARMPATH_AGENT_DNS_MEMBERS_H

#include "agent/dns_answer.h"
#include "agent/routing.h"

/* A server that an SRV record names, with the addresses that it turns out to have. */
struct dns_target {
	char name[DNS_NAME_SIZE];
	__u16 port;
	struct address ipv4; /* all zero: none */
	struct address ipv6;
};

struct dns_targets {
	struct dns_target item[DNS_RECORDS_MOST];
	unsigned int count;
};

/* The targets of the best priority (the lowest number), each once, in the order of their names and ports. */
void dns_targets_take(struct dns_targets *targets, const struct dns_answer *answer);

/* Gives a target the lowest of the answer's addresses, so that it does not matter in which order a server lists them. */
void dns_target_address(struct dns_target *target, const struct dns_answer *answer);

/*
 * The replicas that the targets are: the name is the target's below the name asked for without its "_service._protocol" labels, or the whole name if it
 * is not below. At most targets->count are written to `members`; returns how many. What is left out is said in `note` (else empty).
 */
unsigned int dns_members_of_targets(const struct config_discovery *settings,
				    const struct dns_targets *targets,
				    struct discovered_member *members, struct error *note);

/*
 * The replicas that A or AAAA records are, called by their addresses ("10.0.2.10", "fd00-2--10"); at most answer->count. What is left out is said in
 * `note` (else empty).
 */
unsigned int dns_members_of_addresses(const struct config_discovery *settings,
				      const struct dns_answer *answer,
				      struct discovered_member *members, struct error *note);

#endif /* WARMPATH_AGENT_DNS_MEMBERS_H */
