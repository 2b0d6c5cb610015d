/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The replica's side: marked segments arrive over a link of a real kernel with a real listener. Good marks become connections that have what the
 * client negotiated; others become nothing, under a counter of their own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <warmpath/mark.h>
#include <warmpath/rounds.h>

#include "busy_socket.h"
#include "dialogue.h"
#include "expect.h"
#include "group.h"
#include "replica_side.h"

static uint16_t port = 40000; /* another client for each test */

/* It is dropped as that: nothing is accepted, and nobody is told anything. */
static void expect_dropped(const struct packet_spec *packet, enum handoff_counter counter)
{
	uint64_t before = replica_count(counter), made = replica_count(HANDOFF_handed_over);

	replica_receive(packet);
	assert_true(replica_wait(counter, before + 1));
	assert_int_equal(replica_accept(NOTHING), -1);
	assert_int_equal(replica_reply(packet->source_port, NOTHING), -1);
	assert_int_equal(replica_count(HANDOFF_handed_over), made);
}

/* It becomes a connection that has the request. */
static int expect_connection(const struct packet_spec *packet)
{
	char request[sizeof(REQUEST)] = "";
	int connection;

	replica_receive(packet);
	connection = replica_accept(WAIT);
	assert_true(connection >= 0);
	assert_int_equal(recv(connection, request, sizeof(request), 0), sizeof(REQUEST) - 1);
	assert_string_equal(request, REQUEST);
	return connection;
}

/* --- tests ----------------------------------------------------------------------------------------------------- */

/* 0xff: the client offered no window scale. */
static void check_options(int class, uint8_t scale, bool sack, bool timestamps)
{
	static const unsigned int sizes[2][4] = {{536, 1360, 1460, 8960}, {1220, 1340, 1440, 8940}};
	struct packet_spec packet = replica_first_segment(++port);
	struct tcp_info info;
	socklen_t length = sizeof(info);
	unsigned int size = sizes[replica_ipv6][class];
	int connection;

	if (timestamps)
		replica_add_timestamps(&packet);
	replica_mark(&packet, 0, class << 6 | (scale == 0xff ? 15 : scale) << 2 | sack << 1);
	connection = expect_connection(&packet);
	assert_int_equal(getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	assert_int_equal(!!(info.tcpi_options & TCPI_OPT_TIMESTAMPS), timestamps);
	assert_int_equal(!!(info.tcpi_options & TCPI_OPT_SACK), sack);
	assert_int_equal(!!(info.tcpi_options & TCPI_OPT_WSCALE), scale != 0xff);
	if (scale != 0xff) {
		assert_int_equal(info.tcpi_snd_wscale, scale);
		assert_int_equal(info.tcpi_rcv_wscale, 7);
	}
	/* never more than the client takes, nor than the link does (1,500 bytes) */
	if (size > 1460 - 20u * replica_ipv6)
		size = 1460 - 20u * replica_ipv6;
	assert_int_equal(info.tcpi_snd_mss, size - (timestamps ? 12 : 0));
	close(connection);
}

static void connections_have_what_was_negotiated(void **unused)
{
	static const uint8_t scales[] = {0xff, 0, 7, 14};

	(void)unused;
	for (int class = 0; class < 4; class ++)
		for (size_t scale = 0; scale < sizeof(scales); scale++)
			for (int rest = 0; rest < 4; rest++)
				check_options(class, scales[scale], rest & 1, rest >> 1);
}

static void forged_marks_make_nothing(void **unused)
{
	struct packet_spec good = replica_first_segment(++port), bad;

	(void)unused;
	replica_mark(&good, 0, 0x9e);
	for (int bit = 0; bit < 13; bit++) {
		bad = good;
		bad.urgent_pointer ^= 1u << bit;
		expect_dropped(&bad, HANDOFF_drop_mark_forged);
	}
	for (int bit = 0; bit < (replica_ipv6 ? 20 : 16); bit++) {
		bad = good;
		bad.identification ^= 1u << bit;
		bad.flow_label ^= 1u << bit;
		expect_dropped(&bad, HANDOFF_drop_mark_forged);
	}
	/* it is good for one place only */
	bad = good;
	bad.sequence++;
	expect_dropped(&bad, HANDOFF_drop_mark_forged);
	bad = good;
	bad.acknowledgement++;
	expect_dropped(&bad, HANDOFF_drop_mark_forged);
	bad = good;
	bad.source_port += 1000;
	expect_dropped(&bad, HANDOFF_drop_mark_forged);
	bad = good;
	bad.destination_port++;
	expect_dropped(&bad, HANDOFF_drop_mark_forged);
	/* and with the cluster's secret only */
	bad = replica_first_segment(port);
	replica_mark(&bad, 1, 0x9e);
	expect_dropped(&bad, HANDOFF_drop_mark_forged);
	close(expect_connection(&good));
}

static void marks_of_both_secrets_are_good_during_a_rotation(void **unused)
{
	(void)unused;
	for (int first = 0; first < 2; first++) {
		replica_set_keys(first, 2);
		for (int key = 0; key < 2; key++) {
			struct packet_spec packet = replica_first_segment(++port);

			replica_mark(&packet, key, 0x9e);
			close(expect_connection(&packet));
		}
	}
	replica_set_keys(1, 1);
	for (int key = 0; key < 2; key++) {
		struct packet_spec packet = replica_first_segment(++port);

		replica_mark(&packet, key, 0x9e);
		if (key)
			close(expect_connection(&packet));
		else
			expect_dropped(&packet, HANDOFF_drop_mark_forged);
	}
	replica_set_keys(0, 1);
}

/* A router of another version: counted, and refused aloud, so that its client is told at once. */
static void another_version_is_refused(void **unused)
{
	struct packet_spec packet = replica_first_segment(++port);
	uint64_t before = replica_count(HANDOFF_refused_version);

	(void)unused;
	replica_mark(&packet, 0, 0x9e);
	packet.urgent_pointer = (packet.urgent_pointer & 0x3fff) | 2u << MARK_VERSION_SHIFT;
	replica_receive(&packet);
	assert_true(replica_wait(HANDOFF_refused_version, before + 1));
	assert_int_equal(replica_reply(port, WAIT) & RST, RST);
	assert_int_equal(replica_accept(NOTHING), -1);
}

static void what_overtakes_the_first_segment_waits_or_is_dropped(void **unused)
{
	struct packet_spec first = replica_first_segment(++port), second = first;
	uint64_t requeued = replica_count(HANDOFF_requeued),
		 followed = replica_count(HANDOFF_followed);
	char more[8] = "";
	int connection;

	(void)unused;
	second.sequence += first.payload_length;
	second.payload = "more";
	second.payload_length = 4;
	second.urgent_pointer = MARK_FOLLOW;
	expect_dropped(&second, HANDOFF_drop_early);
	assert_int_equal(replica_count(HANDOFF_requeued), requeued + 1);
	replica_mark(&first, 0, 0x9e);
	connection = expect_connection(&first);
	replica_receive(&second);
	assert_int_equal(recv(connection, more, sizeof(more), 0), 4);
	assert_string_equal(more, "more");
	assert_int_equal(replica_count(HANDOFF_followed), followed + 1);
	close(connection);
}

static void a_repeated_first_segment_makes_no_second_connection(void **unused)
{
	struct packet_spec packet = replica_first_segment(++port);
	uint64_t repeated = replica_count(HANDOFF_repeated);
	int connection;

	(void)unused;
	replica_mark(&packet, 0, 0x9e);
	connection = expect_connection(&packet);
	for (int i = 1; i <= 3; i++) {
		replica_receive(&packet);
		assert_true(replica_wait(HANDOFF_repeated, repeated + i));
	}
	assert_int_equal(replica_accept(NOTHING), -1);
	close(connection);
}

/* The socket of an earlier connection with the same addresses and ports makes room. */
static void a_stale_socket_is_reset(void **unused)
{
	struct packet_spec packet = replica_first_segment(++port), later = packet;
	uint64_t before = replica_count(HANDOFF_stale_reset);
	char byte;
	int old, fresh;

	(void)unused;
	replica_mark(&packet, 0, 0x9e);
	old = expect_connection(&packet);
	later.sequence += 0x10000000;
	later.acknowledgement += 0x20000000;
	replica_mark(&later, 0, 0x9e);
	fresh = expect_connection(&later);
	assert_int_equal(replica_count(HANDOFF_stale_reset), before + 1);
	assert_int_equal(recv(old, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(old);
	close(fresh);
}

/* An old connection, and the first segment of a new one of the same addresses and ports. */
static int open_old(struct packet_spec *later)
{
	struct packet_spec packet = replica_first_segment(++port);
	int old;

	replica_mark(&packet, 0, 0x9e);
	*later = packet;
	later->sequence += 0x10000000;
	later->acknowledgement += 0x20000000;
	replica_mark(later, 0, 0x9e);
	old = expect_connection(&packet);
	while (replica_reply(port, NOTHING) >= 0)
		;
	return old;
}

/* The reset waits for the lock of a socket that its server is using, and so does the segment; but not for as long as that takes. */
static void a_stale_socket_in_use_is_awaited_for_a_while(void **unused)
{
	uint64_t before = replica_count(HANDOFF_stale_awaited), rounds;
	struct packet_spec later;
	int old, fresh;

	(void)unused;
	if (!busy_socket_is_possible())
		skip();
	old = open_old(&later);
	busy_socket_take(old);
	expect_dropped(&later, HANDOFF_drop_stale_remains);
	rounds = replica_count(HANDOFF_stale_awaited) - before;
	assert_in_range(rounds, 1, ROUNDS_COUNT);
	/* as a segment from outside may not: it has no rounds, whatever it says */
	later.urgent_pointer |= MARK_VERSION_AGAIN << MARK_VERSION_SHIFT;
	expect_dropped(&later, HANDOFF_drop_stale_remains);
	assert_int_equal(replica_count(HANDOFF_stale_awaited) - before, rounds);
	busy_socket_end();
	fresh = expect_connection(&later);
	close(old);
	close(fresh);
}

/* When it is let go meanwhile, the segment makes its connection, and the client need not send it again. */
static bool is_handed_over_when_let_go(void)
{
	uint64_t before = replica_count(HANDOFF_stale_awaited);
	struct packet_spec later;
	int old = open_old(&later), fresh;

	busy_socket_take(old);
	busy_socket_let_go_at(HANDOFF_stale_awaited);
	replica_receive(&later);
	fresh = replica_accept(NOTHING);
	busy_socket_end();
	close(old);
	if (fresh < 0)
		return false;
	close(fresh);
	return replica_count(HANDOFF_stale_awaited) > before;
}

static void a_stale_socket_in_use_makes_room_when_it_is_let_go(void **unused)
{
	int tries = 500;

	(void)unused;
	if (!busy_socket_is_possible())
		skip();
	/* the other CPU has a quarter of a millisecond, and may have something else to do */
	while (tries > 0 && !is_handed_over_when_let_go())
		tries--;
	assert_true(tries > 0);
}

static void without_a_listener_the_kernel_refuses(void **unused)
{
	struct packet_spec packet = replica_first_segment(++port);
	uint64_t before = replica_count(HANDOFF_no_listener);

	(void)unused;
	packet.destination_port = PORT + 1;
	replica_mark(&packet, 0, 0x9e);
	replica_receive(&packet);
	assert_true(replica_wait(HANDOFF_no_listener, before + 1));
	assert_int_equal(replica_reply(port, WAIT) & RST, RST);
}

/* A real URG is no mark, and neither is a segment without either: both are the stack's, untouched. */
static void what_is_not_marked_is_not_touched(void **unused)
{
	struct packet_spec packet = replica_first_segment(++port);

	(void)unused;
	packet.tcp_flags |= URG;
	packet.urgent_pointer = 0x6001;
	replica_receive(&packet);
	assert_int_equal(replica_reply(port, WAIT) & RST, RST);
	packet = replica_first_segment(++port);
	replica_receive(&packet);
	assert_int_equal(replica_reply(port, WAIT) & RST, RST);
	assert_int_equal(replica_accept(NOTHING), -1);
}

/* --- the run of it ----------------------------------------------------------------------------------------------- */

static int load(void **unused)
{
	(void)unused;
	if (replica_listen())
		return -1;
	replica_set_keys(0, 1);
	return 0;
}

static int unload(void **unused)
{
	(void)unused;
	replica_end();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_have_what_was_negotiated),
		cmocka_unit_test(forged_marks_make_nothing),
		cmocka_unit_test(marks_of_both_secrets_are_good_during_a_rotation),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(what_overtakes_the_first_segment_waits_or_is_dropped),
		cmocka_unit_test(a_repeated_first_segment_makes_no_second_connection),
		cmocka_unit_test(a_stale_socket_is_reset),
		cmocka_unit_test(a_stale_socket_in_use_is_awaited_for_a_while),
		cmocka_unit_test(a_stale_socket_in_use_makes_room_when_it_is_let_go),
		cmocka_unit_test(without_a_listener_the_kernel_refuses),
		cmocka_unit_test(what_is_not_marked_is_not_touched),
	};
	int failed = 0, err;

	group_begin();
	err = replica_load();
	if (err) {
		if (world_kernel_has("bpf_sk_assign_tcp_reqsk"))
			return 1;
		printf("1..1\nok 1 # SKIP this kernel has no bpf_sk_assign_tcp_reqsk (6.9)\n");
		return 0;
	}
	for (int family = 0; family < 2; family++) {
		replica_ipv6 = family;
		failed += cmocka_run_group_tests_name(replica_ipv6 ? "IPv6" : "IPv4", tests, load,
						      unload);
	}
	return failed;
}
