/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection that its server is using: a thread sends from a page that is not there yet, and has the socket's lock until it is. The caller runs on
 * one CPU from then on, and what uses the socket on another, since a lock that is held here could not be let go in a softirq of here.
 *
 * Owns: the lock, for one connection at a time. May not know: what comes in meanwhile.
 */
#ifndef WARMPATH_TESTS_BUSY_SOCKET_H
#define WARMPATH_TESTS_BUSY_SOCKET_H

#include <stdbool.h>
#include <warmpath/handoff_counters.h>

/* Are there two CPUs? */
bool busy_socket_is_possible(void);

/* Returns as soon as the lock is held. Failures are cmocka's. */
void busy_socket_take(int connection);

/* The lock is let go as soon as that counter of the replica's grows. */
void busy_socket_let_go_at(enum handoff_counter counter);

/* Lets it go, if it is held still. Ends the threads. */
void busy_socket_end(void);

#endif /* WARMPATH_TESTS_BUSY_SOCKET_H */
