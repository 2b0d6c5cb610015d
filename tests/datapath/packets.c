/* SPDX-License-Identifier: BSD-2-Clause */
/* See packets.h. */
#include "packets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

/* RFC 1071, byte by byte: bytes at even positions are the upper halves of 16-bit words. */
static uint32_t sum_bytes(uint32_t sum, const uint8_t *bytes, int length)
{
	for (int i = 0; i < length; i++) {
		sum += i % 2 ? bytes[i] : bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static void put_addresses(const struct packet_spec *spec, uint8_t *at)
{
	int length = spec->family == AF_INET ? 4 : 16;

	if (inet_pton(spec->family, spec->source, at) != 1 ||
	    inet_pton(spec->family, spec->destination, at + length) != 1) {
		fprintf(stderr, "not an address: \"%s\" or \"%s\"\n", spec->source,
			spec->destination);
		abort();
	}
}

/* The transport checksum with its pseudo header (RFC 768, RFC 9293, RFC 8200 section 8.1). */
static uint16_t transport_checksum(const struct packet_spec *spec, const uint8_t *segment,
				   int length, int covered)
{
	uint8_t pseudo[40] = {};
	int size;

	put_addresses(spec, pseudo);
	if (spec->family == AF_INET) {
		pseudo[9] = spec->protocol;
		put16(pseudo + 10, covered);
		size = 12;
	} else {
		put32(pseudo + 32, covered);
		pseudo[39] = spec->protocol;
		size = 40;
	}
	return ~sum_bytes(sum_bytes(0, pseudo, size), segment, length);
}

static int build_udp(const struct packet_spec *spec, uint8_t *bytes)
{
	int length = 8 + spec->payload_length;
	uint16_t checksum;

	put16(bytes, spec->source_port);
	put16(bytes + 2, spec->destination_port);
	put16(bytes + 4, length);
	put16(bytes + 6, 0);
	if (spec->payload_length)
		memcpy(bytes + 8, spec->payload, spec->payload_length);
	if (!spec->no_checksum) {
		checksum = transport_checksum(spec, bytes, length, length);
		put16(bytes + 6, checksum ? checksum : 0xffff);
	}
	memset(bytes + length, 'x', spec->trailing);
	return length + spec->trailing;
}

static int build_tcp(const struct packet_spec *spec, uint8_t *bytes)
{
	int header = 20 + spec->tcp_options_length;
	int length = header + spec->payload_length;

	memset(bytes, 0, 20);
	put16(bytes, spec->source_port);
	put16(bytes + 2, spec->destination_port);
	put32(bytes + 4, spec->sequence);
	put32(bytes + 8, spec->acknowledgement);
	bytes[12] = header / 4 << 4;
	bytes[13] = spec->tcp_flags;
	put16(bytes + 14, spec->window_closed ? 0 : 0xfaf0);
	put16(bytes + 18, spec->urgent_pointer);
	memcpy(bytes + 20, spec->tcp_options, spec->tcp_options_length);
	if (spec->payload_length)
		memcpy(bytes + header, spec->payload, spec->payload_length);
	put16(bytes + 16, transport_checksum(spec, bytes, length, length));
	return length;
}

static int build_icmp(const struct packet_spec *spec, uint8_t *bytes)
{
	int length = 8;

	bytes[0] = spec->icmp_type;
	bytes[1] = spec->icmp_code;
	put16(bytes + 2, 0);
	put32(bytes + 4, spec->icmp_rest);
	if (spec->quoted) {
		int quoted = packet_build_ip(spec->quoted, bytes + 8);

		length += spec->quoted_length ? spec->quoted_length : quoted;
	} else if (spec->payload_length) {
		memcpy(bytes + 8, spec->payload, spec->payload_length);
		length += spec->payload_length;
	}
	if (spec->protocol == IPPROTO_ICMP)
		put16(bytes + 2, ~sum_bytes(0, bytes, length));
	else
		put16(bytes + 2, transport_checksum(spec, bytes, length, length));
	return length;
}

static int build_transport(const struct packet_spec *spec, uint8_t *bytes)
{
	switch (spec->protocol) {
	case IPPROTO_UDP:
		return build_udp(spec, bytes);
	case IPPROTO_TCP:
		return build_tcp(spec, bytes);
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return build_icmp(spec, bytes);
	default:
		if (spec->payload_length)
			memcpy(bytes, spec->payload, spec->payload_length);
		return spec->payload_length;
	}
}

/* The part of the bytes that this fragment carries, moved to where they begin. */
static int cut_fragment(const struct packet_spec *spec, uint8_t *bytes, int length)
{
	int size = spec->fragment_length;

	if (!spec->fragment)
		return length;
	if (spec->fragment_start > length)
		abort();
	if (!size || size > length - spec->fragment_start)
		size = length - spec->fragment_start;
	memmove(bytes, bytes + spec->fragment_start, size);
	return size;
}

static int build_ipv4(const struct packet_spec *spec, uint8_t *bytes)
{
	int header = 20 + spec->options_length;
	int length = build_transport(spec, bytes + header);

	length = header + cut_fragment(spec, bytes + header, length);
	memset(bytes, 0, 20);
	bytes[0] = 0x40 | header / 4;
	bytes[1] = spec->traffic_class;
	put16(bytes + 2, length);
	put16(bytes + 4, spec->identification);
	put16(bytes + 6, (spec->dont_fragment ? 0x4000 : 0) |
				 (spec->fragment && spec->fragment_more ? 0x2000 : 0) |
				 (spec->fragment ? spec->fragment_start / 8 : 0));
	bytes[8] = spec->hop_limit;
	bytes[9] = spec->protocol;
	put_addresses(spec, bytes + 12);
	memcpy(bytes + 20, spec->options, spec->options_length);
	put16(bytes + 10, ~sum_bytes(0, bytes, header));
	return length;
}

static int build_fragment_header(const struct packet_spec *spec, uint8_t *bytes)
{
	memset(bytes, 0, 8);
	put16(bytes + 2, spec->fragment_start | spec->fragment_more);
	put32(bytes + 4, spec->fragment_identification);
	return 8;
}

static int build_ipv6(const struct packet_spec *spec, uint8_t *bytes)
{
	uint8_t *next_header = bytes + 6;
	int offset = 40, cut_from = 0, length;

	memset(bytes, 0, 40);
	put32(bytes, 6u << 28 | (uint32_t)spec->traffic_class << 20 | spec->flow_label);
	bytes[7] = spec->hop_limit;
	put_addresses(spec, bytes + 8);
	for (int i = 0; i <= spec->header_count; i++) {
		if (spec->fragment && i == spec->fragment_header_at) {
			*next_header = IPPROTO_FRAGMENT;
			next_header = bytes + offset;
			offset += build_fragment_header(spec, bytes + offset);
			cut_from = offset;
		}
		if (i == spec->header_count)
			break;
		*next_header = spec->headers[i].type;
		memcpy(bytes + offset, spec->headers[i].bytes, spec->headers[i].length);
		next_header = bytes + offset;
		offset += spec->headers[i].length;
	}
	*next_header = spec->protocol;
	length = offset + build_transport(spec, bytes + offset);
	if (spec->fragment)
		length = cut_from + cut_fragment(spec, bytes + cut_from, length - cut_from);
	put16(bytes + 4, length - 40);
	return length;
}

int packet_build_ip(const struct packet_spec *spec, uint8_t *bytes)
{
	return spec->family == AF_INET ? build_ipv4(spec, bytes) : build_ipv6(spec, bytes);
}

int packet_ip_offset(const struct packet_spec *spec)
{
	return 14 + 4 * spec->tag_count;
}

int packet_build(const struct packet_spec *spec, uint8_t *bytes)
{
	int offset = 12, length;

	memcpy(bytes, spec->destination_mac, 6);
	memcpy(bytes + 6, spec->source_mac, 6);
	for (int i = 0; i < spec->tag_count; i++) {
		put16(bytes + offset, spec->tags[i].ethertype);
		put16(bytes + offset + 2, spec->tags[i].control);
		offset += 4;
	}
	put16(bytes + offset, spec->family == AF_INET ? 0x0800 : 0x86dd);
	offset += 2;
	length = offset + packet_build_ip(spec, bytes + offset);
	for (int i = 0; i < spec->padding; i++)
		bytes[length++] = 0xa0 + i;
	return length;
}

static void print_bytes(const char *name, const uint8_t *bytes, int length, const uint8_t *other,
			int other_length)
{
	printf("# %s, %d bytes", name, length);
	for (int i = 0; i < length && i < 256; i++) {
		if (i % 16 == 0)
			printf("\n# %4d ", i);
		printf("%s%02x", i >= other_length || bytes[i] != other[i] ? "*" : " ", bytes[i]);
	}
	printf("\n");
}

void packet_print_difference(const uint8_t *expected, int expected_length, const uint8_t *found,
			     int found_length)
{
	print_bytes("expected", expected, expected_length, found, found_length);
	print_bytes("found", found, found_length, expected, expected_length);
}
