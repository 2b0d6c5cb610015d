/* SPDX-License-Identifier: BSD-2-Clause */
/* Replica to client. See fixture.h. */
#include "fixture.h"

#define CONV5_IN_32 "conv5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static const struct packet_spec syn_conv1 = {TCP6(CLIENT6, 50001, KEY_CONV1, 443, SYN)};
static const struct packet_spec two_ipv4 = {UDP4(CLIENT4, 42001, "10.9.9.21", 8100),
					    PAYLOAD(CONV5_IN_32)};
static const struct packet_spec two_ipv6 = {UDP6(CLIENT6, 42002, "fd00:9::20", 8100),
					    PAYLOAD(CONV5_IN_32)};
static const struct packet_spec shared_b = {UDP4(CLIENT4, 42003, "10.9.9.31", 8202),
					    PAYLOAD("xxconv-123")};

static const struct fixture_kind kinds[] = {
	{
		.name = "reply, UDP, IPv4",
		.packet = {UDP4("10.0.2.11", 8002, CLIENT4, 40001), PAYLOAD(CHAT_ANSWER)},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_returned,
		FROM("10.9.9.9", 8000),
	},
	{
		.name = "reply, UDP, IPv6",
		.packet = {UDP6("fd00:2::12", 8003, CLIENT6, 40002), PAYLOAD(CHAT_ANSWER)},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_returned,
		FROM("fd00:9::9", 8000),
	},
	{
		.name = "reply, UDP, IPv4, two tags, no checksum, options",
		.packet = {UDP4("10.0.2.10", 8001, CLIENT4, 40003), PAYLOAD(CHAT_ANSWER),
			   .no_checksum = true, .tags = {{0x88a8, 8}, {0x8100, 9}}, .tag_count = 2,
			   .options = {1, 1, 1, 0}, .options_length = 4},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_returned,
		FROM("10.9.9.9", 8000),
	},
	{
		.name = "reply, UDP, IPv6, extension headers",
		.packet = {UDP6("fd00:2::12", 8003, CLIENT6, 40002), PAYLOAD(CHAT_ANSWER),
			   .headers = {{IPPROTO_DSTOPTS, 8, {0, 0, 1, 4}}}, .header_count = 1},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_returned,
		FROM("fd00:9::9", 8000),
	},
	{
		.name = "reply, UDP, service with two addresses, IPv4",
		.packet = {UDP4("10.0.2.20", 9001, CLIENT4, 42001), PAYLOAD(CONV5_IN_32)},
		.link = LINK_SERVERS,
		.before = {&two_ipv4},
		.outcome = OUTCOME_returned,
		.notes = NOTE_BIT(note_request_completed),
		FROM("10.9.9.21", 8100),
	},
	{
		.name = "reply, UDP, service with two addresses, IPv6",
		.packet = {UDP6("fd00:2::20", 9001, CLIENT6, 42002), PAYLOAD(CONV5_IN_32)},
		.link = LINK_SERVERS,
		.before = {&two_ipv6},
		.outcome = OUTCOME_returned,
		.notes = NOTE_BIT(note_request_completed),
		FROM("fd00:9::20", 8100),
	},
	{
		.name = "reply, UDP, replica of two services",
		.packet = {UDP4("10.0.2.30", 9100, CLIENT4, 42003), PAYLOAD("xxconv-123")},
		.link = LINK_SERVERS,
		.before = {&shared_b},
		.outcome = OUTCOME_returned,
		.notes = NOTE_BIT(note_request_completed),
		FROM("10.9.9.31", 8202),
	},
	{
		.name = "reply, UDP, nobody knows to what",
		.packet = {UDP4("10.0.2.20", 9001, CLIENT4, 42004), PAYLOAD(CONV5_IN_32)},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_drop_no_service_address,
	},
	{
		.name = "reply, UDP, nobody knows to what, to this machine",
		.packet = {UDP4("10.0.2.20", 9001, "10.0.2.1", 42005), PAYLOAD(CONV5_IN_32)},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "reply, UDP, to this machine",
		.packet = {UDP4("10.0.2.11", 8002, "10.0.2.1", 42006), PAYLOAD(CHAT_ANSWER)},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "reply, UDP, hop limit used up",
		.packet = {UDP4("10.0.2.11", 8002, CLIENT4, 40001), PAYLOAD(CHAT_ANSWER),
			   .hop_limit = 1},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_passed_to_stack,
	},
	{
		.name = "reply, UDP, too big for the client's link",
		.packet = {UDP4("10.0.2.11", 8002, "10.0.4.11", 40001), LONG_PAYLOAD(1300),
			   .dont_fragment = true},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_passed_to_stack,
	},
	{
		.name = "reply, UDP, too big but may be fragmented",
		.packet = {UDP4("10.0.2.11", 8002, "10.0.4.11", 40001), LONG_PAYLOAD(1300)},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_returned_by_stack,
		FROM("10.9.9.9", 8000),
	},
	{
		.name = "reply, UDP, unresolved client",
		.packet = {UDP6("fd00:2::11", 8002, "fd00:1::99", 40001), PAYLOAD(CHAT_ANSWER)},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_returned_by_stack,
		.resolve = true,
		FROM("fd00:9::9", 8000),
	},
	{
		.name = "reply, UDP, black hole",
		.packet = {UDP4("10.0.2.11", 8002, "10.0.5.1", 40001), PAYLOAD(CHAT_ANSWER)},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_drop_no_route,
	},
	{
		.name = "reply, TCP",
		.packet = {TCP6("fd00:2::42", 8443, CLIENT6, 50001, SYN | ACK)},
		.link = LINK_SERVERS,
		.before = {&syn_conv1},
		.outcome = OUTCOME_returned,
		FROM(KEY_CONV1, 443),
	},
	{
		.name = "reply, TCP, reset",
		.packet = {TCP6("fd00:2::42", 8443, CLIENT6, 50001, RST | ACK)},
		.link = LINK_SERVERS,
		.before = {&syn_conv1},
		.outcome = OUTCOME_returned,
		.notes = NOTE_BIT(note_flow_closed) | NOTE_BIT(note_request_failed),
		FROM(KEY_CONV1, 443),
	},
	{
		.name = "TCP from a replica, a connection of its own",
		.packet = {TCP6("fd00:2::42", 8443, CLIENT6, 50009, ACK), PAYLOAD("direct")},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "UDP from a replica, another port",
		.packet = {UDP4("10.0.2.11", 5353, CLIENT4, 40001), PAYLOAD(CHAT_ANSWER)},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_not_ours,
	},
};

const struct fixture_table fixture_replies = {kinds, sizeof(kinds) / sizeof(kinds[0])};
