/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Before a connection is known: SYNs with every combination of options, probes and ends, and marks of clients' own. Nothing is kept of any of
 * it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <warmpath/mark.h>

#include "expect.h"
#include "handed.h"

#define REQUEST "GET / HTTP/1.1\r\nx-conversation-id: conv1\r\n\r\n"

/* --- options ---------------------------------------------------------------------------------------------------- */

/* What a SYN offers; 0xff: no window scale; segment size 0: none. */
struct offer {
	uint16_t segment_size;
	uint8_t scale;
	bool sack;
	bool timestamps;
	bool ecn;
	bool backwards; /* in the opposite order, with nothing between */
};

static int add_option(uint8_t *options, int at, const void *option, int length)
{
	memcpy(options + at, option, length);
	return at + length;
}

static int write_offer(const struct offer *offer, uint8_t *options)
{
	uint8_t size[] = {2, 4, offer->segment_size >> 8, offer->segment_size};
	uint8_t sack[] = {4, 2}, scale[] = {3, 3, offer->scale};
	uint8_t timestamps[] = {8, 10, 0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0};
	int at = 0;

	for (int i = 0; i < 4; i++) {
		switch (offer->backwards ? 3 - i : i) {
		case 0:
			at = offer->segment_size ? add_option(options, at, size, sizeof(size)) : at;
			break;
		case 1:
			at = offer->sack ? add_option(options, at, sack, sizeof(sack)) : at;
			break;
		case 2:
			at = offer->timestamps
				     ? add_option(options, at, timestamps, sizeof(timestamps))
				     : at;
			break;
		default:
			at = offer->scale != 0xff ? add_option(options, at, scale, sizeof(scale))
						  : at;
		}
	}
	while (at % 4)
		options[at++] = offer->backwards ? 0 : 1;
	return at;
}

/* The options of an answer, read a second way. */
struct found {
	int segment_size, scale, sack, timestamps;
	uint32_t value, echo;
};

static struct found find_options(const struct segment *segment)
{
	const uint8_t *at = segment->options, *end = at + segment->options_length;
	struct found found = {.segment_size = -1, .scale = -1};

	while (at < end && at[0] != 0) {
		if (at[0] == 1) {
			at++;
			continue;
		}
		assert_true(at + 1 < end && at[1] >= 2 && at + at[1] <= end);
		if (at[0] == 2)
			found.segment_size = at[2] << 8 | at[3];
		if (at[0] == 3)
			found.scale = at[2];
		if (at[0] == 4)
			found.sack = 1;
		if (at[0] == 8) {
			found.timestamps = 1;
			found.value = ntohl(*(const uint32_t *)(at + 2));
			found.echo = ntohl(*(const uint32_t *)(at + 6));
		}
		at += at[1];
	}
	return found;
}

/* What the mark of the first request has to say of the client: rounded down, so that no replica sends more than it can take. */
static uint8_t expected_options(const struct offer *offer)
{
	static const uint16_t sizes[2][4] = {{536, 1360, 1460, 8960}, {1220, 1340, 1440, 8940}};
	int class = 0, scale = offer->scale == 0xff ? 15 : offer->scale > 14 ? 14 : offer->scale;

	while (class < 3 && offer->segment_size >= sizes[handed_ipv6][class + 1])
		class ++;
	return class << 6 | scale << 2 | offer->sack << 1 | offer->ecn;
}

static void check_offer(const struct offer *offer, uint16_t port)
{
	struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, port);
	uint8_t options[40];
	uint32_t initial = dialogue.client_next;
	struct segment segment = dialogue_syn(&dialogue, options, write_offer(offer, options),
					      offer->ecn ? ECE | CWR : 0);
	struct found found = find_options(&segment);

	dialogue_expect(&segment, answered_handshake);
	assert_int_equal(segment.acknowledgement, initial + 1);
	assert_int_equal(segment.flags, SYN | ACK | (offer->ecn ? ECE : 0));
	assert_int_equal(segment.window, 64240);
	assert_int_equal(segment.destination_port, port);
	assert_int_equal(found.segment_size, handed_ipv6 ? 1440 : 1460);
	assert_int_equal(found.scale, offer->scale == 0xff ? -1 : 7);
	assert_int_equal(found.sack, offer->sack);
	assert_int_equal(found.timestamps, offer->timestamps);
	if (offer->timestamps)
		assert_int_equal(found.echo, 0x12345678);
	assert_int_equal(handed_entries("connections"), 0);

	dialogue.timestamps = offer->timestamps;
	dialogue.service_clock = found.value;
	segment = dialogue_send(&dialogue, ACK, NULL);
	dialogue_expect(&segment, absorbed_handshake);
	assert_int_equal(handed_entries("connections"), 0);
	segment = dialogue_send(&dialogue, ACK | PSH, REQUEST);
	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_is_start(&dialogue, &segment));
	assert_int_equal(mark_options(segment.urgent), expected_options(offer));
	assert_int_equal(find_options(&segment).timestamps, offer->timestamps);
	expect_forget();
}

static void every_combination_of_options(void **unused)
{
	static const uint16_t sizes[] = {0, 536, 1219, 1400, 1460, 8960, 65535};
	static const uint8_t scales[] = {0xff, 0, 7, 14, 15};
	uint16_t port = 2000;

	(void)unused;
	for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
		for (size_t scale = 0; scale < sizeof(scales); scale++) {
			for (int rest = 0; rest < 16; rest++) {
				struct offer offer = {sizes[size],   scales[scale], rest & 1,
						      rest >> 1 & 1, rest >> 2 & 1, rest >> 3};

				check_offer(&offer, port++);
			}
		}
	}
}

static void malformed_syns(void **unused)
{
	static const struct {
		const char *options;
		int length;
	} malformed[] = {{"\x02\x05\x05\xb4", 4},
			 {"\x02\x01\x05\xb4", 4},
			 {"\x08\x0a\x01\x01", 4},
			 {"\x01\x01\x01\x03", 4},
			 {"\x13\x00\x00\x00", 4}};
	static const uint8_t flags[] = {FIN, RST, SYN | FIN | RST};

	(void)unused;
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, 3000);
		struct segment segment =
			dialogue_syn(&dialogue, malformed[i].options, malformed[i].length, 0);

		dialogue_expect(&segment, drop_header_malformed);
	}
	for (size_t i = 0; i < sizeof(flags); i++) {
		struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, 3000);
		struct segment segment = dialogue_syn(&dialogue, NULL, 0, flags[i]);

		dialogue_expect(&segment, drop_header_malformed);
	}
	assert_int_equal(handed_entries("connections"), 0);
}

/* --- before the first request ------------------------------------------------------------------------------------ */

static void probes_and_ends_before_the_first_request(void **unused)
{
	struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, 3001);
	struct segment segment;

	(void)unused;
	dialogue_connect(&dialogue);
	/* a probe stands one before the next byte */
	segment = dialogue_repeat(&dialogue, dialogue.client_next - 1, ACK, NULL);
	dialogue_expect(&segment, answered_probe);
	assert_int_equal(segment.flags, ACK);
	assert_int_equal(segment.acknowledgement, dialogue.client_next);
	segment = dialogue_send(&dialogue, ACK | FIN, NULL);
	dialogue_expect(&segment, answered_close);
	assert_int_equal(segment.flags, ACK | FIN);
	assert_int_equal(segment.acknowledgement, dialogue.client_next);
	dialogue.service_next++;
	segment = dialogue_send(&dialogue, ACK, NULL);
	dialogue_expect(&segment, absorbed_handshake);
	segment = dialogue_send(&dialogue, RST, NULL);
	dialogue_expect(&segment, absorbed_reset);
	assert_int_equal(handed_entries("connections"), 0);
}

/* --- marks of clients' own ------------------------------------------------------------------------------------------ */

static void clients_mark_nothing(void **unused)
{
	static const uint16_t pointers[] = {
		MARK_FOLLOW, MARK_FOLLOW | MARK_START | 0x87, 0x8000, 0xc000, 0xffff, 1};
	struct segment segment;

	(void)unused;
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, 3060 + i);

		dialogue_connect(&dialogue);
		/* with the flag, too: where a mark is due, it is ours alone */
		segment = dialogue_send_urgent(&dialogue, ACK | PSH | (i % 2 ? URG : 0), REQUEST,
					       pointers[i]);
		dialogue_expect(&segment, forwarded);
		assert_true(dialogue_is_start(&dialogue, &segment));
		segment =
			dialogue_send_urgent(&dialogue, ACK | (i % 2 ? URG : 0), NULL, pointers[i]);
		dialogue_expect(&segment, forwarded);
		assert_int_equal(segment.urgent, MARK_FOLLOW);
		assert_int_equal(segment.flags, ACK);
		dialogue_answer(&dialogue, dialogue_replica_of(&segment), NULL);
		segment = dialogue_send_urgent(&dialogue, ACK, NULL, pointers[i]);
		dialogue_expect(&segment, forwarded);
		assert_int_equal(segment.urgent, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_combination_of_options, handed_forget),
		cmocka_unit_test_setup(malformed_syns, handed_forget),
		cmocka_unit_test_setup(probes_and_ends_before_the_first_request, handed_forget),
		cmocka_unit_test_setup(clients_mark_nothing, handed_forget),
	};

	return handed_run(tests, sizeof(tests) / sizeof(tests[0]));
}
