/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking the maps `flows` and `connections`: how many connections each replica has, and which slots are still referred to.
 *
 * Owns: the batch walk, what counts as a live flow. May not know: who asks.
 */
#ifndef WARMPATH_AGENT_FLOW_TABLE_H
#define WARMPATH_AGENT_FLOW_TABLE_H

#include <stdbool.h>
#include <warmpath/connection.h>
#include <warmpath/layout.h>

/*
 * How long a flow that has not been seen still counts. The table forgets only when it is full, so ends that were not seen (a
 * client that vanished, a last datagram) must age. TCP: twice the two hours after which a host probes an idle connection
 * (RFC 9293, 3.8.4). Datagrams: longer than any request may take is not needed, as each is routed anew.
 */
#define FLOW_TCP_LIFE_SECONDS	   (4 * 3600)
#define FLOW_DATAGRAM_LIFE_SECONDS 300

/* Whether a flow still stands for traffic, at `now` (nanoseconds of CLOCK_MONOTONIC). */
bool flow_is_live(const struct flow *flow, __u64 now_nanoseconds);

/* The same of a connection that was handed over. */
bool connection_is_live(const struct connection *connection, __u64 now_nanoseconds);

/*
 * Counts the live flows and connections of each replica slot in the maps with descriptors `flows` and `connections`. 0 or a negative
 * errno.
 */
int flow_table_count(int flows, int connections, __u32 counts[REPLICAS_MAX]);

/*
 * The same of those alone that need their replica to their end: TCP flows, whose place is decided once, and connections that have an answer
 * under way or may not move.
 */
int flow_table_count_bound(int flows, int connections, __u32 counts[REPLICAS_MAX]);

#endif /* WARMPATH_AGENT_FLOW_TABLE_H */
