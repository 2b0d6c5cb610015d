/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server that a test program for HTTP talks to, as its arguments name it.
 *
 * Owns: reading address and port. May not know: what is sent there.
 */
#ifndef WARMPATH_TEST_SERVER_ADDRESS_H
#define WARMPATH_TEST_SERVER_ADDRESS_H

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Ends the program if `text` is no address. Returns the address's length. */
static socklen_t parse_server_address(const char *text, const char *port,
				      struct sockaddr_storage *address)
{
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)address;

	if (inet_pton(AF_INET, text, &ipv4->sin_addr) == 1) {
		ipv4->sin_family = AF_INET;
		ipv4->sin_port = htons(atoi(port));
		return sizeof(*ipv4);
	}
	if (inet_pton(AF_INET6, text, &ipv6->sin6_addr) == 1) {
		ipv6->sin6_family = AF_INET6;
		ipv6->sin6_port = htons(atoi(port));
		return sizeof(*ipv6);
	}
	errx(2, "%s: not an address", text);
}

#endif /* WARMPATH_TEST_SERVER_ADDRESS_H */
