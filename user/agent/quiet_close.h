/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closing the socket that a connection has left behind at its former replica when it moved (docs/handoff.md, section 8).
 *
 * Owns: the reset that is sent to that replica in the client's name, the sockets it is sent through. May not know: why a connection
 * moved, the ring buffer.
 */
#ifndef WARMPATH_AGENT_QUIET_CLOSE_H
#define WARMPATH_AGENT_QUIET_CLOSE_H

#include <warmpath/decision.h>

struct quiet_close {
	int ipv4; /* raw sockets; -1: there is none */
	int ipv6;
};

/*
 * Opens the sockets; needs CAP_NET_RAW, which is not needed afterwards. What cannot be had is left out with a warning: then the socket at
 * the former replica stays until that replica says something on it.
 */
void quiet_close_open(struct quiet_close *closer);
void quiet_close_close(struct quiet_close *closer);

/*
 * Resets the socket at the former replica. Never waits: a packet that does not get out is not sent.
 */
void quiet_close_send(const struct quiet_close *closer, const struct event_move *move);

/* The packet of that: IP header (in IPv4 without its checksum, which the kernel fills in) and TCP header. Returns its length. */
#define QUIET_CLOSE_PACKET_MAX 60
int quiet_close_build(const struct event_move *move, unsigned char packet[QUIET_CLOSE_PACKET_MAX]);

#endif /* WARMPATH_AGENT_QUIET_CLOSE_H */
