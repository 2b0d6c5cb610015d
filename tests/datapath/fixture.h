/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The services and the kinds of packets that the data-path tests use, and what is expected of a packet.
 *
 * Owns: the table of kinds (fixture_kinds.c), making the expected packet out of the one that goes in. May not know: BPF.
 */
#ifndef WARMPATH_TESTS_FIXTURE_H
#define WARMPATH_TESTS_FIXTURE_H

#include "packets.h"
#include "world.h"

/* By service index; the comment says what is special. */
enum fixture_service {
	SERVICE_CHAT, /* id at offset 8, 16 bytes; one address a family: replies need no return entry */
	SERVICE_TWO,	  /* id at offset 0, 32 bytes; two addresses a family: replies need one */
	SERVICE_SHARED_A, /* shares its only replica, address and port, with the next */
	SERVICE_SHARED_B,
	SERVICE_PREFIX,	    /* TCP and UDP to a /64: the address is the key */
	SERVICE_UNRESOLVED, /* its replica's link address is not known */
	SERVICE_NARROW,	    /* its replica is behind a link with a small MTU */
	SERVICE_BLACKHOLE,  /* the route to its replica is a black hole */
	SERVICE_EMPTY,	    /* no replica is active */
	SERVICE_LOCAL,	    /* its replica is this machine */
	SERVICE_GATEWAY,    /* its replica is behind a gateway */
	SERVICE_COUNT,
};

extern const struct world_service fixture_services[SERVICE_COUNT];

/* What is expected to come out. */
enum fixture_change {
	CHANGE_NONE,	   /* dropped, or passed as it was */
	CHANGE_TO_REPLICA, /* to the replica of `service` and `id` */
	CHANGE_TO_CLIENT,  /* from the public address `public_address` */
};

struct fixture_expectation {
	enum packet_outcome outcome;
	enum fixture_change change;
	const char *public_address; /* CHANGE_TO_CLIENT */
	uint16_t public_port;
	uint32_t notes; /* bit i: the note that follows outcome i */
};

/* A packet and what becomes of it. */
struct fixture_kind {
	const char *name;
	struct packet_spec packet;
	enum link link;
	enum fixture_service service;
	const char *id; /* the id as it is hashed */
	int segment_size;
	const struct packet_spec *before; /* sent first, from LINK_CLIENTS */
	struct fixture_expectation expected;
	const struct fixture_expectation *expected_tc; /* NULL: the same */
};

#define NOTE_BIT(name) (1u << (NOTE_##name - OUTCOME_COUNT))

extern const struct fixture_kind fixture_kinds[];
extern const size_t fixture_kind_count;

#endif /* WARMPATH_TESTS_FIXTURE_H */
