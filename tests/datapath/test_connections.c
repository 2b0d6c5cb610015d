/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that are handed over, segment by segment: where requests go, when the connection moves and when it stays, and what happens
 * when a replica refuses or goes away.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <warmpath/contact.h>
#include <warmpath/decision.h>

#include "agent/quiet_close.h"
#include "dialogue.h"
#include "expect.h"

#define POST(id)                                                      \
	"POST /v1/chat HTTP/1.1\r\nHost: a\r\nx-conversation-id: " id \
	"\r\nContent-Length: 2\r\n\r\nhi"
#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static enum program program;
static bool ipv6;

/* --- the world ----------------------------------------------------------------------------------------------- */

/* A request whose conversation has its home at another replica than any of those. */
static const char *request_to_other(const struct world_replica *one,
				    const struct world_replica *other)
{
	static char text[4][256];
	static int turn;
	char id[32];

	for (int i = 0;; i++) {
		const struct world_replica *home;

		snprintf(id, sizeof(id), "other-%d", i);
		home = world_home(DIALOGUE_API, id);
		if (home == one || home == other)
			continue;
		turn = (turn + 1) % 4;
		snprintf(
			text[turn], sizeof(text[turn]),
			"POST /v1/chat HTTP/1.1\r\nX-Conversation-ID: %s\r\nContent-Length: 2\r\n\r\nhi",
			id);
		return text[turn];
	}
}

static struct replica_contact contact_of(const struct world_replica *replica)
{
	struct replica_contact contact;
	uint32_t slot = dialogue_slot_of(replica);

	assert_int_equal(bpf_map_lookup_elem(world_map("replica_contacts"), &slot, &contact), 0);
	return contact;
}

static uint32_t charged_to(const struct world_replica *replica)
{
	struct replica_load load;
	uint32_t slot = dialogue_slot_of(replica);

	assert_int_equal(bpf_map_lookup_elem(world_map("replica_loads"), &slot, &load), 0);
	return load.requests;
}

struct seen {
	int decisions;
	int refusals;
	int moves;
	struct event_decision decision; /* the last */
	struct event_refusal refusal;
	struct event_move move;
};

static int take(void *context, void *data, size_t size)
{
	struct seen *seen = context;
	const struct event_header *header = data;

	if (header->kind == EVENT_DECISION) {
		seen->decisions++;
		memcpy(&seen->decision, data,
		       size < sizeof(seen->decision) ? size : sizeof(seen->decision));
	} else if (header->kind == EVENT_REFUSAL) {
		seen->refusals++;
		memcpy(&seen->refusal, data, sizeof(seen->refusal));
	} else if (header->kind == EVENT_MOVE) {
		seen->moves++;
		memcpy(&seen->move, data, sizeof(seen->move));
	}
	return 0;
}

static struct seen read_events(void)
{
	struct seen seen = {};
	struct ring_buffer *buffer = ring_buffer__new(world_map("events"), take, &seen, NULL);

	assert_non_null(buffer);
	ring_buffer__consume(buffer);
	ring_buffer__free(buffer);
	return seen;
}

static struct dialogue connected(uint16_t port)
{
	struct dialogue dialogue = dialogue_new(program, ipv6, port);

	dialogue_connect(&dialogue);
	return dialogue;
}

/* Sends the first request, which is handed over to its home; the home. */
static const struct world_replica *hand_over(struct dialogue *dialogue, const char *request)
{
	struct segment segment = dialogue_send(dialogue, ACK | PSH, request);

	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_is_start(dialogue, &segment));
	assert_string_equal(segment.payload, request);
	return dialogue_replica_of(&segment);
}

/* The owner acknowledges it and answers; the client acknowledges that. */
static void serve(struct dialogue *dialogue, const struct world_replica *owner, const char *answer)
{
	struct segment segment = dialogue_answer(dialogue, owner, NULL);

	dialogue_expect(&segment, returned);
	segment = dialogue_answer(dialogue, owner, answer);
	dialogue_expect(&segment, returned);
	assert_string_equal(segment.payload, answer);
	segment = dialogue_send(dialogue, ACK, NULL);
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
	assert_int_equal(segment.urgent, 0);
}

/* --- where requests go --------------------------------------------------------------------------------------- */

static void the_first_request_is_handed_to_its_home(void **unused)
{
	struct dialogue dialogue = connected(42001);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));
	struct connection entry;

	(void)unused;
	assert_ptr_equal(owner, world_home(DIALOGUE_API, "conv1"));
	assert_int_equal(charged_to(owner), 1);
	serve(&dialogue, owner, OK_ANSWER);
	assert_int_equal(charged_to(owner), 0);
	assert_true(dialogue_entry(&dialogue, &entry));
	assert_int_equal(entry.state, CONNECTION_SERVED);
	assert_int_equal(entry.replica, dialogue_slot_of(owner));
	assert_int_equal(contact_of(owner).handed, 1);
	assert_int_equal(contact_of(owner).answered, 1);
}

/* What is sent to the former owner in the client's name: a reset that its socket takes at once. */
static void expect_quiet_close(const struct dialogue *dialogue, const struct world_replica *former,
			       uint32_t sequence)
{
	struct packet_spec reset = {
		.family = ipv6 ? AF_INET6 : AF_INET,
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
	struct seen seen = read_events();
	int length;

	assert_int_equal(seen.moves, 1);
	strcpy(reset.source, ipv6 ? CLIENT6 : CLIENT4);
	strcpy(reset.destination, ipv6 ? former->ipv6 : former->ipv4);
	length = packet_build_ip(&reset, expected);
	assert_int_equal(quiet_close_build(&seen.move, packet), length);
	if (!ipv6)
		memcpy(packet + 10, expected + 10, 2); /* the kernel's to fill in */
	assert_memory_equal(packet, expected, length);
}

static void a_request_to_another_home_moves_the_connection(void **unused)
{
	struct dialogue dialogue = connected(42002);
	const struct world_replica *first = hand_over(&dialogue, POST("conv1")), *second;
	uint32_t next;
	struct segment segment;

	(void)unused;
	serve(&dialogue, first, OK_ANSWER);
	next = dialogue.client_next;
	second = hand_over(&dialogue, request_to_other(first, NULL));
	assert_ptr_not_equal(second, first);
	expect_quiet_close(&dialogue, first, next);
	/* whatever the old owner says now, the client hears nothing of it */
	segment = dialogue_reply(&dialogue, first, dialogue.service_next, next, ACK | FIN, NULL);
	dialogue_expect(&segment, reset_stale_socket);
	assert_int_equal(segment.flags & RST, RST);
	assert_int_equal(segment.sequence, next);
	assert_int_equal(segment.destination_port, first->port);
	serve(&dialogue, second, OK_ANSWER);
}

/* --- staying --------------------------------------------------------------------------------------------------- */

/* The request stays with the owner although its home is another; it is charged to the owner, and says why. */
static void expect_pinned(struct dialogue *dialogue, const struct world_replica *owner,
			  const char *request)
{
	struct segment segment;
	struct seen seen;

	read_events();
	segment = dialogue_send(dialogue, ACK | PSH, request);
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
	assert_int_equal(segment.urgent, 0);
	assert_int_equal(segment.counters[NOTE_note_request_pinned], 1);
	assert_int_equal(charged_to(owner), 1);
	seen = read_events();
	assert_int_equal(seen.decisions, 1);
	assert_int_equal(seen.decision.decision.reason, REASON_pinned);
	assert_int_equal(seen.decision.decision.replica, dialogue_slot_of(owner));
}

static void a_request_that_has_not_seen_all_of_the_last_answer_stays(void **unused)
{
	struct dialogue dialogue = connected(42003);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));
	struct segment segment;
	uint32_t seen_before = dialogue.service_next;

	(void)unused;
	segment = dialogue_answer(&dialogue, owner, OK_ANSWER);
	dialogue_expect(&segment, returned);
	/* the client has read the answer, but its acknowledgement is an older one */
	dialogue.service_next = seen_before + 10;
	expect_pinned(&dialogue, owner, request_to_other(owner, NULL));
}

/* The same if its head comes in pieces: what has come of it decides, and none is held back from the owner. */
static void a_piece_of_a_request_that_stays_is_not_held(void **unused)
{
	struct dialogue dialogue = connected(42033);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));
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
	struct dialogue dialogue = connected(42034);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));
	const char *other = request_to_other(owner, NULL);
	char piece[64];
	struct segment segment;

	(void)unused;
	serve(&dialogue, owner, OK_ANSWER);
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
	struct dialogue dialogue = connected(42004);
	const struct world_replica *owner =
		hand_over(&dialogue, "POST / HTTP/1.1\r\nx-conversation-id: conv1\r\n"
				     "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
	struct segment segment;

	(void)unused;
	serve(&dialogue, owner, OK_ANSWER);
	expect_pinned(&dialogue, owner, request_to_other(owner, NULL));
	serve(&dialogue, owner, OK_ANSWER);
	assert_int_equal(charged_to(owner), 0);
	/* what does not look like a request is none */
	segment = dialogue_send(&dialogue, ACK | PSH, "5\r\nchunk\r\n");
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
	assert_int_equal(charged_to(owner), 0);
}

static void pipelined_requests_stay(void **unused)
{
	struct dialogue dialogue = connected(42005);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));
	const char *other = request_to_other(owner, NULL);
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
	expect_pinned(&dialogue, owner, request_to_other(owner, NULL));
}

/* A replica that is not in the set any more is charged, and nothing of it is in the sums. */
static void a_pinned_request_is_charged_to_a_replica_that_is_drained(void **unused)
{
	struct dialogue dialogue = connected(42006);
	const struct world_replica *owner =
		hand_over(&dialogue, "POST / HTTP/1.1\r\nx-conversation-id: conv1\r\n"
				     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
	size_t position = owner - dialogue_services[DIALOGUE_API].replicas;
	struct service_load sums;
	uint32_t service = DIALOGUE_API;

	(void)unused;
	serve(&dialogue, owner, OK_ANSWER);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_DRAINING), 0);
	expect_pinned(&dialogue, owner, request_to_other(owner, NULL));
	assert_int_equal(bpf_map_lookup_elem(world_map("service_loads"), &service, &sums), 0);
	assert_int_equal(sums.requests, 0);
	serve(&dialogue, owner, OK_ANSWER);
	assert_int_equal(charged_to(owner), 0);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
}

/* --- refused and gone ------------------------------------------------------------------------------------------ */

/* The home refuses the request; the client's answer. */
static struct segment refuse(struct dialogue *dialogue, const struct world_replica *replica)
{
	return dialogue_reply(dialogue, replica, dialogue->service_next, 0, RST, NULL);
}

static void a_refused_client_gets_an_answer_at_once(void **unused)
{
	struct dialogue dialogue = connected(42010);
	const struct world_replica *home = hand_over(&dialogue, POST("conv1"));
	uint32_t expected = dialogue.service_next;
	struct segment segment;
	struct seen seen;

	(void)unused;
	segment = refuse(&dialogue, home);
	dialogue_expect(&segment, answered_unavailable);
	assert_int_equal(segment.sequence, expected);
	assert_int_equal(segment.acknowledgement, dialogue.client_next);
	assert_int_equal(segment.flags, ACK | PSH | FIN);
	assert_int_equal(strncmp(segment.payload, "HTTP/1.1 503 ", 13), 0);
	assert_non_null(strstr(segment.payload, "\r\nConnection: close\r\n"));
	assert_int_equal(segment.destination_port, dialogue.client_port);
	assert_int_equal(charged_to(home), 0);
	assert_int_equal(contact_of(home).refused, 1);
	assert_int_equal(contact_of(home).refused_in_a_row, 1);
	seen = read_events();
	assert_int_equal(seen.refusals, 1);
	assert_int_equal(seen.refusal.cause, REFUSAL_RESET);
	assert_int_equal(seen.refusal.replica, dialogue_slot_of(home));
	assert_int_equal(seen.refusal.header.service, DIALOGUE_API);
	assert_string_equal(seen.refusal.replica_name, home->name);
	assert_true(seen.refusal.header.id_hash != 0);
}

static void the_request_after_a_refusal_goes_elsewhere(void **unused)
{
	struct dialogue one = connected(42011), two = connected(42012), three = connected(42013);
	const struct world_replica *home = hand_over(&one, POST("conv1"));
	uint32_t slot = dialogue_slot_of(home);
	struct replica_contact contact;

	(void)unused;
	refuse(&one, home);
	assert_ptr_not_equal(hand_over(&two, POST("conv1")), home);
	/* for a moment only: then it is tried again */
	contact = contact_of(home);
	contact.refused_nanoseconds -= 2 * CONTACT_AVOIDED_NANOSECONDS;
	bpf_map_update_elem(world_map("replica_contacts"), &slot, &contact, 0);
	assert_ptr_equal(hand_over(&three, POST("conv1")), home);
	dialogue_answer(&three, home, NULL);
	assert_int_equal(contact_of(home).refused_in_a_row, 0);
}

static void where_all_refuse_one_is_tried_all_the_same(void **unused)
{
	const struct world_replica *replica = dialogue_services[DIALOGUE_API].replicas;
	struct replica_contact contact = {.refused_in_a_row = 1};
	struct dialogue dialogue = connected(42015);

	(void)unused;
	for (; replica->name; replica++) {
		uint32_t slot = dialogue_slot_of(replica);
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
		contact.refused_nanoseconds = now.tv_sec * 1000000000ULL + now.tv_nsec;
		bpf_map_update_elem(world_map("replica_contacts"), &slot, &contact, 0);
	}
	read_events();
	assert_ptr_equal(hand_over(&dialogue, POST("conv1")), world_home(DIALOGUE_API, "conv1"));
	assert_false(read_events().decision.decision.flags & DECISION_CONTENDED);
}

static void refusals_of_a_replica_are_told_now_and_then_and_all_counted(void **unused)
{
	const struct world_replica *home = world_home(DIALOGUE_API, "conv1");
	uint32_t slot = dialogue_slot_of(home);
	struct replica_contact contact;

	(void)unused;
	for (int i = 0; i < 20; i++) {
		struct dialogue dialogue = connected(42100 + i);

		assert_ptr_equal(hand_over(&dialogue, POST("conv1")), home);
		refuse(&dialogue, home);
		contact = contact_of(home);
		assert_int_equal(contact.refused, i + 1);
		assert_int_equal(contact.refused_in_a_row, i + 1);
		contact.refused_nanoseconds = 0;
		/* the event that was told lies in the future: no time has gone by for another, however slow this machine is */
		contact.told_nanoseconds += 1000000000000ULL * (i == 0);
		bpf_map_update_elem(world_map("replica_contacts"), &slot, &contact, 0);
	}
	assert_int_equal(read_events().refusals, 1);
}

static void a_reset_in_mid_answer_reaches_client_and_agent(void **unused)
{
	struct dialogue dialogue = connected(42016);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));
	struct segment segment;
	struct seen seen;

	(void)unused;
	dialogue_answer(&dialogue, owner, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
	read_events();
	segment = dialogue_reply(&dialogue, owner, dialogue.service_next, 0, RST, NULL);
	dialogue_expect(&segment, returned);
	assert_int_equal(segment.flags, RST);
	assert_int_equal(charged_to(owner), 0);
	assert_int_equal(contact_of(owner).aborted, 1);
	assert_int_equal(contact_of(owner).refused_in_a_row, 0);
	seen = read_events();
	assert_int_equal(seen.refusals, 1);
	assert_int_equal(seen.refusal.cause, REFUSAL_ABORTED);
}

/* A server that closes an idle connection by a reset has done nothing wrong. */
static void a_reset_of_an_idle_connection_is_no_refusal(void **unused)
{
	struct dialogue dialogue = connected(42017);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));
	struct segment segment;

	(void)unused;
	serve(&dialogue, owner, OK_ANSWER);
	segment = dialogue_reply(&dialogue, owner, dialogue.service_next, 0, RST, NULL);
	dialogue_expect(&segment, returned);
	assert_int_equal(contact_of(owner).aborted, 0);
	assert_int_equal(read_events().refusals, 0);
}

static void answers_with_errors_are_counted(void **unused)
{
	struct dialogue dialogue = connected(42018);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));

	(void)unused;
	serve(&dialogue, owner, "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno");
	assert_int_equal(contact_of(owner).errors, 1);
}

static void a_request_is_decided_again_if_its_replica_went_away_before_it_answered(void **unused)
{
	static const enum replica_state gone[] = {REPLICA_DOWN, REPLICA_REMOVED};

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		struct dialogue dialogue = connected(42019 + i);
		uint32_t start = dialogue.client_next;
		const struct world_replica *home = hand_over(&dialogue, POST("conv1"));
		size_t position = home - dialogue_services[DIALOGUE_API].replicas;
		struct segment segment =
			dialogue_repeat(&dialogue, start, ACK | PSH, POST("conv1"));

		assert_true(dialogue_is_start(&dialogue, &segment));
		assert_ptr_equal(dialogue_replica_of(&segment), home);
		assert_true(contact_of(home).repeated > 0);
		assert_int_equal(world_set_state(DIALOGUE_API, position, gone[i]), 0);
		segment = dialogue_repeat(&dialogue, start, ACK | PSH, POST("conv1"));
		dialogue_expect(&segment, forwarded);
		assert_true(dialogue_is_start(&dialogue, &segment));
		assert_ptr_not_equal(dialogue_replica_of(&segment), home);
		assert_int_equal(segment.counters[NOTE_note_request_decided_again], 1);
		assert_int_equal(charged_to(home), 0);
		assert_int_equal(charged_to(dialogue_replica_of(&segment)), 1);
		serve(&dialogue, dialogue_replica_of(&segment), OK_ANSWER);
		assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
	}
}

/* The same of a head that came in two pieces: the client repeats only the second. */
static void a_held_request_is_decided_again(void **unused)
{
	struct dialogue dialogue = connected(42022);
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
	assert_int_equal(charged_to(home), 0);
	serve(&dialogue, dialogue_replica_of(&segment), OK_ANSWER);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
}

/* What it has begun, a replica serves to the end, also when it was removed; the next request goes elsewhere. */
static void a_removed_replica_serves_what_it_has_begun(void **unused)
{
	struct dialogue dialogue = connected(42023);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));
	size_t position = owner - dialogue_services[DIALOGUE_API].replicas;
	struct segment segment;

	(void)unused;
	dialogue_answer(&dialogue, owner, NULL);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_REMOVED), 0);
	serve(&dialogue, owner, OK_ANSWER);
	segment = dialogue_send(&dialogue, ACK | PSH, POST("conv1"));
	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_is_start(&dialogue, &segment));
	assert_ptr_not_equal(dialogue_replica_of(&segment), owner);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
}

/* Its slot was freed: nobody is there who could go on with it. */
static void a_connection_whose_replica_is_forgotten_is_reset(void **unused)
{
	struct dialogue dialogue = connected(42024);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));
	size_t position = owner - dialogue_services[DIALOGUE_API].replicas;
	struct segment segment;

	(void)unused;
	dialogue_answer(&dialogue, owner, NULL);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_UNUSED), 0);
	segment = dialogue_send(&dialogue, ACK | PSH, "more");
	dialogue_expect(&segment, reset_replica_gone);
	assert_int_equal(segment.flags, RST);
	assert_int_equal(charged_to(owner), 0);
	assert_int_equal(world_set_state(DIALOGUE_API, position, REPLICA_ACTIVE), 0);
}

/* --- others on the way ------------------------------------------------------------------------------------------- */

/* The client has a connection of its own to the replica, from the same port: none of it is taken for the service's. */
static void a_direct_connection_from_the_same_port_is_left_alone(void **unused)
{
	struct dialogue dialogue = connected(42030);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1")), *other;
	struct segment segment;

	(void)unused;
	serve(&dialogue, owner, OK_ANSWER);
	other = dialogue_services[DIALOGUE_API].replicas;
	for (; other->name; other++) {
		segment =
			dialogue_direct(&dialogue, other, 0x11111111, 0x22222222, SYN | ACK, NULL);
		dialogue_expect(&segment, not_ours);
		assert_string_equal(segment.source, ipv6 ? other->ipv6 : other->ipv4);
		segment = dialogue_direct(&dialogue, other, 0x11111112, 0x22222222, ACK, "hello");
		dialogue_expect(&segment, not_ours);
		segment =
			dialogue_direct(&dialogue, other, 0x11111117, 0x22222222, ACK | FIN, NULL);
		dialogue_expect(&segment, not_ours);
		segment = dialogue_direct(&dialogue, other, 0x11111118, 0, RST, NULL);
		dialogue_expect(&segment, not_ours);
	}
	hand_over(&dialogue, request_to_other(owner, NULL));
}

static void icmp_errors_reach_who_sent_the_segment(void **unused)
{
	struct dialogue dialogue = connected(42031), stranger = dialogue_new(program, ipv6, 42032);
	const struct world_replica *owner = hand_over(&dialogue, POST("conv1"));
	const char *address = ipv6 ? owner->ipv6 : owner->ipv4;
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
	assert_string_equal(error.destination, ipv6 ? CLIENT6 : CLIENT4);
	assert_string_equal(error.quoted.destination, ipv6 ? DIALOGUE_SERVICE6 : DIALOGUE_SERVICE4);
	assert_int_equal(error.quoted.destination_port, DIALOGUE_PORT);
	assert_int_equal(error.quoted.source_port, dialogue.client_port);

	/* of nobody who is known */
	error = dialogue_unreachable(&stranger, owner, true);
	assert_int_equal(error.outcome, OUTCOME_drop_icmp_unrelated);
	error = dialogue_unreachable(&stranger, owner, false);
	assert_int_equal(error.outcome, OUTCOME_not_ours);
}

/* --- the run of it ----------------------------------------------------------------------------------------------- */

static int forget(void **unused)
{
	struct trace_settings settings = {.events_per_second = 1000000};
	uint32_t first = 0;

	(void)unused;
	expect_forget();
	dialogue_forget_contacts();
	read_events();
	return bpf_map_update_elem(world_map("trace_settings"), &first, &settings, 0);
}

static int load(void **unused)
{
	(void)unused;
	return world_load(false) || dialogue_configure();
}

static int unload(void **unused)
{
	(void)unused;
	world_unload();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_request_is_handed_to_its_home, forget),
		cmocka_unit_test_setup(a_request_to_another_home_moves_the_connection, forget),
		cmocka_unit_test_setup(a_request_that_has_not_seen_all_of_the_last_answer_stays,
				       forget),
		cmocka_unit_test_setup(a_piece_of_a_request_that_stays_is_not_held, forget),
		cmocka_unit_test_setup(a_held_request_stays_with_an_owner_that_closes, forget),
		cmocka_unit_test_setup(what_cannot_be_followed_is_pinned_and_charged_to_its_owner,
				       forget),
		cmocka_unit_test_setup(pipelined_requests_stay, forget),
		cmocka_unit_test_setup(a_pinned_request_is_charged_to_a_replica_that_is_drained,
				       forget),
		cmocka_unit_test_setup(a_refused_client_gets_an_answer_at_once, forget),
		cmocka_unit_test_setup(the_request_after_a_refusal_goes_elsewhere, forget),
		cmocka_unit_test_setup(where_all_refuse_one_is_tried_all_the_same, forget),
		cmocka_unit_test_setup(refusals_of_a_replica_are_told_now_and_then_and_all_counted,
				       forget),
		cmocka_unit_test_setup(a_reset_in_mid_answer_reaches_client_and_agent, forget),
		cmocka_unit_test_setup(a_reset_of_an_idle_connection_is_no_refusal, forget),
		cmocka_unit_test_setup(answers_with_errors_are_counted, forget),
		cmocka_unit_test_setup(
			a_request_is_decided_again_if_its_replica_went_away_before_it_answered,
			forget),
		cmocka_unit_test_setup(a_held_request_is_decided_again, forget),
		cmocka_unit_test_setup(a_removed_replica_serves_what_it_has_begun, forget),
		cmocka_unit_test_setup(a_connection_whose_replica_is_forgotten_is_reset, forget),
		cmocka_unit_test_setup(a_direct_connection_from_the_same_port_is_left_alone,
				       forget),
		cmocka_unit_test_setup(icmp_errors_reach_who_sent_the_segment, forget),
	};
	int failed = 0;
	char name[32];

	if (geteuid() != 0) {
		printf("1..1\nok 1 # SKIP needs root\n");
		return 0;
	}
	if (world_make())
		return 1;
	for (program = PROGRAM_XDP; program <= PROGRAM_TC; program++) {
		for (int family = 0; family < 2; family++) {
			ipv6 = family;
			snprintf(name, sizeof(name), "%s, IPv%d", world_program_name(program),
				 ipv6 ? 6 : 4);
			failed += cmocka_run_group_tests_name(name, tests, load, unload);
		}
	}
	return failed;
}
