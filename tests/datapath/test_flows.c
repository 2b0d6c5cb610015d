/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is remembered between packets: connections through changes of the ring, their ends, source ports that would collide, entries
 * that were evicted, clients of datagrams.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"
#include "fixture.h"
#include "group.h"

#define KEY_CONV2 "fd00:5:5:5:af69:1af5:65f3:cd12" /* H("conv2"): its home is prefix-2, too */
#define PREFIX_0  "fd00:2::40"
#define PREFIX_1  "fd00:2::41"
#define PREFIX_2  "fd00:2::42"
#define SECOND	  1000000000ULL

/* The programs take turns: what one remembers, the other finds. */
static enum program program;

static struct packet_spec segment(const char *to, uint16_t port, uint8_t flags)
{
	struct packet_spec packet = {TCP6(CLIENT6, port, "", 443, flags)};

	strcpy(packet.destination, to);
	if (flags & PSH) {
		packet.payload = "some data";
		packet.payload_length = 9;
	}
	return packet;
}

static struct packet_spec reply_segment(const char *from, uint16_t port, uint8_t flags)
{
	struct packet_spec packet = {TCP6("", 8443, CLIENT6, port, flags)};

	strcpy(packet.source, from);
	return packet;
}

static struct expect_ends request(const char *to, uint16_t port, uint8_t flags, uint32_t notes)
{
	struct packet_spec packet = segment(to, port, flags);

	return expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_forwarded, notes);
}

static struct expect_ends reply(const char *from, uint16_t port, uint8_t flags, uint32_t notes)
{
	struct packet_spec packet = reply_segment(from, port, flags);

	return expect_sent(program, LINK_SERVERS, &packet, OUTCOME_returned, notes);
}

#define CREATED NOTE_BIT(note_flow_created)
/* without an answer; what a request is charged for is given back */
#define CLOSED	   (NOTE_BIT(note_flow_closed) | NOTE_BIT(note_request_failed))
#define SUPERSEDED NOTE_BIT(note_request_superseded)
#define COMPLETED  NOTE_BIT(note_request_completed)

static struct flow_key key_of(const char *to, uint16_t port, uint8_t protocol)
{
	return (struct flow_key){
		.client = world_address(CLIENT6),
		.service = world_address(to),
		.client_port = htons(port),
		.service_port = htons(443),
		.protocol = protocol,
	};
}

static struct flow flow_of(const char *to, uint16_t port, uint8_t protocol)
{
	struct flow_key key = key_of(to, port, protocol);
	struct flow flow;

	assert_int_equal(bpf_map_lookup_elem(world_map("flows"), &key, &flow), 0);
	return flow;
}

/* Makes the flow's last check of its return entry look older. */
static void age_flow(const char *to, uint16_t port, uint8_t protocol, uint64_t nanoseconds)
{
	struct flow_key key = key_of(to, port, protocol);
	struct flow flow = flow_of(to, port, protocol);

	flow.return_checked_nanoseconds -= nanoseconds;
	assert_int_equal(bpf_map_update_elem(world_map("flows"), &key, &flow, 0), 0);
}

static void forget_return(const char *replica, uint16_t port, uint8_t protocol)
{
	struct return_flow_key key = {
		.replica = world_address(replica),
		.client = world_address(CLIENT6),
		.replica_port = htons(8443),
		.client_port = htons(port),
		.protocol = protocol,
	};

	assert_int_equal(bpf_map_delete_elem(world_map("return_flows"), &key), 0);
}

static void forget_flow(const char *to, uint16_t port, uint8_t protocol)
{
	struct flow_key key = key_of(to, port, protocol);

	assert_int_equal(bpf_map_delete_elem(world_map("flows"), &key), 0);
}

static void drain(size_t position, enum replica_state state)
{
	assert_int_equal(world_set_state(SERVICE_PREFIX, position, state), 0);
}

static void test_connection_outlives_ring(void **state)
{
	(void)state;
	assert_string_equal(request(KEY_CONV1, 50001, SYN, CREATED).destination, PREFIX_2);
	assert_int_equal(flow_of(KEY_CONV1, 50001, IPPROTO_TCP).state, FLOW_OPENING);
	drain(2, REPLICA_DRAINING);
	assert_string_equal(request(KEY_CONV1, 50001, SYN, 0).destination, PREFIX_2);
	assert_string_equal(request(KEY_CONV1, 50001, ACK, 0).destination, PREFIX_2);
	assert_int_equal(flow_of(KEY_CONV1, 50001, IPPROTO_TCP).state, FLOW_ESTABLISHED);
	assert_string_equal(request(KEY_CONV1, 50001, PSH | ACK, 0).destination, PREFIX_2);
	assert_string_equal(reply(PREFIX_2, 50001, ACK, 0).source, KEY_CONV1);
	/* a new one goes where the ring says now: the next on conv1's walk */
	assert_string_equal(request(KEY_CONV1, 50002, SYN, CREATED).destination, PREFIX_1);
	/* and even a replica that is gone keeps what it has: nobody else knows the connection */
	drain(2, REPLICA_REMOVED);
	assert_string_equal(request(KEY_CONV1, 50001, PSH | ACK, 0).destination, PREFIX_2);
}

static void test_opening_leaves_dead_replica(void **state)
{
	(void)state;
	assert_string_equal(request(KEY_CONV1, 50003, SYN, CREATED).destination, PREFIX_2);
	drain(2, REPLICA_DOWN);
	assert_string_equal(request(KEY_CONV1, 50003, SYN, CREATED | SUPERSEDED).destination,
			    PREFIX_1);
	assert_string_equal(reply(PREFIX_1, 50003, SYN | ACK, 0).source, KEY_CONV1);
}

static void test_fin_from_both(void **state)
{
	(void)state;
	request(KEY_CONV1, 50004, SYN, CREATED);
	request(KEY_CONV1, 50004, ACK, 0);
	request(KEY_CONV1, 50004, FIN | ACK, 0);
	assert_int_equal(flow_of(KEY_CONV1, 50004, IPPROTO_TCP).state, FLOW_ESTABLISHED);
	/* the same FIN again is not the other side's */
	request(KEY_CONV1, 50004, FIN | ACK, 0);
	assert_int_equal(flow_of(KEY_CONV1, 50004, IPPROTO_TCP).state, FLOW_ESTABLISHED);
	reply(PREFIX_2, 50004, FIN | ACK, CLOSED);
	assert_int_equal(flow_of(KEY_CONV1, 50004, IPPROTO_TCP).state, FLOW_CLOSED);
	drain(2, REPLICA_DRAINING);
	assert_string_equal(request(KEY_CONV1, 50004, ACK, 0).destination, PREFIX_2);
	assert_string_equal(request(KEY_CONV1, 50004, SYN, CREATED).destination, PREFIX_1);
	assert_int_equal(flow_of(KEY_CONV1, 50004, IPPROTO_TCP).state, FLOW_OPENING);
	assert_int_equal(flow_of(KEY_CONV1, 50004, IPPROTO_TCP).fin_seen, 0);
}

static void test_reset(void **state)
{
	(void)state;
	request(KEY_CONV1, 50005, SYN, CREATED);
	request(KEY_CONV1, 50005, RST, CLOSED);
	request(KEY_CONV1, 50005, RST, 0);
	assert_int_equal(flow_of(KEY_CONV1, 50005, IPPROTO_TCP).state, FLOW_CLOSED);
	request(KEY_CONV1, 50005, SYN, CREATED);
	reply(PREFIX_2, 50005, RST | ACK, CLOSED);
	assert_int_equal(flow_of(KEY_CONV1, 50005, IPPROTO_TCP).state, FLOW_CLOSED);
}

/* One client, one source port, two addresses of the service at once: to the replica they would be one connection. */
static void test_port_translated(void **state)
{
	struct packet_spec answer = {TCP6(KEY_CONV2, 443, CLIENT6, 50006, ACK)};
	struct packet_spec error = {.family = AF_INET6,
				    .source = CLIENT6,
				    .destination = KEY_CONV2,
				    .protocol = IPPROTO_ICMPV6,
				    .hop_limit = 60,
				    .icmp_type = 1,
				    .quoted = &answer};
	struct expect_ends first, second, quoted;

	(void)state;
	first = request(KEY_CONV1, 50006, SYN, CREATED);
	second = request(KEY_CONV2, 50006, SYN, CREATED | NOTE_BIT(note_port_translated));
	assert_int_equal(first.source_port, 50006);
	assert_string_equal(second.destination, PREFIX_2);
	assert_int_not_equal(second.source_port, 50006);
	assert_true(second.source_port >= 1024);
	assert_int_equal(request(KEY_CONV2, 50006, PSH | ACK, 0).source_port, second.source_port);

	assert_string_equal(reply(PREFIX_2, 50006, ACK, 0).source, KEY_CONV1);
	first = reply(PREFIX_2, second.source_port, ACK, 0);
	assert_string_equal(first.source, KEY_CONV2);
	assert_int_equal(first.source_port, 443);
	assert_int_equal(first.destination_port, 50006);

	quoted = expect_sent(program, LINK_CLIENTS, &error, OUTCOME_icmp_forwarded, 0);
	assert_string_equal(quoted.source, PREFIX_2);
	assert_int_equal(quoted.source_port, 8443);
	assert_int_equal(quoted.destination_port, second.source_port);
}

static void test_port_of_closed_is_free(void **state)
{
	(void)state;
	request(KEY_CONV1, 50007, SYN, CREATED);
	request(KEY_CONV1, 50007, RST, CLOSED);
	assert_int_equal(request(KEY_CONV2, 50007, SYN, CREATED).source_port, 50007);
	assert_string_equal(reply(PREFIX_2, 50007, SYN | ACK, 0).source, KEY_CONV2);
}

/* Every port towards the replica belongs to somebody else. */
static void test_ports_exhausted(void **state)
{
	struct packet_spec packet = segment(KEY_CONV1, 50008, SYN);
	struct return_flow_key key = {
		.replica = world_address(PREFIX_2),
		.client = world_address(CLIENT6),
		.replica_port = htons(8443),
		.protocol = IPPROTO_TCP,
	};
	struct return_flow other = {.service = world_address(KEY_CONV2),
				    .service_port = htons(443)};

	(void)state;
	for (int port = 1024; port < 65536; port++) {
		key.client_port = htons(port);
		other.client_port = htons(port);
		assert_int_equal(bpf_map_update_elem(world_map("return_flows"), &key, &other, 0),
				 0);
	}
	expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_drop_port_exhausted, 0);
}

static void test_return_entry_restored(void **state)
{
	struct packet_spec packet = reply_segment(PREFIX_2, 50009, ACK);

	(void)state;
	request(KEY_CONV1, 50009, SYN, CREATED);
	forget_return(PREFIX_2, 50009, IPPROTO_TCP);
	expect_sent(program, LINK_SERVERS, &packet, OUTCOME_not_ours, 0);
	/* it is not looked after more than once a second */
	request(KEY_CONV1, 50009, ACK, 0);
	age_flow(KEY_CONV1, 50009, IPPROTO_TCP, 2 * SECOND);
	request(KEY_CONV1, 50009, ACK, NOTE_BIT(note_return_restored));
	assert_string_equal(reply(PREFIX_2, 50009, ACK, 0).source, KEY_CONV1);
	/* it is there: nothing to restore */
	age_flow(KEY_CONV1, 50009, IPPROTO_TCP, 2 * SECOND);
	request(KEY_CONV1, 50009, ACK, 0);
}

static void test_flow_adopted(void **state)
{
	struct expect_ends ends;

	(void)state;
	request(KEY_CONV1, 50010, SYN, CREATED);
	forget_flow(KEY_CONV1, 50010, IPPROTO_TCP);
	ends = request(KEY_CONV1, 50010, PSH | ACK, CREATED | NOTE_BIT(note_flow_adopted));
	assert_string_equal(ends.destination, PREFIX_2);
	assert_int_equal(ends.source_port, 50010);
	assert_int_equal(flow_of(KEY_CONV1, 50010, IPPROTO_TCP).state, FLOW_ESTABLISHED);
}

static void test_datagrams_stay(void **state)
{
	struct packet_spec packet = {UDP6(CLIENT6, 50011, KEY_CONV1, 443), PAYLOAD("datagram")};
	struct packet_spec answer = {UDP6(PREFIX_2, 8443, CLIENT6, 50011), PAYLOAD("datagram")};
	struct expect_ends ends;

	(void)state;
	ends = expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_forwarded, CREATED);
	assert_string_equal(ends.destination, PREFIX_2);
	drain(2, REPLICA_DRAINING);
	ends = expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_forwarded, 0);
	assert_string_equal(ends.destination, PREFIX_2);
	ends = expect_sent(program, LINK_SERVERS, &answer, OUTCOME_returned, COMPLETED);
	assert_string_equal(ends.source, KEY_CONV1);
	/* after the timeout it is a new conversation */
	age_flow(KEY_CONV1, 50011, IPPROTO_UDP, 301 * SECOND);
	ends = expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_forwarded, 0);
	assert_string_equal(ends.destination, PREFIX_1);
	/* the replica dies */
	drain(1, REPLICA_DOWN);
	ends = expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_forwarded, SUPERSEDED);
	assert_string_equal(ends.destination, PREFIX_0);
}

/* One client, several conversations: each datagram by its own id; an error without an id goes to the last one's replica. */
static void test_many_ids_one_client(void **state)
{
	struct packet_spec conv1 = {UDP4(CLIENT4, 50012, "10.9.9.21", 8100),
				    PAYLOAD("conv1                           ")};
	struct packet_spec conv5 = {UDP4(CLIENT4, 50012, "10.9.9.21", 8100),
				    PAYLOAD("conv5                           ")};
	struct packet_spec answer1 = {UDP4("10.0.2.21", 9002, CLIENT4, 50012), PAYLOAD("1")};
	struct packet_spec answer5 = {UDP4("10.0.2.20", 9001, CLIENT4, 50012), PAYLOAD("5")};
	struct packet_spec quoted = {UDP4("10.9.9.21", 8100, CLIENT4, 50012),
				     PAYLOAD("too short for an id")};
	struct packet_spec error = {.family = AF_INET,
				    .source = CLIENT4,
				    .destination = "10.9.9.21",
				    .protocol = IPPROTO_ICMP,
				    .hop_limit = 60,
				    .icmp_type = 3,
				    .quoted = &quoted};

	(void)state;
	assert_string_equal(
		expect_sent(program, LINK_CLIENTS, &conv1, OUTCOME_forwarded, CREATED).destination,
		"10.0.2.21");
	assert_string_equal(
		expect_sent(program, LINK_CLIENTS, &error, OUTCOME_icmp_forwarded, 0).source,
		"10.0.2.21");
	assert_string_equal(
		expect_sent(program, LINK_CLIENTS, &conv5, OUTCOME_forwarded, 0).destination,
		"10.0.2.20");
	assert_string_equal(
		expect_sent(program, LINK_CLIENTS, &error, OUTCOME_icmp_forwarded, 0).source,
		"10.0.2.20");
	assert_string_equal(
		expect_sent(program, LINK_SERVERS, &answer1, OUTCOME_returned, 0).source,
		"10.9.9.21");
	assert_string_equal(
		expect_sent(program, LINK_SERVERS, &answer5, OUTCOME_returned, 0).source,
		"10.9.9.21");
}

/* Two services with one replica, address and port: a client that uses one source port for both. */
static void test_replica_of_two_services(void **state)
{
	struct packet_spec to_a = {UDP4(CLIENT4, 50013, "10.9.9.30", 8201), PAYLOAD("xxconv-123")};
	struct packet_spec to_b = {UDP4(CLIENT4, 50013, "10.9.9.31", 8202), PAYLOAD("xxconv-123")};
	struct packet_spec answer = {UDP4("10.0.2.30", 9100, CLIENT4, 50013), PAYLOAD("answer")};
	struct expect_ends ends;

	(void)state;
	ends = expect_sent(program, LINK_CLIENTS, &to_a, OUTCOME_forwarded, CREATED);
	assert_int_equal(ends.source_port, 50013);
	ends = expect_sent(program, LINK_CLIENTS, &to_b, OUTCOME_forwarded,
			   CREATED | NOTE_BIT(note_port_translated));
	assert_int_not_equal(ends.source_port, 50013);
	assert_string_equal(expect_sent(program, LINK_SERVERS, &answer, OUTCOME_returned, 0).source,
			    "10.9.9.30");
	answer.destination_port = ends.source_port;
	ends = expect_sent(program, LINK_SERVERS, &answer, OUTCOME_returned, 0);
	assert_string_equal(ends.source, "10.9.9.31");
	assert_int_equal(ends.destination_port, 50013);
}

/* The replica gets a second service while an answer of the first is on its way, of a request that needed no return entry. */
static void test_second_service_meanwhile(void **state)
{
	struct packet_spec ask = {UDP4(CLIENT4, 50014, "10.9.9.30", 8201), PAYLOAD("xxconv-123")};
	struct packet_spec answer = {UDP4("10.0.2.30", 9100, CLIENT4, 50014), PAYLOAD("answer")};
	struct packet_spec nobody = {UDP4("10.0.2.30", 9100, CLIENT4, 50015), PAYLOAD("answer")};
	struct replica_address_key key = {.address = world_address("10.0.2.30"),
					  .port = htons(9100)};
	struct replica_address both, alone;

	(void)state;
	assert_int_equal(bpf_map_lookup_elem(world_map("replica_addresses"), &key, &both), 0);
	assert_int_equal(both.services, 2);
	alone = both;
	alone.services = 1;
	assert_int_equal(bpf_map_update_elem(world_map("replica_addresses"), &key, &alone, 0), 0);
	expect_sent(program, LINK_CLIENTS, &ask, OUTCOME_forwarded, CREATED);
	assert_int_equal(bpf_map_update_elem(world_map("replica_addresses"), &key, &both, 0), 0);
	assert_string_equal(expect_sent(program, LINK_SERVERS, &answer, OUTCOME_returned, 0).source,
			    "10.9.9.30");
	expect_sent(program, LINK_SERVERS, &nobody, OUTCOME_drop_no_service_address, 0);
}

/* An identification comes round again: what was remembered of it a minute ago is somebody else's. */
static void test_fragment_forgotten(void **state)
{
	struct packet_spec first = {UDP6(CLIENT6, 50014, "fd00:9::9", 8000), LONG_PAYLOAD(3000),
				    FRAGMENT(0, 1400, true)};
	struct packet_spec later = {UDP6(CLIENT6, 50014, "fd00:9::9", 8000), LONG_PAYLOAD(3000),
				    FRAGMENT(1400, 1400, true)};
	struct fragment_key key;
	struct fragment value;
	int map = world_map("fragments");

	(void)state;
	expect_sent(program, LINK_CLIENTS, &first, OUTCOME_forwarded, CREATED);
	expect_sent(program, LINK_CLIENTS, &later, OUTCOME_forwarded, 0);
	assert_int_equal(bpf_map_get_next_key(map, NULL, &key), 0);
	assert_int_equal(bpf_map_lookup_elem(map, &key, &value), 0);
	value.seen_nanoseconds -= 61 * SECOND;
	assert_int_equal(bpf_map_update_elem(map, &key, &value, 0), 0);
	expect_sent(program, LINK_CLIENTS, &later, OUTCOME_not_ours, 0);
}

/* The flow's replica has gone, and its slot is another service's now. */
static void test_error_to_reused_slot(void **state)
{
	struct packet_spec answer = {TCP6(KEY_CONV1, 443, CLIENT6, 50016, ACK)};
	struct packet_spec error = {.family = AF_INET6,
				    .source = CLIENT6,
				    .destination = KEY_CONV1,
				    .protocol = IPPROTO_ICMPV6,
				    .hop_limit = 60,
				    .icmp_type = 1,
				    .quoted = &answer};
	uint32_t slot = world_slot(SERVICE_PREFIX, 2);
	struct replica replica;

	(void)state;
	request(KEY_CONV1, 50016, SYN, CREATED);
	expect_sent(program, LINK_CLIENTS, &error, OUTCOME_icmp_forwarded, 0);
	assert_int_equal(bpf_map_lookup_elem(world_map("replicas"), &slot, &replica), 0);
	replica.service = SERVICE_CHAT;
	assert_int_equal(bpf_map_update_elem(world_map("replicas"), &slot, &replica, 0), 0);
	expect_sent(program, LINK_CLIENTS, &error, OUTCOME_drop_icmp_unrelated, 0);
}

static void set_forwarding(const char *value)
{
	FILE *file = fopen("/proc/sys/net/ipv4/conf/client-side/forwarding", "w");

	assert_non_null(file);
	fputs(value, file);
	assert_int_equal(fclose(file), 0);
}

/* A tagged packet belongs to an interface that the route look-up is not told: there, the kernel may forward. */
static void test_forwarding_is_off(void **state)
{
	struct packet_spec packet = {UDP4(CLIENT4, 50017, "10.9.9.9", 8000),
				     PAYLOAD(CHAT_QUESTION)};

	(void)state;
	set_forwarding("0");
	expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_drop_no_route, 0);
	packet.tags[0] = (struct packet_tag){0x8100, 0x0123};
	packet.tag_count = 1;
	expect_sent(program, LINK_CLIENTS, &packet, OUTCOME_forwarded_by_stack, CREATED);
	set_forwarding("1");
}

/* Packets with a used-up hop limit can be made at will: not all of their senders are told. */
static void test_answers_are_limited(void **state)
{
	struct packet_spec packet = {UDP4(CLIENT4, 50015, "10.9.9.9", 8000), PAYLOAD(CHAT_QUESTION),
				     .hop_limit = 1};
	static uint8_t bytes[PACKET_SIZE_MAX];
	struct timespec from, to;
	int answered = 0, dropped = 0, length;

	(void)state;
	expect_link_addresses(&packet, LINK_CLIENTS);
	length = packet_build(&packet, bytes);
	clock_gettime(CLOCK_MONOTONIC, &from);
	while (!dropped && answered < 200000) {
		struct run run;

		assert_int_equal(world_run(program, LINK_CLIENTS, bytes, length, 0, &run), 0);
		answered += run.counters[OUTCOME_answered_time_exceeded];
		dropped += run.counters[OUTCOME_drop_hop_limit];
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	/* a thousand a second on each CPU; the seconds begin somewhere in between */
	assert_true(answered <=
		    1000 * (to.tv_sec - from.tv_sec + 2) * (int)sysconf(_SC_NPROCESSORS_CONF));
	assert_int_equal(dropped, 1);
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
		cmocka_unit_test_setup(test_connection_outlives_ring, forget),
		cmocka_unit_test_setup(test_opening_leaves_dead_replica, forget),
		cmocka_unit_test_setup(test_fin_from_both, forget),
		cmocka_unit_test_setup(test_reset, forget),
		cmocka_unit_test_setup(test_port_translated, forget),
		cmocka_unit_test_setup(test_port_of_closed_is_free, forget),
		cmocka_unit_test_setup(test_ports_exhausted, forget),
		cmocka_unit_test_setup(test_return_entry_restored, forget),
		cmocka_unit_test_setup(test_flow_adopted, forget),
		cmocka_unit_test_setup(test_datagrams_stay, forget),
		cmocka_unit_test_setup(test_many_ids_one_client, forget),
		cmocka_unit_test_setup(test_replica_of_two_services, forget),
		cmocka_unit_test_setup(test_second_service_meanwhile, forget),
		cmocka_unit_test_setup(test_fragment_forgotten, forget),
		cmocka_unit_test_setup(test_error_to_reused_slot, forget),
		cmocka_unit_test_setup(test_forwarding_is_off, forget),
		cmocka_unit_test_setup(test_answers_are_limited, forget),
	};
	int failed = 0;

	group_begin();
	for (program = PROGRAM_XDP; program <= PROGRAM_TC; program++)
		failed += cmocka_run_group_tests_name(world_program_name(program), tests,
						      group_load, group_unload);
	return failed;
}
