/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a frame for tests, slowly and plainly: a second reading, to check what the data path made of it.
 *
 * Owns: where things are in a frame, sums over them. May not know: services, what a packet ought to become.
 */
#ifndef WARMPATH_TESTS_DECODE_H
#define WARMPATH_TESTS_DECODE_H

#include <stdbool.h>
#include <stdint.h>

struct decoded {
	bool valid;  /* an IP packet with all its headers */
	int family;  /* AF_INET or AF_INET6 */
	int network; /* offsets */
	int transport;
	int end; /* of the IP packet */
	int protocol;
	bool later_fragment; /* no transport header */
	bool fragment;	     /* of any kind: the transport checksum is not only over what is here */
	int hop_limit;
	int source_at; /* offset of the source address; the destination is behind it */
	int address_size;
	int checksum_at; /* offset of the transport checksum; 0: none, or not in the frame */
};

/* Decodes the IP packet at `network` that ends at `limit` at the latest. */
struct decoded decode_ip(const uint8_t *bytes, int network, int limit);

/* The same of a frame: tags are skipped. */
struct decoded decode_frame(const uint8_t *bytes, int length);

/* Is the IPv4 header's checksum right? (IPv6: true.) */
bool decode_network_sum_is_right(const uint8_t *bytes, const struct decoded *packet);

/*
 * The sum over pseudo header and transport segment, folded and with 0 written as 0xffff: 0xffff if the checksum is right, and the same
 * before and after a translation, whatever it was.
 */
uint16_t decode_transport_sum(const uint8_t *bytes, const struct decoded *packet);

/* The same of the IPv4 header. */
uint16_t decode_network_sum(const uint8_t *bytes, const struct decoded *packet);

#endif /* WARMPATH_TESTS_DECODE_H */
