/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has shaken hands and who has not: cookies of both secrets and of any age, replays, strangers, spoofed SYNs and resets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <warmpath/cookie.h>
#include <warmpath/handoff_keys.h>

#include "expect.h"
#include "handed.h"

#define REQUEST "GET / HTTP/1.1\r\nx-conversation-id: conv1\r\n\r\n"

/* --- cookies ----------------------------------------------------------------------------------------------------- */

static uint32_t slot_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_TAI, &now);
	return cookie_slot(now.tv_sec * 1000000000ULL + now.tv_nsec);
}

/* A client that claims to have the cookie of that slot, made with that key. */
static struct dialogue claiming(uint16_t port, int key, int32_t age)
{
	struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, port);
	struct handoff_keys keys = dialogue_keys(key, 1);
	struct cookie_subject subject = {
		.client = world_address(handed_ipv6 ? CLIENT6 : CLIENT4),
		.service = world_address(handed_ipv6 ? DIALOGUE_SERVICE6 : DIALOGUE_SERVICE4),
		.client_port = htons(port),
		.service_port = htons(DIALOGUE_PORT),
		.client_sequence = dialogue.client_next,
	};

	dialogue.cookie = cookie_make(&keys.cookie[0], &subject, slot_now() - age, 0x80);
	dialogue.client_next++;
	dialogue.service_next = dialogue.cookie + 1;
	return dialogue;
}

static void expect_request(struct dialogue dialogue, enum packet_outcome outcome)
{
	struct segment segment = dialogue_send(&dialogue, ACK | PSH, REQUEST);

	dialogue_expect_at(&segment, outcome, __FILE__, __LINE__);
	assert_int_equal(handed_entries("connections"), outcome == OUTCOME_forwarded);
	if (outcome == OUTCOME_reset_cookie_expired) {
		assert_int_equal(segment.flags, RST);
		assert_int_equal(segment.sequence, dialogue.service_next);
	}
	expect_forget();
}

static void cookies_of_any_age(void **unused)
{
	uint32_t slot;

	(void)unused;
	/* once more should a slot have ended meanwhile */
	do {
		slot = slot_now();
		expect_request(claiming(3010, 0, -2), OUTCOME_drop_connection_unknown);
		expect_request(claiming(3011, 0, -1), OUTCOME_forwarded);
		expect_request(claiming(3012, 0, 0), OUTCOME_forwarded);
		expect_request(claiming(3013, 0, 1), OUTCOME_forwarded);
		expect_request(claiming(3014, 0, 2), OUTCOME_reset_cookie_expired);
		expect_request(claiming(3015, 0, 3), OUTCOME_drop_connection_unknown);
		expect_request(claiming(3016, 0, 4), OUTCOME_drop_connection_unknown);
		expect_request(claiming(3017, 0, 1000), OUTCOME_drop_connection_unknown);
	} while (slot_now() != slot);
}

static void an_expired_cookie_without_a_request(void **unused)
{
	struct dialogue dialogue;
	struct segment segment;
	uint32_t slot;

	(void)unused;
	do {
		slot = slot_now();
		dialogue = claiming(3020, 0, 2);
		segment = dialogue_send(&dialogue, ACK, NULL);
	} while (slot_now() != slot);
	dialogue_expect(&segment, reset_cookie_expired);
	assert_int_equal(handed_entries("connections"), 0);
}

/* Each of 32 bits of the cookie, the client's number, and the port count. */
static void a_cookie_is_good_for_one_connection_only(void **unused)
{
	struct dialogue good = claiming(3021, 0, 0), bad;

	(void)unused;
	for (int bit = 0; bit < 32; bit++) {
		bad = good;
		bad.service_next = (good.cookie ^ 1u << bit) + 1;
		expect_request(bad, OUTCOME_drop_connection_unknown);
		bad = good;
		bad.client_next = (good.client_next - 1 + (1u << bit)) + 1;
		expect_request(bad, OUTCOME_drop_connection_unknown);
	}
	bad = good;
	bad.client_port++;
	expect_request(bad, OUTCOME_drop_connection_unknown);
	expect_request(good, OUTCOME_forwarded);
}

static void secrets_are_rotated_without_breaking_a_connection(void **unused)
{
	struct dialogue before = dialogue_new(handed_program, handed_ipv6, 3030),
			during = dialogue_new(handed_program, handed_ipv6, 3031);
	uint32_t slot;

	(void)unused;
	/* one secret; the new one beside it; the two exchanged; the new one alone */
	dialogue_connect(&before);
	dialogue_set_keys(0, 2);
	expect_request(before, OUTCOME_forwarded);
	dialogue_set_keys(1, 2);
	expect_request(before, OUTCOME_forwarded);
	dialogue_connect(&during);
	expect_request(during, OUTCOME_forwarded);
	dialogue_set_keys(1, 1);
	expect_request(during, OUTCOME_forwarded);
	expect_request(before, OUTCOME_drop_connection_unknown);
	do {
		slot = slot_now();
		dialogue_set_keys(0, 2);
		expect_request(claiming(3032, 1, 1), OUTCOME_forwarded);
		expect_request(claiming(3033, 1, 2), OUTCOME_reset_cookie_expired);
		dialogue_set_keys(0, 1);
		expect_request(claiming(3034, 1, 1), OUTCOME_drop_connection_unknown);
	} while (slot_now() != slot);
}

/* --- strangers --------------------------------------------------------------------------------------------------- */

static void let_time_pass(const struct dialogue *dialogue, uint64_t nanoseconds)
{
	struct flow_key key = {
		.client = world_address(handed_ipv6 ? CLIENT6 : CLIENT4),
		.service = world_address(handed_ipv6 ? DIALOGUE_SERVICE6 : DIALOGUE_SERVICE4),
		.client_port = htons(dialogue->client_port),
		.service_port = htons(DIALOGUE_PORT),
		.protocol = IPPROTO_TCP,
	};
	struct stranger stranger;

	assert_int_equal(bpf_map_lookup_elem(world_map("strangers"), &key, &stranger), 0);
	stranger.seen_nanoseconds -= nanoseconds;
	assert_int_equal(bpf_map_update_elem(world_map("strangers"), &key, &stranger, 0), 0);
}

/* Dropped at first, as it may have overtaken what makes it known; a client that insists is told. */
static void strangers_are_dropped_and_told_when_they_insist(void **unused)
{
	static const uint8_t flags[] = {ACK, ACK | PSH, ACK | FIN};
	struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, 3040);
	struct segment segment;

	(void)unused;
	dialogue.service_next = 0x12345678;
	for (size_t i = 0; i < sizeof(flags); i++) {
		const char *payload = flags[i] & PSH ? REQUEST : NULL;

		for (int times = 0; times < 3; times++) {
			segment = dialogue_send(&dialogue, flags[i], payload);
			dialogue_expect(&segment, drop_connection_unknown);
		}
		let_time_pass(&dialogue, 3000000000ULL);
		segment = dialogue_send(&dialogue, flags[i], payload);
		dialogue_expect(&segment, reset_unknown_connection);
		assert_int_equal(segment.flags, RST);
		assert_int_equal(segment.sequence, dialogue.service_next);
	}
	assert_int_equal(handed_entries("connections"), 0);
	segment = dialogue_send(&dialogue, RST, NULL);
	dialogue_expect(&segment, absorbed_reset);
	segment = dialogue_send(&dialogue, PSH, REQUEST);
	dialogue_expect(&segment, drop_header_malformed);
}

static const struct world_replica *serve_first(struct dialogue *dialogue)
{
	const struct world_replica *owner;
	struct segment segment = dialogue_send(dialogue, ACK | PSH, REQUEST);

	dialogue_expect(&segment, forwarded);
	owner = dialogue_replica_of(&segment);
	segment = dialogue_answer(dialogue, owner, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	dialogue_expect(&segment, returned);
	return owner;
}

static void the_first_segment_of_a_connection_that_is_over_is_a_replay(void **unused)
{
	struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, 3050), replayed;
	struct connection before, after;
	const struct world_replica *owner;
	struct segment segment;

	(void)unused;
	dialogue_connect(&dialogue);
	replayed = dialogue;
	owner = serve_first(&dialogue);
	segment = dialogue_send(&dialogue, ACK | FIN, NULL);
	segment = dialogue_reply(&dialogue, owner, dialogue.service_next, dialogue.client_next,
				 ACK | FIN, NULL);
	dialogue_expect(&segment, returned);
	assert_true(dialogue_entry(&dialogue, &before));
	assert_int_equal(before.state, CONNECTION_CLOSED);
	for (int i = 0; i < 3; i++) {
		struct dialogue copy = replayed;

		segment = dialogue_send(&copy, ACK | PSH, REQUEST);
		dialogue_expect(&segment, drop_cookie_replayed);
	}
	assert_true(dialogue_entry(&dialogue, &after));
	assert_memory_equal(&before, &after, sizeof(before));
	/* its last ACK still goes where it belongs */
	segment = dialogue_send(&dialogue, ACK, NULL);
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
}

static void a_new_connection_takes_the_place_of_an_old_one(void **unused)
{
	struct dialogue old = dialogue_new(handed_program, handed_ipv6, 3051), fresh = old;
	struct segment segment;

	(void)unused;
	dialogue_connect(&old);
	segment = dialogue_send(&old, ACK | PSH, REQUEST);
	dialogue_expect(&segment, forwarded);
	fresh.client_next += 100000;
	dialogue_connect(&fresh);
	segment = dialogue_send(&fresh, ACK | PSH, REQUEST);
	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_is_start(&fresh, &segment));
	assert_int_equal(segment.counters[NOTE_note_request_failed], 1);
	assert_int_equal(segment.counters[NOTE_note_connection_opened], 1);
}

static void a_syn_touches_no_connection(void **unused)
{
	struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, 3052), spoofed;
	struct connection before, after;
	struct segment segment;

	(void)unused;
	dialogue_connect(&dialogue);
	serve_first(&dialogue);
	assert_true(dialogue_entry(&dialogue, &before));
	for (int i = 0; i < 100; i++) {
		spoofed = dialogue;
		spoofed.client_next += 12345 * i;
		segment = dialogue_syn(&spoofed, NULL, 0, 0);
		dialogue_expect(&segment, answered_handshake);
	}
	assert_true(dialogue_entry(&dialogue, &after));
	assert_memory_equal(&before, &after, sizeof(before));
}

/* A blind reset does not end the entry, whatever the owner's stack makes of it. */
static void a_reset_with_a_wrong_number_ends_nothing(void **unused)
{
	struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, 3053);
	struct connection entry;
	struct segment segment;

	(void)unused;
	dialogue_connect(&dialogue);
	serve_first(&dialogue);
	for (int i = 0; i < 3; i++) {
		segment = dialogue_repeat(&dialogue, dialogue.client_next + 1000, RST, NULL);
		dialogue_expect(&segment, forwarded);
	}
	assert_true(dialogue_entry(&dialogue, &entry));
	assert_int_equal(entry.state, CONNECTION_SERVED);
	segment = dialogue_send(&dialogue, RST, NULL);
	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_entry(&dialogue, &entry));
	assert_int_equal(entry.state, CONNECTION_CLOSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(cookies_of_any_age, handed_forget),
		cmocka_unit_test_setup(an_expired_cookie_without_a_request, handed_forget),
		cmocka_unit_test_setup(a_cookie_is_good_for_one_connection_only, handed_forget),
		cmocka_unit_test_setup(secrets_are_rotated_without_breaking_a_connection,
				       handed_forget),
		cmocka_unit_test_setup(strangers_are_dropped_and_told_when_they_insist,
				       handed_forget),
		cmocka_unit_test_setup(the_first_segment_of_a_connection_that_is_over_is_a_replay,
				       handed_forget),
		cmocka_unit_test_setup(a_new_connection_takes_the_place_of_an_old_one,
				       handed_forget),
		cmocka_unit_test_setup(a_syn_touches_no_connection, handed_forget),
		cmocka_unit_test_setup(a_reset_with_a_wrong_number_ends_nothing, handed_forget),
	};

	return handed_run(tests, sizeof(tests) / sizeof(tests[0]));
}
