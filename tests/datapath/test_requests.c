/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a request is charged for and when that ends, packet by packet through the router's programs: sizes in datagrams, answers,
 * repetitions, connections, packets that are not sent after all; events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "fixture.h"
#include "group.h"
#include "lib/explanation.h"
#include "lib/placement_tables.h"
#include "lib/policy.h"

#define CREATED	   NOTE_BIT(note_flow_created)
#define COMPLETED  NOTE_BIT(note_request_completed)
#define PLACED	   NOTE_BIT(note_placement_written)
#define FAILED	   NOTE_BIT(note_request_failed)
#define SUPERSEDED NOTE_BIT(note_request_superseded)
#define CLOSED	   NOTE_BIT(note_flow_closed)
#define KEYLESS	   NOTE_BIT(note_keyless)

#define PREFIX_2 "fd00:2::42" /* home of conv1 */

static enum program program;

/* --- services --------------------------------------------------------------------------------------------------- */

static void set_policy(uint32_t service, enum routing_policy policy, uint16_t prompt_offset,
		       uint16_t max_offset)
{
	struct service settings;
	struct error error;

	assert_int_equal(bpf_map_lookup_elem(world_map("services"), &service, &settings), 0);
	settings.policy = policy_published(policy);
	settings.policy.default_max_tokens = 77;
	settings.prompt_tokens_offset = prompt_offset;
	settings.max_tokens_offset = max_offset;
	assert_int_equal(bpf_map_update_elem(world_map("services"), &service, &settings, 0), 0);
	assert_int_equal(placement_table_replace(world_map("placements"), service, 1000, &error),
			 0);
}

static struct replica_load load_at(uint32_t service, uint32_t position)
{
	struct replica_load load = {0};
	uint32_t slot = world_slot(service, position);

	bpf_map_lookup_elem(world_map("replica_loads"), &slot, &load);
	return load;
}

static void assert_load(uint32_t service, uint32_t position, uint32_t requests, uint64_t tokens)
{
	struct replica_load load = load_at(service, position);
	struct service_load sums = {0};

	bpf_map_lookup_elem(world_map("service_loads"), &service, &sums);
	assert_int_equal(load.requests, requests);
	assert_int_equal(load.tokens, tokens);
	assert_int_equal(sums.requests, requests);
	assert_int_equal(sums.tokens, tokens);
}

/* The placement of an id by its ring key; false: none. */
static bool placement_of(uint32_t service, uint64_t hash, struct placement *placement)
{
	int table = placement_table_open(world_map("placements"), service);
	bool found;

	assert_true(table >= 0);
	found = bpf_map_lookup_elem(table, &hash, placement) == 0;
	close(table);
	return found;
}

#define CONV1_HASH 0x7b0e98587fc95488ULL

/* --- datagrams ---------------------------------------------------------------------------------------------------- */

/* "chat": 8 bytes of head, the id (16), then whatever the test needs. */
static struct packet_spec question(uint16_t port, const void *payload, size_t length)
{
	struct packet_spec packet = {UDP4(CLIENT4, 0, "10.9.9.9", 8000), .payload = payload,
				     .payload_length = length};

	packet.source_port = port;
	return packet;
}

static struct packet_spec answer(const char *replica, uint16_t replica_port, uint16_t port,
				 const char *payload, size_t length)
{
	struct packet_spec packet = {UDP4("", 0, CLIENT4, 0), .payload = payload,
				     .payload_length = length};

	strcpy(packet.source, replica);
	packet.source_port = replica_port;
	packet.destination_port = port;
	return packet;
}

static void ask(uint16_t port, const void *payload, size_t length, uint32_t notes)
{
	struct packet_spec packet = question(port, payload, length);

	expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_forwarded, notes);
}

static void reply(const char *replica, uint16_t replica_port, uint16_t port, const char *payload,
		  size_t length, uint32_t notes)
{
	struct packet_spec packet = answer(replica, replica_port, port, payload, length);

	expect_sent(program, LINK_SERVERS, &packet, OUTCOME_returned, notes);
}

#define ASK(port, text, notes) ask(port, text, sizeof(text) - 1, notes)
#define REPLY(replica, to, port, text, notes) \
	reply(replica, to, port, text, sizeof(text) - 1, notes)

#define SIZES "\0\0\x12\x34\0\x01\x02\x03" /* 0x1234 prompt tokens, 0x010203 to generate */

static void sizes_are_read_where_they_are_said_to_be(void **unused)
{
	(void)unused;
	set_policy(SERVICE_CHAT, POLICY_CONSISTENT, 24, 28);
	ASK(41001, CHAT_HEAD CHAT_ID SIZES "and more", CREATED);
	assert_load(SERVICE_CHAT, 1, 1, 0x1234 + 0x010203);
	/* they may also stand before the id */
	set_policy(SERVICE_CHAT, POLICY_CONSISTENT, 0, 4);
	ASK(41002, SIZES CHAT_ID, CREATED);
	assert_load(SERVICE_CHAT, 1, 2, 2 * (0x1234 + 0x010203));
}

static void sizes_that_are_not_there_are_estimated(void **unused)
{
	(void)unused;
	set_policy(SERVICE_CHAT, POLICY_CONSISTENT, OFFSET_NONE, OFFSET_NONE);
	/* 26 bytes behind the id: 6 tokens, and the default 77 to generate */
	ASK(41003, CHAT_HEAD CHAT_ID "twenty-six bytes of prompt", CREATED);
	assert_load(SERVICE_CHAT, 1, 1, 6 + 77);
	/* nothing behind the id: one token */
	ASK(41004, CHAT_HEAD CHAT_ID, CREATED);
	assert_load(SERVICE_CHAT, 1, 2, 6 + 77 + 1 + 77);
	/* a field that the datagram ends before, or in */
	set_policy(SERVICE_CHAT, POLICY_CONSISTENT, 30, 26);
	ASK(41005, CHAT_HEAD CHAT_ID "\0\0\0\0\x09\0\0", CREATED);
	assert_load(SERVICE_CHAT, 1, 3, 6 + 77 + 1 + 77 + 1 + 9 * 256);
}

static void absurd_sizes_are_clamped(void **unused)
{
	(void)unused;
	set_policy(SERVICE_CHAT, POLICY_LLM_AWARE, 24, 28);
	ASK(41006, CHAT_HEAD CHAT_ID "\xff\xff\xff\xff\xff\xff\xff\xff", CREATED);
	assert_load(SERVICE_CHAT, 1, 1, 2 * REQUEST_TOKENS_MAX);
	REPLY("10.0.2.11", 8002, 41006, CHAT_ANSWER, COMPLETED | PLACED);
	assert_load(SERVICE_CHAT, 1, 0, 0);
}

static void an_answer_ends_its_request_and_no_other(void **unused)
{
	struct placement placement;

	(void)unused;
	set_policy(SERVICE_CHAT, POLICY_LLM_AWARE, 24, 28);
	ASK(41007, CHAT_HEAD CHAT_ID SIZES, CREATED);
	/* another id; another client; another replica; no id */
	REPLY("10.0.2.11", 8002, 41007, CHAT_HEAD "conv2\0\0\0\0\0\0\0\0\0\0\0", 0);
	REPLY("10.0.2.11", 8002, 41999, CHAT_ANSWER, 0);
	REPLY("10.0.2.12", 8003, 41007, CHAT_ANSWER, 0);
	REPLY("10.0.2.11", 8002, 41007, "short", 0);
	assert_load(SERVICE_CHAT, 1, 1, 0x1234 + 0x010203);
	assert_false(placement_of(SERVICE_CHAT, CONV1_HASH, &placement));

	REPLY("10.0.2.11", 8002, 41007, CHAT_ANSWER, COMPLETED | PLACED);
	assert_load(SERVICE_CHAT, 1, 0, 0);
	assert_true(placement_of(SERVICE_CHAT, CONV1_HASH, &placement));
	assert_int_equal(placement.replica, world_slot(SERVICE_CHAT, 1));
	assert_int_equal(placement.prompt_tokens, 0x1234);
	/* more of the answer, or the same again: nothing is given back twice */
	REPLY("10.0.2.11", 8002, 41007, CHAT_ANSWER, 0);
	assert_load(SERVICE_CHAT, 1, 0, 0);
}

static void the_next_turn_costs_its_new_tokens(void **unused)
{
	(void)unused;
	set_policy(SERVICE_CHAT, POLICY_LLM_AWARE, 24, 28);
	ASK(41008, CHAT_HEAD CHAT_ID "\0\0\x03\xe8\0\0\0\x0a", CREATED);
	REPLY("10.0.2.11", 8002, 41008, CHAT_ANSWER, COMPLETED | PLACED);
	ASK(41008, CHAT_HEAD CHAT_ID "\0\0\x04\x00\0\0\0\x0b", 0);
	assert_load(SERVICE_CHAT, 1, 1, 24 + 11);
}

static void a_request_that_comes_again_counts_once(void **unused)
{
	(void)unused;
	set_policy(SERVICE_CHAT, POLICY_CONSISTENT, 24, 28);
	ASK(41009, CHAT_HEAD CHAT_ID "\0\0\0\x64\0\0\0\x0a", CREATED);
	ASK(41009, CHAT_HEAD CHAT_ID "\0\0\0\xc8\0\0\0\x0a", SUPERSEDED);
	assert_load(SERVICE_CHAT, 1, 1, 210);
	/* from another port, or with another id, it is another one */
	ASK(41010, CHAT_HEAD CHAT_ID "\0\0\0\x64\0\0\0\x0a", CREATED);
	assert_load(SERVICE_CHAT, 1, 2, 320);
	REPLY("10.0.2.11", 8002, 41009, CHAT_ANSWER, COMPLETED);
	REPLY("10.0.2.11", 8002, 41010, CHAT_ANSWER, COMPLETED);
	assert_load(SERVICE_CHAT, 1, 0, 0);
}

static void without_an_id_the_flow_says_whose_answer_it_is(void **unused)
{
	static const char blank[] = CHAT_HEAD "                hello";
	static const char blank_answer[] = CHAT_HEAD "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0hi";
	uint32_t served = 3;

	(void)unused;
	set_policy(SERVICE_CHAT, POLICY_LLM_AWARE, OFFSET_NONE, OFFSET_NONE);
	for (uint16_t port = 41011; port < 41017; port++) {
		static const char *const replicas[] = {"10.0.2.10", "10.0.2.11", "10.0.2.12"};
		uint32_t before = served;

		ask(port, blank, sizeof(blank) - 1, CREATED | KEYLESS);
		for (served = 0; served < 3 && load_at(SERVICE_CHAT, served).requests == 0;)
			served++;
		assert_true(served < 3);
		/* one after the other to idle replicas: still not twice the same */
		assert_int_not_equal(served, before);
		reply(replicas[served], 8001 + served, port, blank_answer, sizeof(blank_answer) - 1,
		      COMPLETED);
		assert_load(SERVICE_CHAT, served, 0, 0);
	}
}

static void what_is_not_sent_is_not_charged(void **unused)
{
	struct packet_spec lost = {UDP4(CLIENT4, 41020, "10.9.9.50", 8500), PAYLOAD("conv-123")};
	struct service_load sums;
	uint32_t service = SERVICE_BLACKHOLE;

	(void)unused;
	strcpy(lost.destination, fixture_services[SERVICE_BLACKHOLE].addresses[0]);
	lost.destination_port = fixture_services[SERVICE_BLACKHOLE].port;
	expect_sent(program, LINK_CLIENTS, &lost, OUTCOME_drop_no_route, 0);
	assert_int_equal(bpf_map_lookup_elem(world_map("service_loads"), &service, &sums), 0);
	assert_int_equal(sums.decisions, 1);
	assert_int_equal(sums.requests, 0);
	assert_int_equal(sums.tokens, 0);
}

/* --- connections ---------------------------------------------------------------------------------------------------- */

static void segment(uint16_t port, uint8_t flags, const char *payload, uint32_t notes)
{
	struct packet_spec packet = {TCP6(CLIENT6, 0, KEY_CONV1, 443, 0), .payload = payload,
				     .payload_length = payload ? strlen(payload) : 0};

	packet.source_port = port;
	packet.tcp_flags = flags;
	expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_forwarded, notes);
}

static void segment_back(uint16_t port, uint8_t flags, const char *payload, uint32_t notes)
{
	struct packet_spec packet = {TCP6(PREFIX_2, 8443, CLIENT6, 0, 0), .payload = payload,
				     .payload_length = payload ? strlen(payload) : 0};

	packet.destination_port = port;
	packet.tcp_flags = flags;
	expect_sent(program, LINK_SERVERS, &packet, OUTCOME_returned, notes);
}

static void open_connection(uint16_t port)
{
	set_policy(SERVICE_PREFIX, POLICY_LLM_AWARE, OFFSET_NONE, OFFSET_NONE);
	segment(port, SYN, NULL, CREATED);
	/* its size is not known: one token, and what may be generated */
	assert_load(SERVICE_PREFIX, 2, 1, 1 + 77);
	segment(port, SYN, NULL, 0);
	segment_back(port, SYN | ACK, NULL, 0);
	segment(port, ACK, NULL, 0);
	segment(port, PSH | ACK, "GET / HTTP/1.1", 0);
	assert_load(SERVICE_PREFIX, 2, 1, 1 + 77);
}

static void a_connection_is_a_request_until_both_have_closed(void **unused)
{
	struct placement placement;

	(void)unused;
	open_connection(51001);
	segment_back(51001, PSH | ACK, "HTTP/1.1 200 OK", 0);
	segment_back(51001, FIN | ACK, NULL, 0);
	assert_load(SERVICE_PREFIX, 2, 1, 1 + 77);
	segment(51001, FIN | ACK, NULL, CLOSED | COMPLETED | PLACED);
	assert_load(SERVICE_PREFIX, 2, 0, 0);
	assert_true(placement_of(SERVICE_PREFIX, CONV1_HASH, &placement));
	assert_int_equal(placement.replica, world_slot(SERVICE_PREFIX, 2));
}

static void the_client_may_close_first(void **unused)
{
	(void)unused;
	open_connection(51002);
	segment_back(51002, PSH | ACK, "HTTP/1.1 200 OK", 0);
	segment(51002, FIN | ACK, NULL, 0);
	segment_back(51002, FIN | ACK, NULL, CLOSED | COMPLETED | PLACED);
	assert_load(SERVICE_PREFIX, 2, 0, 0);
}

static void the_last_data_may_come_with_the_fin(void **unused)
{
	(void)unused;
	open_connection(51003);
	segment_back(51003, FIN | PSH | ACK, "HTTP/1.1 200 OK", 0);
	/* who resets after the whole answer has been answered */
	segment(51003, RST, NULL, CLOSED | COMPLETED | PLACED);
	assert_load(SERVICE_PREFIX, 2, 0, 0);
}

static void without_data_or_with_a_reset_it_has_failed(void **unused)
{
	struct placement placement;

	(void)unused;
	open_connection(51004);
	segment_back(51004, FIN | ACK, NULL, 0);
	segment(51004, FIN | ACK, NULL, CLOSED | FAILED);
	assert_load(SERVICE_PREFIX, 2, 0, 0);
	open_connection(51005);
	segment_back(51005, PSH | ACK, "HTTP/1.1 200 OK", 0);
	segment_back(51005, RST | ACK, NULL, CLOSED | FAILED);
	assert_load(SERVICE_PREFIX, 2, 0, 0);
	assert_false(placement_of(SERVICE_PREFIX, CONV1_HASH, &placement));
}

static void data_of_an_earlier_connection_does_not_count(void **unused)
{
	(void)unused;
	open_connection(51006);
	segment_back(51006, PSH | ACK, "HTTP/1.1 200 OK", 0);
	segment(51006, RST, NULL, CLOSED | FAILED);
	/* the same ports again */
	open_connection(51006);
	segment_back(51006, FIN | ACK, NULL, 0);
	segment(51006, FIN | ACK, NULL, CLOSED | FAILED);
}

static void a_connection_in_mid_stream_is_where_its_request_is(void **unused)
{
	struct flow_key key = {.client = world_address(CLIENT6),
			       .service = world_address(KEY_CONV1),
			       .client_port = htons(51007),
			       .service_port = htons(443),
			       .protocol = IPPROTO_TCP};
	struct replica_load full = {.counted = 1, .requests = 9, .tokens = 9000};
	uint32_t home = world_slot(SERVICE_PREFIX, 2);
	struct packet_spec packet = {TCP6(CLIENT6, 51007, KEY_CONV1, 443, SYN)};
	struct expect_ends first, later;

	(void)unused;
	set_policy(SERVICE_PREFIX, POLICY_BOUNDED, OFFSET_NONE, OFFSET_NONE);
	/* the home is full, so it is decided elsewhere */
	assert_int_equal(bpf_map_update_elem(world_map("replica_loads"), &home, &full, 0), 0);
	first = expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_forwarded, CREATED);
	assert_string_not_equal(first.destination, PREFIX_2);
	assert_int_equal(bpf_map_delete_elem(world_map("flows"), &key), 0);
	packet.tcp_flags = ACK;
	later = expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_forwarded,
			    CREATED | NOTE_BIT(note_flow_adopted));
	assert_string_equal(later.destination, first.destination);
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

struct seen {
	struct event_decision decision;
	size_t decision_size;
	struct event_completion completion;
	unsigned int decisions, completions;
};

static int take(void *context, void *data, size_t size)
{
	struct event_header *header = data;
	struct seen *seen = context;

	if (header->kind == EVENT_DECISION) {
		memset(&seen->decision, 0, sizeof(seen->decision));
		memcpy(&seen->decision, data, size);
		seen->decision_size = size;
		seen->decisions++;
	} else if (header->kind == EVENT_COMPLETION && size == sizeof(seen->completion)) {
		memcpy(&seen->completion, data, size);
		seen->completions++;
	}
	return 0;
}

static void read_events(struct seen *seen)
{
	struct ring_buffer *buffer = ring_buffer__new(world_map("events"), take, seen, NULL);

	assert_non_null(buffer);
	memset(seen, 0, sizeof(*seen));
	ring_buffer__consume(buffer);
	ring_buffer__free(buffer);
}

static void trace(uint32_t per_second)
{
	struct trace_settings settings = {.events_per_second = per_second};
	uint32_t first = 0;
	struct seen seen;

	assert_int_equal(bpf_map_update_elem(world_map("trace_settings"), &first, &settings, 0), 0);
	read_events(&seen);
}

static void an_event_has_what_the_decision_was_made_from(void **unused)
{
	struct explanation explanation;
	struct error error;
	struct seen seen;

	(void)unused;
	set_policy(SERVICE_CHAT, POLICY_LLM_AWARE, 24, 28);
	trace(1000000);
	ASK(41030, CHAT_HEAD CHAT_ID "\0\0\0\x64\0\0\0\x0a", CREATED);
	read_events(&seen);
	assert_int_equal(seen.decisions, 1);
	assert_int_equal(seen.decision.id_length, 5);
	assert_memory_equal(seen.decision.id, "conv1", 5);
	assert_int_equal(seen.decision.header.id_hash, CONV1_HASH);
	assert_int_equal(seen.decision.header.service, SERVICE_CHAT);
	assert_int_equal(ntohs(seen.decision.header.flow.client_port), 41030);
	assert_int_equal(seen.decision.decision.replica, world_slot(SERVICE_CHAT, 1));
	assert_int_equal(seen.decision.decision.cost, 110);
	assert_int_equal(seen.decision.load_count, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(seen.decision.loads[i].load, 0);
	assert_int_equal(explain_event(&explanation, &seen.decision, seen.decision_size, &error),
			 0);
	assert_true(explanation.agrees);

	/* another one, which the first one keeps from home: its event has the walk */
	ASK(41031, CHAT_HEAD CHAT_ID "\0\0\0\x64\0\0\0\x0a", CREATED);
	read_events(&seen);
	assert_int_equal(seen.decision.decision.reason, REASON_overflow);
	assert_int_equal(seen.decision.walked_count, 2);
	assert_int_equal(seen.decision.loads[0].replica, world_slot(SERVICE_CHAT, 1));
	assert_int_equal(seen.decision.loads[0].load, 110);
	assert_int_equal(seen.decision.load_count, 3);
	assert_int_equal(explain_event(&explanation, &seen.decision, seen.decision_size, &error),
			 0);
	assert_true(explanation.agrees);
	assert_int_equal(explanation.tried_count, 2);

	REPLY("10.0.2.11", 8002, 41030, CHAT_ANSWER, COMPLETED | PLACED);
	read_events(&seen);
	assert_int_equal(seen.completions, 1);
	assert_int_equal(seen.completion.status, COMPLETION_SUCCESS);
	assert_string_equal(seen.completion.replica_name, "llm-1");
	assert_int_equal(seen.completion.incarnation, world_slot(SERVICE_CHAT, 1) + 1000);
	assert_int_equal(seen.completion.charge, 110);
	assert_int_equal(seen.completion.prompt_tokens, 100);
	assert_int_equal(seen.completion.header.id_hash, CONV1_HASH);
}

static void so_many_are_traced_in_a_second_and_no_more(void **unused)
{
	unsigned int decisions = 0, completions = 0;
	struct seen seen;

	(void)unused;
	set_policy(SERVICE_CHAT, POLICY_CONSISTENT, OFFSET_NONE, OFFSET_NONE);
	trace(0);
	ASK(41040, CHAT_QUESTION, CREATED);
	REPLY("10.0.2.11", 8002, 41040, CHAT_ANSWER, COMPLETED);
	read_events(&seen);
	assert_int_equal(seen.decisions + seen.completions, 0);
	trace(3);
	for (int i = 0; i < 40; i++) {
		ASK(41040, CHAT_QUESTION, 0);
		REPLY("10.0.2.11", 8002, 41040, CHAT_ANSWER, COMPLETED);
	}
	read_events(&seen);
	decisions = seen.decisions;
	completions = seen.completions;
	/* a second may have ended in between */
	assert_true(decisions >= 3 && decisions <= 6);
	/* who is traced is traced to the end */
	assert_int_equal(completions, decisions);
}

static void a_full_ring_buffer_costs_events_and_no_packets(void **unused)
{
	int dropped = 0;
	struct seen seen;

	(void)unused;
	set_policy(SERVICE_CHAT, POLICY_CONSISTENT, OFFSET_NONE, OFFSET_NONE);
	trace(100000000);
	for (int i = 0; i < 40000 && dropped < 3; i++) {
		struct packet_spec packet =
			question(41050, CHAT_QUESTION, sizeof(CHAT_QUESTION) - 1);
		static uint8_t bytes[PACKET_SIZE_MAX];
		struct run run;
		int length;

		expect_link_addresses(&packet, LINK_CLIENTS);
		length = packet_build(&packet, bytes);
		assert_int_equal(world_run(program, LINK_CLIENTS, bytes, length, 0, &run), 0);
		assert_int_equal(run.counters[OUTCOME_forwarded], 1);
		dropped += run.counters[NOTE_note_event_dropped];
	}
	assert_true(dropped >= 3);
	trace(0);
	read_events(&seen);
	REPLY("10.0.2.11", 8002, 41050, CHAT_ANSWER, COMPLETED);
	assert_load(SERVICE_CHAT, 1, 0, 0);
}

static int forget(void **state)
{
	(void)state;
	expect_forget();
	return world_configure(fixture_services, SERVICE_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(sizes_are_read_where_they_are_said_to_be, forget),
		cmocka_unit_test_setup(sizes_that_are_not_there_are_estimated, forget),
		cmocka_unit_test_setup(absurd_sizes_are_clamped, forget),
		cmocka_unit_test_setup(an_answer_ends_its_request_and_no_other, forget),
		cmocka_unit_test_setup(the_next_turn_costs_its_new_tokens, forget),
		cmocka_unit_test_setup(a_request_that_comes_again_counts_once, forget),
		cmocka_unit_test_setup(without_an_id_the_flow_says_whose_answer_it_is, forget),
		cmocka_unit_test_setup(what_is_not_sent_is_not_charged, forget),
		cmocka_unit_test_setup(a_connection_is_a_request_until_both_have_closed, forget),
		cmocka_unit_test_setup(the_client_may_close_first, forget),
		cmocka_unit_test_setup(the_last_data_may_come_with_the_fin, forget),
		cmocka_unit_test_setup(without_data_or_with_a_reset_it_has_failed, forget),
		cmocka_unit_test_setup(data_of_an_earlier_connection_does_not_count, forget),
		cmocka_unit_test_setup(a_connection_in_mid_stream_is_where_its_request_is, forget),
		cmocka_unit_test_setup(an_event_has_what_the_decision_was_made_from, forget),
		cmocka_unit_test_setup(so_many_are_traced_in_a_second_and_no_more, forget),
		cmocka_unit_test_setup(a_full_ring_buffer_costs_events_and_no_packets, forget),
	};
	int failed = 0;

	group_begin();
	for (program = PROGRAM_XDP; program <= PROGRAM_TC; program++)
		failed += cmocka_run_group_tests_name(world_program_name(program), tests,
						      group_load, group_unload);
	return failed;
}
