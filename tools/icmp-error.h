/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICMP errors that the kernel keeps in a UDP socket's error queue (ip(7), IP_RECVERR; ipv6(7), IPV6_RECVERR).
 *
 * Owns: asking for them and reading one. May not know: what the datagrams mean.
 */
#ifndef WARMPATH_TOOLS_ICMP_ERROR_H
#define WARMPATH_TOOLS_ICMP_ERROR_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <linux/errqueue.h> /* after time.h, which it needs */

struct icmp_error {
	unsigned int type, code; /* numbers of the family's ICMP */
	int error;		 /* errno */
	char from[INET6_ADDRSTRLEN];
	uint8_t payload[2048]; /* of the datagram that it is about, as far as it was quoted */
	ssize_t payload_size;
};

static inline int icmp_error_enable(int fd, int family)
{
	int on = 1;

	return family == AF_INET ? setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on))
				 : setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
}

static inline void icmp_error_sender(const struct sock_extended_err *error, struct icmp_error *out)
{
	const struct sockaddr *sender = SO_EE_OFFENDER(error);

	if (sender->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)sender)->sin_addr, out->from,
			  sizeof(out->from));
	else if (sender->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)sender)->sin6_addr, out->from,
			  sizeof(out->from));
}

/* Takes one out of the queue, without waiting. False: there is none. */
static inline bool icmp_error_read(int fd, struct icmp_error *out)
{
	union {
		char bytes[512];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = out->payload, .iov_len = sizeof(out->payload)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *header;

	out->type = out->code = 0;
	out->error = 0;
	out->from[0] = '?';
	out->from[1] = 0;
	out->payload_size = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
	if (out->payload_size < 0)
		return false;
	for (header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
		const struct sock_extended_err *error = (const void *)CMSG_DATA(header);

		if (!(header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_RECVERR) &&
		    !(header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_RECVERR))
			continue;
		out->type = error->ee_type;
		out->code = error->ee_code;
		out->error = (int)error->ee_errno;
		icmp_error_sender(error, out);
	}
	return true;
}

#endif /* WARMPATH_TOOLS_ICMP_ERROR_H */
