/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The replica's side: marked segments arrive over a link of a real kernel with a real listener. Good marks become connections that have what the
 * client negotiated; others become nothing, under a counter of their own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <warmpath/handoff_counters.h>
#include <warmpath/handoff_keys.h>
#include <warmpath/mark.h>

#include "decode.h"
#include "dialogue.h"
#include "expect.h"
#include "handoff.skel.h"

#define PORT	8001
#define WAIT	2000 /* milliseconds that something may take that has to happen */
#define NOTHING 10   /* and that are waited for what must not, once it was counted */

#define REQUEST "GET / HTTP/1.1\r\n\r\n"

static struct handoff_bpf *handoff;
static int wire = -1, listener = -1;
static bool ipv6;
static uint16_t port = 40000; /* another client for each test */

/* --- segments ------------------------------------------------------------------------------------------------- */

static const char *replica_address(void)
{
	return ipv6 ? "fd00:1::1" : "10.0.1.1";
}

/* The first segment of a request, not marked yet. */
static struct packet_spec first_segment(uint16_t client_port)
{
	struct packet_spec packet = {
		.family = ipv6 ? AF_INET6 : AF_INET,
		.protocol = IPPROTO_TCP,
		.hop_limit = 60,
		.dont_fragment = true,
		.source_port = client_port,
		.destination_port = PORT,
		.sequence = 0xfffffff0u + client_port,
		.acknowledgement = 0x80000000u - client_port,
		.tcp_flags = ACK | PSH,
		.payload = REQUEST,
		.payload_length = sizeof(REQUEST) - 1,
	};

	strcpy(packet.source, ipv6 ? CLIENT6 : CLIENT4);
	strcpy(packet.destination, replica_address());
	return packet;
}

static void add_timestamps(struct packet_spec *packet)
{
	memcpy(packet->tcp_options, "\x01\x01\x08\x0a\x00\x01\x00\x00\x00\x02\x00\x00", 12);
	packet->tcp_options_length = 12;
}

/* Marks it as a START with that key, as the options byte says. */
static void mark(struct packet_spec *packet, int key, uint8_t options)
{
	struct handoff_keys keys = dialogue_keys(key, 1);
	struct mark_subject subject = {
		.client = world_address(packet->source),
		.replica = world_address(packet->destination),
		.client_port = htons(packet->source_port),
		.replica_port = htons(packet->destination_port),
		.sequence = packet->sequence,
		.acknowledgement = packet->acknowledgement,
	};
	uint32_t low;

	packet->urgent_pointer =
		mark_sign(&keys.mark[0], &subject, mark_start(options, 0), ipv6, &low);
	packet->identification = low;
	packet->flow_label = low;
}

static void send_segment(const struct packet_spec *packet)
{
	static uint8_t bytes[PACKET_SIZE_MAX];
	struct packet_spec in = *packet;
	int length;

	expect_link_addresses(&in, LINK_CLIENTS);
	length = packet_build(&in, bytes);
	assert_int_equal(send(wire, bytes, length, 0), length);
}

/* The flags of the next TCP segment to that client; -1: none came in that time. */
static int reply_flags(uint16_t client_port, int milliseconds)
{
	static uint8_t bytes[PACKET_SIZE_MAX];
	struct pollfd waiting = {.fd = wire, .events = POLLIN};

	while (poll(&waiting, 1, milliseconds) == 1) {
		struct sockaddr_ll from;
		socklen_t size = sizeof(from);
		int length =
			recvfrom(wire, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size);
		struct decoded packet = decode_frame(bytes, length);
		const uint8_t *tcp = bytes + packet.transport;

		if (from.sll_pkttype == PACKET_OUTGOING || !packet.valid ||
		    packet.protocol != IPPROTO_TCP || (tcp[2] << 8 | tcp[3]) != client_port)
			continue;
		return tcp[13];
	}
	return -1;
}

/* --- what became of them ----------------------------------------------------------------------------------------- */

static uint64_t counted(enum handoff_counter counter)
{
	int cpus = libbpf_num_possible_cpus();
	struct handoff_counters *values = calloc(cpus, sizeof(*values));
	uint64_t sum = 0;
	uint32_t first = 0;

	assert_non_null(values);
	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(handoff->maps.handoff_counters), &first, values),
		0);
	for (int cpu = 0; cpu < cpus; cpu++)
		sum += ((uint64_t *)&values[cpu])[counter];
	free(values);
	return sum;
}

static bool wait_for_count(enum handoff_counter counter, uint64_t wanted)
{
	for (int i = 0; i < WAIT && counted(counter) < wanted; i++)
		usleep(1000);
	return counted(counter) == wanted;
}

/* A connection from the listener; -1: none comes. */
static int accept_within(int milliseconds)
{
	struct pollfd waiting = {.fd = listener, .events = POLLIN};

	return poll(&waiting, 1, milliseconds) == 1 ? accept(listener, NULL, NULL) : -1;
}

/* It is dropped as that: nothing is accepted, and nobody is told anything. */
static void expect_dropped(const struct packet_spec *packet, enum handoff_counter counter)
{
	uint64_t before = counted(counter), made = counted(HANDOFF_handed_over);

	send_segment(packet);
	assert_true(wait_for_count(counter, before + 1));
	assert_int_equal(accept_within(NOTHING), -1);
	assert_int_equal(reply_flags(packet->source_port, NOTHING), -1);
	assert_int_equal(counted(HANDOFF_handed_over), made);
}

/* It becomes a connection that has the request. */
static int expect_connection(const struct packet_spec *packet)
{
	char request[sizeof(REQUEST)] = "";
	int connection;

	send_segment(packet);
	connection = accept_within(WAIT);
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
	struct packet_spec packet = first_segment(++port);
	struct tcp_info info;
	socklen_t length = sizeof(info);
	unsigned int size = sizes[ipv6][class];
	int connection;

	if (timestamps)
		add_timestamps(&packet);
	mark(&packet, 0, class << 6 | (scale == 0xff ? 15 : scale) << 2 | sack << 1);
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
	if (size > 1460 - 20u * ipv6)
		size = 1460 - 20u * ipv6;
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
	struct packet_spec good = first_segment(++port), bad;

	(void)unused;
	mark(&good, 0, 0x9e);
	for (int bit = 0; bit < 13; bit++) {
		bad = good;
		bad.urgent_pointer ^= 1u << bit;
		expect_dropped(&bad, HANDOFF_drop_mark_forged);
	}
	for (int bit = 0; bit < (ipv6 ? 20 : 16); bit++) {
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
	bad = first_segment(port);
	mark(&bad, 1, 0x9e);
	expect_dropped(&bad, HANDOFF_drop_mark_forged);
	close(expect_connection(&good));
}

static void set_keys(int first, int count)
{
	struct handoff_keys keys = dialogue_keys(first, count);
	uint32_t zero = 0;

	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(handoff->maps.handoff_keys), &zero, &keys, 0), 0);
}

static void marks_of_both_secrets_are_good_during_a_rotation(void **unused)
{
	(void)unused;
	for (int first = 0; first < 2; first++) {
		set_keys(first, 2);
		for (int key = 0; key < 2; key++) {
			struct packet_spec packet = first_segment(++port);

			mark(&packet, key, 0x9e);
			close(expect_connection(&packet));
		}
	}
	set_keys(1, 1);
	for (int key = 0; key < 2; key++) {
		struct packet_spec packet = first_segment(++port);

		mark(&packet, key, 0x9e);
		if (key)
			close(expect_connection(&packet));
		else
			expect_dropped(&packet, HANDOFF_drop_mark_forged);
	}
	set_keys(0, 1);
}

/* A router of another version: counted, and refused aloud, so that its client is told at once. */
static void another_version_is_refused(void **unused)
{
	struct packet_spec packet = first_segment(++port);
	uint64_t before = counted(HANDOFF_refused_version);

	(void)unused;
	mark(&packet, 0, 0x9e);
	packet.urgent_pointer = (packet.urgent_pointer & 0x3fff) | 2u << MARK_VERSION_SHIFT;
	send_segment(&packet);
	assert_true(wait_for_count(HANDOFF_refused_version, before + 1));
	assert_int_equal(reply_flags(port, WAIT) & RST, RST);
	assert_int_equal(accept_within(NOTHING), -1);
}

static void what_overtakes_the_first_segment_waits_or_is_dropped(void **unused)
{
	struct packet_spec first = first_segment(++port), second = first;
	uint64_t requeued = counted(HANDOFF_requeued), followed = counted(HANDOFF_followed);
	char more[8] = "";
	int connection;

	(void)unused;
	second.sequence += first.payload_length;
	second.payload = "more";
	second.payload_length = 4;
	second.urgent_pointer = MARK_FOLLOW;
	expect_dropped(&second, HANDOFF_drop_early);
	assert_int_equal(counted(HANDOFF_requeued), requeued + 1);
	mark(&first, 0, 0x9e);
	connection = expect_connection(&first);
	send_segment(&second);
	assert_int_equal(recv(connection, more, sizeof(more), 0), 4);
	assert_string_equal(more, "more");
	assert_int_equal(counted(HANDOFF_followed), followed + 1);
	close(connection);
}

static void a_repeated_first_segment_makes_no_second_connection(void **unused)
{
	struct packet_spec packet = first_segment(++port);
	uint64_t repeated = counted(HANDOFF_repeated);
	int connection;

	(void)unused;
	mark(&packet, 0, 0x9e);
	connection = expect_connection(&packet);
	for (int i = 1; i <= 3; i++) {
		send_segment(&packet);
		assert_true(wait_for_count(HANDOFF_repeated, repeated + i));
	}
	assert_int_equal(accept_within(NOTHING), -1);
	close(connection);
}

/* The socket of an earlier connection with the same addresses and ports makes room. */
static void a_stale_socket_is_reset(void **unused)
{
	struct packet_spec packet = first_segment(++port), later = packet;
	uint64_t before = counted(HANDOFF_stale_reset);
	char byte;
	int old, fresh;

	(void)unused;
	mark(&packet, 0, 0x9e);
	old = expect_connection(&packet);
	later.sequence += 0x10000000;
	later.acknowledgement += 0x20000000;
	mark(&later, 0, 0x9e);
	fresh = expect_connection(&later);
	assert_int_equal(counted(HANDOFF_stale_reset), before + 1);
	assert_int_equal(recv(old, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(old);
	close(fresh);
}

static void without_a_listener_the_kernel_refuses(void **unused)
{
	struct packet_spec packet = first_segment(++port);
	uint64_t before = counted(HANDOFF_no_listener);

	(void)unused;
	packet.destination_port = PORT + 1;
	mark(&packet, 0, 0x9e);
	send_segment(&packet);
	assert_true(wait_for_count(HANDOFF_no_listener, before + 1));
	assert_int_equal(reply_flags(port, WAIT) & RST, RST);
}

/* A real URG is no mark, and neither is a segment without either: both are the stack's, untouched. */
static void what_is_not_marked_is_not_touched(void **unused)
{
	struct packet_spec packet = first_segment(++port);

	(void)unused;
	packet.tcp_flags |= URG;
	packet.urgent_pointer = 0x6001;
	send_segment(&packet);
	assert_int_equal(reply_flags(port, WAIT) & RST, RST);
	packet = first_segment(++port);
	send_segment(&packet);
	assert_int_equal(reply_flags(port, WAIT) & RST, RST);
	assert_int_equal(accept_within(NOTHING), -1);
}

/* --- the run of it ----------------------------------------------------------------------------------------------- */

static int open_wire(void)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
				      .sll_protocol = htons(ETH_P_ALL),
				      .sll_ifindex = world_far_interface(LINK_CLIENTS)};
	int raw = socket(AF_PACKET, SOCK_RAW, 0);

	if (raw < 0 || bind(raw, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	return raw;
}

static int open_listener(void)
{
	struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
	int one = 1, made = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM, IPPROTO_TCP);

	inet_pton(AF_INET, replica_address(), &to4.sin_addr);
	inet_pton(AF_INET6, replica_address(), &to6.sin6_addr);
	setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ipv6 ? bind(made, (struct sockaddr *)&to6, sizeof(to6))
		 : bind(made, (struct sockaddr *)&to4, sizeof(to4)))
		return -1;
	return listen(made, 128) ? -1 : made;
}

static int load_handoff(void)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = world_interface(LINK_CLIENTS),
		    .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = 1, .priority = 1);
	struct bpf_map *map;
	int err;

	handoff = handoff_bpf__open();
	if (!handoff)
		return -errno;
	bpf_object__for_each_map(map, handoff->obj) bpf_map__set_pin_path(map, NULL);
	err = handoff_bpf__load(handoff);
	if (err)
		return err;
	options.prog_fd = bpf_program__fd(handoff->progs.warmpath_handoff_tc);
	err = bpf_tc_hook_create(&hook);
	return err ? err : bpf_tc_attach(&hook, &options);
}

static int load(void **unused)
{
	(void)unused;
	listener = open_listener();
	if (listener < 0)
		return -1;
	set_keys(0, 1);
	return 0;
}

static int unload(void **unused)
{
	(void)unused;
	close(listener);
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
		cmocka_unit_test(without_a_listener_the_kernel_refuses),
		cmocka_unit_test(what_is_not_marked_is_not_touched),
	};
	int failed = 0, err;

	if (geteuid() != 0) {
		printf("1..1\nok 1 # SKIP needs root\n");
		return 0;
	}
	if (world_make())
		return 1;
	err = load_handoff();
	if (err) {
		if (system("grep -q bpf_sk_assign_tcp_reqsk /proc/kallsyms") == 0)
			return 1;
		printf("1..1\nok 1 # SKIP this kernel has no bpf_sk_assign_tcp_reqsk (6.9)\n");
		return 0;
	}
	wire = open_wire();
	for (int family = 0; family < 2; family++) {
		ipv6 = family;
		failed += cmocka_run_group_tests_name(ipv6 ? "IPv6" : "IPv4", tests, load, unload);
	}
	return failed;
}
