/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections with the id at an offset of their first bytes, whose protocol is not known: routed once, by whatever stands there, in
 * however many segments it comes; charged until they end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "handed.h"
#include "expect.h"

static uint16_t port = 25000;

static struct dialogue connected(void)
{
	struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, ++port);

	dialogue.service = DIALOGUE_PATH;
	dialogue_connect(&dialogue);
	return dialogue;
}

/* What a first segment leads to; id NULL: none, so that all that counts is that it goes somewhere. */
static void expect_home(const char *first, const char *id)
{
	struct dialogue dialogue = connected();
	struct segment segment = dialogue_send(&dialogue, ACK | PSH, first);

	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_is_start(&dialogue, &segment));
	assert_string_equal(segment.payload, first);
	assert_int_equal(segment.counters[NOTE_note_keyless], id == NULL);
	if (id)
		assert_ptr_equal(dialogue_replica_of(&segment), world_home(DIALOGUE_PATH, id));
	else
		assert_non_null(dialogue_replica_of(&segment));
	expect_forget();
}

static void the_id_is_what_stands_at_the_offset(void **unused)
{
	static const char *const ids[] = {"a", "conv1", "chat-4711", "A.b_c:d-9",
					  "exactly-24-characters-ok"};
	char first[256];

	(void)unused;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		snprintf(first, sizeof(first), "POST /c/%s/v1/chat HTTP/1.1\r\n\r\n", ids[i]);
		expect_home(first, ids[i]);
		snprintf(first, sizeof(first), "GET /c//%s HTTP/1.1\r\n\r\n", ids[i]);
		expect_home(first, ids[i]);
		snprintf(first, sizeof(first), "8 bytes:%-24s and so on", ids[i]);
		expect_home(first, ids[i]);
		/* shorter than its field, but it ends before that */
		snprintf(first, sizeof(first), "8 bytes:%s\n", ids[i]);
		expect_home(first, ids[i]);
	}
	/* no longer than the field */
	expect_home("8 bytes:exactly-24-characters-ok-and-more", "exactly-24-characters-ok");
	expect_home("POST /c//v1/chat/completions HTTP/1.1\r\n\r\n", NULL);
	expect_home("8 bytes: conv1 is behind a blank", NULL);
}

/* Cut anywhere: the pieces are held until the id is known, and handed over as one. */
static void first_bytes_in_pieces(void **unused)
{
	static const char first[] = "POST /c/chat-4711/v1/chat HTTP/1.1\r\n\r\n";

	(void)unused;
	for (size_t cut = 1; cut < sizeof(first) - 1; cut++) {
		struct dialogue dialogue = connected();
		char piece[sizeof(first)];
		struct segment segment;

		snprintf(piece, sizeof(piece), "%.*s", (int)cut, first);
		segment = dialogue_send(&dialogue, ACK | PSH, piece);
		if (cut <= 17) {
			dialogue_expect(&segment, answered_piece);
			segment = dialogue_send(&dialogue, ACK | PSH, first + cut);
			assert_string_equal(segment.payload, first);
		}
		dialogue_expect(&segment, forwarded);
		assert_true(dialogue_is_start(&dialogue, &segment));
		assert_ptr_equal(dialogue_replica_of(&segment),
				 world_home(DIALOGUE_PATH, "chat-4711"));
		expect_forget();
	}
}

/* A client that sends less and ends has said all there is. */
static void first_bytes_that_end_early(void **unused)
{
	struct dialogue dialogue = connected();
	struct segment segment = dialogue_send(&dialogue, ACK | PSH | FIN, "8 bytes:con");

	(void)unused;
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), world_home(DIALOGUE_PATH, "con"));
	expect_forget();
	dialogue = connected();
	segment = dialogue_send(&dialogue, ACK | PSH | FIN, "short");
	dialogue_expect(&segment, forwarded);
	assert_int_equal(segment.counters[NOTE_note_keyless], 1);
}

static void a_connection_stays_and_is_charged_until_it_ends(void **unused)
{
	struct dialogue dialogue = connected();
	const struct world_replica *home = world_home(DIALOGUE_PATH, "conv1");
	struct segment segment = dialogue_send(&dialogue, ACK | PSH, "8 bytes:conv1 hello");

	(void)unused;
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), home);
	for (int i = 0; i < 3; i++) {
		char next[32];

		segment = dialogue_answer(&dialogue, home,
					  "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		dialogue_expect(&segment, returned);
		assert_int_equal(handed_charge(home), 1);
		snprintf(next, sizeof(next), "8 bytes:other-%d ", i);
		segment = dialogue_send(&dialogue, ACK | PSH, next);
		dialogue_expect(&segment, forwarded);
		assert_ptr_equal(dialogue_replica_of(&segment), home);
		assert_int_equal(segment.urgent, 0);
	}
	segment = dialogue_reply(&dialogue, home, dialogue.service_next, dialogue.client_next,
				 ACK | FIN, NULL);
	dialogue_expect(&segment, returned);
	assert_int_equal(segment.counters[NOTE_note_request_completed], 1);
	assert_int_equal(handed_charge(home), 0);
}

static void set_tokens_offsets(uint16_t prompt, uint16_t most)
{
	struct service service;
	uint32_t index = DIALOGUE_PATH;

	assert_int_equal(bpf_map_lookup_elem(world_map("services"), &index, &service), 0);
	service.prompt_tokens_offset = prompt;
	service.max_tokens_offset = most;
	service.policy.default_max_tokens = 7;
	assert_int_equal(bpf_map_update_elem(world_map("services"), &index, &service, 0), 0);
}

static uint64_t tokens_at(const struct world_replica *replica)
{
	struct replica_load load;
	uint32_t slot = dialogue_slot_of(replica);

	assert_int_equal(bpf_map_lookup_elem(world_map("replica_loads"), &slot, &load), 0);
	return load.tokens;
}

/* Numbers of tokens at offsets of their own are waited for, and charged; else the bytes that are there count, four a token. */
static void tokens_are_read_or_estimated(void **unused)
{
	static const uint8_t first[] = "8 bytes:conv1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
				       "\0\0\x01\x02\0\0\0\x30 and 24 bytes behind them";
	const struct world_replica *home = world_home(DIALOGUE_PATH, "conv1");
	struct dialogue dialogue;
	struct segment segment;

	(void)unused;
	set_tokens_offsets(32, 36);
	for (int cut = 20; cut <= 40; cut++) {
		dialogue = connected();
		segment = dialogue_send_bytes(&dialogue, ACK | PSH, first, cut);
		if (cut < 40) {
			dialogue_expect(&segment, answered_piece);
			segment = dialogue_send_bytes(&dialogue, ACK | PSH, first + cut,
						      sizeof(first) - 1 - cut);
		}
		dialogue_expect(&segment, forwarded);
		assert_ptr_equal(dialogue_replica_of(&segment), home);
		assert_int_equal(tokens_at(home), 0x102 + 0x30);
		expect_forget();
	}
	set_tokens_offsets(OFFSET_NONE, OFFSET_NONE);
	dialogue = connected();
	segment = dialogue_send_bytes(&dialogue, ACK | PSH, first, sizeof(first) - 1);
	dialogue_expect(&segment, forwarded);
	assert_int_equal(tokens_at(home), (sizeof(first) - 1 - 32) / 4 + 7);
}

static void what_is_refused_is_reset(void **unused)
{
	const struct world_replica *home = world_home(DIALOGUE_PATH, "conv1");
	struct dialogue dialogue = connected();
	struct segment segment = dialogue_send(&dialogue, ACK | PSH, "8 bytes:conv1 hello");

	(void)unused;
	segment = dialogue_reply(&dialogue, home, dialogue.service_next, 0, RST, NULL);
	dialogue_expect(&segment, returned);
	assert_int_equal(segment.flags, RST);
	assert_int_equal(segment.payload_length, 0);
	assert_int_equal(handed_charge(home), 0);
	dialogue_forget_contacts();

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(world_set_state(DIALOGUE_PATH, i, REPLICA_DOWN), 0);
	dialogue = connected();
	segment = dialogue_send(&dialogue, ACK | PSH, "8 bytes:conv1 hello");
	dialogue_expect(&segment, reset_unavailable);
	assert_int_equal(segment.flags, RST);
	assert_int_equal(segment.sequence, dialogue.service_next);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(world_set_state(DIALOGUE_PATH, i, REPLICA_ACTIVE), 0);
}

/* As one in HTTP, if its replica went away before it answered. */
static void a_connection_is_decided_again(void **unused)
{
	static const char first[] = "8 bytes:conv1 hello";
	struct dialogue dialogue = connected();
	uint32_t start = dialogue.client_next;
	struct segment segment = dialogue_send(&dialogue, ACK | PSH, first);
	const struct world_replica *home = dialogue_replica_of(&segment), *other;
	size_t position = home - dialogue_services[DIALOGUE_PATH].replicas;

	(void)unused;
	assert_int_equal(world_set_state(DIALOGUE_PATH, position, REPLICA_DOWN), 0);
	segment = dialogue_repeat(&dialogue, start, ACK | PSH, first);
	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_is_start(&dialogue, &segment));
	other = dialogue_replica_of(&segment);
	assert_ptr_not_equal(other, home);
	assert_int_equal(handed_charge(other), 1);
	assert_int_equal(world_set_state(DIALOGUE_PATH, position, REPLICA_ACTIVE), 0);
	segment = dialogue_answer(&dialogue, other, "hello");
	dialogue_expect(&segment, returned);
	segment = dialogue_send(&dialogue, ACK | PSH, "8 bytes:conv1 once more");
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_id_is_what_stands_at_the_offset, handed_forget),
		cmocka_unit_test_setup(first_bytes_in_pieces, handed_forget),
		cmocka_unit_test_setup(first_bytes_that_end_early, handed_forget),
		cmocka_unit_test_setup(a_connection_stays_and_is_charged_until_it_ends,
				       handed_forget),
		cmocka_unit_test_setup(tokens_are_read_or_estimated, handed_forget),
		cmocka_unit_test_setup(what_is_refused_is_reset, handed_forget),
		cmocka_unit_test_setup(a_connection_is_decided_again, handed_forget),
	};

	return handed_run(tests, sizeof(tests) / sizeof(tests[0]));
}
