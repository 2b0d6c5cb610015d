/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers to look-ups of routes are kept for a moment (bpf/lib/next_hop_memory.h): what is asked again within it is not asked of the kernel;
 * what differs in anything, or does not fit, is. The moment is made an hour here.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <bpf/bpf.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "fixture.h"
#include "group.h"

#define HOUR 3600000000000ULL

/* The replica behind the narrow link: MTU 1300. */
#define REPLICA "10.0.4.10"
static const uint8_t usual[6] = {2, 0, 0, 0, 4, 10}, other[6] = {2, 0, 0, 0, 4, 99};

static void command(const char *text)
{
	if (system(text))
		fail_msg("%s: failed", text);
}

static void move_neighbour(bool away)
{
	command(away ? "ip neighbour replace " REPLICA
		       " lladdr 02:00:00:00:04:63 dev narrow-side nud permanent"
		     : "ip neighbour replace " REPLICA
		       " lladdr 02:00:00:00:04:0a dev narrow-side nud permanent");
}

/* A datagram of that size in IP from that port. */
static struct run ask(enum program program, uint16_t port, int size)
{
	struct packet_spec packet = {UDP4(CLIENT4, 0, "10.9.9.60", 8600), LONG_PAYLOAD(size - 28)};
	static uint8_t bytes[PACKET_SIZE_MAX];
	struct run run;

	packet.source_port = port;
	packet.dont_fragment = true;
	expect_link_addresses(&packet, LINK_CLIENTS);
	assert_int_equal(
		world_run(program, LINK_CLIENTS, bytes, packet_build(&packet, bytes), 0, &run), 0);
	return run;
}

static void assert_sent(const struct run *run, const uint8_t address[6])
{
	assert_int_equal(run->counters[OUTCOME_forwarded], 1);
	/* tc's redirection writes the link addresses as XDP does */
	assert_memory_equal(run->bytes, address, 6);
}

static void check(enum program program)
{
	struct run run;

	move_neighbour(false);
	run = ask(program, 50001, 200);
	assert_sent(&run, usual);
	move_neighbour(true);
	/* the same question: as before */
	run = ask(program, 50001, 1300);
	assert_sent(&run, usual);
	/* one that does not fit is asked, and refused, whatever is known */
	run = ask(program, 50001, 1301);
	assert_int_equal(run.counters[OUTCOME_forwarded], 0);
	assert_int_equal(run.counters[OUTCOME_answered_too_big], 1);
	/* another question */
	run = ask(program, 50002, 200);
	assert_sent(&run, other);
	move_neighbour(false);
	run = ask(program, 50002, 200);
	assert_sent(&run, other);
	run = ask(program, 50003, 200);
	assert_sent(&run, usual);
}

/* Each has a memory of its own. */
static void xdp_keeps_answers(void **state)
{
	(void)state;
	check(PROGRAM_XDP);
}

static void tc_keeps_answers(void **state)
{
	(void)state;
	check(PROGRAM_TC);
}

static void set_peer(bool peer)
{
	uint32_t key = world_interface(LINK_NARROW);
	struct redirect_device device = {.usable = 1, .peer = peer};

	assert_int_equal(bpf_map_update_elem(world_map("redirect_devices"), &key, &device, 0), 0);
}

/*
 * What is given to the other end of a veth loses its mark, as it would on the way through the veth. That an interface has such an end is part of the
 * answer that is kept: of that answer alone.
 */
static void the_other_end_is_kept(void **state)
{
	struct run run;

	(void)state;
	run = ask(PROGRAM_TC, 50201, 200);
	assert_int_equal(run.mark, WORLD_MARK);
	set_peer(true);
	run = ask(PROGRAM_TC, 50201, 200);
	assert_sent(&run, usual);
	assert_int_equal(run.mark, WORLD_MARK);
	run = ask(PROGRAM_TC, 50202, 200);
	assert_sent(&run, usual);
	assert_int_equal(run.mark, 0);
	set_peer(false);
	run = ask(PROGRAM_TC, 50202, 200);
	assert_int_equal(run.mark, 0);
	run = ask(PROGRAM_TC, 50203, 200);
	assert_sent(&run, usual);
	assert_int_equal(run.mark, WORLD_MARK);
}

/* A refusal is not kept: when the route is there, the next packet takes it. */
static void refusals_are_not_kept(void **state)
{
	struct packet_spec packet = {UDP4(CLIENT4, 50100, "10.9.9.70", 8700), LONG_PAYLOAD(100)};
	static uint8_t bytes[PACKET_SIZE_MAX];
	struct run run;

	(void)state;
	expect_link_addresses(&packet, LINK_CLIENTS);
	for (enum program program = PROGRAM_XDP; program <= PROGRAM_TC; program++) {
		assert_int_equal(world_run(program, LINK_CLIENTS, bytes,
					   packet_build(&packet, bytes), 0, &run),
				 0);
		assert_int_equal(run.counters[OUTCOME_drop_no_route], 1);
	}
	command("ip route replace 10.0.5.10/32 via 10.0.4.10");
	for (enum program program = PROGRAM_XDP; program <= PROGRAM_TC; program++) {
		assert_int_equal(world_run(program, LINK_CLIENTS, bytes,
					   packet_build(&packet, bytes), 0, &run),
				 0);
		assert_int_equal(run.counters[OUTCOME_forwarded], 1);
	}
	command("ip route delete 10.0.5.10/32");
}

static int load(void **state)
{
	cpu_set_t set;

	/* the memory is a processor's own */
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return -1;
	world_set_next_hop_memory(HOUR);
	return group_load_services(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xdp_keeps_answers),
		cmocka_unit_test(tc_keeps_answers),
		cmocka_unit_test(the_other_end_is_kept),
		cmocka_unit_test(refusals_are_not_kept),
	};

	group_begin();
	return cmocka_run_group_tests(tests, load, group_unload);
}
