/* SPDX-License-Identifier: BSD-2-Clause */
/* What is an id, and what is not. See fixture.h. */
#include "fixture.h"

#define REQUEST(port, payload_text)                                          \
	{                                                                    \
		UDP4(CLIENT4, port, "10.9.9.9", 8000), PAYLOAD(payload_text) \
	}

#define SHORT_REQUEST(port, size)                                                 \
	{                                                                         \
		UDP6(CLIENT6, port, "fd00:9::9", 8000), .payload = CHAT_QUESTION, \
							.payload_length = (size)  \
	}

#define CREATES_KEYLESS .notes = NOTE_BIT(note_flow_created) | NOTE_BIT(note_keyless)

/* Homes by the oracle: conv1 llm-1, conv3 llm-2, conv5 llm-0, a:b.c_d-E9 llm-0. */
static const struct fixture_kind kinds[] = {
	{
		.name = "id, every sort of character",
		.packet = REQUEST(41001, CHAT_HEAD "a:b.c_d-E9\0\0\0\0\0\0"),
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.10", 8001),
	},
	{
		.name = "id, blanks in front",
		.packet = REQUEST(41002, CHAT_HEAD "  \tconv5\0\0\0\0\0\0\0\0"),
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.10", 8001),
	},
	{
		.name = "id, blanks behind",
		.packet = REQUEST(41003, CHAT_HEAD "conv3 \t         "),
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.12", 8003),
	},
	{
		.name = "id, blanks behind and padding",
		.packet = REQUEST(41004, CHAT_HEAD "conv3  \0\0\0\0\0\0\0\0\0"),
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.12", 8003),
	},
	{
		.name = "id, blanks on both sides, across a word",
		.packet = REQUEST(41005, CHAT_HEAD "       conv5    "),
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.10", 8001),
	},
	{
		.name = "id, last byte of the packet",
		.packet = REQUEST(41006, CHAT_HEAD "           conv1"),
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "id, blank inside",
		.packet = REQUEST(41007, CHAT_HEAD "conv 1\0\0\0\0\0\0\0\0\0\0"),
		.outcome = OUTCOME_drop_id_invalid,
	},
	{
		.name = "id, NUL inside",
		.packet = REQUEST(41008, CHAT_HEAD "conv\0001\0\0\0\0\0\0\0\0\0\0"),
		.outcome = OUTCOME_drop_id_invalid,
	},
	{
		.name = "id, NUL between id and blanks",
		.packet = REQUEST(41009, CHAT_HEAD "conv1\0  \0\0\0\0\0\0\0\0"),
		.outcome = OUTCOME_drop_id_invalid,
	},
	{
		.name = "id, NUL in front",
		.packet = REQUEST(41010, CHAT_HEAD "\0conv1\0\0\0\0\0\0\0\0\0\0"),
		.outcome = OUTCOME_drop_id_invalid,
	},
	{
		.name = "id, a word of NULs in front",
		.packet = REQUEST(41011, CHAT_HEAD "\0\0\0\0\0\0\0\0conv1\0\0\0"),
		.outcome = OUTCOME_drop_id_invalid,
	},
	{
		.name = "id, not ASCII",
		.packet = REQUEST(41012, CHAT_HEAD "conv\xc3\xa9\0\0\0\0\0\0\0\0\0\0"),
		.outcome = OUTCOME_drop_id_invalid,
	},
	{
		.name = "id, a control character",
		.packet = REQUEST(41013, CHAT_HEAD "conv1\n\0\0\0\0\0\0\0\0\0\0"),
		.outcome = OUTCOME_drop_id_invalid,
	},
	{
		.name = "id, a control character behind blanks",
		.packet = REQUEST(41014, CHAT_HEAD "  conv1\n\0\0\0\0\0\0\0\0"),
		.outcome = OUTCOME_drop_id_invalid,
	},
	{
		.name = "no id, only padding, content behind",
		.packet = REQUEST(41015, CHAT_HEAD "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
						   "conv5"),
		.outcome = OUTCOME_forwarded,
		CREATES_KEYLESS,
		TO("10.0.2.10", 8001),
	},
	{
		.name = "no id, only blanks, content behind",
		.packet = REQUEST(41016, CHAT_HEAD " \t              "
						   "conv3"),
		.outcome = OUTCOME_forwarded,
		CREATES_KEYLESS,
		TO("10.0.2.12", 8003),
	},
	{
		.name = "no id, blanks and padding, content behind",
		.packet = REQUEST(41017, CHAT_HEAD " \t  \0\0\0\0\0\0\0\0\0\0\0\0"
						   "conv1"),
		.outcome = OUTCOME_forwarded,
		CREATES_KEYLESS,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "payload ends with the id",
		.packet = SHORT_REQUEST(41018, 24),
		.outcome = OUTCOME_forwarded,
		CREATES,
		TO("fd00:2::11", 8002),
	},
	{
		.name = "payload ends in the id",
		.packet = SHORT_REQUEST(41019, 23),
		.outcome = OUTCOME_drop_id_outside_packet,
	},
	{
		.name = "payload ends before the id",
		.packet = SHORT_REQUEST(41020, 8),
		.outcome = OUTCOME_drop_id_outside_packet,
	},
	{
		.name = "no payload",
		.packet = SHORT_REQUEST(41021, 0),
		.outcome = OUTCOME_drop_id_outside_packet,
	},
	{
		.name = "payload ends in the id, more bytes behind the datagram",
		.packet = {UDP6(CLIENT6, 41022, "fd00:9::9", 8000), .payload = CHAT_QUESTION,
			   .payload_length = 23, .trailing = 9},
		.outcome = OUTCOME_drop_id_outside_packet,
	},
};

const struct fixture_table fixture_ids = {kinds, sizeof(kinds) / sizeof(kinds[0])};
