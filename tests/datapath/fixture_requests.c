/* SPDX-License-Identifier: BSD-2-Clause */
/* Client to replica: addresses, tags, options, extension headers, next hops, sizes. See fixture.h. */
#include "fixture.h"

#define ROUTER_ALERT                   \
	{                              \
		0x94, 0x04, 0x00, 0x00 \
	}

/* First byte of each is the next header, filled in. */
#define HOP_BY_HOP                             \
	{                                      \
		IPPROTO_HOPOPTS, 8,            \
		{                              \
			0, 0, 5, 2, 0, 0, 1, 0 \
		}                              \
	}
#define OPTIONS                                                         \
	{                                                               \
		IPPROTO_DSTOPTS, 16,                                    \
		{                                                       \
			0, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
		}                                                       \
	}
#define ROUTED                                                             \
	{                                                                  \
		IPPROTO_ROUTING, 24,                                       \
		{                                                          \
			0, 2, 4, 0, 0, 0, 0, 0, 0xfd, 0, 0, 2, [23] = 0x10 \
		}                                                          \
	}
#define TO_BE_ROUTED                                                       \
	{                                                                  \
		IPPROTO_ROUTING, 24,                                       \
		{                                                          \
			0, 2, 4, 1, 0, 0, 0, 0, 0xfd, 0, 0, 2, [23] = 0x10 \
		}                                                          \
	}

static const struct packet_spec syn_conv1 = {TCP6(CLIENT6, 50001, KEY_CONV1, 443, SYN)};

static const struct fixture_kind kinds[] = {
	{
		.name = "UDP, IPv4",
		.packet = {UDP4(CLIENT4, 40001, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "UDP, IPv6",
		.packet = {UDP6(CLIENT6, 40002, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "UDP, IPv4, without checksum",
		.packet = {UDP4(CLIENT4, 40003, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .no_checksum = true},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "UDP, IPv6, without checksum",
		.packet = {UDP6(CLIENT6, 40004, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .no_checksum = true},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "UDP, IPv4, padded frame",
		.packet = {UDP4(CLIENT4, 40005, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .padding = 7},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "UDP, IPv4, one tag",
		.packet = {UDP4(CLIENT4, 40006, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .tags = {{0x8100, 0x2064}}, .tag_count = 1},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "UDP, IPv6, one tag",
		.packet = {UDP6(CLIENT6, 40007, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .tags = {{0x88a8, 0x0065}}, .tag_count = 1},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "UDP, IPv4, two tags",
		.packet = {UDP4(CLIENT4, 40008, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .tags = {{0x88a8, 0x0066}, {0x8100, 0x0067}}, .tag_count = 2},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "UDP, IPv6, two tags",
		.packet = {UDP6(CLIENT6, 40009, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .tags = {{0x8100, 0x0068}, {0x8100, 0x0069}}, .tag_count = 2},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "UDP, IPv4, three tags",
		.packet = {UDP4(CLIENT4, 40010, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .tags = {{0x88a8, 1}, {0x8100, 2}, {0x8100, 3}}, .tag_count = 3},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "UDP, IPv4, an option",
		.packet = {UDP4(CLIENT4, 40011, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .options = ROUTER_ALERT, .options_length = 4},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "UDP, IPv4, 40 bytes of options",
		.packet = {UDP4(CLIENT4, 40012, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .options = {1, 1, 1, 7, 35, 4, [30] = 0x83, 0x83}, .options_length = 40},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "UDP, IPv4, loose source route",
		.packet = {UDP4(CLIENT4, 40013, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .options = {1, 0x83, 7, 4, 10, 0, 2, 99}, .options_length = 8},
		.outcome = OUTCOME_drop_header_unsupported,
	},
	{
		.name = "UDP, IPv4, strict source route behind an alert",
		.packet = {UDP4(CLIENT4, 40014, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .options = {0x94, 4, 0, 0, 0x89, 7, 4, 10, 0, 2, 99, 0},
			   .options_length = 12},
		.outcome = OUTCOME_drop_header_unsupported,
	},
	{
		.name = "UDP, IPv6, options for every hop",
		.packet = {UDP6(CLIENT6, 40015, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .headers = {HOP_BY_HOP}, .header_count = 1},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "UDP, IPv6, options for the destination",
		.packet = {UDP6(CLIENT6, 40016, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .headers = {OPTIONS}, .header_count = 1},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "UDP, IPv6, a routing header that is used up",
		.packet = {UDP6(CLIENT6, 40017, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .headers = {ROUTED}, .header_count = 1},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "UDP, IPv6, a routing header with a way to go",
		.packet = {UDP6(CLIENT6, 40018, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .headers = {TO_BE_ROUTED}, .header_count = 1},
		.outcome = OUTCOME_drop_header_unsupported,
	},
	{
		.name = "UDP, IPv6, eight extension headers and a tag",
		.packet = {UDP6(CLIENT6, 40019, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .headers = {HOP_BY_HOP, OPTIONS, ROUTED, OPTIONS, OPTIONS, ROUTED,
				       OPTIONS, OPTIONS},
			   .header_count = 8, .tags = {{0x8100, 5}}, .tag_count = 1},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "UDP, IPv6, nine extension headers",
		.packet = {UDP6(CLIENT6, 40020, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .headers = {HOP_BY_HOP, OPTIONS, OPTIONS, OPTIONS, OPTIONS, OPTIONS,
				       OPTIONS, OPTIONS, OPTIONS},
			   .header_count = 9},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "TCP to a prefix, nine extension headers",
		.packet = {TCP6(CLIENT6, 40021, KEY_CONV1, 443, SYN),
			   .headers = {HOP_BY_HOP, OPTIONS, OPTIONS, OPTIONS, OPTIONS, OPTIONS,
				       OPTIONS, OPTIONS, OPTIONS},
			   .header_count = 9},
		.outcome = OUTCOME_drop_header_unsupported,
	},
	{
		.name = "UDP, IPv6, options for every hop in second place",
		.packet = {UDP6(CLIENT6, 40022, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .headers = {OPTIONS, HOP_BY_HOP}, .header_count = 2},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "UDP to a service with two addresses",
		.packet = {UDP4(CLIENT4, 40023, "10.9.9.21", 8100),
			   PAYLOAD("conv5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.20", 9001),
	},
	{
		.name = "UDP, behind a gateway, IPv4",
		.packet = {UDP4(CLIENT4, 40024, "10.9.9.95", 8950), PAYLOAD("conv-1")},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.3.10", 9950),
	},
	{
		.name = "UDP, behind a gateway, IPv6",
		.packet = {UDP6(CLIENT6, 40025, "fd00:9::95", 8950), PAYLOAD("conv-1")},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:3::10", 9950),
	},
	{
		.name = "UDP, unresolved neighbour, IPv4",
		.packet = {UDP4(CLIENT4, 40026, "10.9.9.50", 8500), PAYLOAD("1conv-1")},
		.outcome = OUTCOME_forwarded_by_stack,
		.resolve = true,
		CREATES,
		TO("10.0.2.99", 9500),
	},
	{
		.name = "UDP, unresolved neighbour, IPv6",
		.packet = {UDP6(CLIENT6, 40027, "fd00:9::50", 8500), PAYLOAD("1conv-1")},
		.outcome = OUTCOME_forwarded_by_stack,
		.resolve = true,
		CREATES,
		TO("fd00:2::99", 9500),
	},
	{
		.name = "UDP, unresolved neighbour, one tag",
		.packet = {UDP4(CLIENT4, 40028, "10.9.9.50", 8500), PAYLOAD("1conv-1"),
			   .tags = {{0x8100, 9}}, .tag_count = 1},
		.outcome = OUTCOME_forwarded_by_stack,
		CREATES,
		TO("10.0.2.99", 9500),
	},
	{
		.name = "UDP, black hole, IPv4",
		.packet = {UDP4(CLIENT4, 40029, "10.9.9.70", 8700), PAYLOAD("conv-1")},
		.outcome = OUTCOME_drop_no_route,
	},
	{
		.name = "UDP, black hole, IPv6",
		.packet = {UDP6(CLIENT6, 40030, "fd00:9::70", 8700), PAYLOAD("conv-1")},
		.outcome = OUTCOME_drop_no_route,
	},
	{
		.name = "UDP, no active replica",
		.packet = {UDP4(CLIENT4, 40031, "10.9.9.80", 8800), PAYLOAD("conv-1")},
		.outcome = OUTCOME_drop_no_replica,
	},
	{
		.name = "UDP, replica on this machine, which is not said to be so",
		.packet = {UDP4(CLIENT4, 40032, "10.9.9.90", 8900), PAYLOAD("conv-1")},
		.outcome = OUTCOME_drop_no_route,
	},
	{
		.name = "UDP, IPv4, hop limit used up",
		.packet = {UDP4(CLIENT4, 40033, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .hop_limit = 1},
		.outcome = OUTCOME_answered_time_exceeded,
		.change = CHANGE_ANSWER,
		.answer = {11, 0, 0},
	},
	{
		.name = "UDP, IPv6, hop limit used up, two tags",
		.packet = {UDP6(CLIENT6, 40034, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   .hop_limit = 1, .tags = {{0x88a8, 3}, {0x8100, 4}}, .tag_count = 2},
		.outcome = OUTCOME_answered_time_exceeded,
		.change = CHANGE_ANSWER,
		.answer = {3, 0, 0},
	},
	{
		.name = "UDP, IPv4, hop limit 2",
		.packet = {UDP4(CLIENT4, 40035, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
			   .hop_limit = 2},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "UDP, IPv4, too big, may be fragmented",
		.packet = {UDP4(CLIENT4, 40036, "10.9.9.60", 8600), LONG_PAYLOAD(1273)},
		.outcome = OUTCOME_forwarded_by_stack,
		CREATES,
		TO("10.0.4.10", 9600),
	},
	{
		.name = "UDP, IPv4, too big, may not be fragmented",
		.packet = {UDP4(CLIENT4, 40037, "10.9.9.60", 8600), LONG_PAYLOAD(1273),
			   .dont_fragment = true},
		.outcome = OUTCOME_answered_too_big,
		.change = CHANGE_ANSWER,
		.answer = {3, 4, NARROW_MTU},
	},
	{
		.name = "UDP, IPv4, just fits",
		.packet = {UDP4(CLIENT4, 40038, "10.9.9.60", 8600), LONG_PAYLOAD(1272),
			   .dont_fragment = true},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.4.10", 9600),
	},
	{
		.name = "UDP, IPv6, too big, a tag",
		.packet = {UDP6(CLIENT6, 40039, "fd00:9::60", 8600), LONG_PAYLOAD(1253),
			   .tags = {{0x8100, 77}}, .tag_count = 1},
		.outcome = OUTCOME_answered_too_big,
		.change = CHANGE_ANSWER,
		.answer = {2, 0, NARROW_MTU},
	},
	{
		.name = "UDP, IPv6, just fits",
		.packet = {UDP6(CLIENT6, 40040, "fd00:9::60", 8600), LONG_PAYLOAD(1252)},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:4::10", 9600),
	},
	{
		.name = "UDP, IPv4, from loopback",
		.packet = {UDP4("127.0.0.1", 40041, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_drop_source_invalid,
	},
	{
		.name = "UDP, IPv4, from a group",
		.packet = {UDP4("224.0.0.1", 40042, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_drop_source_invalid,
	},
	{
		.name = "UDP, IPv4, from nowhere",
		.packet = {UDP4("0.0.0.0", 40043, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_drop_source_invalid,
	},
	{
		.name = "UDP, IPv4, from everybody",
		.packet = {UDP4("255.255.255.255", 40044, "10.9.9.9", 8000),
			   PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_drop_source_invalid,
	},
	{
		.name = "UDP, IPv6, from loopback",
		.packet = {UDP6("::1", 40045, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_drop_source_invalid,
	},
	{
		.name = "UDP, IPv6, from nowhere",
		.packet = {UDP6("::", 40046, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_drop_source_invalid,
	},
	{
		.name = "UDP, IPv6, from a group",
		.packet = {UDP6("ff02::1", 40047, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_drop_source_invalid,
	},
	{
		.name = "UDP, IPv6, from this link only",
		.packet = {UDP6("fe80::1", 40048, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_drop_source_invalid,
	},
	{
		.name = "TCP, SYN to an address of a prefix",
		.packet = {TCP6(CLIENT6, 50001, KEY_CONV1, 443, SYN)},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::42", 8443),
	},
	{
		.name = "TCP, SYN with options and a tag",
		.packet = {TCP6(CLIENT6, 50002, KEY_CONV3, 443, SYN),
			   .tcp_options = {2, 4, 5, 0xa0, 4, 2, 1, 1}, .tcp_options_length = 8,
			   .tags = {{0x8100, 12}}, .tag_count = 1},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::40", 8443),
	},
	{
		.name = "TCP, data of a known connection",
		.packet = {TCP6(CLIENT6, 50001, KEY_CONV1, 443, PSH | ACK),
			   PAYLOAD("GET / HTTP/1.1\r\n\r\n")},
		.before = {&syn_conv1},
		.outcome = OUTCOME_forwarded,
		TO("fd00:2::42", 8443),
	},
	{
		.name = "TCP, data of an unknown connection",
		.packet = {TCP6(CLIENT6, 50003, KEY_CONV1, 443, PSH | ACK),
			   PAYLOAD("GET / HTTP/1.1\r\n\r\n")},
		.outcome = OUTCOME_forwarded,
		TO("fd00:2::42", 8443),
		.notes = NOTE_BIT(note_flow_created) | NOTE_BIT(note_flow_adopted),
	},
	{
		.name = "TCP, RST of an unknown connection",
		.packet = {TCP6(CLIENT6, 50004, KEY_CONV1, 443, RST | ACK)},
		.outcome = OUTCOME_drop_no_flow,
	},
	{
		.name = "TCP, SYN and ACK to a service",
		.packet = {TCP6(CLIENT6, 50005, KEY_CONV1, 443, SYN | ACK)},
		.outcome = OUTCOME_drop_no_flow,
	},
	{
		.name = "UDP to an address of a prefix",
		.packet = {UDP6(CLIENT6, 50006, KEY_CONV3, 443), PAYLOAD("a datagram")},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::40", 8443),
	},
	{
		.name = "TCP, segments yet to be cut",
		.packet = {TCP6(CLIENT6, 50001, KEY_CONV1, 443, ACK), LONG_PAYLOAD(3000)},
		.before = {&syn_conv1},
		.segment_size = 1400,
		.only_tc = true,
		.outcome = OUTCOME_forwarded,
		TO("fd00:2::42", 8443),
	},
	{
		.name = "UDP, IPv4, datagrams yet to be cut that fit",
		.packet = {UDP4(CLIENT4, 40049, "10.9.9.60", 8600), LONG_PAYLOAD(3000),
			   .dont_fragment = true},
		.segment_size = NARROW_MTU - 28,
		.only_tc = true,
		.outcome = OUTCOME_forwarded,
		.notes = NOTE_BIT(note_flow_created) | NOTE_BIT(note_batch_mixed),
		TO("10.0.4.10", 9600),
	},
	{
		.name = "UDP, IPv4, datagrams yet to be cut that do not fit",
		.packet = {UDP4(CLIENT4, 40050, "10.9.9.60", 8600), LONG_PAYLOAD(3000),
			   .dont_fragment = true},
		.segment_size = NARROW_MTU - 27,
		.only_tc = true,
		.outcome = OUTCOME_answered_too_big,
		.notes = NOTE_BIT(note_batch_mixed),
		.change = CHANGE_ANSWER,
		.answer = {3, 4, NARROW_MTU},
	},
	{
		.name = "UDP, IPv4, a batch with one id",
		.packet = {UDP4(CLIENT4, 40052, "10.9.9.95", 8950),
			   PAYLOAD("conv-1..conv-1..conv-1")},
		.segment_size = 8,
		.only_tc = true,
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.3.10", 9950),
	},
	{
		.name = "UDP, IPv4, a batch with several ids",
		.packet = {UDP4(CLIENT4, 40053, "10.9.9.95", 8950),
			   PAYLOAD("conv-1..conv-1..conv-2")},
		.segment_size = 8,
		.only_tc = true,
		.outcome = OUTCOME_forwarded,
		TO("10.0.3.10", 9950),
		.notes = NOTE_BIT(note_flow_created) | NOTE_BIT(note_batch_mixed),
	},
	{
		.name = "UDP, IPv4, in several buffers",
		.packet = {UDP4(CLIENT4, 40054, "10.9.9.97", 8970), LONG_PAYLOAD(7000)},
		.only_xdp = true,
		.outcome = OUTCOME_forwarded_by_stack,
		CREATES,
		TO("10.0.7.10", 9970),
	},
	{
		.name = "UDP, IPv6, in several buffers, too big",
		.packet = {UDP6(CLIENT6, 40055, "fd00:9::97", 8970), LONG_PAYLOAD(8953)},
		.only_xdp = true,
		.outcome = OUTCOME_answered_too_big,
		.change = CHANGE_ANSWER,
		.answer = {2, 0, 9000},
	},
	{
		.name = "UDP, IPv4, to a group's link address",
		.packet = {UDP4(CLIENT4, 40051, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION)},
		.multicast = true,
		.outcome = OUTCOME_not_ours,
	},
};

const struct fixture_table fixture_requests = {kinds, sizeof(kinds) / sizeof(kinds[0])};
