/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/quiet_close.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/log.h"

#define HOP_LIMIT 64

static bool is_ipv4(const struct address *address)
{
	return !address->word[0] && !address->word[1] && address->word[2] == htonl(0xffff);
}

/* --- the packet -------------------------------------------------------------------------------------------- */

static __u32 sum16(__u32 sum, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i + 1 < length; i += 2)
		sum += at[i] << 8 | at[i + 1];
	return sum;
}

/* Over the TCP header and its pseudo header, where the addresses are `size` bytes each. */
static __u16 tcp_sum(const struct tcphdr *tcp, const void *source, const void *destination,
		     size_t size)
{
	__u32 sum = IPPROTO_TCP + sizeof(*tcp);

	sum = sum16(sum, source, size);
	sum = sum16(sum, destination, size);
	sum = sum16(sum, tcp, sizeof(*tcp));
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum);
}

/*
 * The sequence number is the one that the socket expects next, so that it takes the reset at once (RFC 5961, 3.2). No timestamps: those
 * of a reset are not looked at.
 */
static struct tcphdr build_tcp(const struct event_move *move)
{
	struct tcphdr tcp = {
		.source = move->client_port,
		.dest = move->replica_port,
		.seq = htonl(move->sequence),
		.ack_seq = htonl(move->acknowledgement),
		.doff = sizeof(tcp) / 4,
		.rst = 1,
		.ack = 1,
	};

	return tcp;
}

static int build_ipv4(const struct event_move *move, unsigned char *packet)
{
	struct tcphdr tcp = build_tcp(move);
	struct iphdr ip = {
		.version = 4,
		.ihl = sizeof(ip) / 4,
		.tot_len = htons(sizeof(ip) + sizeof(tcp)),
		.frag_off = htons(IP_DF),
		.ttl = HOP_LIMIT,
		.protocol = IPPROTO_TCP,
		.saddr = move->header.flow.client.word[3],
		.daddr = move->replica_address.word[3],
	};

	tcp.check = tcp_sum(&tcp, &ip.saddr, &ip.daddr, sizeof(ip.saddr));
	memcpy(packet, &ip, sizeof(ip));
	memcpy(packet + sizeof(ip), &tcp, sizeof(tcp));
	return sizeof(ip) + sizeof(tcp);
}

static int build_ipv6(const struct event_move *move, unsigned char *packet)
{
	struct tcphdr tcp = build_tcp(move);
	struct ip6_hdr ip = {
		.ip6_flow = htonl(6u << 28),
		.ip6_plen = htons(sizeof(tcp)),
		.ip6_nxt = IPPROTO_TCP,
		.ip6_hops = HOP_LIMIT,
	};

	memcpy(&ip.ip6_src, &move->header.flow.client, sizeof(ip.ip6_src));
	memcpy(&ip.ip6_dst, &move->replica_address, sizeof(ip.ip6_dst));
	tcp.check = tcp_sum(&tcp, &ip.ip6_src, &ip.ip6_dst, sizeof(ip.ip6_src));
	memcpy(packet, &ip, sizeof(ip));
	memcpy(packet + sizeof(ip), &tcp, sizeof(tcp));
	return sizeof(ip) + sizeof(tcp);
}

int quiet_close_build(const struct event_move *move, unsigned char packet[QUIET_CLOSE_PACKET_MAX])
{
	return is_ipv4(&move->replica_address) ? build_ipv4(move, packet)
					       : build_ipv6(move, packet);
}

/* --- sending it -------------------------------------------------------------------------------------------- */

void quiet_close_send(const struct quiet_close *closer, const struct event_move *move)
{
	unsigned char packet[QUIET_CLOSE_PACKET_MAX];
	int length = quiet_close_build(move, packet);
	struct sockaddr_in to4 = {.sin_family = AF_INET};
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6};

	if (is_ipv4(&move->replica_address)) {
		to4.sin_addr.s_addr = move->replica_address.word[3];
		sendto(closer->ipv4, packet, length, MSG_DONTWAIT, (struct sockaddr *)&to4,
		       sizeof(to4));
	} else {
		memcpy(&to6.sin6_addr, &move->replica_address, sizeof(to6.sin6_addr));
		sendto(closer->ipv6, packet, length, MSG_DONTWAIT, (struct sockaddr *)&to6,
		       sizeof(to6));
	}
}

/* IPPROTO_RAW takes whole packets, whoever they are from, and receives none. */
static int open_socket(int family)
{
	int on = 1, descriptor = socket(family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	static bool warned; /* the reason is the same for both families */

	if (descriptor < 0 && errno != EAFNOSUPPORT && !warned)
		log_warning(
			"sockets left behind by connections that move are not closed at once: no raw "
			"socket can be opened (%s; CAP_NET_RAW is needed)",
			strerror(errno));
	warned |= descriptor < 0;
	/* in IPv4 this goes without saying */
	if (descriptor >= 0 && family == AF_INET6)
		setsockopt(descriptor, IPPROTO_IPV6, IPV6_HDRINCL, &on, sizeof(on));
	return descriptor;
}

void quiet_close_open(struct quiet_close *closer)
{
	closer->ipv4 = open_socket(AF_INET);
	closer->ipv6 = open_socket(AF_INET6);
}

void quiet_close_close(struct quiet_close *closer)
{
	if (closer->ipv4 >= 0)
		close(closer->ipv4);
	if (closer->ipv6 >= 0)
		close(closer->ipv6);
	closer->ipv4 = closer->ipv6 = -1;
}
