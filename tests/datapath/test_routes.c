/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Through the real programs, in numbers: ten thousand ids to rings of 1 to 1,000 replicas go where user space says; and every
 * value that a UDP checksum can take comes out right.
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

#include "expect.h"
#include "fixture.h"
#include "group.h"
#include "lib/ring_maps.h"

#define IDS		10000
#define SERVICE_OF_MANY 21 /* none of the fixture's */
#define PORT		8600
#define PUBLIC		"10.9.9.200"

/* A replica's address says its number; all are behind the gateway. */
static struct address address_of(uint32_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "10.100.%u.%u", number / 250, number % 250 + 1);
	return world_address(text);
}

static uint32_t slot_of(uint32_t number)
{
	return (number * 389 + 17) % REPLICAS_MAX;
}

static void make_service(enum ring_dialect dialect, uint32_t replicas, struct ring *ring)
{
	static char names[REPLICAS_MAX][REPLICA_NAME_SIZE];
	static struct ring_replica members[REPLICAS_MAX];
	struct ring_settings settings = {.dialect = dialect, .vnodes = 100};
	struct ring_maps maps = world_ring_maps();
	struct service_address_key key = {.address = world_address(PUBLIC),
					  .port = htons(PORT),
					  .protocol = IPPROTO_UDP,
					  .prefix_length = 128};
	struct service_address value = {.service = SERVICE_OF_MANY};
	struct service service = {
		.name = "many",
		.state = SERVICE_ACTIVE,
		.id_from = ID_FROM_OFFSET,
		.id_length = ID_LENGTH_MAX,
		.public_ipv4 = world_address(PUBLIC),
		.public_port = htons(PORT),
		.prompt_tokens_offset = OFFSET_NONE,
		.max_tokens_offset = OFFSET_NONE,
		.policy = {.policy = POLICY_CONSISTENT, .load_metric = LOAD_REQUESTS},
	};
	struct service_load sums = {.replica_count = replicas};
	struct replica_load load = {.counted = 1};
	uint32_t index = SERVICE_OF_MANY;
	struct error error;

	for (uint32_t i = 0; i < replicas; i++) {
		struct replica replica = {
			.state = REPLICA_ACTIVE,
			.source = REPLICA_FROM_CONFIGURATION,
			.service = SERVICE_OF_MANY,
			.weight_thousandths = 1000,
			.ipv4 = address_of(i),
			.port = htons(9000 + i),
		};
		uint32_t slot = slot_of(i);

		snprintf(names[i], sizeof(names[i]), "replica-%u", i);
		memcpy(replica.name, names[i], sizeof(replica.name));
		members[i] = (struct ring_replica){
			.name = names[i], .slot = slot, .weight_thousandths = 1000};
		assert_int_equal(bpf_map_update_elem(world_map("replicas"), &slot, &replica, 0), 0);
		assert_int_equal(bpf_map_update_elem(world_map("replica_loads"), &slot, &load, 0),
				 0);
	}
	assert_int_equal(bpf_map_update_elem(world_map("service_loads"), &index, &sums, 0), 0);
	assert_int_equal(bpf_map_update_elem(world_map("services"), &index, &service, 0), 0);
	assert_int_equal(bpf_map_update_elem(world_map("service_addresses"), &key, &value, 0), 0);
	if (ring_build(ring, &settings, members, replicas, &error) ||
	    ring_maps_swap(&maps, SERVICE_OF_MANY, ring, &error))
		fail_msg("%s", error.text);
}

/* The id's field is 128 bytes wide, padded with NULs; ids have 1 to 128 characters. */
static void ask_all(enum program program, const struct ring *ring)
{
	static const char alphabet[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";
	uint64_t random = 88172645463325252ULL;

	for (int i = 0; i < IDS; i++) {
		char payload[ID_LENGTH_MAX] = {};
		struct packet_spec packet = {UDP4(CLIENT4, 40000, PUBLIC, PORT), .payload = payload,
					     .payload_length = sizeof(payload)};
		size_t length = i < 4 * ID_LENGTH_MAX ? i % ID_LENGTH_MAX + 1 : 0;
		static uint8_t bytes[PACKET_SIZE_MAX];
		struct run run;
		int slot, size;

		if (length == 0)
			length =
				snprintf(payload, sizeof(payload), "s%d-c%03d", i / 1000, i % 1000);
		else
			for (size_t j = 0; j < length; j++) {
				random = random * 6364136223846793005ULL + 1442695040888963407ULL;
				payload[j] = alphabet[(random >> 33) % (sizeof(alphabet) - 1)];
			}
		expect_link_addresses(&packet, LINK_CLIENTS);
		size = packet_build(&packet, bytes);
		assert_int_equal(world_run(program, LINK_CLIENTS, bytes, size, 0, &run), 0);
		assert_int_equal(run.counters[OUTCOME_forwarded], 1);
		slot = ring_home_slot(ring, ring_hash(ring, payload, length));
		for (uint32_t number = 0;; number++) {
			struct address address = address_of(number);

			if (slot_of(number) != (uint32_t)slot)
				continue;
			if (memcmp(run.bytes + 30, &address.word[3], 4))
				fail_msg("id \"%.*s\" did not go to replica %u", (int)length,
					 payload, number);
			break;
		}
	}
}

static void test_ring(enum ring_dialect dialect, uint32_t replicas)
{
	struct ring ring;

	make_service(dialect, replicas, &ring);
	ask_all(replicas % 2 ? PROGRAM_XDP : PROGRAM_TC, &ring);
	ring_free(&ring);
}

#define TEST_RING(name, dialect, replicas)    \
	static void name(void **state)        \
	{                                     \
		(void)state;                  \
		test_ring(dialect, replicas); \
	}

TEST_RING(test_llm_ring_1, RING_LLM, 1)
TEST_RING(test_llm_ring_3, RING_LLM, 3)
TEST_RING(test_llm_ring_8, RING_LLM, 8)
TEST_RING(test_llm_ring_64, RING_LLM, 64)
TEST_RING(test_llm_ring_1000, RING_LLM, 1000)
TEST_RING(test_replica_router_3, RING_REPLICA_ROUTER, 3)
TEST_RING(test_replica_router_64, RING_REPLICA_ROUTER, 64)

/* Two bytes of the payload run through all values, and with them the checksum before and after. */
static void test_checksums(enum program program, bool ipv6)
{
	static uint8_t in[2048], out[2048];
	uint8_t payload[] = CHAT_QUESTION;
	struct packet_spec ipv4_packet = {UDP4(CLIENT4, 40001, "10.9.9.9", 8000)};
	struct packet_spec ipv6_packet = {UDP6(CLIENT6, 40001, "fd00:9::9", 8000)};
	struct packet_spec packet = ipv6 ? ipv6_packet : ipv4_packet, expected;
	int at = packet_ip_offset(&packet) + (ipv6 ? 40 : 20) + 6;
	int zeros_before = 0, zeros_after = 0;

	packet.payload = payload;
	packet.payload_length = sizeof(payload);
	expect_link_addresses(&packet, LINK_CLIENTS);
	expected = packet;
	strcpy(expected.destination, ipv6 ? "fd00:2::11" : "10.0.2.11");
	expected.destination_port = 8002;
	expected.hop_limit--;
	world_link_address(LINK_SERVERS, expected.source_mac);
	world_neighbour_address(expected.destination, expected.destination_mac);
	for (int value = 0; value < 65536; value++) {
		struct run run;
		int length;

		payload[24] = value >> 8;
		payload[25] = value;
		length = packet_build(&packet, in);
		packet_build(&expected, out);
		assert_int_equal(world_run(program, LINK_CLIENTS, in, length, 0, &run), 0);
		if (run.length != length || memcmp(run.bytes, out, length)) {
			packet_print_difference(out, length, run.bytes, run.length);
			fail_msg("value %d", value);
		}
		zeros_before += in[at] == 0xff && in[at + 1] == 0xff;
		zeros_after += out[at] == 0xff && out[at + 1] == 0xff;
	}
	assert_true(zeros_before);
	assert_true(zeros_after);
}

static void test_checksums_xdp_ipv4(void **state)
{
	(void)state;
	test_checksums(PROGRAM_XDP, false);
}

static void test_checksums_xdp_ipv6(void **state)
{
	(void)state;
	test_checksums(PROGRAM_XDP, true);
}

static void test_checksums_tc_ipv4(void **state)
{
	(void)state;
	test_checksums(PROGRAM_TC, false);
}

static void test_checksums_tc_ipv6(void **state)
{
	(void)state;
	test_checksums(PROGRAM_TC, true);
}

/* The many replicas have taken slots of the others. */
static int configure(void **state)
{
	(void)state;
	expect_forget();
	return world_configure(fixture_services, SERVICE_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_llm_ring_1),
		cmocka_unit_test(test_llm_ring_3),
		cmocka_unit_test(test_llm_ring_8),
		cmocka_unit_test(test_llm_ring_64),
		cmocka_unit_test(test_llm_ring_1000),
		cmocka_unit_test(test_replica_router_3),
		cmocka_unit_test(test_replica_router_64),
		cmocka_unit_test_setup(test_checksums_xdp_ipv4, configure),
		cmocka_unit_test_setup(test_checksums_xdp_ipv6, configure),
		cmocka_unit_test_setup(test_checksums_tc_ipv4, configure),
		cmocka_unit_test_setup(test_checksums_tc_ipv6, configure),
	};

	group_begin();
	return cmocka_run_group_tests(tests, group_load, group_unload);
}
