/* SPDX-License-Identifier: BSD-2-Clause */
/* See fixture.h: every kind of packet once, with what becomes of it. */
#include "fixture.h"

#include <netinet/in.h>

#define CLIENT4 "10.0.1.10"
#define CLIENT6 "fd00:1::10"

/* Payload of service "chat": 8 bytes of the application's, the id field (16), a question. */
#define CHAT_QUESTION                 \
	"REQ\x01\x02\x03\x04\x05"     \
	"conv1\0\0\0\0\0\0\0\0\0\0\0" \
	"why is the sky blue?"
#define CHAT_ANSWER                   \
	"ANS\x01\x02\x03\x04\x05"     \
	"conv1\0\0\0\0\0\0\0\0\0\0\0" \
	"because of scattering"

#define PAYLOAD(text) .payload = (text), .payload_length = sizeof(text) - 1

#define UDP4(from, from_port, to, to_port)                                                    \
	.family = AF_INET, .source = (from), .source_port = (from_port), .destination = (to), \
	.destination_port = (to_port), .protocol = IPPROTO_UDP, .hop_limit = 61,              \
	.identification = 0x1234, .traffic_class = 0x28

#define UDP6(from, from_port, to, to_port)                                                     \
	.family = AF_INET6, .source = (from), .source_port = (from_port), .destination = (to), \
	.destination_port = (to_port), .protocol = IPPROTO_UDP, .hop_limit = 62,               \
	.flow_label = 0xabcde, .traffic_class = 0x28

#define TCP6(from, from_port, to, to_port, flags)                                              \
	.family = AF_INET6, .source = (from), .source_port = (from_port), .destination = (to), \
	.destination_port = (to_port), .protocol = IPPROTO_TCP, .hop_limit = 63,               \
	.flow_label = 0x54321, .sequence = 0x01020304, .acknowledgement = 0x0a0b0c0d,          \
	.tcp_flags = (flags)

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10

#define CREATES NOTE_BIT(note_flow_created)

const struct fixture_kind fixture_kinds[] = {
	{
		.name = "UDP, IPv4",
		.packet = {UDP4(CLIENT4, 40001, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION)},
		.service = SERVICE_CHAT,
		.id = "conv1",
		.expected = {OUTCOME_forwarded, CHANGE_TO_REPLICA, .notes = CREATES},
	},
	{
		.name = "UDP, IPv6",
		.packet = {UDP6(CLIENT6, 40002, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION)},
		.service = SERVICE_CHAT,
		.id = "conv1",
		.expected = {OUTCOME_forwarded, CHANGE_TO_REPLICA, .notes = CREATES},
	},
	{
		.name = "TCP, SYN to an address of a prefix",
		.packet = {TCP6(CLIENT6, 50001, "fd00:5:5:5:7b0e:9858:7fc9:5488", 443, SYN)},
		.service = SERVICE_PREFIX,
		.expected = {OUTCOME_forwarded, CHANGE_TO_REPLICA, .notes = CREATES},
	},
	{
		.name = "reply, UDP, IPv4",
		.packet = {UDP4("10.0.2.11", 8002, CLIENT4, 40001), PAYLOAD(CHAT_ANSWER)},
		.link = LINK_SERVERS,
		.expected = {OUTCOME_returned, CHANGE_TO_CLIENT, "10.9.9.9", 8000},
	},
	{
		.name = "reply, UDP, IPv6",
		.packet = {UDP6("fd00:2::12", 8003, CLIENT6, 40002), PAYLOAD(CHAT_ANSWER)},
		.link = LINK_SERVERS,
		.expected = {OUTCOME_returned, CHANGE_TO_CLIENT, "fd00:9::9", 8000},
	},
};

const size_t fixture_kind_count = sizeof(fixture_kinds) / sizeof(fixture_kinds[0]);
