/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a packet and compares everything with what was expected of it. Failures are cmocka's.
 *
 * Owns: the comparison. May not know: the tables of packets.
 */
#ifndef WARMPATH_TESTS_EXPECT_H
#define WARMPATH_TESTS_EXPECT_H

#include "fixture.h"

/* Forgets all flows. */
void expect_forget(void);

/* Runs the kind's packet (and the one before it) through a program; verdict, packet and counters are as expected. */
void expect_kind(const struct fixture_kind *kind, enum program program);

/* Sends what comes before the kind's packet. */
void expect_before(const struct fixture_kind *kind, enum program program);

/* Builds the packet of the kind, link addresses included. Returns its length. */
int expect_build(const struct fixture_kind *kind, struct packet_spec *packet, uint8_t *bytes);

/* Fills in the link addresses of a packet that comes in over that link. */
void expect_link_addresses(struct packet_spec *packet, enum link link);

/* Addresses and ports of a packet that came out. */
struct expect_ends {
	char source[46];
	char destination[46];
	uint16_t source_port;
	uint16_t destination_port;
};

struct decoded;
struct expect_ends expect_ends_of(const uint8_t *bytes, const struct decoded *packet);

/*
 * Sends a packet over that link; it ends with that outcome and these notes, and what always holds does. Returns what came out; for an ICMP
 * error, what it quotes.
 */
struct expect_ends expect_sent(enum program program, enum link link,
			       const struct packet_spec *packet, enum packet_outcome outcome,
			       uint32_t notes);

#endif /* WARMPATH_TESTS_EXPECT_H */
