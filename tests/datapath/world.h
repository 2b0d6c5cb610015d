/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the data-path tests run in: a network namespace with two links, routes and permanent neighbours, so that the kernel's route
 * look-up succeeds; the programs loaded with maps of their own; services and replicas in the maps.
 *
 * Owns: the set-up, running a program on a packet, reading counters. May not know: which packet ought to become what.
 *
 *	clients 10.0.1.0/24, fd00:1::/64 -- [client-side  router  server-side] -- replicas 10.0.2.0/24, fd00:2::/64
 */
#ifndef WARMPATH_TESTS_WORLD_H
#define WARMPATH_TESTS_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/ring_maps.h"
#include "warmpath/layout.h"
#include "warmpath/outcome.h"

enum program {
	PROGRAM_XDP,	/* router as XDP */
	PROGRAM_TC,	/* router as tc, on ingress */
	PROGRAM_RETURN, /* return program as tc, on egress */
	PROGRAM_COUNT,
};

enum link {
	LINK_CLIENTS,
	LINK_SERVERS,
	LINK_NARROW, /* MTU 1300: replicas in 10.0.4.0/24, fd00:4::/64 */
	LINK_WIDE,   /* MTU 9000: replicas in 10.0.7.0/24, fd00:7::/64 */
	LINK_COUNT,
};

#define NARROW_MTU 1300
#define WORLD_MARK 77

/* What a program did to a packet. */
struct run {
	int verdict;
	const uint8_t *bytes; /* the packet as it came out; valid until the next run */
	int length;
	uint32_t mark;			 /* of the skb, which was WORLD_MARK before; tc only */
	int64_t counters[COUNTER_COUNT]; /* how much each has grown */
};

/* 0; or a negative errno, after a line on stderr. Root only. */
int world_make(void);
void world_destroy(void);

/* Has the kernel this function for programs? A name of its symbol table. Root only, others see none. */
bool world_kernel_has(const char *function);

/* How many entries tables of flows have in programs loaded from now on. */
void world_set_table_size(uint32_t entries);

/* How long programs loaded from now on keep the kernel's answers to look-ups of routes (0, unless this is called). */
void world_set_next_hop_memory(uint64_t nanoseconds);

/* Loads the programs; replicas_are_local as in the shape node-local. 0 or a negative errno. */
int world_load(bool replicas_are_local);
void world_unload(void);

/* Runs a program on a packet that comes in over that link (PROGRAM_RETURN: goes out over it). segment_size: of an skb that is
 * yet to be cut into segments, else 0. Returns 0 or a negative errno. */
int world_run(enum program program, enum link link, const uint8_t *packet, int length,
	      int segment_size, struct run *run);

const char *world_program_name(enum program program);
int world_map(const char *name); /* descriptor of a map of the programs */
struct ring_maps world_ring_maps(void);
int world_interface(enum link link);
int world_far_interface(enum link link); /* where the clients or replicas would be */

/* Attaches the tc router to all links, in place of XDP. 0 or a negative errno. */
int world_attach_tc(void);

void world_link_address(enum link link, uint8_t mac[6]);

/* The link address of the neighbour with that IP address. */
void world_neighbour_address(const char *ip, uint8_t mac[6]);

/* "10.0.2.10" or "fd00:2::10" as maps have it. */
struct address world_address(const char *text);

/* Empties flows, return_flows, fragments and requests; nothing is in flight at any replica. */
void world_forget_flows(void);

/* Nothing in flight, and in the set what is on the ring. */
void world_reset_loads(void);

struct world_replica {
	const char *name;
	const char *ipv4;
	const char *ipv6;
	uint16_t port;
	enum replica_state state; /* 0: active */
};

#define WORLD_REPLICAS_MAX 8

struct world_service {
	const char *name;
	const char *addresses[4]; /* a prefix has a "/64" behind it */
	uint16_t port;
	uint8_t protocols[2];
	enum id_source id_from;
	uint16_t id_offset;
	uint16_t id_length;
	uint32_t timeout_milliseconds;
	struct world_replica replicas[WORLD_REPLICAS_MAX];
};

/* Writes all services, replicas, addresses and rings into the maps, as the agent does. 0 or a negative errno. */
int world_configure(const struct world_service *services, size_t count);

/* Puts a replica, by its position in the list, into another state, and swaps in the ring that follows. 0 or a negative errno. */
int world_set_state(size_t service, size_t position, enum replica_state state);

/* The replica that this id (or ring key) has its home at, by service index; NULL if the ring is empty. */
const struct world_replica *world_home(size_t service, const char *id);
const struct world_replica *world_home_of_bytes(size_t service, const void *id, size_t length);
const struct world_replica *world_home_of_key(size_t service, uint64_t key);

/* Slot of a replica by service index and position in the list. */
uint32_t world_slot(size_t service, size_t position);

#endif /* WARMPATH_TESTS_WORLD_H */
