/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broken packets: every kind cut at every length, and many thousand packets with bytes changed at random. Nobody says what each ought to
 * become; what has to hold for all of them is in invariants.h.
 *
 *	test_broken [SEED [PACKETS]]	another run of the random ones; a failure prints its seed
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "expect.h"
#include "fixture.h"
#include "group.h"
#include "invariants.h"
#include "mutate.h"

#define SHORT_SKB 54 /* below, some kernels refuse to make an skb of it */

static long packets = 200000;

struct one_test {
	const struct fixture_kind *kind;
	enum program program;
	char name[128];
};

/* Runs the bytes and checks what always holds. */
static enum packet_outcome run_checked(const struct fixture_kind *kind, enum program program,
				       const uint8_t *bytes, int length, int segment_size,
				       const char *what)
{
	enum packet_outcome outcome = 0;
	const char *wrong;
	struct run run;

	int err = world_run(program, kind->link, bytes, length, segment_size, &run);

	if (err == -EINVAL && program != PROGRAM_XDP && length < SHORT_SKB)
		return OUTCOME_not_ours;
	if (err)
		fail_msg("%s, %s: the program could not be run on %d bytes", kind->name, what,
			 length);
	wrong = invariants_check(bytes, length, &run, program, &outcome);
	if (wrong) {
		packet_print_difference(bytes, length, run.bytes, run.length);
		fail_msg("%s, %s, %s, %d bytes, outcome %s: %s", world_program_name(program),
			 kind->name, what, length, counter_name(outcome), wrong);
	}
	return outcome;
}

/* Cut behind the link header: the IP header says that there is more. It is either not ours, or known to be truncated. */
static void test_cut(void **state)
{
	const struct one_test *test = *state;
	static uint8_t bytes[PACKET_SIZE_MAX];
	struct packet_spec packet;
	int length, ports;

	expect_forget();
	expect_before(test->kind, test->program);
	length = expect_build(test->kind, &packet, bytes) - packet.padding;
	ports = decode_frame(bytes, length).transport + 4;
	for (int cut = MUTATE_SHORTEST; cut < length && cut < MUTATE_LONGEST; cut++) {
		enum packet_outcome outcome =
			run_checked(test->kind, test->program, bytes, cut, 0, "cut");

		if (outcome != OUTCOME_not_ours && outcome != OUTCOME_drop_truncated &&
		    outcome != OUTCOME_drop_header_unsupported)
			fail_msg("cut to %d of %d bytes: %s", cut, length, counter_name(outcome));
		/* once the ports are there, it is known to be for a service */
		if (test->kind->change == CHANGE_TO && !packet.fragment && cut >= ports &&
		    outcome != OUTCOME_drop_truncated)
			fail_msg("cut to %d of %d bytes: %s", cut, length, counter_name(outcome));
	}
}

/* Cut, but the IP header is told: what is missing is missing inside. */
static void test_shortened(void **state)
{
	const struct one_test *test = *state;
	static uint8_t bytes[PACKET_SIZE_MAX], copy[PACKET_SIZE_MAX];
	struct packet_spec packet;
	int length, ip, fixed;

	expect_forget();
	expect_before(test->kind, test->program);
	length = expect_build(test->kind, &packet, bytes) - packet.padding;
	ip = packet_ip_offset(&packet);
	fixed = packet.family == AF_INET ? 20 : 40;
	for (int cut = ip + fixed; cut < length && cut < MUTATE_LONGEST; cut++) {
		int told = packet.family == AF_INET ? cut - ip : cut - ip - 40;
		int at = ip + (packet.family == AF_INET ? 2 : 4);
		int sum;

		memcpy(copy, bytes, cut);
		/* the IPv4 header's sum stays right: what the length loses, the checksum gains (RFC 1624) */
		sum = (copy[at] << 8 | copy[at + 1]) - told + (copy[ip + 10] << 8 | copy[ip + 11]);
		sum = (sum & 0xffff) + (sum >> 16);
		copy[at] = told >> 8;
		copy[at + 1] = told;
		if (packet.family == AF_INET) {
			copy[ip + 10] = sum >> 8;
			copy[ip + 11] = sum;
		}
		run_checked(test->kind, test->program, copy, cut, 0, "shortened");
	}
}

static const struct fixture_kind *random_kind(void)
{
	const struct fixture_table *table;
	size_t tables = 0;

	while (fixture_tables[tables])
		tables++;
	table = fixture_tables[mutate_below(tables)];
	return &table->kinds[mutate_below(table->count)];
}

static void test_mutations(void **state)
{
	static uint8_t bytes[PACKET_SIZE_MAX];
	long long ends[OUTCOME_COUNT] = {};

	(void)state;
	expect_forget();
	for (long i = 0; i < packets; i++) {
		const struct fixture_kind *kind = random_kind();
		enum program program = mutate_below(PROGRAM_COUNT);
		uint64_t before = mutate_seed;
		struct packet_spec packet;
		char what[64];
		int length;

		/* flows come and go with whatever was sent before; each packet's own only sometimes */
		if (!mutate_below(8))
			expect_before(kind, PROGRAM_XDP);
		length = expect_build(kind, &packet, bytes);
		if (length > MUTATE_LONGEST)
			length = MUTATE_LONGEST;
		length = mutate_frame(bytes, length);
		snprintf(what, sizeof(what), "changed with seed %llu", (unsigned long long)before);
		ends[run_checked(kind, program, bytes, length,
				 program != PROGRAM_XDP && !mutate_below(8) ? kind->segment_size
									    : 0,
				 what)]++;
	}
	for (int i = 0; i < OUTCOME_COUNT; i++)
		if (ends[i])
			printf("# %-28s %lld\n", counter_name(i), ends[i]);
	/* a run that hardly ever reaches the data path would prove nothing */
	assert_true(ends[OUTCOME_forwarded] > packets / 50);
	assert_true(ends[OUTCOME_returned] > packets / 100);
	assert_true(ends[OUTCOME_icmp_forwarded] > packets / 500);
}

#define TESTS_MAX 2048

static struct CMUnitTest tests[TESTS_MAX];
static struct one_test all[TESTS_MAX];
static size_t test_count;

static void add_test(const struct fixture_kind *kind, enum program program, const char *how,
		     CMUnitTestFunction function)
{
	struct one_test *test = &all[test_count];

	test->kind = kind;
	test->program = program;
	snprintf(test->name, sizeof(test->name), "%s: %s: %s", world_program_name(program), how,
		 kind ? kind->name : "all kinds");
	tests[test_count].name = test->name;
	tests[test_count].test_func = function;
	tests[test_count++].initial_state = test;
}

int main(int argc, char **argv)
{
	if (getenv("WARMPATH_PACKETS"))
		packets = strtol(getenv("WARMPATH_PACKETS"), NULL, 0);
	if (argc > 1)
		mutate_seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		packets = strtol(argv[2], NULL, 0);
	group_begin();
	for (size_t table = 0; argc == 1 && fixture_tables[table]; table++) {
		for (size_t i = 0; i < fixture_tables[table]->count; i++) {
			const struct fixture_kind *kind = &fixture_tables[table]->kinds[i];

			for (enum program program = 0; program <= PROGRAM_TC; program++) {
				add_test(kind, program, "cut", test_cut);
				add_test(kind, program, "shortened", test_shortened);
			}
		}
	}
	add_test(NULL, PROGRAM_XDP, "changed at random", test_mutations);
	return _cmocka_run_group_tests("broken packets", tests, test_count, group_load_services,
				       group_unload);
}
