/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A replica's machine for tests: the handoff program on a link of a real kernel, a real listener, and the wire to it, on which marked segments are
 * put as a router would.
 *
 * Owns: building marked segments, what became of them. May not know: which ought to become what.
 */
#ifndef WARMPATH_TESTS_REPLICA_SIDE_H
#define WARMPATH_TESTS_REPLICA_SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <warmpath/handoff_counters.h>

#include "packets.h"

#define PORT	8001
#define WAIT	2000 /* milliseconds that something may take that has to happen */
#define NOTHING 10   /* and that are waited for what must not, once it was counted */

#define REQUEST "GET / HTTP/1.1\r\n\r\n"

extern bool replica_ipv6;

/* Loads and attaches the program in the namespace of world_make(). 0 or a negative errno. */
int replica_load(void);

/* Opens the listener, in the family that replica_ipv6 says. 0 or -1. */
int replica_listen(void);
void replica_end(void);

/* Key number `first` is the cluster's, with the other beside it if `count` is 2. */
void replica_set_keys(int first, int count);

/* The first segment of a request, not marked yet; with timestamps. */
struct packet_spec replica_first_segment(uint16_t client_port);
void replica_add_timestamps(struct packet_spec *packet);

/* Marks it as a START with that key, as the options byte says. */
void replica_mark(struct packet_spec *packet, int key, uint8_t options);

/* It arrives. */
void replica_receive(const struct packet_spec *packet);

/* The flags of the next TCP segment to that client; -1: none came in that time. */
int replica_reply(uint16_t client_port, int milliseconds);

uint64_t replica_count(enum handoff_counter counter);

/* Waits until the counter is there; false: it is elsewhere. */
bool replica_wait(enum handoff_counter counter, uint64_t wanted);

/* A connection from the listener; -1: none comes. */
int replica_accept(int milliseconds);

#endif /* WARMPATH_TESTS_REPLICA_SIDE_H */
