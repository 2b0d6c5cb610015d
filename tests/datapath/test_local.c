/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replicas on this machine: requests are rewritten and handed up, replies are translated on their way out by the return program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "fixture.h"
#include "group.h"

#define HOST4 \
	"10.0.2.1" /* this machine's own; service "local" is at 10.9.9.90, its replica at port 9900 here */
#define HOST6 "fd00:2::1"

#define CREATED NOTE_BIT(note_flow_created)

static const struct fixture_kind requests[] = {
	{
		.name = "request, IPv4",
		.packet = {UDP4(CLIENT4, 46001, "10.9.9.90", 8900), PAYLOAD("conv-1")},
		.outcome = OUTCOME_delivered_locally,
		.notes = CREATED,
		TO(HOST4, 9900),
	},
	{
		.name = "request, IPv6, a tag, hop limit 1",
		.packet = {UDP6(CLIENT6, 46002, "fd00:9::90", 8900), PAYLOAD("conv-1"),
			   .hop_limit = 1, .tags = {{0x8100, 7}}, .tag_count = 1},
		.outcome = OUTCOME_delivered_locally,
		.notes = CREATED,
		TO(HOST6, 9900),
	},
	{
		.name = "request from this link only, IPv6",
		.packet = {UDP6("fe80::1", 46003, "fd00:9::90", 8900), PAYLOAD("conv-1")},
		.outcome = OUTCOME_delivered_locally,
		.notes = CREATED,
		TO(HOST6, 9900),
	},
	{
		.name = "request to a replica that is not here",
		.packet = {UDP4(CLIENT4, 46004, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_forwarded,
		.notes = CREATED,
		TO("10.0.2.11", 8002),
	},
	{
		.name = "first fragment of a request",
		.packet = {UDP4(CLIENT4, 46005, "10.9.9.90", 8900), LONG_PAYLOAD(3000),
			   FRAGMENT(0, 1400, true)},
		.outcome = OUTCOME_delivered_locally,
		.notes = CREATED,
		TO(HOST4, 9900),
	},
};

static const struct packet_spec first_request = {UDP4(CLIENT4, 46005, "10.9.9.90", 8900),
						 LONG_PAYLOAD(3000), FRAGMENT(0, 1400, true)};
static const struct packet_spec first_answer = {UDP6(HOST6, 9900, CLIENT6, 46006),
						LONG_PAYLOAD(3000), FRAGMENT(0, 1400, true)};
static const struct packet_spec syn = {TCP6(CLIENT6, 46007, KEY_CONV1, 443, SYN)};
static const struct packet_spec asked = {UDP4(CLIENT4, 46008, HOST4, 9900), PAYLOAD("conv-1")};
static const struct packet_spec asked_service = {UDP4(CLIENT4, 46008, "10.9.9.90", 8900),
						 PAYLOAD("conv-1")};
static const struct packet_spec refused = {.family = AF_INET,
					   .source = "10.9.9.90",
					   .destination = CLIENT4,
					   .protocol = IPPROTO_ICMP,
					   .hop_limit = 64,
					   .icmp_type = 3,
					   .icmp_code = 3,
					   .quoted = &asked_service};

static const struct fixture_kind more_requests[] = {
	{
		.name = "later fragment of a request",
		.packet = {UDP4(CLIENT4, 46005, "10.9.9.90", 8900), LONG_PAYLOAD(3000),
			   FRAGMENT(1400, 1400, true)},
		.before = {&first_request},
		.outcome = OUTCOME_delivered_locally,
		TO(HOST4, 9900),
	},
};

/* What the return program meets, on the link to the clients. */
static const struct fixture_kind replies[] = {
	{
		.name = "answer, IPv4",
		.packet = {UDP4(HOST4, 9900, CLIENT4, 46001), PAYLOAD("answer"), .hop_limit = 64},
		.outcome = OUTCOME_returned_by_stack,
		FROM("10.9.9.90", 8900),
	},
	{
		.name = "answer, IPv6",
		.packet = {UDP6(HOST6, 9900, CLIENT6, 46002), PAYLOAD("answer"), .hop_limit = 64},
		.outcome = OUTCOME_returned_by_stack,
		FROM("fd00:9::90", 8900),
	},
	{
		.name = "answer of a connection",
		.packet = {TCP6("fd00:2::42", 8443, CLIENT6, 46007, SYN | ACK)},
		.before = {&syn},
		.outcome = OUTCOME_returned_by_stack,
		FROM(KEY_CONV1, 443),
	},
	{
		.name = "segments of a connection yet to be cut",
		.packet = {TCP6("fd00:2::42", 8443, CLIENT6, 46007, ACK), LONG_PAYLOAD(3000)},
		.before = {&syn},
		.segment_size = 1400,
		.outcome = OUTCOME_returned_by_stack,
		FROM(KEY_CONV1, 443),
	},
	{
		.name = "first fragment of an answer",
		.packet = {UDP6(HOST6, 9900, CLIENT6, 46006), LONG_PAYLOAD(3000),
			   FRAGMENT(0, 1400, true)},
		.outcome = OUTCOME_returned_by_stack,
		FROM("fd00:9::90", 8900),
	},
	{
		.name = "later fragment of an answer",
		.packet = {UDP6(HOST6, 9900, CLIENT6, 46006), LONG_PAYLOAD(3000),
			   FRAGMENT(1400, 1400, true)},
		.before = {&first_answer},
		.outcome = OUTCOME_returned_by_stack,
		FROM("fd00:9::90", 8900),
	},
	{
		.name = "port unreachable, about a request",
		.packet = {.family = AF_INET,
			   .source = HOST4,
			   .destination = CLIENT4,
			   .protocol = IPPROTO_ICMP,
			   .hop_limit = 64,
			   .icmp_type = 3,
			   .icmp_code = 3,
			   .quoted = &asked},
		.outcome = OUTCOME_icmp_by_stack,
		.change = CHANGE_OUT,
		.out = &refused,
	},
	{
		.name = "this machine's own traffic",
		.packet = {UDP4(HOST4, 9901, CLIENT4, 46001), PAYLOAD("answer")},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "a connection to the replica itself",
		.packet = {TCP6("fd00:2::42", 8443, CLIENT6, 46009, ACK)},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "a request to a service, sent from here",
		.packet = {UDP4(HOST4, 46010, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION)},
		.outcome = OUTCOME_not_ours,
	},
	{
		.name = "something else than IP",
		.packet = {UDP4(HOST4, 0, CLIENT4, 0), .protocol = IPPROTO_ESP, PAYLOAD("sealed")},
		.outcome = OUTCOME_not_ours,
	},
};

struct one_test {
	const struct fixture_kind *kind;
	enum program program;
	char name[128];
};

static void test_kind(void **state)
{
	const struct one_test *test = *state;

	expect_forget();
	expect_kind(test->kind, test->program);
}

static int load(void **state)
{
	(void)state;
	if (world_load(true))
		return -1;
	return world_configure(fixture_services, SERVICE_COUNT);
}

#define TESTS_MAX 64

static struct CMUnitTest tests[TESTS_MAX];
static struct one_test all[TESTS_MAX];
static size_t test_count;

static void add_tests(const struct fixture_kind *kinds, size_t count, enum program program)
{
	for (size_t i = 0; i < count; i++) {
		struct one_test *test = &all[test_count];

		test->kind = &kinds[i];
		test->program = program;
		snprintf(test->name, sizeof(test->name), "%s: %s", world_program_name(program),
			 kinds[i].name);
		tests[test_count].name = test->name;
		tests[test_count].test_func = test_kind;
		tests[test_count++].initial_state = test;
	}
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int main(void)
{
	group_begin();
	for (enum program program = PROGRAM_XDP; program <= PROGRAM_TC; program++) {
		add_tests(requests, COUNT(requests), program);
		add_tests(more_requests, COUNT(more_requests), program);
	}
	add_tests(replies, COUNT(replies), PROGRAM_RETURN);
	return _cmocka_run_group_tests("replicas on this machine", tests, test_count, load,
				       group_unload);
}
