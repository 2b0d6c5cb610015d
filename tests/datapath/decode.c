/* SPDX-License-Identifier: BSD-2-Clause */
/* See decode.h. */
#include "decode.h"

#include <netinet/in.h>
#include <string.h>

static int get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static uint32_t sum_of(uint32_t sum, const uint8_t *bytes, int length)
{
	for (int i = 0; i < length; i++) {
		sum += i % 2 ? bytes[i] : bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static bool is_extension(int protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_FRAGMENT || protocol == IPPROTO_DSTOPTS;
}

static struct decoded decode_ipv4(const uint8_t *bytes, int network, int limit)
{
	struct decoded packet = {.family = AF_INET, .network = network, .address_size = 4};
	const uint8_t *ip = bytes + network;
	int header, fragment;

	if (network + 20 > limit || ip[0] >> 4 != 4)
		return packet;
	header = (ip[0] & 15) * 4;
	fragment = get16(ip + 6);
	packet.end = network + get16(ip + 2);
	packet.transport = network + header;
	packet.protocol = ip[9];
	packet.hop_limit = ip[8];
	packet.source_at = network + 12;
	packet.later_fragment = fragment & 0x1fff;
	packet.fragment = fragment & 0x3fff;
	packet.valid = header >= 20 && packet.transport <= packet.end;
	return packet;
}

static struct decoded decode_ipv6(const uint8_t *bytes, int network, int limit)
{
	struct decoded packet = {.family = AF_INET6, .network = network, .address_size = 16};
	const uint8_t *ip = bytes + network;
	int next, at;

	if (network + 40 > limit || ip[0] >> 4 != 6)
		return packet;
	packet.end = network + 40 + get16(ip + 4);
	packet.hop_limit = ip[7];
	packet.source_at = network + 8;
	next = ip[6];
	at = network + 40;
	while (is_extension(next) && !packet.later_fragment) {
		if (at + 8 > limit || at + 8 > packet.end)
			return packet;
		if (next == IPPROTO_FRAGMENT) {
			packet.later_fragment = get16(bytes + at + 2) & 0xfff8;
			packet.fragment |= (get16(bytes + at + 2) & 0xfff9) != 0;
			next = bytes[at];
			at += 8;
		} else {
			next = bytes[at];
			at += (bytes[at + 1] + 1) * 8;
		}
	}
	packet.protocol = next;
	packet.transport = at;
	packet.valid = at <= packet.end;
	return packet;
}

struct decoded decode_ip(const uint8_t *bytes, int network, int limit)
{
	struct decoded packet = {};
	int checksum = 0;

	if (network >= limit)
		return packet;
	packet = bytes[network] >> 4 == 4 ? decode_ipv4(bytes, network, limit)
					  : decode_ipv6(bytes, network, limit);
	if (packet.end > limit)
		packet.end = limit;
	if (packet.protocol == IPPROTO_UDP)
		checksum = 6;
	else if (packet.protocol == IPPROTO_TCP)
		checksum = 16;
	else if (packet.protocol == IPPROTO_ICMP || packet.protocol == IPPROTO_ICMPV6)
		checksum = 2;
	if (checksum && packet.valid && !packet.later_fragment &&
	    packet.transport + checksum + 2 <= packet.end)
		packet.checksum_at = packet.transport + checksum;
	return packet;
}

struct decoded decode_frame(const uint8_t *bytes, int length)
{
	struct decoded none = {};
	int at = 12;

	while (at + 4 <= length && (get16(bytes + at) == 0x8100 || get16(bytes + at) == 0x88a8))
		at += 4;
	if (at + 2 > length || (get16(bytes + at) != 0x0800 && get16(bytes + at) != 0x86dd))
		return none;
	return decode_ip(bytes, at + 2, length);
}

uint16_t decode_network_sum(const uint8_t *bytes, const struct decoded *packet)
{
	uint32_t sum;

	if (packet->family == AF_INET6)
		return 0xffff;
	sum = sum_of(0, bytes + packet->network, packet->transport - packet->network);
	return sum ? sum : 0xffff;
}

bool decode_network_sum_is_right(const uint8_t *bytes, const struct decoded *packet)
{
	return decode_network_sum(bytes, packet) == 0xffff;
}

uint16_t decode_transport_sum(const uint8_t *bytes, const struct decoded *packet)
{
	uint32_t length = packet->end - packet->transport, sum = 0;

	if (packet->protocol != IPPROTO_ICMP) {
		uint8_t rest[8] = {length >> 24,    length >> 16, length >> 8, length, 0, 0, 0,
				   packet->protocol};

		sum = sum_of(0, bytes + packet->source_at, 2 * packet->address_size);
		sum = sum_of(sum, rest, sizeof(rest));
	}
	sum = sum_of(sum, bytes + packet->transport, length);
	return sum ? sum : 0xffff;
}
