/* SPDX-License-Identifier: BSD-2-Clause */
/* Fragments, both families, both directions. See fixture.h. */
#include "fixture.h"

#define REQUEST4(...)                                                                             \
	{                                                                                         \
		UDP4(CLIENT4, 43001, "10.9.9.9", 8000), LONG_PAYLOAD(3000), FRAGMENT(__VA_ARGS__) \
	}
#define REQUEST6(...)                                                                              \
	{                                                                                          \
		UDP6(CLIENT6, 43002, "fd00:9::9", 8000), LONG_PAYLOAD(3000), FRAGMENT(__VA_ARGS__) \
	}
#define REPLY4(...)                                                                                \
	{                                                                                          \
		UDP4("10.0.2.11", 8002, CLIENT4, 43003), LONG_PAYLOAD(3000), FRAGMENT(__VA_ARGS__) \
	}
#define REPLY6(...)                                                           \
	{                                                                     \
		UDP6("fd00:2::11", 8002, CLIENT6, 43004), LONG_PAYLOAD(3000), \
			FRAGMENT(__VA_ARGS__)                                 \
	}
#define REQUEST_NARROW4(more_options, ...)                                                 \
	{                                                                                  \
		UDP4(CLIENT4, 43005, "10.9.9.60", 8600), LONG_PAYLOAD(3000), more_options, \
			FRAGMENT(__VA_ARGS__)                                              \
	}
#define REQUEST_NARROW6(...)                                                  \
	{                                                                     \
		UDP6(CLIENT6, 43006, "fd00:9::60", 8600), LONG_PAYLOAD(3000), \
			FRAGMENT(__VA_ARGS__)                                 \
	}

static const struct packet_spec first4 = REQUEST4(0, 1400, true);
static const struct packet_spec first6 = REQUEST6(0, 1400, true);
static const struct packet_spec first_reply4 = REPLY4(0, 1400, true);
static const struct packet_spec first_reply6 = REPLY6(0, 1400, true);
static const struct packet_spec first_narrow4 =
	REQUEST_NARROW4(.dont_fragment = false, 0, 1200, true);
static const struct packet_spec first_narrow6 = REQUEST_NARROW6(0, 1200, true);

static const struct fixture_kind kinds[] = {
	{
		.name = "first fragment, IPv4",
		.packet = REQUEST4(0, 1400, true),
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "later fragment, IPv4",
		.packet = REQUEST4(1400, 1400, true),
		.before = {&first4},
		.outcome = OUTCOME_forwarded,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "last fragment, IPv4, a tag",
		.packet = {UDP4(CLIENT4, 43001, "10.9.9.9", 8000), LONG_PAYLOAD(3000),
			   FRAGMENT(2800, 0, false), .tags = {{0x8100, 6}}, .tag_count = 1},
		.before = {&first4},
		.outcome = OUTCOME_forwarded,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "first fragment, IPv6",
		.packet = REQUEST6(0, 1400, true),
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "later fragment, IPv6",
		.packet = REQUEST6(1400, 1400, true),
		.before = {&first6},
		.outcome = OUTCOME_forwarded,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "last fragment, IPv6, hop-by-hop options in front",
		.packet = {UDP6(CLIENT6, 43002, "fd00:9::9", 8000), LONG_PAYLOAD(3000),
			   FRAGMENT(2800, 0, false),
			   .headers = {{IPPROTO_HOPOPTS, 8, {0, 0, 1, 4}}}, .header_count = 1,
			   .fragment_header_at = 1},
		.before = {&first6},
		.outcome = OUTCOME_forwarded,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "first fragment, IPv6, destination options inside",
		.packet = {UDP6(CLIENT6, 43007, "fd00:9::9", 8000), LONG_PAYLOAD(3000),
			   FRAGMENT(0, 1400, true), .headers = {{IPPROTO_DSTOPTS, 8, {0, 0, 1, 4}}},
			   .header_count = 1},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "a fragment that is the whole packet, IPv6",
		.packet = {UDP6(CLIENT6, 43008, "fd00:9::9", 8000), PAYLOAD(CHAT_QUESTION),
			   FRAGMENT(0, 0, false)},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "first fragment of a connection, IPv6",
		.packet = {TCP6(CLIENT6, 50010, KEY_CONV1, 443, SYN), .payload = CHAT_QUESTION,
			   .payload_length = 40, FRAGMENT(0, 40, true)},
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::42", 8443),
	},
	{
		.name = "first fragment, the transport header is cut, IPv6",
		.packet = {TCP6(CLIENT6, 50011, KEY_CONV1, 443, SYN), .payload = CHAT_QUESTION,
			   .payload_length = 40, FRAGMENT(0, 16, true)},
		.outcome = OUTCOME_drop_truncated,
	},
	{
		.name = "first fragment, the id is not in it",
		.packet = REQUEST4(0, 24, true),
		.outcome = OUTCOME_drop_id_outside_packet,
	},
	{
		.name = "later fragment without its first, IPv4",
		.packet = REQUEST4(1400, 1400, true),
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "later fragment without its first, to a prefix",
		.packet = {UDP6(CLIENT6, 43009, KEY_CONV1, 443), LONG_PAYLOAD(3000),
			   FRAGMENT(1400, 0, false)},
		.outcome = OUTCOME_drop_fragment_unknown,
	},
	{
		.name = "later fragment, another identification",
		.packet = {UDP6(CLIENT6, 43002, "fd00:9::9", 8000), LONG_PAYLOAD(3000),
			   FRAGMENT(1400, 0, false), .fragment_identification = 0xdeadbef0},
		.before = {&first6},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "first fragment of a reply, IPv4",
		.packet = REPLY4(0, 1400, true),
		.link = LINK_SERVERS,
		.outcome = OUTCOME_returned,
		FROM("10.9.9.9", 8000),
	},
	{
		.name = "later fragment of a reply, IPv4",
		.packet = REPLY4(1400, 1400, true),
		.link = LINK_SERVERS,
		.before = {&first_reply4},
		.outcome = OUTCOME_returned,
		FROM("10.9.9.9", 8000),
	},
	{
		.name = "first fragment of a reply, IPv6",
		.packet = REPLY6(0, 1400, true),
		.link = LINK_SERVERS,
		.outcome = OUTCOME_returned,
		FROM("fd00:9::9", 8000),
	},
	{
		.name = "later fragment of a reply, IPv6",
		.packet = REPLY6(1400, 1400, true),
		.link = LINK_SERVERS,
		.before = {&first_reply6},
		.outcome = OUTCOME_returned,
		FROM("fd00:9::9", 8000),
	},
	{
		.name = "later fragment of a reply without its first",
		.packet = REPLY6(1400, 1400, true),
		.link = LINK_SERVERS,
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "later fragment of a reply, hop limit used up",
		.packet = {UDP4("10.0.2.11", 8002, CLIENT4, 43003), LONG_PAYLOAD(3000),
			   FRAGMENT(1400, 0, false), .hop_limit = 1},
		.link = LINK_SERVERS,
		.before = {&first_reply4},
		.outcome = OUTCOME_passed_to_stack,
	},
	{
		.name = "later fragment, hop limit used up: nobody is told",
		.packet = {UDP4(CLIENT4, 43001, "10.9.9.9", 8000), LONG_PAYLOAD(3000),
			   FRAGMENT(1400, 0, false), .hop_limit = 1},
		.before = {&first4},
		.outcome = OUTCOME_forwarded_by_stack,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "later fragment, IPv4, too big, may not be cut: nobody is told",
		.packet = REQUEST_NARROW4(.dont_fragment = true, 1200, 1400, true),
		.before = {&first_narrow4},
		.outcome = OUTCOME_forwarded_by_stack,
		TO("10.0.4.10", 9600),
	},
	{
		.name = "later fragment, IPv6, too big",
		.packet = REQUEST_NARROW6(1200, 1400, true),
		.before = {&first_narrow6},
		.outcome = OUTCOME_answered_too_big,
		.change = CHANGE_ANSWER,
		.answer = {2, 0, NARROW_MTU},
	},
	{
		.name = "a fragment of a ping",
		.packet = {.family = AF_INET,
			   .source = CLIENT4,
			   .destination = "10.9.9.9",
			   .protocol = IPPROTO_ICMP,
			   .hop_limit = 60,
			   .icmp_type = 8,
			   LONG_PAYLOAD(3000),
			   FRAGMENT(0, 1400, true)},
		.outcome = OUTCOME_not_ours,
	},
};

const struct fixture_table fixture_fragments = {kinds, sizeof(kinds) / sizeof(kinds[0])};
