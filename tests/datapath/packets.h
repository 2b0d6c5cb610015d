/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets for tests, from a description to bytes.
 *
 * Owns: wire formats and checksums, written a second time. May not know: anything of the data path, whose code it is there to
 * check: every checksum is summed over the finished bytes, none is adjusted.
 */
#ifndef WARMPATH_TESTS_PACKETS_H
#define WARMPATH_TESTS_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_SIZE_MAX	   65536
#define PACKET_TAGS_MAX	   3
#define PACKET_HEADERS_MAX 10

struct packet_tag {
	uint16_t ethertype; /* 0x8100 or 0x88a8 */
	uint16_t control;
};

/* An IPv6 extension header; its first byte (next header) is filled in. A fragment header is made by the fragment fields. */
struct packet_header {
	uint8_t type;
	uint8_t length; /* bytes, a multiple of 8 */
	uint8_t bytes[40];
};

struct packet_spec {
	uint8_t source_mac[6];
	uint8_t destination_mac[6];
	struct packet_tag tags[PACKET_TAGS_MAX];
	int tag_count;

	int family;	 /* AF_INET or AF_INET6 */
	char source[46]; /* as text */
	char destination[46];
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint32_t flow_label;
	uint16_t identification; /* IPv4 */
	bool dont_fragment;
	uint8_t options[40]; /* IPv4 */
	int options_length;
	struct packet_header headers[PACKET_HEADERS_MAX]; /* IPv6 */
	int header_count;
	int fragment_header_at; /* IPv6: the fragment header stands before headers[this] */

	/* a fragment: this part of what follows the IP (and, in IPv6, the fragment) header */
	bool fragment;
	uint16_t fragment_start; /* a multiple of 8 */
	uint16_t fragment_length;
	bool fragment_more;
	uint32_t fragment_identification; /* IPv6 */

	uint8_t protocol; /* IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP, IPPROTO_ICMPV6; anything else: the payload as it is */
	uint16_t source_port;
	uint16_t destination_port;
	bool no_checksum; /* UDP: the field is 0 */
	uint32_t sequence;
	uint32_t acknowledgement;
	uint8_t tcp_flags;
	uint16_t urgent_pointer;
	bool window_closed; /* 0, else 64,240 */
	uint8_t tcp_options[40];
	int tcp_options_length;
	uint8_t icmp_type;
	uint8_t icmp_code;
	uint32_t icmp_rest; /* the second word of the header */
	const struct packet_spec
		*quoted;   /* payload of an ICMP error: this packet from its IP header on */
	int quoted_length; /* so many bytes of it; 0: all */
	const void *payload;
	int payload_length;
	int trailing; /* UDP: bytes behind the datagram, but inside the IP packet */
	int padding;  /* bytes behind the IP packet */
};

/* Writes the packet into `bytes` (room for PACKET_SIZE_MAX). Returns its length. */
int packet_build(const struct packet_spec *spec, uint8_t *bytes);

/* The same from the IP header on. */
int packet_build_ip(const struct packet_spec *spec, uint8_t *bytes);

/* Offset of the IP header. */
int packet_ip_offset(const struct packet_spec *spec);

/* Prints both, with the differing bytes marked. */
void packet_print_difference(const uint8_t *expected, int expected_length, const uint8_t *found,
			     int found_length);

#endif /* WARMPATH_TESTS_PACKETS_H */
