/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Before a connection is known: SYNs with every combination of options, cookies of both secrets and of any age, and all that comes from
 * nobody who has shaken hands. Nothing is kept of any of it.
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
#include <time.h>
#include <unistd.h>
#include <warmpath/cookie.h>
#include <warmpath/handoff_keys.h>
#include <warmpath/mark.h>

#include "dialogue.h"
#include "expect.h"

#define REQUEST "GET / HTTP/1.1\r\nx-conversation-id: conv1\r\n\r\n"

static enum program program;
static bool ipv6;

static int count_entries(const char *map)
{
	struct flow_key key, next;
	int descriptor = world_map(map), count = 0;
	bool first = true;

	while (!bpf_map_get_next_key(descriptor, first ? NULL : &key, &next)) {
		key = next;
		first = false;
		count++;
	}
	return count;
}

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

	while (class < 3 && offer->segment_size >= sizes[ipv6][class + 1])
		class ++;
	return class << 6 | scale << 2 | offer->sack << 1 | offer->ecn;
}

static void check_offer(const struct offer *offer, uint16_t port)
{
	struct dialogue dialogue = dialogue_new(program, ipv6, port);
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
	assert_int_equal(found.segment_size, ipv6 ? 1440 : 1460);
	assert_int_equal(found.scale, offer->scale == 0xff ? -1 : 7);
	assert_int_equal(found.sack, offer->sack);
	assert_int_equal(found.timestamps, offer->timestamps);
	if (offer->timestamps)
		assert_int_equal(found.echo, 0x12345678);
	assert_int_equal(count_entries("connections"), 0);

	dialogue.timestamps = offer->timestamps;
	dialogue.service_clock = found.value;
	segment = dialogue_send(&dialogue, ACK, NULL);
	dialogue_expect(&segment, absorbed_handshake);
	assert_int_equal(count_entries("connections"), 0);
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
		struct dialogue dialogue = dialogue_new(program, ipv6, 3000);
		struct segment segment =
			dialogue_syn(&dialogue, malformed[i].options, malformed[i].length, 0);

		dialogue_expect(&segment, drop_header_malformed);
	}
	for (size_t i = 0; i < sizeof(flags); i++) {
		struct dialogue dialogue = dialogue_new(program, ipv6, 3000);
		struct segment segment = dialogue_syn(&dialogue, NULL, 0, flags[i]);

		dialogue_expect(&segment, drop_header_malformed);
	}
	assert_int_equal(count_entries("connections"), 0);
}

/* --- before the first request ------------------------------------------------------------------------------------ */

static void probes_and_ends_before_the_first_request(void **unused)
{
	struct dialogue dialogue = dialogue_new(program, ipv6, 3001);
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
	assert_int_equal(count_entries("connections"), 0);
}

/* --- cookies ----------------------------------------------------------------------------------------------------- */

static uint32_t slot_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_TAI, &now);
	return cookie_slot(now.tv_sec * 1000000000ULL + now.tv_nsec);
}

/* A client that claims to have the cookie of that slot, made with that key. */
static struct dialogue claiming(uint16_t port, int key, int32_t age)
{
	struct dialogue dialogue = dialogue_new(program, ipv6, port);
	struct handoff_keys keys = dialogue_keys(key, 1);
	struct cookie_subject subject = {
		.client = world_address(ipv6 ? CLIENT6 : CLIENT4),
		.service = world_address(ipv6 ? DIALOGUE_SERVICE6 : DIALOGUE_SERVICE4),
		.client_port = htons(port),
		.service_port = htons(DIALOGUE_PORT),
		.client_sequence = dialogue.client_next,
	};

	dialogue.cookie = cookie_make(&keys.cookie[0], &subject, slot_now() - age, 0x80);
	dialogue.client_next++;
	dialogue.service_next = dialogue.cookie + 1;
	return dialogue;
}

static void expect_request(struct dialogue dialogue, enum packet_outcome outcome)
{
	struct segment segment = dialogue_send(&dialogue, ACK | PSH, REQUEST);

	dialogue_expect_at(&segment, outcome, __FILE__, __LINE__);
	assert_int_equal(count_entries("connections"), outcome == OUTCOME_forwarded);
	if (outcome == OUTCOME_reset_cookie_expired) {
		assert_int_equal(segment.flags, RST);
		assert_int_equal(segment.sequence, dialogue.service_next);
	}
	expect_forget();
}

static void cookies_of_any_age(void **unused)
{
	uint32_t slot;

	(void)unused;
	/* once more should a slot have ended meanwhile */
	do {
		slot = slot_now();
		expect_request(claiming(3010, 0, -2), OUTCOME_drop_connection_unknown);
		expect_request(claiming(3011, 0, -1), OUTCOME_forwarded);
		expect_request(claiming(3012, 0, 0), OUTCOME_forwarded);
		expect_request(claiming(3013, 0, 1), OUTCOME_forwarded);
		expect_request(claiming(3014, 0, 2), OUTCOME_reset_cookie_expired);
		expect_request(claiming(3015, 0, 3), OUTCOME_drop_connection_unknown);
		expect_request(claiming(3016, 0, 4), OUTCOME_drop_connection_unknown);
		expect_request(claiming(3017, 0, 1000), OUTCOME_drop_connection_unknown);
	} while (slot_now() != slot);
}

static void an_expired_cookie_without_a_request(void **unused)
{
	struct dialogue dialogue;
	struct segment segment;
	uint32_t slot;

	(void)unused;
	do {
		slot = slot_now();
		dialogue = claiming(3020, 0, 2);
		segment = dialogue_send(&dialogue, ACK, NULL);
	} while (slot_now() != slot);
	dialogue_expect(&segment, reset_cookie_expired);
	assert_int_equal(count_entries("connections"), 0);
}

/* Each of 32 bits of the cookie, the client's number, and the port count. */
static void a_cookie_is_good_for_one_connection_only(void **unused)
{
	struct dialogue good = claiming(3021, 0, 0), bad;

	(void)unused;
	for (int bit = 0; bit < 32; bit++) {
		bad = good;
		bad.service_next = (good.cookie ^ 1u << bit) + 1;
		expect_request(bad, OUTCOME_drop_connection_unknown);
		bad = good;
		bad.client_next = (good.client_next - 1 + (1u << bit)) + 1;
		expect_request(bad, OUTCOME_drop_connection_unknown);
	}
	bad = good;
	bad.client_port++;
	expect_request(bad, OUTCOME_drop_connection_unknown);
	expect_request(good, OUTCOME_forwarded);
}

static void secrets_are_rotated_without_breaking_a_connection(void **unused)
{
	struct dialogue before = dialogue_new(program, ipv6, 3030),
			during = dialogue_new(program, ipv6, 3031);
	uint32_t slot;

	(void)unused;
	/* one secret; the new one beside it; the two exchanged; the new one alone */
	dialogue_connect(&before);
	dialogue_set_keys(0, 2);
	expect_request(before, OUTCOME_forwarded);
	dialogue_set_keys(1, 2);
	expect_request(before, OUTCOME_forwarded);
	dialogue_connect(&during);
	expect_request(during, OUTCOME_forwarded);
	dialogue_set_keys(1, 1);
	expect_request(during, OUTCOME_forwarded);
	expect_request(before, OUTCOME_drop_connection_unknown);
	do {
		slot = slot_now();
		dialogue_set_keys(0, 2);
		expect_request(claiming(3032, 1, 1), OUTCOME_forwarded);
		expect_request(claiming(3033, 1, 2), OUTCOME_reset_cookie_expired);
		dialogue_set_keys(0, 1);
		expect_request(claiming(3034, 1, 1), OUTCOME_drop_connection_unknown);
	} while (slot_now() != slot);
}

/* --- strangers --------------------------------------------------------------------------------------------------- */

static void let_time_pass(const struct dialogue *dialogue, uint64_t nanoseconds)
{
	struct flow_key key = {
		.client = world_address(ipv6 ? CLIENT6 : CLIENT4),
		.service = world_address(ipv6 ? DIALOGUE_SERVICE6 : DIALOGUE_SERVICE4),
		.client_port = htons(dialogue->client_port),
		.service_port = htons(DIALOGUE_PORT),
		.protocol = IPPROTO_TCP,
	};
	struct stranger stranger;

	assert_int_equal(bpf_map_lookup_elem(world_map("strangers"), &key, &stranger), 0);
	stranger.seen_nanoseconds -= nanoseconds;
	assert_int_equal(bpf_map_update_elem(world_map("strangers"), &key, &stranger, 0), 0);
}

/* Dropped at first, as it may have overtaken what makes it known; a client that insists is told. */
static void strangers_are_dropped_and_told_when_they_insist(void **unused)
{
	static const uint8_t flags[] = {ACK, ACK | PSH, ACK | FIN};
	struct dialogue dialogue = dialogue_new(program, ipv6, 3040);
	struct segment segment;

	(void)unused;
	dialogue.service_next = 0x12345678;
	for (size_t i = 0; i < sizeof(flags); i++) {
		const char *payload = flags[i] & PSH ? REQUEST : NULL;

		for (int times = 0; times < 3; times++) {
			segment = dialogue_send(&dialogue, flags[i], payload);
			dialogue_expect(&segment, drop_connection_unknown);
		}
		let_time_pass(&dialogue, 3000000000ULL);
		segment = dialogue_send(&dialogue, flags[i], payload);
		dialogue_expect(&segment, reset_unknown_connection);
		assert_int_equal(segment.flags, RST);
		assert_int_equal(segment.sequence, dialogue.service_next);
	}
	assert_int_equal(count_entries("connections"), 0);
	segment = dialogue_send(&dialogue, RST, NULL);
	dialogue_expect(&segment, absorbed_reset);
	segment = dialogue_send(&dialogue, PSH, REQUEST);
	dialogue_expect(&segment, drop_header_malformed);
}

static const struct world_replica *serve_first(struct dialogue *dialogue)
{
	const struct world_replica *owner;
	struct segment segment = dialogue_send(dialogue, ACK | PSH, REQUEST);

	dialogue_expect(&segment, forwarded);
	owner = dialogue_replica_of(&segment);
	segment = dialogue_answer(dialogue, owner, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	dialogue_expect(&segment, returned);
	return owner;
}

static void the_first_segment_of_a_connection_that_is_over_is_a_replay(void **unused)
{
	struct dialogue dialogue = dialogue_new(program, ipv6, 3050), replayed;
	struct connection before, after;
	const struct world_replica *owner;
	struct segment segment;

	(void)unused;
	dialogue_connect(&dialogue);
	replayed = dialogue;
	owner = serve_first(&dialogue);
	segment = dialogue_send(&dialogue, ACK | FIN, NULL);
	segment = dialogue_reply(&dialogue, owner, dialogue.service_next, dialogue.client_next,
				 ACK | FIN, NULL);
	dialogue_expect(&segment, returned);
	assert_true(dialogue_entry(&dialogue, &before));
	assert_int_equal(before.state, CONNECTION_CLOSED);
	for (int i = 0; i < 3; i++) {
		struct dialogue copy = replayed;

		segment = dialogue_send(&copy, ACK | PSH, REQUEST);
		dialogue_expect(&segment, drop_cookie_replayed);
	}
	assert_true(dialogue_entry(&dialogue, &after));
	assert_memory_equal(&before, &after, sizeof(before));
	/* its last ACK still goes where it belongs */
	segment = dialogue_send(&dialogue, ACK, NULL);
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
}

static void a_new_connection_takes_the_place_of_an_old_one(void **unused)
{
	struct dialogue old = dialogue_new(program, ipv6, 3051), fresh = old;
	struct segment segment;

	(void)unused;
	dialogue_connect(&old);
	segment = dialogue_send(&old, ACK | PSH, REQUEST);
	dialogue_expect(&segment, forwarded);
	fresh.client_next += 100000;
	dialogue_connect(&fresh);
	segment = dialogue_send(&fresh, ACK | PSH, REQUEST);
	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_is_start(&fresh, &segment));
	assert_int_equal(segment.counters[NOTE_note_request_failed], 1);
	assert_int_equal(segment.counters[NOTE_note_connection_opened], 1);
}

static void a_syn_touches_no_connection(void **unused)
{
	struct dialogue dialogue = dialogue_new(program, ipv6, 3052), spoofed;
	struct connection before, after;
	struct segment segment;

	(void)unused;
	dialogue_connect(&dialogue);
	serve_first(&dialogue);
	assert_true(dialogue_entry(&dialogue, &before));
	for (int i = 0; i < 100; i++) {
		spoofed = dialogue;
		spoofed.client_next += 12345 * i;
		segment = dialogue_syn(&spoofed, NULL, 0, 0);
		dialogue_expect(&segment, answered_handshake);
	}
	assert_true(dialogue_entry(&dialogue, &after));
	assert_memory_equal(&before, &after, sizeof(before));
}

/* A blind reset does not end the entry, whatever the owner's stack makes of it. */
static void a_reset_with_a_wrong_number_ends_nothing(void **unused)
{
	struct dialogue dialogue = dialogue_new(program, ipv6, 3053);
	struct connection entry;
	struct segment segment;

	(void)unused;
	dialogue_connect(&dialogue);
	serve_first(&dialogue);
	for (int i = 0; i < 3; i++) {
		segment = dialogue_repeat(&dialogue, dialogue.client_next + 1000, RST, NULL);
		dialogue_expect(&segment, forwarded);
	}
	assert_true(dialogue_entry(&dialogue, &entry));
	assert_int_equal(entry.state, CONNECTION_SERVED);
	segment = dialogue_send(&dialogue, RST, NULL);
	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_entry(&dialogue, &entry));
	assert_int_equal(entry.state, CONNECTION_CLOSED);
}

/* --- marks of clients' own ------------------------------------------------------------------------------------------ */

static void clients_mark_nothing(void **unused)
{
	static const uint16_t pointers[] = {
		MARK_FOLLOW, MARK_FOLLOW | MARK_START | 0x87, 0x8000, 0xc000, 0xffff, 1};
	struct segment segment;

	(void)unused;
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		struct dialogue dialogue = dialogue_new(program, ipv6, 3060 + i);

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

/* --- the run of it ----------------------------------------------------------------------------------------------- */

static int forget(void **unused)
{
	(void)unused;
	expect_forget();
	dialogue_set_keys(0, 1);
	return 0;
}

static int load(void **unused)
{
	(void)unused;
	return world_load(false) || dialogue_configure();
}

static int unload(void **unused)
{
	(void)unused;
	world_unload();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_combination_of_options, forget),
		cmocka_unit_test_setup(malformed_syns, forget),
		cmocka_unit_test_setup(probes_and_ends_before_the_first_request, forget),
		cmocka_unit_test_setup(cookies_of_any_age, forget),
		cmocka_unit_test_setup(an_expired_cookie_without_a_request, forget),
		cmocka_unit_test_setup(a_cookie_is_good_for_one_connection_only, forget),
		cmocka_unit_test_setup(secrets_are_rotated_without_breaking_a_connection, forget),
		cmocka_unit_test_setup(strangers_are_dropped_and_told_when_they_insist, forget),
		cmocka_unit_test_setup(the_first_segment_of_a_connection_that_is_over_is_a_replay,
				       forget),
		cmocka_unit_test_setup(a_new_connection_takes_the_place_of_an_old_one, forget),
		cmocka_unit_test_setup(a_syn_touches_no_connection, forget),
		cmocka_unit_test_setup(a_reset_with_a_wrong_number_ends_nothing, forget),
		cmocka_unit_test_setup(clients_mark_nothing, forget),
	};
	int failed = 0;
	char name[32];

	if (geteuid() != 0) {
		printf("1..1\nok 1 # SKIP needs root\n");
		return 0;
	}
	if (world_make())
		return 1;
	for (program = PROGRAM_XDP; program <= PROGRAM_TC; program++) {
		for (int family = 0; family < 2; family++) {
			ipv6 = family;
			snprintf(name, sizeof(name), "%s, IPv%d", world_program_name(program),
				 ipv6 ? 6 : 4);
			failed += cmocka_run_group_tests_name(name, tests, load, unload);
		}
	}
	return failed;
}
