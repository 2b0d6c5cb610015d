// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A replica for datagrams: answers each request (datagram.h) with its own name, from the address the request was sent to.
 *
 *   datagram-server --name NAME --port PORT [--pace MILLISECONDS] [--daemon PIDFILE]
 *
 * IPv4 and IPv6 on one socket. With --daemon it goes to the background once it is bound, so that a caller may send
 * as soon as it returns. Requests that are not in the format are not answered. With --pace it works on one request after the
 * other, so long on each; the others wait in the socket.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "datagram.h"

#define RECEIVE_BUFFER_BYTES (8 << 20)

static int open_socket(uint16_t port)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int on = 1, off = 0, buffer = RECEIVE_BUFFER_BYTES;
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "cannot open a socket");
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
	/* a burst must not be lost here, where nobody would count it; FORCE needs root, as does the lab */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)))
		err(1, "cannot bind to port %u", port);
	return fd;
}

/* The answer goes from the address that the request came to, as a connected client expects. */
static void keep_only_the_address(struct msghdr *message)
{
	struct cmsghdr *control;

	for (control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
		struct in6_pktinfo *information = (void *)CMSG_DATA(control);

		if (control->cmsg_level != IPPROTO_IPV6 || control->cmsg_type != IPV6_PKTINFO)
			continue;
		information->ipi6_ifindex = 0; /* the way back is the routing table's business */
		return;
	}
	message->msg_controllen = 0;
}

/* Turns the request in `datagram` into its answer. Returns the answer's size, or 0 if it is no request. */
static size_t answer(uint8_t *datagram, size_t size, const char *name)
{
	struct datagram_request request;
	struct datagram_answer reply = {0};
	size_t answer_size;

	if (size < sizeof(request))
		return 0;
	memcpy(&request, datagram, sizeof(request));
	if (ntohl(request.magic) != DATAGRAM_REQUEST)
		return 0;
	reply.magic = htonl(DATAGRAM_ANSWER);
	reply.sequence = request.sequence;
	memcpy(reply.id, request.id, sizeof(reply.id));
	reply.request_size = htonl((uint32_t)size);
	reply.request_intact =
		htonl(datagram_filler_intact(datagram, request.id, sizeof(request), size));
	snprintf(reply.replica, sizeof(reply.replica), "%s", name);
	answer_size = ntohl(request.answer_size);
	if (answer_size < sizeof(reply))
		answer_size = sizeof(reply);
	if (answer_size > DATAGRAM_SIZE_MAX)
		answer_size = DATAGRAM_SIZE_MAX;
	memcpy(datagram, &reply, sizeof(reply));
	datagram_fill(datagram, request.id, sizeof(reply), answer_size);
	return answer_size;
}

static void serve(int fd, const char *name, unsigned long pace)
{
	struct timespec work = {.tv_sec = pace / 1000, .tv_nsec = pace % 1000 * 1000000};
	static uint8_t datagram[65536];
	union {
		char bytes[256];
		struct cmsghdr align;
	} control;

	for (;;) {
		struct sockaddr_in6 peer;
		struct iovec part = {.iov_base = datagram, .iov_len = sizeof(datagram)};
		struct msghdr message = {
			.msg_name = &peer,
			.msg_namelen = sizeof(peer),
			.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};
		ssize_t size = recvmsg(fd, &message, 0);

		if (size < 0) {
			if (errno == EINTR || errno == ECONNREFUSED)
				continue;
			err(1, "cannot receive");
		}
		part.iov_len = answer(datagram, (size_t)size, name);
		if (!part.iov_len)
			continue;
		if (pace > 0)
			nanosleep(&work, NULL);
		keep_only_the_address(&message);
		/* a client that is gone, or a path with too small an MTU, shows as the client's missing answer */
		if (sendmsg(fd, &message, 0) < 0 && errno == EBADF)
			err(1, "cannot send");
	}
}

static void go_to_background(const char *pid_file)
{
	FILE *file;
	pid_t child = fork();

	if (child < 0)
		err(1, "cannot fork");
	if (child > 0) {
		file = fopen(pid_file, "w");
		if (!file || fprintf(file, "%d\n", child) < 0 || fclose(file))
			err(1, "cannot write %s", pid_file);
		exit(0);
	}
	setsid();
	if (!freopen("/dev/null", "r", stdin) || !freopen("/dev/null", "w", stdout) ||
	    !freopen("/dev/null", "w", stderr))
		exit(1);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"name", required_argument, NULL, 'n'},
						{"port", required_argument, NULL, 'p'},
						{"pace", required_argument, NULL, 'c'},
						{"daemon", required_argument, NULL, 'd'},
						{0}};
	const char *name = NULL, *pid_file = NULL;
	unsigned long port = 0, pace = 0;
	int option, fd;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'n')
			name = optarg;
		else if (option == 'p')
			port = strtoul(optarg, NULL, 10);
		else if (option == 'c')
			pace = strtoul(optarg, NULL, 10);
		else if (option == 'd')
			pid_file = optarg;
		else
			return 2;
	}
	if (!name || strlen(name) >= DATAGRAM_REPLICA_MAX || port < 1 || port > 65535 ||
	    optind != argc)
		errx(2, "usage: datagram-server --name NAME --port PORT [--pace MILLISECONDS] "
			"[--daemon PIDFILE]");
	fd = open_socket((uint16_t)port);
	if (pid_file)
		go_to_background(pid_file);
	serve(fd, name, pace);
}
