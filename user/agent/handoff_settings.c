/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/handoff_settings.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <warmpath/connection.h>

#define IPV4_HEADERS 40
#define IPV6_HEADERS 60
#define MTU_LEAST    1280 /* RFC 8200: every IPv6 link has it */
#define MTU_MOST     9000
#define MTU_USUAL    1500

int handoff_keys_write(int map, const struct config_handoff *handoff, struct error *error)
{
	__u32 first = 0;

	if (bpf_map_update_elem(map, &first, &handoff->keys, BPF_ANY))
		return error_set(error, -errno, "map handoff_keys cannot be written: %s",
				 strerror(errno));
	return 0;
}

int http_service_write(int map, __u32 index, const struct config_service *settings,
		       unsigned int mtu, struct error *error)
{
	struct http_service service = {
		.settings = settings->http,
		.trust_token_headers = settings->trust_token_headers,
	};

	if (mtu < MTU_LEAST)
		mtu = MTU_LEAST;
	if (mtu > MTU_MOST)
		mtu = MTU_MOST;
	service.segment_size_ipv4 = mtu - IPV4_HEADERS;
	service.segment_size_ipv6 = mtu - IPV6_HEADERS;
	if (bpf_map_update_elem(map, &index, &service, BPF_ANY))
		return error_set(error, -errno, "map http_services cannot be written: %s",
				 strerror(errno));
	return 0;
}

unsigned int interfaces_smallest_mtu(const struct config *config)
{
	int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int smallest = 0, i;

	for (i = 0; descriptor >= 0 && i < config->interface_count; i++) {
		struct ifreq request = {0};

		memcpy(request.ifr_name, config->interfaces[i].name, sizeof(request.ifr_name));
		if (ioctl(descriptor, SIOCGIFMTU, &request) == 0 &&
		    (!smallest || (unsigned int)request.ifr_mtu < smallest))
			smallest = request.ifr_mtu;
	}
	if (descriptor >= 0)
		close(descriptor);
	return smallest ? smallest : MTU_USUAL;
}
