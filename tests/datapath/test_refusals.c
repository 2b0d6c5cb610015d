/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replicas that refuse connections handed to them, reset them, or go away: what their clients get, what the agent hears, where the next
 * request goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "handed.h"

/* The home refuses the request; the client's answer. */
static struct segment refuse(struct dialogue *dialogue, const struct world_replica *replica)
{
	return dialogue_reply(dialogue, replica, dialogue->service_next, 0, RST, NULL);
}

static void a_refused_client_gets_an_answer_at_once(void **unused)
{
	struct dialogue dialogue = handed_connect(42010);
	const struct world_replica *home = handed_first(&dialogue, POST("conv1"));
	uint32_t expected = dialogue.service_next;
	struct segment segment;
	struct handed_seen seen;

	(void)unused;
	segment = refuse(&dialogue, home);
	dialogue_expect(&segment, answered_unavailable);
	assert_int_equal(segment.sequence, expected);
	assert_int_equal(segment.acknowledgement, dialogue.client_next);
	assert_int_equal(segment.flags, ACK | PSH | FIN);
	assert_int_equal(strncmp(segment.payload, "HTTP/1.1 503 ", 13), 0);
	assert_non_null(strstr(segment.payload, "\r\nConnection: close\r\n"));
	assert_int_equal(segment.destination_port, dialogue.client_port);
	assert_int_equal(handed_charge(home), 0);
	assert_int_equal(handed_contact(home).refused, 1);
	assert_int_equal(handed_contact(home).refused_in_a_row, 1);
	seen = handed_read_events();
	assert_int_equal(seen.refusals, 1);
	assert_int_equal(seen.refusal.cause, REFUSAL_RESET);
	assert_int_equal(seen.refusal.replica, dialogue_slot_of(home));
	assert_int_equal(seen.refusal.header.service, DIALOGUE_API);
	assert_string_equal(seen.refusal.replica_name, home->name);
	assert_true(seen.refusal.header.id_hash != 0);
}

static void the_request_after_a_refusal_goes_elsewhere(void **unused)
{
	struct dialogue one = handed_connect(42011), two = handed_connect(42012),
			three = handed_connect(42013);
	const struct world_replica *home = handed_first(&one, POST("conv1"));
	uint32_t slot = dialogue_slot_of(home);
	struct replica_contact contact;

	(void)unused;
	refuse(&one, home);
	assert_ptr_not_equal(handed_first(&two, POST("conv1")), home);
	/* for a moment only: then it is tried again */
	contact = handed_contact(home);
	contact.refused_nanoseconds -= 2 * CONTACT_AVOIDED_NANOSECONDS;
	bpf_map_update_elem(world_map("replica_contacts"), &slot, &contact, 0);
	assert_ptr_equal(handed_first(&three, POST("conv1")), home);
	dialogue_answer(&three, home, NULL);
	assert_int_equal(handed_contact(home).refused_in_a_row, 0);
}

static void where_all_refuse_one_is_tried_all_the_same(void **unused)
{
	const struct world_replica *replica = dialogue_services[DIALOGUE_API].replicas;
	struct replica_contact contact = {.refused_in_a_row = 1};
	struct dialogue dialogue = handed_connect(42015);

	(void)unused;
	for (; replica->name; replica++) {
		uint32_t slot = dialogue_slot_of(replica);
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
		contact.refused_nanoseconds = now.tv_sec * 1000000000ULL + now.tv_nsec;
		bpf_map_update_elem(world_map("replica_contacts"), &slot, &contact, 0);
	}
	handed_read_events();
	assert_ptr_equal(handed_first(&dialogue, POST("conv1")), world_home(DIALOGUE_API, "conv1"));
	assert_false(handed_read_events().decision.decision.flags & DECISION_CONTENDED);
}

static void refusals_of_a_replica_are_told_now_and_then_and_all_counted(void **unused)
{
	const struct world_replica *home = world_home(DIALOGUE_API, "conv1");
	uint32_t slot = dialogue_slot_of(home);
	struct replica_contact contact;

	(void)unused;
	for (int i = 0; i < 20; i++) {
		struct dialogue dialogue = handed_connect(42100 + i);

		assert_ptr_equal(handed_first(&dialogue, POST("conv1")), home);
		refuse(&dialogue, home);
		contact = handed_contact(home);
		assert_int_equal(contact.refused, i + 1);
		assert_int_equal(contact.refused_in_a_row, i + 1);
		contact.refused_nanoseconds = 0;
		/* the event that was told lies in the future: no time has gone by for another, however slow this machine is */
		contact.told_nanoseconds += 1000000000000ULL * (i == 0);
		bpf_map_update_elem(world_map("replica_contacts"), &slot, &contact, 0);
	}
	assert_int_equal(handed_read_events().refusals, 1);
}

static void a_reset_in_mid_answer_reaches_client_and_agent(void **unused)
{
	struct dialogue dialogue = handed_connect(42016);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));
	struct segment segment;
	struct handed_seen seen;

	(void)unused;
	dialogue_answer(&dialogue, owner, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
	handed_read_events();
	segment = dialogue_reply(&dialogue, owner, dialogue.service_next, 0, RST, NULL);
	dialogue_expect(&segment, returned);
	assert_int_equal(segment.flags, RST);
	assert_int_equal(handed_charge(owner), 0);
	assert_int_equal(handed_contact(owner).aborted, 1);
	assert_int_equal(handed_contact(owner).refused_in_a_row, 0);
	seen = handed_read_events();
	assert_int_equal(seen.refusals, 1);
	assert_int_equal(seen.refusal.cause, REFUSAL_ABORTED);
}

/* A server that closes an idle connection by a reset has done nothing wrong. */
static void a_reset_of_an_idle_connection_is_no_refusal(void **unused)
{
	struct dialogue dialogue = handed_connect(42017);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));
	struct segment segment;

	(void)unused;
	handed_serve(&dialogue, owner, OK_ANSWER);
	segment = dialogue_reply(&dialogue, owner, dialogue.service_next, 0, RST, NULL);
	dialogue_expect(&segment, returned);
	assert_int_equal(handed_contact(owner).aborted, 0);
	assert_int_equal(handed_read_events().refusals, 0);
}

static void answers_with_errors_are_counted(void **unused)
{
	struct dialogue dialogue = handed_connect(42018);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));

	(void)unused;
	handed_serve(&dialogue, owner, "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno");
	assert_int_equal(handed_contact(owner).errors, 1);
}

static void a_request_is_decided_again_if_its_replica_went_away_before_it_answered(void **unused)
{
	static const enum replica_state gone[] = {REPLICA_DOWN, REPLICA_REMOVED};

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		struct dialogue dialogue = handed_connect(42019 + i);
		uint32_t start = dialogue.client_next;
		const struct world_replica *home = handed_first(&dialogue, POST("conv1"));
		size_t position = home - dialogue_services[DIALOGUE_API].replicas;
		struct segment segment =
			dialogue_repeat(&dialogue, start, ACK | PSH, POST("conv1"));

		assert_true(dialogue_is_start(&dialogue, &segment));
		assert_ptr_equal(dialogue_replica_of(&segment), home);
		assert_true(handed_contact(home).repeated > 0);
		assert_int_equal(world_set_state(DIALOGUE_API, position, gone[i]), 0);
		segment = dialogue_repeat(&dialogue, start, ACK | PSH, POST("conv1"));
		dialogue_expect(&segment, forwarded);
		assert_true(dialogue_is_start(&dialogue, &segment));
		assert_ptr_not_equal(dialogue_replica_of(&segment), home);
		assert_int_equal(segment.counters[NOTE_note_request_decided_again], 1);
		assert_int_equal(handed_charge(home), 0);
		assert_int_equal(handed_charge(dialogue_replica_of(&segment)), 1);
		handed_serve(&dialogue, dialogue_replica_of(&segment), OK_ANSWER);
		assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
	}
}

/* The same of a head that came in two pieces: the client repeats only the second. */
static void a_held_request_is_decided_again(void **unused)
{
	struct dialogue dialogue = handed_connect(42022);
	struct segment segment =
		dialogue_send(&dialogue, ACK | PSH, "GET / HTTP/1.1\r\nx-conversation-id: con");
	const struct world_replica *home;
	uint32_t second = dialogue.client_next;
	size_t position;

	(void)unused;
	dialogue_expect(&segment, answered_piece);
	assert_int_equal(segment.acknowledgement, dialogue.client_next);
	segment = dialogue_send(&dialogue, ACK | PSH, "v1\r\n\r\n");
	dialogue_expect(&segment, forwarded);
	assert_string_equal(segment.payload, "GET / HTTP/1.1\r\nx-conversation-id: conv1\r\n\r\n");
	home = dialogue_replica_of(&segment);
	assert_ptr_equal(home, world_home(DIALOGUE_API, "conv1"));
	position = home - dialogue_services[DIALOGUE_API].replicas;
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_DOWN), 0);
	segment = dialogue_repeat(&dialogue, second, ACK | PSH, "v1\r\n\r\n");
	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_is_start(&dialogue, &segment));
	assert_ptr_not_equal(dialogue_replica_of(&segment), home);
	assert_string_equal(segment.payload, "GET / HTTP/1.1\r\nx-conversation-id: conv1\r\n\r\n");
	assert_int_equal(handed_charge(home), 0);
	handed_serve(&dialogue, dialogue_replica_of(&segment), OK_ANSWER);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
}

/* What it has begun, a replica serves to the end, also when it was removed; the next request goes elsewhere. */
static void a_removed_replica_serves_what_it_has_begun(void **unused)
{
	struct dialogue dialogue = handed_connect(42023);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));
	size_t position = owner - dialogue_services[DIALOGUE_API].replicas;
	struct segment segment;

	(void)unused;
	dialogue_answer(&dialogue, owner, NULL);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_REMOVED), 0);
	handed_serve(&dialogue, owner, OK_ANSWER);
	segment = dialogue_send(&dialogue, ACK | PSH, POST("conv1"));
	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_is_start(&dialogue, &segment));
	assert_ptr_not_equal(dialogue_replica_of(&segment), owner);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
}

/* Its slot was freed: nobody is there who could go on with it. */
static void a_connection_whose_replica_is_forgotten_is_reset(void **unused)
{
	struct dialogue dialogue = handed_connect(42024);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));
	size_t position = owner - dialogue_services[DIALOGUE_API].replicas;
	struct segment segment;

	(void)unused;
	dialogue_answer(&dialogue, owner, NULL);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_UNUSED), 0);
	segment = dialogue_send(&dialogue, ACK | PSH, "more");
	dialogue_expect(&segment, reset_replica_gone);
	assert_int_equal(segment.flags, RST);
	assert_int_equal(handed_charge(owner), 0);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_refused_client_gets_an_answer_at_once, handed_forget),
		cmocka_unit_test_setup(the_request_after_a_refusal_goes_elsewhere, handed_forget),
		cmocka_unit_test_setup(where_all_refuse_one_is_tried_all_the_same, handed_forget),
		cmocka_unit_test_setup(refusals_of_a_replica_are_told_now_and_then_and_all_counted,
				       handed_forget),
		cmocka_unit_test_setup(a_reset_in_mid_answer_reaches_client_and_agent,
				       handed_forget),
		cmocka_unit_test_setup(a_reset_of_an_idle_connection_is_no_refusal, handed_forget),
		cmocka_unit_test_setup(answers_with_errors_are_counted, handed_forget),
		cmocka_unit_test_setup(
			a_request_is_decided_again_if_its_replica_went_away_before_it_answered,
			handed_forget),
		cmocka_unit_test_setup(a_held_request_is_decided_again, handed_forget),
		cmocka_unit_test_setup(a_removed_replica_serves_what_it_has_begun, handed_forget),
		cmocka_unit_test_setup(a_connection_whose_replica_is_forgotten_is_reset,
				       handed_forget),
	};

	return handed_run(tests, sizeof(tests) / sizeof(tests[0]));
}
