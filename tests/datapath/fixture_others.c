/* SPDX-License-Identifier: BSD-2-Clause */
/* What is not ours, and what is broken; and the list of all tables. See fixture.h. */
#include "fixture.h"

#include <string.h>

static const struct fixture_kind kinds[] = {
	{
		.name = "UDP to another address",
		.packet = {UDP4(CLIENT4, 44001, "10.9.9.8", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "UDP to another port of a service's address",
		.packet = {UDP4(CLIENT4, 44002, "10.9.9.9", 8001), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "TCP to the port of a UDP service",
		.packet = {TCP6(CLIENT6, 44003, "fd00:9::9", 8000, SYN)},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "TCP to another port of a prefix",
		.packet = {TCP6(CLIENT6, 44004, KEY_CONV1, 22, SYN)},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "ESP to a service's address",
		.packet = {UDP6(CLIENT6, 0, "fd00:9::9", 0), .protocol = IPPROTO_ESP,
			   PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "ESP to a prefix",
		.packet = {UDP6(CLIENT6, 0, KEY_CONV1, 0), .protocol = IPPROTO_ESP,
			   PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_drop_header_unsupported,
	},
	{
		.name = "nothing behind the IP header",
		.packet = {UDP6(CLIENT6, 0, "fd00:9::9", 0), .protocol = IPPROTO_NONE},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "GRE to a service's address",
		.packet = {UDP4(CLIENT4, 0, "10.9.9.9", 0), .protocol = IPPROTO_GRE,
			   PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "DNS of somebody else, IPv6",
		.packet = {UDP6("fd00:1::11", 53535, "fd00:2::50", 53),
			   PAYLOAD("a question of another kind")},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "ICMPv6 in IPv4",
		.packet = {UDP4(CLIENT4, 0, "10.9.9.9", 0), .protocol = IPPROTO_ICMPV6,
			   .icmp_type = 1, PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_not_ours,
	},
};

const struct fixture_table fixture_others = {kinds, sizeof(kinds) / sizeof(kinds[0])};

const struct fixture_table *const fixture_tables[] = {
	&fixture_requests, &fixture_ids, &fixture_replies, &fixture_fragments, &fixture_icmp,
	&fixture_others,   NULL,
};

uint8_t fixture_long_payload[LONG_PAYLOAD_SIZE];

/* The ids of services "narrow", "chat" and "jumbo" at once: 6 bytes at 0, 16 at 8, 6 at 5000. */
void fixture_prepare(void)
{
	for (int i = 0; i < LONG_PAYLOAD_SIZE; i++)
		fixture_long_payload[i] = i * 7 + i / 256;
	memcpy(fixture_long_payload, "conv-1xx" CHAT_ID, 24);
	memcpy(fixture_long_payload + 5000, "conv-1", 6);
}
