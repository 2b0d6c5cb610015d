/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP errors about packets that were translated. See fixture.h. */
#include "fixture.h"

#define ICMP4(from, to, kind, number, rest)                                                 \
	.family = AF_INET, .source = (from), .destination = (to), .protocol = IPPROTO_ICMP, \
	.hop_limit = 59, .icmp_type = (kind), .icmp_code = (number), .icmp_rest = (rest)

#define ICMP6(from, to, kind, number, rest)                                                    \
	.family = AF_INET6, .source = (from), .destination = (to), .protocol = IPPROTO_ICMPV6, \
	.hop_limit = 58, .icmp_type = (kind), .icmp_code = (number), .icmp_rest = (rest)

/* What clients and replicas sent, each as one side knows it and as the other does. */
static const struct packet_spec request4 = {UDP4(CLIENT4, 45001, "10.9.9.9", 8000),
					    PAYLOAD(CHAT_QUESTION)};
static const struct packet_spec request4_translated = {UDP4(CLIENT4, 45001, "10.0.2.11", 8002),
						       PAYLOAD(CHAT_QUESTION)};
static const struct packet_spec request6 = {UDP6(CLIENT6, 45002, "fd00:9::9", 8000),
					    PAYLOAD(CHAT_QUESTION)};
static const struct packet_spec request6_translated = {UDP6(CLIENT6, 45002, "fd00:2::11", 8002),
						       PAYLOAD(CHAT_QUESTION)};
static const struct packet_spec answer4 = {UDP4("10.9.9.9", 8000, CLIENT4, 45001),
					   PAYLOAD(CHAT_ANSWER)};
static const struct packet_spec answer4_translated = {UDP4("10.0.2.11", 8002, CLIENT4, 45001),
						      PAYLOAD(CHAT_ANSWER)};
static const struct packet_spec answer6 = {UDP6("fd00:9::9", 8000, CLIENT6, 45002),
					   PAYLOAD(CHAT_ANSWER)};
static const struct packet_spec answer6_translated = {UDP6("fd00:2::11", 8002, CLIENT6, 45002),
						      PAYLOAD(CHAT_ANSWER)};
static const struct packet_spec answer4_plain = {UDP4("10.9.9.9", 8000, CLIENT4, 45001),
						 PAYLOAD(CHAT_ANSWER), .no_checksum = true};
static const struct packet_spec answer4_plain_translated = {
	UDP4("10.0.2.11", 8002, CLIENT4, 45001), PAYLOAD(CHAT_ANSWER), .no_checksum = true};
static const struct packet_spec syn = {TCP6(CLIENT6, 50001, KEY_CONV1, 443, SYN)};
static const struct packet_spec data = {TCP6(KEY_CONV1, 443, CLIENT6, 50001, PSH | ACK),
					LONG_PAYLOAD(1400)};
static const struct packet_spec data_translated = {
	TCP6("fd00:2::42", 8443, CLIENT6, 50001, PSH | ACK), LONG_PAYLOAD(1400)};
static const struct packet_spec syn_translated = {TCP6(CLIENT6, 50001, "fd00:2::42", 8443, SYN)};
static const struct packet_spec stranger = {UDP4("10.9.9.9", 8000, "10.0.1.13", 45009),
					    .payload = CHAT_ANSWER, .payload_length = 0};
static const struct packet_spec unrelated = {UDP4("10.9.9.8", 8000, CLIENT4, 45010),
					     PAYLOAD(CHAT_ANSWER)};
static const struct packet_spec two = {
	UDP4(CLIENT4, 45011, "10.9.9.21", 8100),
	PAYLOAD("conv5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")};
static const struct packet_spec two_translated = {
	UDP4(CLIENT4, 45011, "10.0.2.20", 9001),
	PAYLOAD("conv5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")};
static const struct packet_spec options6 = {
	UDP6("fd00:9::9", 8000, CLIENT6, 45002), PAYLOAD(CHAT_ANSWER),
	.headers = {{IPPROTO_DSTOPTS, 8, {0, 0, 1, 4}}}, .header_count = 1};
static const struct packet_spec options6_translated = {
	UDP6("fd00:2::11", 8002, CLIENT6, 45002), PAYLOAD(CHAT_ANSWER),
	.headers = {{IPPROTO_DSTOPTS, 8, {0, 0, 1, 4}}}, .header_count = 1};

/* Expected packets: what the harness compares with, link addresses and hop limit aside. */
static const struct packet_spec unreachable4 = {ICMP4(CLIENT4, "10.0.2.11", 3, 3, 0),
						.quoted = &answer4_translated};
static const struct packet_spec unreachable4_8 = {
	ICMP4(CLIENT4, "10.0.2.11", 3, 3, 0), .quoted = &answer4_translated, .quoted_length = 28};
static const struct packet_spec too_big4 = {ICMP4("10.0.1.12", "10.0.2.11", 3, 4, 1400),
					    .quoted = &answer4_translated, .quoted_length = 60};
static const struct packet_spec plain4 = {ICMP4(CLIENT4, "10.0.2.11", 3, 3, 0),
					  .quoted = &answer4_plain_translated};
static const struct packet_spec unreachable6 = {ICMP6(CLIENT6, "fd00:2::11", 1, 4, 0),
						.quoted = &answer6_translated};
static const struct packet_spec options6_out = {ICMP6(CLIENT6, "fd00:2::11", 4, 1, 40),
						.quoted = &options6_translated};
static const struct packet_spec too_big6 = {ICMP6("fd00:1::13", "fd00:2::42", 2, 0, 1280),
					    .quoted = &data_translated, .quoted_length = 1232};
static const struct packet_spec too_big6_8 = {ICMP6("fd00:1::13", "fd00:2::42", 2, 0, 1280),
					      .quoted = &data_translated, .quoted_length = 48};
static const struct packet_spec to_client4 = {ICMP4("10.9.9.9", CLIENT4, 3, 3, 0),
					      .quoted = &request4};
static const struct packet_spec to_client6 = {ICMP6("fd00:9::9", CLIENT6, 1, 4, 0),
					      .quoted = &request6};
static const struct packet_spec exceeded4 = {ICMP4("10.9.9.9", CLIENT4, 11, 0, 0),
					     .quoted = &request4, .quoted_length = 28};
static const struct packet_spec exceeded6 = {ICMP6(KEY_CONV1, CLIENT6, 3, 0, 0), .quoted = &syn};
static const struct packet_spec problem4 = {ICMP4("10.9.9.21", CLIENT4, 12, 0, 0x14000000),
					    .quoted = &two};

static const struct fixture_kind kinds[] = {
	{
		.name = "unreachable, about an answer, IPv4",
		.packet = {ICMP4(CLIENT4, "10.9.9.9", 3, 3, 0), .quoted = &answer4},
		.before = {&request4},
		.outcome = OUTCOME_icmp_forwarded,
		.change = CHANGE_OUT,
		.out = &unreachable4,
	},
	{
		.name = "unreachable, about an answer whose flow is gone, its id is quoted",
		.packet = {ICMP4(CLIENT4, "10.9.9.9", 3, 3, 0), .quoted = &answer4},
		.outcome = OUTCOME_icmp_forwarded,
		.change = CHANGE_OUT,
		.out = &unreachable4,
	},
	{
		.name = "unreachable, 8 bytes of an answer",
		.packet = {ICMP4(CLIENT4, "10.9.9.9", 3, 3, 0), .quoted = &answer4,
			   .quoted_length = 28},
		.before = {&request4},
		.outcome = OUTCOME_icmp_forwarded,
		.change = CHANGE_OUT,
		.out = &unreachable4_8,
	},
	{
		.name = "unreachable, about an answer without checksum",
		.packet = {ICMP4(CLIENT4, "10.9.9.9", 3, 3, 0), .quoted = &answer4_plain},
		.before = {&request4},
		.outcome = OUTCOME_icmp_forwarded,
		.change = CHANGE_OUT,
		.out = &plain4,
	},
	{
		.name = "too big, about an answer, from a router, two tags",
		.packet = {ICMP4("10.0.1.12", "10.9.9.9", 3, 4, 1400), .quoted = &answer4,
			   .quoted_length = 60, .tags = {{0x8100, 1}, {0x8100, 2}}, .tag_count = 2},
		.before = {&request4},
		.outcome = OUTCOME_icmp_forwarded,
		.change = CHANGE_OUT,
		.out = &too_big4,
	},
	{
		.name = "unreachable, about an answer, IPv6",
		.packet = {ICMP6(CLIENT6, "fd00:9::9", 1, 4, 0), .quoted = &answer6},
		.before = {&request6},
		.outcome = OUTCOME_icmp_forwarded,
		.change = CHANGE_OUT,
		.out = &unreachable6,
	},
	{
		.name = "parameter problem, about an answer with an extension header",
		.packet = {ICMP6(CLIENT6, "fd00:9::9", 4, 1, 40), .quoted = &options6},
		.before = {&request6},
		.outcome = OUTCOME_icmp_forwarded,
		.change = CHANGE_OUT,
		.out = &options6_out,
	},
	{
		.name = "too big, about a connection's data",
		.packet = {ICMP6("fd00:1::13", KEY_CONV1, 2, 0, 1280), .quoted = &data,
			   .quoted_length = 1232},
		.before = {&syn},
		.outcome = OUTCOME_icmp_forwarded,
		.change = CHANGE_OUT,
		.out = &too_big6,
	},
	{
		.name = "too big, 8 bytes of a connection's data",
		.packet = {ICMP6("fd00:1::13", KEY_CONV1, 2, 0, 1280), .quoted = &data,
			   .quoted_length = 48},
		.before = {&syn},
		.outcome = OUTCOME_icmp_forwarded,
		.change = CHANGE_OUT,
		.out = &too_big6_8,
	},
	{
		.name = "too big, about a connection that is not known",
		.packet = {ICMP6("fd00:1::13", KEY_CONV1, 2, 0, 1280), .quoted = &data,
			   .quoted_length = 1232},
		.outcome = OUTCOME_drop_icmp_unrelated,
	},
	{
		.name = "unreachable, about an answer to nobody, no id quoted",
		.packet = {ICMP4("10.0.1.13", "10.9.9.9", 3, 3, 0), .quoted = &stranger},
		.outcome = OUTCOME_drop_icmp_unrelated,
	},
	{
		.name = "unreachable, to a service, about somebody else's packet",
		.packet = {ICMP4(CLIENT4, "10.9.9.9", 3, 3, 0), .quoted = &unrelated},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "unreachable, about a packet of somebody else",
		.packet = {ICMP4(CLIENT4, "10.9.9.8", 3, 3, 0), .quoted = &unrelated},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "unreachable, 4 bytes of an answer",
		.packet = {ICMP4(CLIENT4, "10.9.9.9", 3, 3, 0), .quoted = &answer4,
			   .quoted_length = 24},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "unreachable, about a request, IPv4",
		.packet = {ICMP4("10.0.2.11", CLIENT4, 3, 3, 0), .quoted = &request4_translated},
		.link = LINK_SERVERS,
		.before = {&request4},
		.outcome = OUTCOME_icmp_returned,
		.change = CHANGE_OUT,
		.out = &to_client4,
	},
	{
		.name = "unreachable, about a request, IPv6",
		.packet = {ICMP6("fd00:2::11", CLIENT6, 1, 4, 0), .quoted = &request6_translated},
		.link = LINK_SERVERS,
		.before = {&request6},
		.outcome = OUTCOME_icmp_returned,
		.change = CHANGE_OUT,
		.out = &to_client6,
	},
	{
		.name = "time exceeded, about a request, from a router",
		.packet = {ICMP4("10.0.2.254", CLIENT4, 11, 0, 0), .quoted = &request4_translated,
			   .quoted_length = 28},
		.link = LINK_SERVERS,
		.before = {&request4},
		.outcome = OUTCOME_icmp_returned,
		.change = CHANGE_OUT,
		.out = &exceeded4,
	},
	{
		.name = "time exceeded, about a SYN",
		.packet = {ICMP6("fd00:2::254", CLIENT6, 3, 0, 0), .quoted = &syn_translated},
		.link = LINK_SERVERS,
		.before = {&syn},
		.outcome = OUTCOME_icmp_returned,
		.change = CHANGE_OUT,
		.out = &exceeded6,
	},
	{
		.name = "parameter problem, about a request to the second address",
		.packet = {ICMP4("10.0.2.20", CLIENT4, 12, 0, 0x14000000),
			   .quoted = &two_translated},
		.link = LINK_SERVERS,
		.before = {&two},
		.outcome = OUTCOME_icmp_returned,
		.change = CHANGE_OUT,
		.out = &problem4,
	},
	{
		.name = "unreachable, about a request of nobody",
		.packet = {ICMP4("10.0.2.20", CLIENT4, 3, 3, 0), .quoted = &two_translated},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "unreachable, to another than who sent the request",
		.packet = {ICMP4("10.0.2.11", "10.0.1.11", 3, 3, 0),
			   .quoted = &request4_translated},
		.link = LINK_SERVERS,
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "ping to a service, IPv4",
		.packet = {ICMP4(CLIENT4, "10.9.9.9", 8, 0, 0x00010001), PAYLOAD("ping")},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "ping to a prefix",
		.packet = {ICMP6(CLIENT6, KEY_CONV1, 128, 0, 0x00010001), PAYLOAD("ping")},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "redirect to a service",
		.packet = {ICMP4(CLIENT4, "10.9.9.9", 5, 1, 0x0a000105), .quoted = &answer4},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "unreachable, about an answer, hop limit used up: nobody is told",
		.packet = {ICMP4(CLIENT4, "10.9.9.9", 3, 3, 0), .quoted = &answer4, .hop_limit = 1},
		.before = {&request4},
		.outcome = OUTCOME_icmp_by_stack,
		.change = CHANGE_OUT,
		.out = &unreachable4,
	},
};

const struct fixture_table fixture_icmp = {kinds, sizeof(kinds) / sizeof(kinds[0])};
