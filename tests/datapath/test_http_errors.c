/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors that the router answers itself: whole HTTP answers, from the program, in one segment; and what a client sends on after one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handed.h"
#include "expect.h"

#define ID "x-conversation-id: conv1\r\n"

static uint16_t port = 20000;

static struct dialogue connected(bool options)
{
	struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, ++port);

	if (options)
		dialogue_connect(&dialogue);
	else
		dialogue_syn(&dialogue, NULL, 0, 0);
	return dialogue;
}

/* A header's value as a number; -1: there is none. */
static int header(const char *answer, const char *name)
{
	const char *at = strstr(answer, name);

	return at ? atoi(at + strlen(name)) : -1;
}

/* One segment that says all: status, length, close, body, FIN; its numbers continue what the client has seen. */
static void expect_error(const struct dialogue *dialogue, const struct segment *segment, int status,
			 bool head)
{
	const char *body = strstr(segment->payload, "\r\n\r\n");
	char line[32];

	snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
	assert_int_equal(strncmp(segment->payload, line, strlen(line)), 0);
	assert_non_null(body);
	assert_int_equal(strlen(segment->payload), segment->payload_length);
	assert_true(header(segment->payload, "\r\nContent-Length: ") > 0);
	assert_int_equal(strlen(body + 4),
			 head ? 0 : header(segment->payload, "\r\nContent-Length: "));
	assert_non_null(strstr(segment->payload, "\r\nConnection: close\r\n"));
	assert_non_null(strstr(segment->payload, "\r\nContent-Type: text/plain\r\n"));
	if (status == 503)
		assert_true(header(segment->payload, "\r\nRetry-After: ") > 0);
	assert_int_equal(segment->flags, ACK | PSH | FIN);
	assert_int_equal(segment->sequence, dialogue->service_next);
	assert_int_equal(segment->acknowledgement, dialogue->client_next);
	assert_int_equal(segment->destination_port, dialogue->client_port);
	assert_int_equal(segment->source_port, DIALOGUE_PORT);
	assert_int_equal(segment->options_length, dialogue->timestamps ? 12 : 0);
	assert_int_equal(segment->urgent, 0);
	if (dialogue->timestamps) {
		uint32_t clocks[2] = {htonl(dialogue->service_clock),
				      htonl(dialogue->client_clock)};

		/* neither behind what the client has seen, nor an echo of anything but its own */
		assert_memory_equal(segment->options + 4, clocks, sizeof(clocks));
	}
}

static const struct {
	const char *request;
	int status; /* 0: it goes to a replica */
	bool head;
} requests[] = {
	{"GET / HTTP/1.1\r\n" ID "\r\n", 0, false},
	{"x\r\n\r\n", 400, false},
	{"GET\r\n\r\n", 400, false},
	{"GET / HTTP/2.0\r\n\r\n", 400, false},
	{"\x16\x03\x01\x02\x01\x01", 400, false},
	{"GET / HTTP/1.1\r\nx-conversation-id: a b\r\n\r\n", 400, false},
	{"HEAD / HTTP/1.1\r\nx-conversation-id: a/b\r\n\r\n", 400, true},
	{"POST / HTTP/1.1\r\nContent-Length: 5\r\nx-conversation-id: \x7f\r\n\r\nhello", 400,
	 false},
};

static void what_is_no_request_gets_a_400(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		for (int options = 0; options < 2; options++) {
			struct dialogue dialogue = connected(options);
			struct segment segment =
				dialogue_send(&dialogue, ACK | PSH, requests[i].request);

			if (!requests[i].status) {
				dialogue_expect(&segment, forwarded);
				continue;
			}
			dialogue_expect(&segment, answered_bad_request);
			expect_error(&dialogue, &segment, 400, requests[i].head);
		}
	}
}

static void set_states(enum replica_state state)
{
	const struct world_replica *replicas = dialogue_services[DIALOGUE_API].replicas;

	for (size_t i = 0; replicas[i].name; i++)
		assert_int_equal(world_set_state(DIALOGUE_API, i, state), 0);
}

static void without_a_replica_there_is_a_503(void **unused)
{
	static const enum replica_state states[] = {REPLICA_DOWN, REPLICA_DRAINING,
						    REPLICA_REMOVED};
	static const char *const methods[] = {"GET", "HEAD", "POST"};

	(void)unused;
	for (size_t state = 0; state < 3; state++) {
		set_states(states[state]);
		for (size_t method = 0; method < 3; method++) {
			for (int options = 0; options < 2; options++) {
				struct dialogue dialogue = connected(options);
				struct segment segment;
				char request[128];

				snprintf(request, sizeof(request), "%s / HTTP/1.1\r\n%s\r\n",
					 methods[method], options ? ID : "");
				segment = dialogue_send(&dialogue, ACK | PSH, request);
				dialogue_expect(&segment, answered_unavailable);
				expect_error(&dialogue, &segment, 503, method == 1);
			}
		}
	}
	set_states(REPLICA_ACTIVE);
}

/* The replica's reset becomes the answer: it is as short as a segment can be. */
static void a_refusal_becomes_a_503(void **unused)
{
	static const char *const methods[] = {"GET", "HEAD"};

	(void)unused;
	for (size_t method = 0; method < 2; method++) {
		for (int options = 0; options < 2; options++) {
			struct dialogue dialogue = connected(options);
			const struct world_replica *home;
			struct segment segment;
			char request[128];

			snprintf(request, sizeof(request), "%s / HTTP/1.1\r\n%s\r\n",
				 methods[method], ID);
			segment = dialogue_send(&dialogue, ACK | PSH, request);
			dialogue_expect(&segment, forwarded);
			home = dialogue_replica_of(&segment);
			segment = dialogue_reply(&dialogue, home, dialogue.service_next, 0, RST,
						 NULL);
			dialogue_expect(&segment, answered_unavailable);
			expect_error(&dialogue, &segment, 503, method == 1);
			dialogue_forget_contacts();
		}
	}
}

/* A head in pieces: nothing of it has been decided when it turns out to be none. */
static void a_head_in_pieces_is_refused_when_it_is_known(void **unused)
{
	struct dialogue dialogue = connected(true);
	struct segment segment =
		dialogue_send(&dialogue, ACK | PSH, "HEAD / HTTP/1.1\r\nx-conversation-id: a");

	(void)unused;
	dialogue_expect(&segment, answered_piece);
	segment = dialogue_send(&dialogue, ACK | PSH, " b\r\n\r\n");
	dialogue_expect(&segment, answered_bad_request);
	expect_error(&dialogue, &segment, 400, true);
}

/* On a connection that a replica has: behind its answer, and its socket is closed. */
static void the_second_request_of_a_connection_is_refused(void **unused)
{
	struct dialogue dialogue = connected(true);
	struct segment segment =
		dialogue_send(&dialogue, ACK | PSH, "GET / HTTP/1.1\r\n" ID "\r\n");
	const struct world_replica *owner = dialogue_replica_of(&segment);
	uint32_t next;

	(void)unused;
	dialogue_answer(&dialogue, owner, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	dialogue_send(&dialogue, ACK, NULL);
	next = dialogue.client_next;
	segment = dialogue_send(&dialogue, ACK | PSH,
				"GET / HTTP/1.1\r\nx-conversation-id: ?\r\n\r\n");
	dialogue_expect(&segment, answered_bad_request);
	expect_error(&dialogue, &segment, 400, false);
	segment = dialogue_reply(&dialogue, owner, dialogue.service_next, next, ACK | FIN, NULL);
	dialogue_expect(&segment, reset_stale_socket);
}

static void after_an_error_a_client_is_listened_to(void **unused)
{
	struct dialogue dialogue = connected(true);
	uint32_t start = dialogue.client_next, answered;
	static const char request[] =
		"POST / HTTP/1.1\r\nContent-Length: 20\r\nx-conversation-id: *\r\n\r\nhello";
	struct segment segment = dialogue_send(&dialogue, ACK | PSH, request), again;

	(void)unused;
	dialogue_expect(&segment, answered_bad_request);
	expect_error(&dialogue, &segment, 400, false);
	answered = segment.sequence + segment.payload_length + 1;
	/* it has not heard of it: the same once more */
	again = dialogue_repeat(&dialogue, start, ACK | PSH, request);
	dialogue_expect(&again, answered_bad_request);
	assert_string_equal(again.payload, segment.payload);
	assert_int_equal(again.sequence, segment.sequence);
	/* the rest of the body, sent before it heard of it */
	segment = dialogue_send(&dialogue, ACK | PSH, "the rest of it!");
	dialogue_expect(&segment, answered_after_error);
	assert_int_equal(segment.flags, ACK);
	assert_int_equal(segment.acknowledgement, dialogue.client_next);
	assert_int_equal(segment.sequence, answered);
	/* it has all of it, and closes */
	dialogue.service_next = answered;
	segment = dialogue_send(&dialogue, ACK, NULL);
	dialogue_expect(&segment, absorbed_acknowledgement);
	segment = dialogue_send(&dialogue, ACK | FIN, NULL);
	dialogue_expect(&segment, answered_after_error);
	assert_int_equal(segment.acknowledgement, dialogue.client_next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_no_request_gets_a_400, handed_forget),
		cmocka_unit_test_setup(without_a_replica_there_is_a_503, handed_forget),
		cmocka_unit_test_setup(a_refusal_becomes_a_503, handed_forget),
		cmocka_unit_test_setup(a_head_in_pieces_is_refused_when_it_is_known, handed_forget),
		cmocka_unit_test_setup(the_second_request_of_a_connection_is_refused,
				       handed_forget),
		cmocka_unit_test_setup(after_an_error_a_client_is_listened_to, handed_forget),
	};

	return handed_run(tests, sizeof(tests) / sizeof(tests[0]));
}
