/* SPDX-License-Identifier: BSD-2-Clause */
/* An id as an IPv6 address: the service's /64 and the id's hash, as `warmpath address ID` prints it. */
#include "traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <warmpath/blake2b.h>

int address_url(const char *url, const char *id, char *out, size_t size)
{
	const char *open = strchr(url, '['), *close = open ? strchr(open, ']') : NULL;
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;
	__u64 hash;

	if (!close || (size_t)(close - open) > sizeof(text))
		return -EINVAL;
	memcpy(text, open + 1, (size_t)(close - open - 1));
	text[close - open - 1] = '\0';
	if (inet_pton(AF_INET6, text, &address) != 1)
		return -EINVAL;
	hash = htobe64(blake2b_64(id, strlen(id), NULL, 0));
	memcpy(address.s6_addr + 8, &hash, sizeof(hash));
	inet_ntop(AF_INET6, &address, text, sizeof(text));
	if ((size_t)snprintf(out, size, "%.*s[%s%s", (int)(open - url), url, text, close) >= size)
		return -EINVAL;
	return 0;
}
