/* SPDX-License-Identifier: BSD-2-Clause */
/* See dialogue.h. */
#include "dialogue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <warmpath/contact.h>
#include <warmpath/handoff_keys.h>
#include <warmpath/http_settings.h>
#include <warmpath/mark.h>

#include "decode.h"
#include "expect.h"
#include "invariants.h"

const struct world_service dialogue_services[] = {
	[DIALOGUE_API] =
		{
			.name = "api",
			.addresses = {DIALOGUE_SERVICE4, DIALOGUE_SERVICE6},
			.port = DIALOGUE_PORT,
			.protocols = {IPPROTO_TCP},
			.id_from = ID_FROM_HEADER,
			.timeout_milliseconds = 60000,
			.replicas = {{"api-0", "10.0.2.10", "fd00:2::10", 8001},
				     {"api-1", "10.0.2.11", "fd00:2::11", 8002},
				     {"api-2", "10.0.2.12", "fd00:2::12", 8003}},
		},
	[DIALOGUE_PATH] =
		{
			.name = "path",
			.addresses = {"10.9.8.2", "fd00:98::2"},
			.port = DIALOGUE_PORT,
			.protocols = {IPPROTO_TCP},
			.id_from = ID_FROM_OFFSET,
			.id_offset = 8,
			.id_length = 24,
			.timeout_milliseconds = 60000,
			.replicas = {{"path-0", "10.0.2.20", "fd00:2::20", 9001},
				     {"path-1", "10.0.2.21", "fd00:2::21", 9002},
				     {"path-2", "10.0.2.30", "fd00:2::30", 9003}},
		},
};

struct handoff_keys dialogue_keys(int first, int count)
{
	struct handoff_keys keys = {.count = count};

	for (int i = 0; i < HANDOFF_KEYS_MAX; i++) {
		__u64 number = (first + i) % HANDOFF_KEYS_MAX + 1;

		keys.cookie[i] = (struct siphash_key){{number * 0x1111, number * 0x2222}};
		keys.mark[i] = (struct siphash_key){{number * 0x3333, number * 0x4444}};
	}
	return keys;
}

void dialogue_set_keys(int first, int count)
{
	struct handoff_keys keys = dialogue_keys(first, count);
	uint32_t zero = 0;

	assert_int_equal(bpf_map_update_elem(world_map("handoff_keys"), &zero, &keys, 0), 0);
}

int dialogue_configure(void)
{
	struct http_service service = {
		.segment_size_ipv4 = 1460,
		.segment_size_ipv6 = 1440,
		.trust_token_headers = 1,
	};
	struct handoff_keys keys = dialogue_keys(0, 1);
	uint32_t zero = 0;
	int err;

	http_settings_init(&service.settings, 256);
	http_settings_add_name(&service.settings, "x-conversation-id");
	err = world_configure(dialogue_services, DIALOGUE_SERVICES);
	for (uint32_t i = 0; i < DIALOGUE_SERVICES && !err; i++)
		err = bpf_map_update_elem(world_map("http_services"), &i, &service, 0);
	return err ? err : bpf_map_update_elem(world_map("handoff_keys"), &zero, &keys, 0);
}

static const char *service_address(const struct dialogue *dialogue)
{
	return dialogue_services[dialogue->service].addresses[dialogue->ipv6];
}

struct dialogue dialogue_new(enum program program, bool ipv6, uint16_t client_port)
{
	return (struct dialogue){
		.program = program,
		.ipv6 = ipv6,
		.client_port = client_port,
		.client_next = 0xfffff000u + client_port, /* goes round in the middle of things */
		.client_clock = 5000,
	};
}

/* --- out of the program ------------------------------------------------------------------------------------- */

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

static void read_segment(struct segment *segment, const struct run *run)
{
	struct decoded packet = decode_frame(run->bytes, run->length);
	const uint8_t *ip = run->bytes + packet.network, *tcp = run->bytes + packet.transport;
	int header = (tcp[12] >> 4) * 4;

	if (!packet.valid || packet.protocol != IPPROTO_TCP)
		fail_msg("%s: what came out is not TCP", counter_name(segment->outcome));
	if (!decode_network_sum_is_right(run->bytes, &packet) ||
	    decode_transport_sum(run->bytes, &packet) != 0xffff)
		fail_msg("%s: a checksum is wrong", counter_name(segment->outcome));
	inet_ntop(packet.family, run->bytes + packet.source_at, segment->source,
		  sizeof(segment->source));
	inet_ntop(packet.family, run->bytes + packet.source_at + packet.address_size,
		  segment->destination, sizeof(segment->destination));
	segment->low = packet.family == AF_INET ? get32(ip + 4) >> 16 : get32(ip) & 0xfffff;
	segment->source_port = get32(tcp) >> 16;
	segment->destination_port = get32(tcp) & 0xffff;
	segment->sequence = get32(tcp + 4);
	segment->acknowledgement = get32(tcp + 8);
	segment->flags = tcp[13];
	segment->window = get32(tcp + 14) >> 16;
	segment->urgent = get32(tcp + 16) & 0xffff;
	segment->options_length = header - 20;
	memcpy(segment->options, tcp + 20, segment->options_length);
	segment->payload_length = packet.end - packet.transport - header;
	assert_true(segment->payload_length >= 0 &&
		    segment->payload_length < (int)sizeof(segment->payload));
	memcpy(segment->payload, tcp + header, segment->payload_length);
	segment->payload[segment->payload_length] = '\0';
}

static uint8_t frame[PACKET_SIZE_MAX];
static int frame_length;
static enum link frame_link;

const uint8_t *dialogue_frame(int *length, enum link *link)
{
	*length = frame_length;
	*link = frame_link;
	return frame;
}

static const uint8_t *output;
static int output_length;

const uint8_t *dialogue_output(int *length)
{
	*length = output_length;
	return output;
}

/* What holds whatever the segment was: one outcome, and the verdict that belongs to it. */
static struct segment run_packet(enum program program, enum link link, struct packet_spec *packet)
{
	struct segment segment = {};
	int counted = 0;
	struct run run;

	expect_link_addresses(packet, link);
	frame_length = packet_build(packet, frame);
	frame_link = link;
	assert_int_equal(world_run(program, link, frame, frame_length, 0, &run), 0);
	output = run.bytes;
	output_length = run.length;
	for (int i = 0; i < OUTCOME_COUNT; i++) {
		if (!run.counters[i])
			continue;
		segment.outcome = i;
		counted += run.counters[i];
	}
	assert_int_equal(counted, 1);
	if (segment.outcome == OUTCOME_drop_internal ||
	    segment.outcome == OUTCOME_drop_rewrite_failed) {
		packet_print_difference(frame, frame_length, frame, frame_length);
		fail_msg("%s: %s", world_program_name(program), counter_name(segment.outcome));
	}
	memcpy(segment.counters, run.counters, sizeof(segment.counters));
	if (!invariants_verdict_fits(&run, program, segment.outcome))
		fail_msg("%s: the verdict is not the outcome's", counter_name(segment.outcome));
	segment.sent = outcome_verdict(segment.outcome) != DROP;
	if (segment.sent)
		read_segment(&segment, &run);
	return segment;
}

/* --- the client ---------------------------------------------------------------------------------------------- */

static void put_option32(uint8_t *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, sizeof(value));
}

static struct segment send_from_client(struct dialogue *dialogue, uint32_t sequence, uint8_t flags,
				       const void *payload, int length, uint16_t urgent)
{
	struct packet_spec packet = {
		.family = dialogue->ipv6 ? AF_INET6 : AF_INET,
		.protocol = IPPROTO_TCP,
		.hop_limit = 60,
		.identification = 0x1234,
		.source_port = dialogue->client_port,
		.destination_port = DIALOGUE_PORT,
		.sequence = sequence,
		.acknowledgement = flags & ACK ? dialogue->service_next : 0,
		.tcp_flags = flags,
		.urgent_pointer = urgent,
		.payload = payload,
		.payload_length = length,
	};

	strcpy(packet.source, dialogue->ipv6 ? CLIENT6 : CLIENT4);
	strcpy(packet.destination, service_address(dialogue));
	if (dialogue->timestamps && !(flags & RST)) {
		memcpy(packet.tcp_options, "\x01\x01\x08\x0a", 4);
		put_option32(packet.tcp_options + 4, dialogue->client_clock);
		put_option32(packet.tcp_options + 8, dialogue->service_clock);
		packet.tcp_options_length = 12;
	}
	return run_packet(dialogue->program, LINK_CLIENTS, &packet);
}

struct segment dialogue_syn(struct dialogue *dialogue, const void *options, int length,
			    uint8_t flags)
{
	struct packet_spec packet = {
		.family = dialogue->ipv6 ? AF_INET6 : AF_INET,
		.protocol = IPPROTO_TCP,
		.hop_limit = 60,
		.source_port = dialogue->client_port,
		.destination_port = DIALOGUE_PORT,
		.sequence = dialogue->client_next,
		.tcp_flags = SYN | flags,
		.tcp_options_length = (length + 3) & ~3,
	};
	struct segment answer;

	strcpy(packet.source, dialogue->ipv6 ? CLIENT6 : CLIENT4);
	strcpy(packet.destination, service_address(dialogue));
	if (length)
		memcpy(packet.tcp_options, options, length);
	answer = run_packet(dialogue->program, LINK_CLIENTS, &packet);
	if (!answer.sent)
		return answer;
	dialogue->cookie = answer.sequence;
	dialogue->client_next++;
	dialogue->service_next = answer.sequence + 1;
	return answer;
}

void dialogue_connect(struct dialogue *dialogue)
{
	uint8_t options[] = {2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7};
	struct segment answer;

	put_option32(options + 8, dialogue->client_clock);
	answer = dialogue_syn(dialogue, options, sizeof(options), 0);
	assert_int_equal(answer.outcome, OUTCOME_answered_handshake);
	dialogue->timestamps = true;
	dialogue->service_clock = get32(answer.options + 8);
	assert_int_equal(dialogue_send(dialogue, ACK, NULL).outcome, OUTCOME_absorbed_handshake);
}

struct segment dialogue_send_urgent(struct dialogue *dialogue, uint8_t flags, const char *payload,
				    uint16_t urgent)
{
	uint32_t sequence = dialogue->client_next;
	int length = payload ? strlen(payload) : 0;

	dialogue->client_next += length + !!(flags & FIN);
	return send_from_client(dialogue, sequence, flags, payload, length, urgent);
}

struct segment dialogue_send_bytes(struct dialogue *dialogue, uint8_t flags, const void *bytes,
				   int length)
{
	uint32_t sequence = dialogue->client_next;

	dialogue->client_next += length + !!(flags & FIN);
	return send_from_client(dialogue, sequence, flags, bytes, length, 0);
}

struct segment dialogue_send(struct dialogue *dialogue, uint8_t flags, const char *payload)
{
	return dialogue_send_urgent(dialogue, flags, payload, 0);
}

struct segment dialogue_repeat(struct dialogue *dialogue, uint32_t sequence, uint8_t flags,
			       const char *payload)
{
	return send_from_client(dialogue, sequence, flags, payload, payload ? strlen(payload) : 0,
				0);
}

/* --- replicas ------------------------------------------------------------------------------------------------ */

struct segment dialogue_reply(struct dialogue *dialogue, const struct world_replica *replica,
			      uint32_t sequence, uint32_t acknowledgement, uint8_t flags,
			      const char *payload)
{
	struct packet_spec packet = {
		.family = dialogue->ipv6 ? AF_INET6 : AF_INET,
		.protocol = IPPROTO_TCP,
		.hop_limit = 64,
		.source_port = replica->port,
		.destination_port = dialogue->client_port,
		.sequence = sequence,
		.acknowledgement = acknowledgement,
		.tcp_flags = flags,
		.payload = payload,
		.payload_length = payload ? strlen(payload) : 0,
	};
	struct segment segment;

	strcpy(packet.source, dialogue->ipv6 ? replica->ipv6 : replica->ipv4);
	strcpy(packet.destination, dialogue->ipv6 ? CLIENT6 : CLIENT4);
	if (dialogue->timestamps && !(flags & RST)) {
		memcpy(packet.tcp_options, "\x01\x01\x08\x0a", 4);
		put_option32(packet.tcp_options + 4, dialogue->service_clock);
		put_option32(packet.tcp_options + 8, dialogue->client_clock);
		packet.tcp_options_length = 12;
	}
	segment = run_packet(dialogue->program, LINK_SERVERS, &packet);
	if (segment.outcome == OUTCOME_returned)
		dialogue->service_next =
			segment.sequence + segment.payload_length + !!(segment.flags & FIN);
	return segment;
}

struct segment dialogue_direct(const struct dialogue *dialogue, const struct world_replica *replica,
			       uint32_t sequence, uint32_t acknowledgement, uint8_t flags,
			       const char *payload)
{
	struct dialogue copy = *dialogue;

	copy.timestamps = false;
	return dialogue_reply(&copy, replica, sequence, acknowledgement, flags, payload);
}

struct icmp_error dialogue_unreachable(const struct dialogue *dialogue,
				       const struct world_replica *replica, bool to_replica)
{
	struct packet_spec about = {
		.family = dialogue->ipv6 ? AF_INET6 : AF_INET,
		.protocol = IPPROTO_TCP,
		.hop_limit = 50,
		.source_port = to_replica ? DIALOGUE_PORT : dialogue->client_port,
		.destination_port = to_replica ? dialogue->client_port : replica->port,
		.sequence = dialogue->service_next,
		.tcp_flags = ACK,
	};
	struct packet_spec error = {
		.family = about.family,
		.protocol = dialogue->ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP,
		.hop_limit = 60,
		.icmp_type = dialogue->ipv6 ? 1 : 3,
		.icmp_code = 1,
		.quoted = &about,
	};
	enum link link = to_replica ? LINK_CLIENTS : LINK_SERVERS;
	static uint8_t bytes[PACKET_SIZE_MAX];
	struct icmp_error result = {};
	struct decoded packet;
	struct run run;
	int length;

	strcpy(about.source, to_replica	      ? service_address(dialogue)
			     : dialogue->ipv6 ? CLIENT6
					      : CLIENT4);
	strcpy(about.destination, to_replica	   ? dialogue->ipv6 ? CLIENT6 : CLIENT4
				  : dialogue->ipv6 ? replica->ipv6
						   : replica->ipv4);
	strcpy(error.source, to_replica	      ? dialogue->ipv6 ? "fd00:1::11" : "10.0.1.11"
			     : dialogue->ipv6 ? "fd00:2::fe"
					      : "10.0.2.254");
	strcpy(error.destination, about.source);
	expect_link_addresses(&error, link);
	length = packet_build(&error, bytes);
	assert_int_equal(world_run(dialogue->program, link, bytes, length, 0, &run), 0);
	for (int i = 0; i < OUTCOME_COUNT; i++)
		if (run.counters[i])
			result.outcome = i;
	packet = decode_frame(run.bytes, run.length);
	inet_ntop(packet.family, run.bytes + packet.source_at + packet.address_size,
		  result.destination, sizeof(result.destination));
	if (outcome_verdict(result.outcome) == FORWARD)
		assert_int_equal(decode_transport_sum(run.bytes, &packet), 0xffff);
	packet = decode_ip(run.bytes, packet.transport + 8, packet.end);
	result.quoted = expect_ends_of(run.bytes, &packet);
	return result;
}

struct segment dialogue_answer(struct dialogue *dialogue, const struct world_replica *replica,
			       const char *payload)
{
	return dialogue_reply(dialogue, replica, dialogue->service_next, dialogue->client_next, ACK,
			      payload);
}

/* --- looking at it --------------------------------------------------------------------------------------------- */

const struct world_replica *dialogue_replica_of(const struct segment *segment)
{
	for (size_t service = 0; service < DIALOGUE_SERVICES; service++) {
		const struct world_replica *replica = dialogue_services[service].replicas;

		for (; replica->name; replica++) {
			if (segment->destination_port == replica->port &&
			    (!strcmp(segment->destination, replica->ipv4) ||
			     !strcmp(segment->destination, replica->ipv6)))
				return replica;
		}
	}
	return NULL;
}

uint32_t dialogue_slot_of(const struct world_replica *replica)
{
	size_t service = 0;

	while (replica < dialogue_services[service].replicas ||
	       replica >= dialogue_services[service].replicas + WORLD_REPLICAS_MAX)
		service++;
	return world_slot(service, replica - dialogue_services[service].replicas);
}

bool dialogue_entry(const struct dialogue *dialogue, struct connection *entry)
{
	struct flow_key key = {
		.client = world_address(dialogue->ipv6 ? CLIENT6 : CLIENT4),
		.service = world_address(service_address(dialogue)),
		.client_port = htons(dialogue->client_port),
		.service_port = htons(DIALOGUE_PORT),
		.protocol = IPPROTO_TCP,
	};

	return !bpf_map_lookup_elem(world_map("connections"), &key, entry);
}

void dialogue_forget_contacts(void)
{
	struct replica_contact nothing = {};

	for (uint32_t slot = 0; slot < REPLICAS_MAX; slot++)
		bpf_map_update_elem(world_map("replica_contacts"), &slot, &nothing, 0);
}

bool dialogue_is_start(const struct dialogue *dialogue, const struct segment *segment)
{
	struct handoff_keys keys = dialogue_keys(0, 1);
	struct mark_subject subject = {
		.client = world_address(segment->source),
		.replica = world_address(segment->destination),
		.client_port = htons(segment->source_port),
		.replica_port = htons(segment->destination_port),
		.sequence = segment->sequence,
		.acknowledgement = segment->acknowledgement,
	};

	return segment->sent && mark_version(segment->urgent) == MARK_VERSION &&
	       mark_is_start(segment->urgent) && !(segment->flags & URG) &&
	       mark_check(&keys.mark[0], &subject, segment->urgent, dialogue->ipv6, segment->low);
}

void dialogue_expect_at(const struct segment *segment, enum packet_outcome outcome,
			const char *file, int line)
{
	if (segment->outcome == outcome)
		return;
	print_error("the segment's outcome is %s, not %s\n", counter_name(segment->outcome),
		    counter_name(outcome));
	_fail(file, line);
}
