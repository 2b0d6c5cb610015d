/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a packet costs in the router, by kind, beside the cost of a test run that does nothing: measured in turns, the least of all
 * rounds. Prints a table; asserts only that every round did what it should, and that what is not ours costs less than what is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "fixture.h"
#include "group.h"
#include "router_cost.skel.h"

#define REPEAT 100000
#define ROUNDS 9

static struct router_cost_bpf *cost;

static const struct measured {
	const char *name;
	struct packet_spec packet;
	enum link link;
	int verdict;
} table[] = {
	{"not ours: TCP, IPv6",
	 {TCP6(CLIENT6, 47001, "fd00:2::99", 22, ACK), LONG_PAYLOAD(200)},
	 .verdict = XDP_PASS},
	{"not ours: UDP, IPv6",
	 {UDP6(CLIENT6, 47002, "fd00:2::99", 53), LONG_PAYLOAD(200)},
	 .verdict = XDP_PASS},
	{"not ours: UDP, IPv4",
	 {UDP4(CLIENT4, 47003, "10.0.2.99", 53), LONG_PAYLOAD(200)},
	 .verdict = XDP_PASS},
	{"not ours: ping",
	 {.family = AF_INET,
	  .source = CLIENT4,
	  .destination = "10.0.2.99",
	  .protocol = IPPROTO_ICMP,
	  .hop_limit = 60,
	  .icmp_type = 8,
	  LONG_PAYLOAD(200)},
	 .verdict = XDP_PASS},
	{"request, UDP by offset, IPv4",
	 {UDP4(CLIENT4, 47004, "10.9.9.9", 8000), LONG_PAYLOAD(200)},
	 .verdict = XDP_REDIRECT},
	{"request, UDP by offset, IPv6",
	 {UDP6(CLIENT6, 47005, "fd00:9::9", 8000), LONG_PAYLOAD(200)},
	 .verdict = XDP_REDIRECT},
	{"request, TCP by address",
	 {TCP6(CLIENT6, 47006, KEY_CONV1, 443, ACK), LONG_PAYLOAD(200)},
	 .verdict = XDP_REDIRECT},
	{"reply, UDP by offset, IPv4",
	 {UDP4("10.0.2.11", 8002, CLIENT4, 47004), LONG_PAYLOAD(200)},
	 LINK_SERVERS,
	 XDP_REDIRECT},
	{"reply, UDP by offset, IPv6",
	 {UDP6("fd00:2::11", 8002, CLIENT6, 47005), LONG_PAYLOAD(200)},
	 LINK_SERVERS,
	 XDP_REDIRECT},
	{"reply, TCP by address",
	 {TCP6("fd00:2::42", 8443, CLIENT6, 47006, ACK), LONG_PAYLOAD(200)},
	 LINK_SERVERS,
	 XDP_REDIRECT},
};

#define COUNT (sizeof(table) / sizeof(table[0]))

/* Nanoseconds a packet. */
static uint32_t run(const struct bpf_program *program, enum link link, const uint8_t *bytes,
		    int length, int verdict)
{
	struct xdp_md context = {.data_end = length, .ingress_ifindex = world_interface(link)};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = bytes, .data_size_in = length,
		    .ctx_in = &context, .ctx_size_in = sizeof(context), .repeat = REPEAT);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(program), &options), 0);
	assert_int_equal(options.retval, verdict);
	return options.duration;
}

static void lower(uint32_t *least, uint32_t value)
{
	if (!*least || value < *least)
		*least = value;
}

static void test_costs(void **state)
{
	static uint8_t bytes[COUNT][2048];
	uint32_t costs[COUNT] = {}, nothing = 0, restore = 0;
	int lengths[COUNT];

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		struct packet_spec packet = table[i].packet;

		expect_link_addresses(&packet, table[i].link);
		lengths[i] = packet_build(&packet, bytes[i]);
	}
	for (int round = 0; round < ROUNDS; round++) {
		lower(&nothing,
		      run(cost->progs.do_nothing, LINK_CLIENTS, bytes[0], lengths[0], XDP_PASS));
		lower(&restore,
		      run(cost->progs.restore_only, LINK_CLIENTS, bytes[0], lengths[0], XDP_PASS));
		for (size_t i = 0; i < COUNT; i++)
			lower(&costs[i], run(cost->progs.router_restored, table[i].link, bytes[i],
					     lengths[i], table[i].verdict));
	}
	printf("# a test run that does nothing: %u ns; putting the packet back: %u ns more\n",
	       nothing, restore - nothing);
	for (size_t i = 0; i < COUNT; i++)
		printf("# %-30s %4d ns more, %.1f of a run that does nothing\n", table[i].name,
		       (int)(costs[i] - restore), (double)(costs[i] - restore) / nothing);
	/* there, time means nothing */
	for (size_t i = 0; i < 4 && !getenv("WARMPATH_EMULATED"); i++)
		for (size_t j = 4; j < COUNT; j++)
			assert_true(costs[i] < costs[j]);
}

static int load(void **state)
{
	struct bpf_map *map;

	if (group_load_services(state))
		return -1;
	cost = router_cost_bpf__open();
	if (!cost)
		return -1;
	bpf_object__for_each_map(map, cost->obj)
	{
		if (!bpf_map__pin_path(map))
			continue;
		bpf_map__set_pin_path(map, NULL);
		if (bpf_map__reuse_fd(map, world_map(bpf_map__name(map))))
			return -1;
	}
	return router_cost_bpf__load(cost);
}

static int unload(void **state)
{
	router_cost_bpf__destroy(cost);
	return group_unload(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_costs)};

	group_begin();
	return cmocka_run_group_tests(tests, load, unload);
}
