/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that are handed over, segment by segment: where requests go, when the connection moves and when it stays, and what is none of
 * its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "agent/quiet_close.h"
#include "handed.h"

/* --- where requests go --------------------------------------------------------------------------------------- */

static void the_first_request_is_handed_to_its_home(void **unused)
{
	struct dialogue dialogue = handed_connect(42001);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));
	struct connection entry;

	(void)unused;
	assert_ptr_equal(owner, world_home(DIALOGUE_API, "conv1"));
	assert_int_equal(handed_charge(owner), 1);
	handed_serve(&dialogue, owner, OK_ANSWER);
	assert_int_equal(handed_charge(owner), 0);
	assert_true(dialogue_entry(&dialogue, &entry));
	assert_int_equal(entry.state, CONNECTION_SERVED);
	assert_int_equal(entry.replica, dialogue_slot_of(owner));
	assert_int_equal(handed_contact(owner).handed, 1);
	assert_int_equal(handed_contact(owner).answered, 1);
}

/* What is sent to the former owner in the client's name: a reset that its socket takes at once. */
static void expect_quiet_close(const struct dialogue *dialogue, const struct world_replica *former,
			       uint32_t sequence)
{
	struct packet_spec reset = {
		.family = handed_ipv6 ? AF_INET6 : AF_INET,
		.protocol = IPPROTO_TCP,
		.hop_limit = 64,
		.dont_fragment = true,
		.source_port = dialogue->client_port,
		.destination_port = former->port,
		.sequence = sequence,
		.acknowledgement = dialogue->service_next,
		.tcp_flags = RST | ACK,
		.window_closed = true,
	};
	unsigned char packet[QUIET_CLOSE_PACKET_MAX];
	static uint8_t expected[PACKET_SIZE_MAX];
	struct handed_seen seen = handed_read_events();
	int length;

	assert_int_equal(seen.moves, 1);
	strcpy(reset.source, handed_ipv6 ? CLIENT6 : CLIENT4);
	strcpy(reset.destination, handed_ipv6 ? former->ipv6 : former->ipv4);
	length = packet_build_ip(&reset, expected);
	assert_int_equal(quiet_close_build(&seen.move, packet), length);
	if (!handed_ipv6)
		memcpy(packet + 10, expected + 10, 2); /* the kernel's to fill in */
	assert_memory_equal(packet, expected, length);
}

static void a_request_to_another_home_moves_the_connection(void **unused)
{
	struct dialogue dialogue = handed_connect(42002);
	const struct world_replica *first = handed_first(&dialogue, POST("conv1")), *second;
	uint32_t next;
	struct segment segment;

	(void)unused;
	handed_serve(&dialogue, first, OK_ANSWER);
	next = dialogue.client_next;
	second = handed_first(&dialogue, handed_request_to_other(first, NULL));
	assert_ptr_not_equal(second, first);
	expect_quiet_close(&dialogue, first, next);
	/* whatever the old owner says now, the client hears nothing of it */
	segment = dialogue_reply(&dialogue, first, dialogue.service_next, next, ACK | FIN, NULL);
	dialogue_expect(&segment, reset_stale_socket);
	assert_int_equal(segment.flags & RST, RST);
	assert_int_equal(segment.sequence, next);
	assert_int_equal(segment.destination_port, first->port);
	handed_serve(&dialogue, second, OK_ANSWER);
}

/* --- staying --------------------------------------------------------------------------------------------------- */

/* The request stays with the owner although its home is another; it is charged to the owner, and says why. */
static void expect_pinned(struct dialogue *dialogue, const struct world_replica *owner,
			  const char *request)
{
	struct segment segment;
	struct handed_seen seen;

	handed_read_events();
	segment = dialogue_send(dialogue, ACK | PSH, request);
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
	assert_int_equal(segment.urgent, 0);
	assert_int_equal(segment.counters[NOTE_note_request_pinned], 1);
	assert_int_equal(handed_charge(owner), 1);
	seen = handed_read_events();
	assert_int_equal(seen.decisions, 1);
	assert_int_equal(seen.decision.decision.reason, REASON_pinned);
	assert_int_equal(seen.decision.decision.replica, dialogue_slot_of(owner));
}

static void a_request_that_has_not_seen_all_of_the_last_answer_stays(void **unused)
{
	struct dialogue dialogue = handed_connect(42003);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));
	struct segment segment;
	uint32_t seen_before = dialogue.service_next;

	(void)unused;
	segment = dialogue_answer(&dialogue, owner, OK_ANSWER);
	dialogue_expect(&segment, returned);
	/* the client has read the answer, but its acknowledgement is an older one */
	dialogue.service_next = seen_before + 10;
	expect_pinned(&dialogue, owner, handed_request_to_other(owner, NULL));
}

/* The same if its head comes in pieces: what has come of it decides, and none is held back from the owner. */
static void a_piece_of_a_request_that_stays_is_not_held(void **unused)
{
	struct dialogue dialogue = handed_connect(42033);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));
	uint32_t seen_before = dialogue.service_next;
	struct segment segment;

	(void)unused;
	dialogue_answer(&dialogue, owner, OK_ANSWER);
	dialogue.service_next = seen_before + 10;
	expect_pinned(&dialogue, owner, "GET / HTTP/1.1\r\nHost: a\r\nx-conversation-id: ot");
	segment = dialogue_send(&dialogue, ACK | PSH, "her\r\n\r\n");
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
	assert_string_equal(segment.payload, "her\r\n\r\n");
}

/* An owner that closes while the head of the next request is held gets it all the same: the client has been told of the end. */
static void a_held_request_stays_with_an_owner_that_closes(void **unused)
{
	struct dialogue dialogue = handed_connect(42034);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));
	const char *other = handed_request_to_other(owner, NULL);
	char piece[64];
	struct segment segment;

	(void)unused;
	handed_serve(&dialogue, owner, OK_ANSWER);
	snprintf(piece, sizeof(piece), "%.30s", other);
	segment = dialogue_send(&dialogue, ACK | PSH, piece);
	dialogue_expect(&segment, answered_piece);
	segment = dialogue_reply(&dialogue, owner, dialogue.service_next,
				 dialogue.client_next - strlen(piece), ACK | FIN, NULL);
	dialogue_expect(&segment, returned);
	segment = dialogue_send(&dialogue, ACK | PSH, other + strlen(piece));
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
	assert_string_equal(segment.payload, other);
	assert_int_equal(segment.urgent, 0);
}

static void what_cannot_be_followed_is_pinned_and_charged_to_its_owner(void **unused)
{
	struct dialogue dialogue = handed_connect(42004);
	const struct world_replica *owner =
		handed_first(&dialogue, "POST / HTTP/1.1\r\nx-conversation-id: conv1\r\n"
					"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
	struct segment segment;

	(void)unused;
	handed_serve(&dialogue, owner, OK_ANSWER);
	expect_pinned(&dialogue, owner, handed_request_to_other(owner, NULL));
	handed_serve(&dialogue, owner, OK_ANSWER);
	assert_int_equal(handed_charge(owner), 0);
	/* what does not look like a request is none */
	segment = dialogue_send(&dialogue, ACK | PSH, "5\r\nchunk\r\n");
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
	assert_int_equal(handed_charge(owner), 0);
}

static void pipelined_requests_stay(void **unused)
{
	struct dialogue dialogue = handed_connect(42005);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));
	const char *other = handed_request_to_other(owner, NULL);
	struct segment segment;

	(void)unused;
	dialogue_answer(&dialogue, owner, NULL);
	segment = dialogue_send(&dialogue, ACK | PSH, other);
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
	assert_int_equal(segment.counters[NOTE_note_connection_pinned], 1);
	segment = dialogue_answer(&dialogue, owner, OK_ANSWER OK_ANSWER);
	dialogue_expect(&segment, returned);
	dialogue_send(&dialogue, ACK, NULL);
	expect_pinned(&dialogue, owner, handed_request_to_other(owner, NULL));
}

/* A replica that is not in the set any more is charged, and nothing of it is in the sums. */
static void a_pinned_request_is_charged_to_a_replica_that_is_drained(void **unused)
{
	struct dialogue dialogue = handed_connect(42006);
	const struct world_replica *owner =
		handed_first(&dialogue, "POST / HTTP/1.1\r\nx-conversation-id: conv1\r\n"
					"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
	size_t position = owner - dialogue_services[DIALOGUE_API].replicas;
	struct service_load sums;
	uint32_t service = DIALOGUE_API;

	(void)unused;
	handed_serve(&dialogue, owner, OK_ANSWER);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_DRAINING), 0);
	expect_pinned(&dialogue, owner, handed_request_to_other(owner, NULL));
	assert_int_equal(bpf_map_lookup_elem(world_map("service_loads"), &service, &sums), 0);
	assert_int_equal(sums.requests, 0);
	handed_serve(&dialogue, owner, OK_ANSWER);
	assert_int_equal(handed_charge(owner), 0);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
}

/* Nothing is charged to a slot that nobody holds any more, or that another service holds by now. */
static void a_pinned_request_whose_owner_is_gone_is_charged_to_none(void **unused)
{
	struct dialogue dialogue = handed_connect(42034);
	const struct world_replica *owner =
		handed_first(&dialogue, "POST / HTTP/1.1\r\nx-conversation-id: conv1\r\n"
					"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
	size_t position = owner - dialogue_services[DIALOGUE_API].replicas;
	struct segment segment;

	(void)unused;
	handed_serve(&dialogue, owner, OK_ANSWER);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_UNUSED), 0);
	segment = dialogue_send(&dialogue, ACK | PSH, handed_request_to_other(owner, NULL));
	dialogue_expect(&segment, answered_unavailable);
	assert_int_equal(segment.counters[NOTE_note_request_pinned], 0);
	assert_int_equal(handed_charge(owner), 0);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
}

/* --- others on the way ------------------------------------------------------------------------------------------- */

/* The client has a connection of its own to the replica, from the same port: none of it is taken for the service's. */
static void a_direct_connection_from_the_same_port_is_left_alone(void **unused)
{
	struct dialogue dialogue = handed_connect(42030);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1")), *other;
	struct segment segment;

	(void)unused;
	handed_serve(&dialogue, owner, OK_ANSWER);
	other = dialogue_services[DIALOGUE_API].replicas;
	for (; other->name; other++) {
		segment =
			dialogue_direct(&dialogue, other, 0x11111111, 0x22222222, SYN | ACK, NULL);
		dialogue_expect(&segment, not_ours);
		assert_string_equal(segment.source, handed_ipv6 ? other->ipv6 : other->ipv4);
		segment = dialogue_direct(&dialogue, other, 0x11111112, 0x22222222, ACK, "hello");
		dialogue_expect(&segment, not_ours);
		segment =
			dialogue_direct(&dialogue, other, 0x11111117, 0x22222222, ACK | FIN, NULL);
		dialogue_expect(&segment, not_ours);
		segment = dialogue_direct(&dialogue, other, 0x11111118, 0, RST, NULL);
		dialogue_expect(&segment, not_ours);
	}
	handed_first(&dialogue, handed_request_to_other(owner, NULL));
}

static void icmp_errors_reach_who_sent_the_segment(void **unused)
{
	struct dialogue dialogue = handed_connect(42031),
			stranger = dialogue_new(handed_program, handed_ipv6, 42032);
	const struct world_replica *owner = handed_first(&dialogue, POST("conv1"));
	const char *address = handed_ipv6 ? owner->ipv6 : owner->ipv4;
	struct icmp_error error;

	(void)unused;
	error = dialogue_unreachable(&dialogue, owner, true);
	assert_int_equal(error.outcome, OUTCOME_icmp_forwarded);
	assert_string_equal(error.destination, address);
	assert_string_equal(error.quoted.source, address);
	assert_int_equal(error.quoted.source_port, owner->port);
	assert_int_equal(error.quoted.destination_port, dialogue.client_port);

	error = dialogue_unreachable(&dialogue, owner, false);
	assert_int_equal(error.outcome, OUTCOME_icmp_returned);
	assert_string_equal(error.destination, handed_ipv6 ? CLIENT6 : CLIENT4);
	assert_string_equal(error.quoted.destination,
			    handed_ipv6 ? DIALOGUE_SERVICE6 : DIALOGUE_SERVICE4);
	assert_int_equal(error.quoted.destination_port, DIALOGUE_PORT);
	assert_int_equal(error.quoted.source_port, dialogue.client_port);

	/* of nobody who is known */
	error = dialogue_unreachable(&stranger, owner, true);
	assert_int_equal(error.outcome, OUTCOME_drop_icmp_unrelated);
	error = dialogue_unreachable(&stranger, owner, false);
	assert_int_equal(error.outcome, OUTCOME_not_ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_request_is_handed_to_its_home, handed_forget),
		cmocka_unit_test_setup(a_request_to_another_home_moves_the_connection,
				       handed_forget),
		cmocka_unit_test_setup(a_request_that_has_not_seen_all_of_the_last_answer_stays,
				       handed_forget),
		cmocka_unit_test_setup(a_piece_of_a_request_that_stays_is_not_held, handed_forget),
		cmocka_unit_test_setup(a_held_request_stays_with_an_owner_that_closes,
				       handed_forget),
		cmocka_unit_test_setup(what_cannot_be_followed_is_pinned_and_charged_to_its_owner,
				       handed_forget),
		cmocka_unit_test_setup(pipelined_requests_stay, handed_forget),
		cmocka_unit_test_setup(a_pinned_request_whose_owner_is_gone_is_charged_to_none,
				       handed_forget),
		cmocka_unit_test_setup(a_pinned_request_is_charged_to_a_replica_that_is_drained,
				       handed_forget),
		cmocka_unit_test_setup(a_direct_connection_from_the_same_port_is_left_alone,
				       handed_forget),
		cmocka_unit_test_setup(icmp_errors_reach_who_sent_the_segment, handed_forget),
	};

	return handed_run(tests, sizeof(tests) / sizeof(tests[0]));
}
