/* SPDX-License-Identifier: BSD-2-Clause */
/* See expect.h. */
#include "expect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "decode.h"
#include "invariants.h"
#include "packets.h"

void expect_forget(void)
{
	world_forget_flows();
}

void expect_link_addresses(struct packet_spec *packet, enum link link)
{
	world_link_address(link, packet->destination_mac);
	memcpy(packet->source_mac, "\x02\x00\x00\x00\xee\xee", 6);
}

/* What holds for every packet. */
static void expect_invariants(const uint8_t *in, int in_length, const struct run *run,
			      enum program program)
{
	enum packet_outcome outcome;
	const char *wrong = invariants_check(in, in_length, run, program, &outcome);

	if (wrong)
		fail_msg("%s: %s", counter_name(outcome), wrong);
}

/* Which link leads to that address. */
static enum link link_towards(const char *address)
{
	unsigned int network = 0;

	if (sscanf(address, "10.0.%u.", &network) != 1)
		sscanf(address, "fd00:%u::", &network);
	return network == 1   ? LINK_CLIENTS
	       : network == 4 ? LINK_NARROW
	       : network == 7 ? LINK_WIDE
			      : LINK_SERVERS;
}

/* The link addresses with which a packet leaves. */
static void set_next_hop(struct packet_spec *packet)
{
	bool gateway = !strncmp(packet->destination, "10.0.3.", 7) ||
		       !strncmp(packet->destination, "fd00:3:", 7);

	world_link_address(link_towards(packet->destination), packet->source_mac);
	world_neighbour_address(gateway ? "10.0.2.254" : packet->destination,
				packet->destination_mac);
}

/* The ICMP error that the router makes of a packet: from the service, back over the link it came from. */
static void set_answer(const struct fixture_kind *kind, const struct packet_spec *in,
		       struct packet_spec *answer)
{
	bool ipv4 = in->family == AF_INET;
	static uint8_t bytes[PACKET_SIZE_MAX];
	int most = ipv4 ? 576 - 28 : 1280 - 48;
	int length = packet_build_ip(in, bytes);

	*answer = (struct packet_spec){
		.family = in->family,
		.protocol = ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6,
		.hop_limit = 64,
		.traffic_class = 0xc0,
		.icmp_type = kind->answer.type,
		.icmp_code = kind->answer.code,
		.icmp_rest = kind->answer.mtu,
		.quoted = in,
		.quoted_length = length > most ? most : length,
		.tag_count = in->tag_count,
	};
	if (!ipv4)
		answer->traffic_class = 0xc0;
	strcpy(answer->source, in->destination);
	strcpy(answer->destination, in->source);
	memcpy(answer->source_mac, in->destination_mac, 6);
	memcpy(answer->destination_mac, in->source_mac, 6);
	memcpy(answer->tags, in->tags, sizeof(in->tags));
}

static enum packet_outcome expected_outcome(const struct fixture_kind *kind, enum program program)
{
	if (!kind->resolve || program == PROGRAM_XDP)
		return kind->outcome;
	return kind->outcome == OUTCOME_forwarded_by_stack ? OUTCOME_forwarded : OUTCOME_returned;
}

/* in: the packet that goes in, link addresses filled in. */
static void expected_packet(const struct fixture_kind *kind, const struct packet_spec *in,
			    enum program program, struct packet_spec *out)
{
	bool sent = outcome_verdict(expected_outcome(kind, program)) == FORWARD;

	*out = *in;
	if (kind->change == CHANGE_ANSWER) {
		set_answer(kind, in, out);
		return;
	}
	if (kind->change == CHANGE_TO) {
		strcpy(out->destination, kind->address);
		out->destination_port = kind->port;
	} else if (kind->change == CHANGE_FROM) {
		strcpy(out->source, kind->address);
		out->source_port = kind->port;
	} else if (kind->change == CHANGE_OUT) {
		*out = *kind->out;
		memcpy(out->source_mac, in->source_mac, 6);
		memcpy(out->destination_mac, in->destination_mac, 6);
		memcpy(out->tags, in->tags, sizeof(in->tags));
		out->tag_count = in->tag_count;
		out->hop_limit = in->hop_limit;
	}
	if (!sent)
		return;
	out->hop_limit--;
	if (!kind->resolve)
		set_next_hop(out);
}

static void expect_counters(const struct run *run, enum packet_outcome outcome, uint32_t notes)
{
	for (int i = 0; i < COUNTER_COUNT; i++) {
		int64_t wanted = i == (int)outcome;

		if (i >= OUTCOME_COUNT)
			wanted = notes >> (i - OUTCOME_COUNT) & 1;
		if (run->counters[i] != wanted)
			fail_msg("counter %s grew by %lld, not %lld (outcome %s expected)",
				 counter_name(i), (long long)run->counters[i], (long long)wanted,
				 counter_name(outcome));
	}
}

void expect_before(const struct fixture_kind *kind, enum program program)
{
	static uint8_t bytes[PACKET_SIZE_MAX];

	for (size_t i = 0; i < 2 && kind->before[i]; i++) {
		struct packet_spec packet = *kind->before[i];
		enum link link = link_towards(packet.source);
		struct run run;
		int length;

		/* what the return program finds remembered, the router has seen on ingress */
		enum program first =
			program == PROGRAM_RETURN && link == LINK_CLIENTS ? PROGRAM_TC : program;

		expect_link_addresses(&packet, link);
		length = packet_build(&packet, bytes);
		assert_int_equal(world_run(first, link, bytes, length, 0, &run), 0);
		expect_invariants(bytes, length, &run, first);
	}
}

int expect_build(const struct fixture_kind *kind, struct packet_spec *packet, uint8_t *bytes)
{
	*packet = kind->packet;
	expect_link_addresses(packet, kind->link);
	if (kind->multicast)
		memcpy(packet->destination_mac, "\x01\x00\x5e\x01\x02\x03", 6);
	return packet_build(packet, bytes);
}

void expect_kind(const struct fixture_kind *kind, enum program program)
{
	static uint8_t in_bytes[PACKET_SIZE_MAX], out_bytes[PACKET_SIZE_MAX];
	struct packet_spec in, out;
	int in_length, out_length;
	struct run run;

	expect_before(kind, program);
	in_length = expect_build(kind, &in, in_bytes);
	expected_packet(kind, &in, program, &out);
	out_length = packet_build(&out, out_bytes);

	assert_int_equal(
		world_run(program, kind->link, in_bytes, in_length, kind->segment_size, &run), 0);
	expect_counters(&run, expected_outcome(kind, program), kind->notes);
	expect_invariants(in_bytes, in_length, &run, program);
	if (outcome_verdict(kind->outcome) == DROP)
		return;
	if (run.length != out_length || memcmp(run.bytes, out_bytes, out_length)) {
		packet_print_difference(out_bytes, out_length, run.bytes, run.length);
		fail_msg("another packet came out than expected");
	}
}

struct expect_ends expect_ends_of(const uint8_t *bytes, const struct decoded *packet)
{
	struct expect_ends ends = {};

	inet_ntop(packet->family, bytes + packet->source_at, ends.source, sizeof(ends.source));
	inet_ntop(packet->family, bytes + packet->source_at + packet->address_size,
		  ends.destination, sizeof(ends.destination));
	if (!packet->later_fragment) {
		ends.source_port = bytes[packet->transport] << 8 | bytes[packet->transport + 1];
		ends.destination_port =
			bytes[packet->transport + 2] << 8 | bytes[packet->transport + 3];
	}
	return ends;
}

struct expect_ends expect_sent(enum program program, enum link link,
			       const struct packet_spec *packet, enum packet_outcome outcome,
			       uint32_t notes)
{
	static uint8_t bytes[PACKET_SIZE_MAX];
	struct packet_spec in = *packet;
	struct decoded out;
	struct run run;
	int length;

	expect_link_addresses(&in, link);
	length = packet_build(&in, bytes);
	assert_int_equal(world_run(program, link, bytes, length, 0, &run), 0);
	expect_counters(&run, outcome, notes);
	expect_invariants(bytes, length, &run, program);
	out = decode_frame(run.bytes, run.length);
	if (packet->quoted)
		out = decode_ip(run.bytes, out.transport + 8, out.end);
	return expect_ends_of(run.bytes, &out);
}
