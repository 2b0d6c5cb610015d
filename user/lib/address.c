/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct address from_ipv4(const struct in_addr *in)
{
	struct address address = {.word = {0, 0, htonl(0xffff), in->s_addr}};

	return address;
}

bool address_is_ipv4(const struct address *address)
{
	return address->word[0] == 0 && address->word[1] == 0 && address->word[2] == htonl(0xffff);
}

bool address_is_set(const struct address *address)
{
	return address->word[0] || address->word[1] || address->word[2] || address->word[3];
}

bool address_equal(const struct address *a, const struct address *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

struct address address_network(const struct address *address)
{
	struct address network = {.word = {address->word[0], address->word[1], 0, 0}};

	return network;
}

/* Reads what stands behind the slash. */
static int parse_prefix_length(const char *text, const char *digits, unsigned int *prefix_length,
			       struct error *error)
{
	char *end;
	unsigned long length = strtoul(digits, &end, 10);

	if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || length > 128)
		return error_set(error, -EINVAL,
				 "\"%s\" has no prefix length from 0 to 128 behind its slash",
				 text);
	*prefix_length = length;
	return 0;
}

static bool bits_behind_prefix(const struct address *address, unsigned int prefix_length)
{
	unsigned int bit;
	const unsigned char *bytes = (const unsigned char *)address;

	for (bit = prefix_length; bit < 128; bit++) {
		if (bytes[bit / 8] & (0x80 >> (bit % 8)))
			return true;
	}
	return false;
}

int address_parse(const char *text, struct address *address, unsigned int *prefix_length,
		  struct error *error)
{
	const char *slash = strchr(text, '/');
	char host[INET6_ADDRSTRLEN + 1];
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	unsigned int prefix = 128;
	struct in6_addr in6;
	struct in_addr in;
	int result;

	if (slash && !prefix_length)
		return error_set(error, -EINVAL, "\"%s\" is a prefix; only an address is allowed",
				 text);
	if (slash) {
		result = parse_prefix_length(text, slash + 1, &prefix, error);
		if (result)
			return result;
	}
	if (length < sizeof(host)) {
		memcpy(host, text, length);
		host[length] = '\0';
	} else {
		host[0] = '\0';
	}

	if (inet_pton(AF_INET, host, &in) == 1) {
		if (slash)
			return error_set(error, -EINVAL,
					 "\"%s\" is an IPv4 prefix; only IPv6 prefixes are allowed",
					 text);
		if (in.s_addr == INADDR_ANY || in.s_addr == INADDR_BROADCAST ||
		    IN_MULTICAST(ntohl(in.s_addr)))
			return error_set(error, -EINVAL, "\"%s\" is not the address of one machine",
					 text);
		*address = from_ipv4(&in);
	} else if (inet_pton(AF_INET6, host, &in6) == 1) {
		if (IN6_IS_ADDR_V4MAPPED(&in6))
			return error_set(error, -EINVAL,
					 "\"%s\" is an IPv4 address in IPv6 form; write it as IPv4",
					 text);
		if (IN6_IS_ADDR_UNSPECIFIED(&in6) || IN6_IS_ADDR_MULTICAST(&in6))
			return error_set(error, -EINVAL, "\"%s\" is not the address of one machine",
					 text);
		if (IN6_IS_ADDR_LINKLOCAL(&in6))
			return error_set(error, -EINVAL,
					 "\"%s\" is link-local and cannot be routed to", text);
		memcpy(address, &in6, sizeof(*address));
		if (slash && bits_behind_prefix(address, prefix))
			return error_set(error, -EINVAL, "\"%s\" has bits set behind its prefix",
					 text);
	} else {
		return error_set(error, -EINVAL, "\"%s\" is not an IPv4 or IPv6 address", text);
	}
	if (prefix_length)
		*prefix_length = prefix;
	return 0;
}

const char *address_format(const struct address *address, char text[INET6_ADDRSTRLEN])
{
	if (address_is_ipv4(address))
		inet_ntop(AF_INET, &address->word[3], text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
	return text;
}

const char *endpoint_format(const struct address *address, __be16 port,
			    char text[ENDPOINT_TEXT_SIZE])
{
	char host[INET6_ADDRSTRLEN];
	const char *format = address_is_ipv4(address) ? "%s:%u" : "[%s]:%u";

	address_format(address, host);
	snprintf(text, ENDPOINT_TEXT_SIZE, format, host, ntohs(port));
	return text;
}
