/* SPDX-License-Identifier: BSD-2-Clause */
/* See expect.h. */
#include "expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "packets.h"

enum verdict { PASS, DROP, FORWARD, ANSWER };

static const struct {
	const char *name;
	enum verdict verdict;
} counter_table[COUNTER_COUNT] = {
#define X(name, verdict, sentence) [OUTCOME_##name] = {#name, verdict},
	WARMPATH_OUTCOMES(X)
#undef X
#define X(name, sentence) [NOTE_##name] = {#name, PASS},
		WARMPATH_NOTES(X)
#undef X
};

static const int kernel_verdicts[PROGRAM_COUNT][4] = {
	[PROGRAM_XDP] = {XDP_PASS, XDP_DROP, XDP_REDIRECT, XDP_TX},
	[PROGRAM_TC] = {TC_ACT_UNSPEC, TC_ACT_SHOT, TC_ACT_REDIRECT, TC_ACT_REDIRECT},
	[PROGRAM_RETURN] = {TC_ACT_UNSPEC, TC_ACT_SHOT, TC_ACT_REDIRECT, TC_ACT_REDIRECT},
};

const char *expect_counter_name(int counter)
{
	return counter >= 0 && counter < COUNTER_COUNT ? counter_table[counter].name : "(none)";
}

void expect_forget(void)
{
	world_forget_flows();
}

void expect_link_addresses(struct packet_spec *packet, enum link link)
{
	world_link_address(link, packet->destination_mac);
	memcpy(packet->source_mac, "\x02\x00\x00\x00\xee\xee", 6);
}

/* The one outcome that was counted. */
static int counted_outcome(const struct run *run)
{
	int found = -1;

	for (int i = 0; i < OUTCOME_COUNT; i++) {
		if (!run->counters[i])
			continue;
		if (found >= 0 || run->counters[i] != 1)
			fail_msg("more than one outcome: %s %+lld, %s", counter_table[i].name,
				 (long long)run->counters[i], expect_counter_name(found));
		found = i;
	}
	if (found < 0)
		fail_msg("no outcome was counted");
	return found;
}

void expect_invariants(const uint8_t *in, int in_length, const struct run *run,
		       enum program program)
{
	int outcome = counted_outcome(run);
	int verdict = kernel_verdicts[program][counter_table[outcome].verdict];

	if (run->verdict != verdict)
		fail_msg("%s: verdict %d, not %d", counter_table[outcome].name, run->verdict,
			 verdict);
	if (outcome == OUTCOME_not_ours || outcome == OUTCOME_passed_to_stack) {
		if (run->length != in_length || memcmp(run->bytes, in, in_length)) {
			packet_print_difference(in, in_length, run->bytes, run->length);
			fail_msg("%s, but modified", counter_table[outcome].name);
		}
	}
}

static bool is_sent(enum packet_outcome outcome)
{
	return counter_table[outcome].verdict == FORWARD;
}

/* The key of a service by address is the low half of the destination. */
static const struct world_replica *expect_home(const struct fixture_kind *kind)
{
	struct address address;

	if (kind->id)
		return world_home(kind->service, kind->id);
	address = world_address(kind->packet.destination);
	return world_home_of_key(kind->service,
				 (uint64_t)ntohl(address.word[2]) << 32 | ntohl(address.word[3]));
}

static void expected_packet(const struct fixture_kind *kind,
			    const struct fixture_expectation *expected, struct packet_spec *packet)
{
	*packet = kind->packet;
	if (expected->change == CHANGE_TO_REPLICA) {
		const struct world_replica *home = expect_home(kind);

		strcpy(packet->destination, packet->family == AF_INET ? home->ipv4 : home->ipv6);
		packet->destination_port = home->port;
	} else if (expected->change == CHANGE_TO_CLIENT) {
		strcpy(packet->source, expected->public_address);
		packet->source_port = expected->public_port;
	}
	if (is_sent(expected->outcome)) {
		enum link link = expected->change == CHANGE_TO_CLIENT ? LINK_CLIENTS : LINK_SERVERS;

		world_link_address(link, packet->source_mac);
		world_neighbour_address(packet->destination, packet->destination_mac);
		packet->hop_limit--;
	}
}

static void expect_counters(const struct run *run, const struct fixture_expectation *expected)
{
	for (int i = 0; i < COUNTER_COUNT; i++) {
		int64_t wanted = i == (int)expected->outcome;

		if (i >= OUTCOME_COUNT)
			wanted = expected->notes >> (i - OUTCOME_COUNT) & 1;
		if (run->counters[i] != wanted)
			fail_msg("counter %s grew by %lld, not %lld (outcome %s expected)",
				 counter_table[i].name, (long long)run->counters[i],
				 (long long)wanted, counter_table[expected->outcome].name);
	}
}

void expect_kind(const struct fixture_kind *kind, enum program program)
{
	const struct fixture_expectation *expected =
		program == PROGRAM_XDP || !kind->expected_tc ? &kind->expected : kind->expected_tc;
	static uint8_t in[PACKET_SIZE_MAX], out[PACKET_SIZE_MAX];
	struct packet_spec packet;
	int in_length, out_length;
	struct run run;

	if (kind->before) {
		packet = *kind->before;
		expect_link_addresses(&packet, LINK_CLIENTS);
		in_length = packet_build(&packet, in);
		assert_int_equal(world_run(program, LINK_CLIENTS, in, in_length, 0, &run), 0);
		expect_invariants(in, in_length, &run, program);
	}

	expected_packet(kind, expected, &packet);
	if (!is_sent(expected->outcome))
		expect_link_addresses(&packet, kind->link);
	out_length = packet_build(&packet, out);
	packet = kind->packet;
	expect_link_addresses(&packet, kind->link);
	in_length = packet_build(&packet, in);

	assert_int_equal(world_run(program, kind->link, in, in_length, kind->segment_size, &run),
			 0);
	expect_counters(&run, expected);
	expect_invariants(in, in_length, &run, program);
	if (counter_table[expected->outcome].verdict == DROP)
		return;
	if (run.length != out_length || memcmp(run.bytes, out, out_length)) {
		packet_print_difference(out, out_length, run.bytes, run.length);
		fail_msg("another packet came out than expected");
	}
}
