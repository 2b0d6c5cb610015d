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

#endif /* WARMPATH_TESTS_EXPECT_H */
