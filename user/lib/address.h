/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct address (layout.h) from and to text.
 *
 * Owns: what an address looks like to people. May not know: maps, configuration.
 */
#ifndef WARMPATH_USER_ADDRESS_H
#define WARMPATH_USER_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <warmpath/layout.h>

#include "lib/error.h"

#define ENDPOINT_TEXT_SIZE (INET6_ADDRSTRLEN + 8) /* "[ADDRESS]:PORT" */

/*
 * Reads "10.0.2.10", "fd00:2::10" or, if `prefix_length` is given, also "fd00:9::/64". `*prefix_length` becomes what stands behind
 * the slash, or 128 without one (also for IPv4). Refused with a sentence and -EINVAL: host names, scoped and mapped
 * addresses, bits set behind the prefix, the unspecified address, multicast and broadcast.
 */
int address_parse(const char *text, struct address *address, unsigned int *prefix_length,
		  struct error *error);

/* Writes the address without port, at most INET6_ADDRSTRLEN bytes. Returns `text`. */
const char *address_format(const struct address *address, char text[INET6_ADDRSTRLEN]);

/* Writes "10.0.2.10:8001" or "[fd00:2::10]:8001". Returns `text`. */
const char *endpoint_format(const struct address *address, __be16 port,
			    char text[ENDPOINT_TEXT_SIZE]);

bool address_is_ipv4(const struct address *address);
bool address_is_set(const struct address *address);
bool address_equal(const struct address *a, const struct address *b);

/* The upper 64 bits alone: what a prefix service is keyed with. */
struct address address_network(const struct address *address);

#endif /* WARMPATH_USER_ADDRESS_H */
