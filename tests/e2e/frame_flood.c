/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flood of SYNs from addresses and ports made up, as fast as the machine can: straight to an interface, past the sender's own stack.
 *
 *   frame_flood INTERFACE MAC ADDRESS PORT COUNT
 *
 * ADDRESS is the service's IPv4 address, MAC that of the router. Prints "sent=N seconds=S".
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH	64
#define OPTIONS 20
#define FRAME_LENGTH \
	(sizeof(struct ether_header) + sizeof(struct iphdr) + sizeof(struct tcphdr) + OPTIONS)

/* Maximum segment size 1460, SACK, timestamps, scale 7: what Linux sends. */
static const unsigned char options[OPTIONS] = {2, 4, 5, 180, 4, 2, 8, 10, 0, 1,
					       2, 3, 0, 0,   0, 0, 1, 3,  3, 7};

struct frame {
	struct ether_header ethernet;
	struct iphdr ip;
	struct tcphdr tcp;
	unsigned char options[OPTIONS];
} __attribute__((packed));

static uint64_t state = 0x9e3779b97f4a7c15ULL;

static uint64_t random_bits(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static uint64_t add(const void *from, size_t length, uint64_t sum)
{
	const unsigned char *bytes = from;

	for (size_t i = 0; i + 1 < length; i += 2)
		sum += htons(bytes[i] << 8 | bytes[i + 1]);
	return sum;
}

/* What is the same in all of them. */
static void prepare(struct frame *frame, const struct ether_addr *from, const struct ether_addr *to,
		    const char *address, const char *port)
{
	memset(frame, 0, sizeof(*frame));
	memcpy(frame->ethernet.ether_shost, from, ETH_ALEN);
	memcpy(frame->ethernet.ether_dhost, to, ETH_ALEN);
	frame->ethernet.ether_type = htons(ETHERTYPE_IP);
	frame->ip.version = 4;
	frame->ip.ihl = 5;
	frame->ip.tot_len = htons(FRAME_LENGTH - sizeof(frame->ethernet));
	frame->ip.frag_off = htons(IP_DF);
	frame->ip.ttl = 64;
	frame->ip.protocol = IPPROTO_TCP;
	if (inet_pton(AF_INET, address, &frame->ip.daddr) != 1)
		errx(2, "%s: not an IPv4 address", address);
	frame->tcp.dest = htons(atoi(port));
	frame->tcp.doff = (sizeof(frame->tcp) + OPTIONS) / 4;
	frame->tcp.syn = 1;
	frame->tcp.window = htons(64240);
	memcpy(frame->options, options, OPTIONS);
}

/* Another sender. 198.18.0.0/15 is for tests of this kind (RFC 2544). */
static void make_up(struct frame *frame)
{
	uint64_t bits = random_bits();
	struct {
		uint32_t from, to;
		uint16_t protocol, length;
	} pseudo;

	frame->ip.saddr = htonl(0xc6120000 | (bits & 0x1ffff));
	frame->ip.check = 0;
	frame->ip.check = fold(add(&frame->ip, sizeof(frame->ip), 0));
	frame->tcp.source = htons(1024 + (bits >> 17) % 64000);
	frame->tcp.seq = bits >> 32;
	frame->tcp.check = 0;
	pseudo.from = frame->ip.saddr;
	pseudo.to = frame->ip.daddr;
	pseudo.protocol = htons(IPPROTO_TCP);
	pseudo.length = htons(sizeof(frame->tcp) + OPTIONS);
	frame->tcp.check = fold(
		add(&frame->tcp, sizeof(frame->tcp) + OPTIONS, add(&pseudo, sizeof(pseudo), 0)));
}

static void own_address(int socket, const char *interface, struct ether_addr *address)
{
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (ioctl(socket, SIOCGIFHWADDR, &request))
		err(2, "%s", interface);
	memcpy(address, request.ifr_hwaddr.sa_data, ETH_ALEN);
}

int main(int argc, char **argv)
{
	static struct frame frames[BATCH];
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	struct mmsghdr messages[BATCH] = {0};
	struct iovec vectors[BATCH];
	const struct ether_addr *router;
	struct timespec begin, end;
	struct ether_addr own;
	unsigned long sent = 0, count;
	int on = 1, descriptor;

	if (argc != 6)
		errx(2, "usage: frame_flood INTERFACE MAC ADDRESS PORT COUNT");
	descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	router = ether_aton(argv[2]);
	to.sll_ifindex = if_nametoindex(argv[1]);
	count = strtoul(argv[5], NULL, 10);
	if (descriptor < 0 || !router || !to.sll_ifindex)
		errx(2, "%s or %s cannot be used", argv[1], argv[2]);
	own_address(descriptor, argv[1], &own);
	if (bind(descriptor, (struct sockaddr *)&to, sizeof(to)))
		err(2, "bind");
	setsockopt(descriptor, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on));
	for (int i = 0; i < BATCH; i++) {
		prepare(&frames[i], &own, router, argv[3], argv[4]);
		vectors[i].iov_base = &frames[i];
		vectors[i].iov_len = FRAME_LENGTH;
		messages[i].msg_hdr.msg_iov = &vectors[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (sent < count) {
		unsigned int some = count - sent < BATCH ? count - sent : BATCH;
		int done;

		for (unsigned int i = 0; i < some; i++)
			make_up(&frames[i]);
		done = sendmmsg(descriptor, messages, some, 0);
		if (done < 0 && errno != ENOBUFS && errno != EAGAIN)
			err(1, "sendmmsg");
		if (done > 0)
			sent += done;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("sent=%lu seconds=%.2f\n", sent,
	       end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9);
	return 0;
}
