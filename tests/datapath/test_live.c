/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a test run cannot make: packets whose checksum is left to the device (PARTIAL), that are yet to be cut into segments, whose
 * VLAN tag has been taken out, whose next hop has to be asked for first. Real packets through the attached tc program, over the
 * far ends of the links; what comes out is finished as a device would and compared byte for byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "decode.h"
#include "expect.h"
#include "fixture.h"
#include "group.h"

#define WAIT_MILLISECONDS 2000

/* One raw socket on the far end of each link. */
static int sockets[LINK_COUNT];

/* A frame with what the kernel says about it. */
struct frame {
	struct virtio_net_hdr head;
	uint8_t bytes[PACKET_SIZE_MAX];
	int length;
};

static int open_socket(enum link link)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
				      .sll_protocol = htons(ETH_P_ALL),
				      .sll_ifindex = world_far_interface(link)};
	int one = 1, raw = socket(AF_PACKET, SOCK_RAW, 0);

	if (raw < 0 || setsockopt(raw, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    setsockopt(raw, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) ||
	    bind(raw, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	return raw;
}

static void send_frame(enum link link, const struct frame *frame)
{
	struct iovec parts[2] = {{(void *)&frame->head, sizeof(frame->head)},
				 {(void *)frame->bytes, frame->length}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	if (sendmsg(sockets[link], &message, 0) < 0)
		fail_msg("sending: %s", strerror(errno));
}

/* Puts a tag that the kernel holds aside back where it belongs. */
static void insert_tag(struct frame *frame, struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
	     part = CMSG_NXTHDR(message, part)) {
		struct tpacket_auxdata *aside = (void *)CMSG_DATA(part);

		if (part->cmsg_level != SOL_PACKET || part->cmsg_type != PACKET_AUXDATA ||
		    !(aside->tp_status & TP_STATUS_VLAN_VALID))
			continue;
		memmove(frame->bytes + 16, frame->bytes + 12, frame->length - 12);
		frame->bytes[12] = aside->tp_vlan_tpid >> 8;
		frame->bytes[13] = aside->tp_vlan_tpid;
		frame->bytes[14] = aside->tp_vlan_tci >> 8;
		frame->bytes[15] = aside->tp_vlan_tci;
		frame->length += 4;
		frame->head.csum_start += 4;
	}
}

/* The next frame that arrives there and is no chatter of the kernel's own; false: none came. */
static bool receive(enum link link, struct frame *frame)
{
	struct pollfd waiting = {.fd = sockets[link], .events = POLLIN};

	while (poll(&waiting, 1, WAIT_MILLISECONDS) == 1) {
		uint8_t control[256];
		struct sockaddr_ll from;
		struct iovec parts[2] = {{&frame->head, sizeof(frame->head)},
					 {frame->bytes, sizeof(frame->bytes)}};
		struct msghdr message = {.msg_name = &from,
					 .msg_namelen = sizeof(from),
					 .msg_iov = parts,
					 .msg_iovlen = 2,
					 .msg_control = control,
					 .msg_controllen = sizeof(control)};
		int length = recvmsg(sockets[link], &message, 0);

		if (length < (int)sizeof(frame->head) + ETH_HLEN ||
		    from.sll_pkttype == PACKET_OUTGOING)
			continue;
		frame->length = length - sizeof(frame->head);
		insert_tag(frame, &message);
		/* IPv6 groups (neighbour discovery, listener reports) */
		if (frame->bytes[0] == 0x33)
			continue;
		return true;
	}
	return false;
}

/* Does what a device does that is told to finish the checksum. */
static void finish_checksum(struct frame *frame)
{
	int start = frame->head.csum_start, at = start + frame->head.csum_offset;
	uint32_t sum = 0;

	if (!(frame->head.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return;
	assert_true(at + 2 <= frame->length);
	for (int i = start; i < frame->length; i++) {
		sum += (i - start) % 2 ? frame->bytes[i] : frame->bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	sum = ~sum & 0xffff;
	if (!sum)
		sum = 0xffff;
	frame->bytes[at] = sum >> 8;
	frame->bytes[at + 1] = sum;
}

/*
 * Builds the packet; partial: its transport checksum field has only the pseudo header's sum, and the rest is left to the device.
 */
static void build(const struct packet_spec *packet, bool partial, int segment_size,
		  struct frame *frame)
{
	struct packet_spec in = *packet;
	struct decoded decoded;
	uint32_t sum;
	int at;

	memset(&frame->head, 0, sizeof(frame->head));
	expect_link_addresses(&in, LINK_CLIENTS);
	frame->length = packet_build(&in, frame->bytes);
	if (!partial)
		return;
	decoded = decode_frame(frame->bytes, frame->length);
	at = decoded.checksum_at;
	frame->head.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	frame->head.csum_start = decoded.transport;
	frame->head.csum_offset = at - decoded.transport;
	/* over all there is: that of the segment without its checksum, taken away from nothing, is the pseudo header's */
	frame->bytes[at] = frame->bytes[at + 1] = 0;
	sum = decode_transport_sum(frame->bytes, &decoded);
	for (int i = decoded.transport; i < decoded.end; i++)
		sum += ~((i - decoded.transport) % 2 ? frame->bytes[i] : frame->bytes[i] << 8) &
		       0xffff;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	frame->bytes[at] = sum >> 8;
	frame->bytes[at + 1] = sum;
	if (segment_size) {
		frame->head.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
		frame->head.gso_size = segment_size;
		frame->head.hdr_len = decoded.transport + sizeof(struct tcphdr);
	}
}

/* The packet that is to arrive at the replica. */
static int build_expected(const struct packet_spec *packet, const char *to, uint16_t port,
			  enum link link, uint8_t *bytes)
{
	struct packet_spec out = *packet;

	strcpy(out.destination, to);
	out.destination_port = port;
	out.hop_limit--;
	world_link_address(link, out.source_mac);
	world_neighbour_address(to, out.destination_mac);
	return packet_build(&out, bytes);
}

static void expect_arrival(enum link link, bool partial, const uint8_t *expected, int length)
{
	static struct frame frame;

	if (!receive(link, &frame))
		fail_msg("nothing arrived");
	/* a checksum that somebody has finished on the way would prove nothing */
	assert_int_equal(frame.head.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM,
			 partial ? VIRTIO_NET_HDR_F_NEEDS_CSUM : 0);
	finish_checksum(&frame);
	if (frame.length != length || memcmp(frame.bytes, expected, length)) {
		packet_print_difference(expected, length, frame.bytes, frame.length);
		fail_msg("another packet arrived than expected");
	}
}

static void send_and_expect(const struct packet_spec *packet, bool partial, int segment_size,
			    const char *to, uint16_t port)
{
	static uint8_t expected[PACKET_SIZE_MAX];
	static struct frame frame;
	int length = build_expected(packet, to, port, LINK_SERVERS, expected);

	build(packet, partial, segment_size, &frame);
	send_frame(LINK_CLIENTS, &frame);
	expect_arrival(LINK_SERVERS, partial, expected, length);
}

static const struct packet_spec question4 = {UDP4(CLIENT4, 48001, "10.9.9.9", 8000),
					     PAYLOAD(CHAT_QUESTION)};
static const struct packet_spec question6 = {UDP6(CLIENT6, 48002, "fd00:9::9", 8000),
					     PAYLOAD(CHAT_QUESTION)};
static const struct packet_spec data6 = {TCP6(CLIENT6, 48003, KEY_CONV1, 443, ACK),
					 LONG_PAYLOAD(1200)};
static const struct packet_spec large6 = {TCP6(CLIENT6, 48003, KEY_CONV1, 443, ACK),
					  LONG_PAYLOAD(20000)};

static void test_finished(void **state)
{
	(void)state;
	send_and_expect(&question4, false, 0, "10.0.2.11", 8002);
	send_and_expect(&question6, false, 0, "fd00:2::11", 8002);
	send_and_expect(&data6, false, 0, "fd00:2::42", 8443);
}

static void test_partial(void **state)
{
	(void)state;
	send_and_expect(&question4, true, 0, "10.0.2.11", 8002);
	send_and_expect(&question6, true, 0, "fd00:2::11", 8002);
	send_and_expect(&data6, true, 0, "fd00:2::42", 8443);
}

/* To a replica of two services the second flow gets another port: that is not in the sum that is there already. */
static void test_partial_port_translated(void **state)
{
	struct packet_spec to_a = {UDP4(CLIENT4, 48005, "10.9.9.30", 8201), PAYLOAD("xxconv-123")};
	struct packet_spec to_b = {UDP4(CLIENT4, 48005, "10.9.9.31", 8202), PAYLOAD("xxconv-123")};
	static struct frame frame;
	struct decoded decoded;

	(void)state;
	send_and_expect(&to_a, true, 0, "10.0.2.30", 9100);
	build(&to_b, true, 0, &frame);
	send_frame(LINK_CLIENTS, &frame);
	assert_true(receive(LINK_SERVERS, &frame));
	finish_checksum(&frame);
	decoded = decode_frame(frame.bytes, frame.length);
	assert_int_not_equal(
		frame.bytes[decoded.transport] << 8 | frame.bytes[decoded.transport + 1], 48005);
	assert_int_equal(decode_transport_sum(frame.bytes, &decoded), 0xffff);
}

static void test_segments_to_be_cut(void **state)
{
	(void)state;
	send_and_expect(&large6, true, 1400, "fd00:2::42", 8443);
}

/* The kernel takes the outer tag out of the frame before the program sees it. */
static void test_tags(void **state)
{
	struct packet_spec packet = question4;

	(void)state;
	packet.tags[0] = (struct packet_tag){0x8100, 0x0123};
	packet.tag_count = 1;
	send_and_expect(&packet, false, 0, "10.0.2.11", 8002);
	packet.tags[0] = (struct packet_tag){0x88a8, 0x0124};
	packet.tags[1] = (struct packet_tag){0x8100, 0x0125};
	packet.tag_count = 2;
	send_and_expect(&packet, false, 0, "10.0.2.11", 8002);
}

static void expect_answer(const struct packet_spec *packet, uint8_t type, uint8_t code,
			  uint16_t mtu)
{
	bool ipv4 = packet->family == AF_INET;
	static uint8_t expected[PACKET_SIZE_MAX];
	struct packet_spec in = *packet, answer = {.family = packet->family,
						   .protocol = ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6,
						   .hop_limit = 64,
						   .traffic_class = 0xc0,
						   .icmp_type = type,
						   .icmp_code = code,
						   .icmp_rest = mtu,
						   .quoted = &in};
	static struct frame frame;
	int most = ipv4 ? 548 : 1232, whole, checksum_at;
	struct decoded decoded;

	expect_link_addresses(&in, LINK_CLIENTS);
	memcpy(answer.source_mac, in.destination_mac, 6);
	memcpy(answer.destination_mac, in.source_mac, 6);
	strcpy(answer.source, in.destination);
	strcpy(answer.destination, in.source);
	whole = packet_build_ip(&in, expected);
	answer.quoted_length = whole > most ? most : whole;
	whole = packet_build(&answer, expected);

	build(packet, true, 0, &frame);
	send_frame(LINK_CLIENTS, &frame);
	if (!receive(LINK_CLIENTS, &frame))
		fail_msg("nobody was told");
	finish_checksum(&frame);
	/* the quoted packet's checksum is the unfinished one: not compared, but it is part of the sum that has to be right */
	decoded = decode_frame(frame.bytes, frame.length);
	assert_int_equal(decode_transport_sum(frame.bytes, &decoded), 0xffff);
	assert_int_equal(frame.length, whole);
	checksum_at = decode_ip(frame.bytes, decoded.transport + 8, decoded.end).checksum_at;
	memcpy(frame.bytes + checksum_at, expected + checksum_at, 2);
	memcpy(frame.bytes + decoded.checksum_at, expected + decoded.checksum_at, 2);
	/* the unused word of "time exceeded" may be 0xffff where the old checksum was (answer.h) */
	if (!mtu && frame.bytes[decoded.transport + 6] == 0xff)
		memset(frame.bytes + decoded.transport + 6, 0, 2);
	if (memcmp(frame.bytes, expected, whole)) {
		packet_print_difference(expected, whole, frame.bytes, frame.length);
		fail_msg("another answer than expected");
	}
}

/* The device will put a sum where the old packet had its checksum; the answer has to be right after that. */
static void test_partial_answered(void **state)
{
	struct packet_spec expired4 = question4, expired6 = question6, expired_tcp = data6;
	struct packet_spec big4 = {UDP4(CLIENT4, 48007, "10.9.9.60", 8600), LONG_PAYLOAD(1400),
				   .dont_fragment = true};
	struct packet_spec big6 = {UDP6(CLIENT6, 48008, "fd00:9::60", 8600), LONG_PAYLOAD(1400)};

	(void)state;
	expired4.hop_limit = expired6.hop_limit = expired_tcp.hop_limit = 1;
	expect_answer(&expired4, 11, 0, 0);
	expect_answer(&expired6, 3, 0, 0);
	expect_answer(&expired_tcp, 3, 0, 0);
	expect_answer(&big4, 3, 4, NARROW_MTU);
	expect_answer(&big6, 2, 0, NARROW_MTU);
}

/* The kernel asks who has the address, and sends the packet once it is told. */
static void test_neighbour_resolved(void **state)
{
	struct packet_spec packet = {UDP4(CLIENT4, 48009, "10.9.9.50", 8500), PAYLOAD("1conv-1")};
	static uint8_t expected[PACKET_SIZE_MAX];
	static struct frame frame;
	int length = build_expected(&packet, "10.0.2.99", 9500, LINK_SERVERS, expected);
	uint8_t answer[42];

	(void)state;
	build(&packet, true, 0, &frame);
	send_frame(LINK_CLIENTS, &frame);
	if (!receive(LINK_SERVERS, &frame) || frame.bytes[12] != 0x08 || frame.bytes[13] != 0x06)
		fail_msg("nobody asked who has 10.0.2.99");
	/* turn the question into an answer (RFC 826) */
	memcpy(answer, frame.bytes, sizeof(answer));
	memcpy(answer, frame.bytes + 6, 6);
	world_neighbour_address("10.0.2.99", answer + 6);
	answer[21] = 2;
	memcpy(answer + 22, answer + 6, 6);
	memcpy(answer + 28, frame.bytes + 38, 4);
	memcpy(answer + 32, frame.bytes + 22, 10);
	memset(&frame.head, 0, sizeof(frame.head));
	memcpy(frame.bytes, answer, sizeof(answer));
	frame.length = sizeof(answer);
	send_frame(LINK_SERVERS, &frame);
	expect_arrival(LINK_SERVERS, true, expected, length);
}

static void test_reply(void **state)
{
	struct packet_spec packet = {UDP4("10.0.2.11", 8002, CLIENT4, 48001), PAYLOAD(CHAT_ANSWER)};
	struct packet_spec out = packet;
	static uint8_t expected[PACKET_SIZE_MAX];
	static struct frame frame;
	int length;

	(void)state;
	strcpy(out.source, "10.9.9.9");
	out.source_port = 8000;
	out.hop_limit--;
	world_link_address(LINK_CLIENTS, out.source_mac);
	world_neighbour_address(CLIENT4, out.destination_mac);
	length = packet_build(&out, expected);
	build(&packet, true, 0, &frame);
	world_link_address(LINK_SERVERS, frame.bytes);
	send_frame(LINK_SERVERS, &frame);
	expect_arrival(LINK_CLIENTS, true, expected, length);
}

static int load(void **state)
{
	if (group_load_services(state) || world_attach_tc())
		return -1;
	for (int i = 0; i < LINK_COUNT; i++) {
		sockets[i] = open_socket(i);
		if (sockets[i] < 0)
			return -1;
	}
	return 0;
}

static int unload(void **state)
{
	for (int i = 0; i < LINK_COUNT; i++)
		close(sockets[i]);
	return group_unload(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finished),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_partial_port_translated),
		cmocka_unit_test(test_segments_to_be_cut),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_partial_answered),
		cmocka_unit_test(test_neighbour_resolved),
		cmocka_unit_test(test_reply),
	};

	group_begin();
	return cmocka_run_group_tests(tests, load, unload);
}
