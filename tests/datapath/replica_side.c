/* SPDX-License-Identifier: BSD-2-Clause */
/* See replica_side.h. */
#include "replica_side.h"

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
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <warmpath/handoff_keys.h>
#include <warmpath/mark.h>

#include "decode.h"
#include "dialogue.h"
#include "expect.h"
#include "handoff.skel.h"

bool replica_ipv6;

static struct handoff_bpf *handoff;
static int wire = -1, listener = -1;

/* --- segments ------------------------------------------------------------------------------------------------- */

static const char *replica_address(void)
{
	return replica_ipv6 ? "fd00:1::1" : "10.0.1.1";
}

/* The first segment of a request, not marked yet. */
struct packet_spec replica_first_segment(uint16_t client_port)
{
	struct packet_spec packet = {
		.family = replica_ipv6 ? AF_INET6 : AF_INET,
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

	strcpy(packet.source, replica_ipv6 ? CLIENT6 : CLIENT4);
	strcpy(packet.destination, replica_address());
	return packet;
}

void replica_add_timestamps(struct packet_spec *packet)
{
	memcpy(packet->tcp_options, "\x01\x01\x08\x0a\x00\x01\x00\x00\x00\x02\x00\x00", 12);
	packet->tcp_options_length = 12;
}

/* Marks it as a START with that key, as the options byte says. */
void replica_mark(struct packet_spec *packet, int key, uint8_t options)
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
		mark_sign(&keys.mark[0], &subject, mark_start(options, 0), replica_ipv6, &low);
	packet->identification = low;
	packet->flow_label = low;
}

void replica_receive(const struct packet_spec *packet)
{
	static uint8_t bytes[PACKET_SIZE_MAX];
	struct packet_spec in = *packet;
	int length;

	expect_link_addresses(&in, LINK_CLIENTS);
	length = packet_build(&in, bytes);
	assert_int_equal(send(wire, bytes, length, 0), length);
}

/* The flags of the next TCP segment to that client; -1: none came in that time. */
int replica_reply(uint16_t client_port, int milliseconds)
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

uint64_t replica_count(enum handoff_counter counter)
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

bool replica_wait(enum handoff_counter counter, uint64_t wanted)
{
	for (int i = 0; i < WAIT && replica_count(counter) < wanted; i++)
		usleep(1000);
	return replica_count(counter) == wanted;
}

/* A connection from the listener; -1: none comes. */
int replica_accept(int milliseconds)
{
	struct pollfd waiting = {.fd = listener, .events = POLLIN};

	return poll(&waiting, 1, milliseconds) == 1 ? accept(listener, NULL, NULL) : -1;
}

void replica_set_keys(int first, int count)
{
	struct handoff_keys keys = dialogue_keys(first, count);
	uint32_t zero = 0;

	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(handoff->maps.handoff_keys), &zero, &keys, 0), 0);
}

/* --- set-up ---------------------------------------------------------------------------------------------------- */

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
	int one = 1, made = socket(replica_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM, IPPROTO_TCP);

	inet_pton(AF_INET, replica_address(), &to4.sin_addr);
	inet_pton(AF_INET6, replica_address(), &to6.sin6_addr);
	setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (replica_ipv6 ? bind(made, (struct sockaddr *)&to6, sizeof(to6))
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

int replica_listen(void)
{
	listener = open_listener();
	return listener < 0 ? -1 : 0;
}

void replica_end(void)
{
	close(listener);
}

int replica_load(void)
{
	int err = load_handoff();

	if (!err)
		wire = open_wire();
	return err;
}
