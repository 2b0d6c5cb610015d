/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "lib/address.h"

#define BUFFER_SIZE   32768
#define LIST_ATTEMPTS 5 /* at a list that changes while it is read */

int netlink_open(struct netlink *netlink)
{
	static const int groups[] = {RTNLGRP_LINK,	  RTNLGRP_IPV4_ROUTE,  RTNLGRP_IPV6_ROUTE,
				     RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_TC};
	/* The kernel answers at once; should an answer ever be lost, the agent must not hang on it. */
	const struct timeval patience = {.tv_sec = 2};
	unsigned int i;

	memset(netlink, 0, sizeof(*netlink));
	netlink->requests = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	netlink->events = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (!netlink->requests || !netlink->events ||
	    mnl_socket_bind(netlink->requests, 0, MNL_SOCKET_AUTOPID) ||
	    mnl_socket_bind(netlink->events, 0, MNL_SOCKET_AUTOPID))
		return -errno;
	if (setsockopt(mnl_socket_get_fd(netlink->requests), SOL_SOCKET, SO_RCVTIMEO, &patience,
		       sizeof(patience)))
		return -errno;
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		int group = groups[i];

		if (mnl_socket_setsockopt(netlink->events, NETLINK_ADD_MEMBERSHIP, &group,
					  sizeof(group)))
			return -errno;
	}
	return 0;
}

void netlink_close(struct netlink *netlink)
{
	if (netlink->requests)
		mnl_socket_close(netlink->requests);
	if (netlink->events)
		mnl_socket_close(netlink->events);
	netlink->requests = NULL;
	netlink->events = NULL;
}

/* Does any message say that what is listed has changed meanwhile? libmnl would leave the rest of the list unread, and the kernel begins no other then. */
static bool take_interruption(void *buffer, int length)
{
	struct nlmsghdr *message = buffer;
	bool interrupted = false;

	for (; mnl_nlmsg_ok(message, length); message = mnl_nlmsg_next(message, &length)) {
		interrupted |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		message->nlmsg_flags &= ~NLM_F_DUMP_INTR;
	}
	return interrupted;
}

/* Sends a request and hands each answer to `callback`. 0 or a negative errno; -EINTR: all of a list that changed meanwhile. */
static int ask(struct netlink *netlink, struct nlmsghdr *message, mnl_cb_t callback, void *context)
{
	unsigned int port = mnl_socket_get_portid(netlink->requests);
	char buffer[BUFFER_SIZE];
	bool interrupted = false;
	ssize_t length;
	int result = MNL_CB_OK;

	message->nlmsg_seq = ++netlink->sequence;
	if (mnl_socket_sendto(netlink->requests, message, message->nlmsg_len) < 0)
		return -errno;
	while (result > MNL_CB_STOP) {
		length = mnl_socket_recvfrom(netlink->requests, buffer, sizeof(buffer));
		if (length < 0)
			return -errno;
		interrupted |= take_interruption(buffer, (int)length);
		result = mnl_cb_run(buffer, length, netlink->sequence, port, callback, context);
		if (result < 0 && errno == EPROTO) {
			/* The late answer to a question that was given up. */
			result = MNL_CB_OK;
			continue;
		}
		if (result < 0)
			return -errno;
		/* One question, one answer: there is no closing message to wait for. */
		if (result > MNL_CB_STOP && !(message->nlmsg_flags & (NLM_F_DUMP | NLM_F_ACK)))
			return 0;
	}
	return interrupted ? -EINTR : 0;
}

static struct nlmsghdr *begin(char *buffer, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

	message->nlmsg_type = type;
	message->nlmsg_flags = NLM_F_REQUEST | flags;
	return message;
}

static void put_address(struct nlmsghdr *message, uint16_t type, const struct address *address)
{
	if (address_is_ipv4(address))
		mnl_attr_put(message, type, 4, &address->word[3]);
	else
		mnl_attr_put(message, type, 16, address);
}

static bool get_address(const struct nlattr *attribute, struct address *address)
{
	struct address mapped = {.word = {0, 0, htonl(0xffff), 0}};

	switch (mnl_attr_get_payload_len(attribute)) {
	case 4:
		memcpy(&mapped.word[3], mnl_attr_get_payload(attribute), 4);
		*address = mapped;
		return true;
	case 16:
		memcpy(address, mnl_attr_get_payload(attribute), 16);
		return true;
	default:
		return false;
	}
}

/* --- links -------------------------------------------------------------------------------------------------- */

struct link_walk {
	void (*each)(void *context, const struct link_info *link);
	void *context;
};

static bool link_is_veth(const struct nlattr *information)
{
	const struct nlattr *attribute;

	mnl_attr_for_each_nested(attribute, information)
	{
		if (mnl_attr_get_type(attribute) == IFLA_INFO_KIND)
			return strcmp(mnl_attr_get_str(attribute), "veth") == 0;
	}
	return false;
}

static int on_link(const struct nlmsghdr *message, void *context)
{
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);
	struct link_walk *walk = context;
	struct link_info link = {
		.index = header->ifi_index,
		.hardware_type = header->ifi_type,
		.up = header->ifi_flags & IFF_UP,
	};
	const struct nlattr *attribute;
	bool veth = false, across = false;

	if (message->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	mnl_attr_for_each(attribute, message, sizeof(*header))
	{
		switch (mnl_attr_get_type(attribute)) {
		case IFLA_IFNAME:
			strncpy(link.name, mnl_attr_get_str(attribute), sizeof(link.name) - 1);
			break;
		case IFLA_QDISC:
			link.queueless = strcmp(mnl_attr_get_str(attribute), "noqueue") == 0;
			break;
		case IFLA_LINK_NETNSID: /* there only if the other end's is not ours */
			across = true;
			break;
		case IFLA_LINKINFO:
			veth = link_is_veth(attribute);
			break;
		default:
			break;
		}
	}
	link.veth_across = veth && across;
	walk->each(walk->context, &link);
	return MNL_CB_OK;
}

int netlink_each_link(struct netlink *netlink,
		      void (*each)(void *context, const struct link_info *link), void *context)
{
	struct link_walk walk = {.each = each, .context = context};
	char buffer[256] = {0};
	struct nlmsghdr *message = begin(buffer, RTM_GETLINK, NLM_F_DUMP);
	struct ifinfomsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));
	int attempts = LIST_ATTEMPTS, result;

	header->ifi_family = AF_UNSPEC;
	do {
		result = ask(netlink, message, on_link, &walk);
	} while (result == -EINTR && --attempts);
	return result;
}

/* --- routes ------------------------------------------------------------------------------------------------- */

static int on_route(const struct nlmsghdr *message, void *context)
{
	const struct rtmsg *header = mnl_nlmsg_get_payload(message);
	struct next_hop *next_hop = context;
	const struct nlattr *attribute;

	if (message->nlmsg_type != RTM_NEWROUTE)
		return MNL_CB_OK;
	if (header->rtm_type == RTN_LOCAL)
		next_hop->kind = NEXT_HOP_LOCAL;
	else if (header->rtm_type == RTN_UNICAST)
		next_hop->kind = NEXT_HOP_NEIGHBOUR;
	mnl_attr_for_each(attribute, message, sizeof(*header))
	{
		switch (mnl_attr_get_type(attribute)) {
		case RTA_OIF:
			next_hop->index = mnl_attr_get_u32(attribute);
			break;
		case RTA_GATEWAY:
			get_address(attribute, &next_hop->address);
			break;
		case RTA_VIA: /* a gateway of the other family: two bytes of family before it */
			if (mnl_attr_get_payload_len(attribute) == 2 + 16)
				memcpy(&next_hop->address,
				       (const char *)mnl_attr_get_payload(attribute) + 2, 16);
			break;
		default:
			break;
		}
	}
	return MNL_CB_OK;
}

int netlink_next_hop(struct netlink *netlink, const struct address *destination,
		     struct next_hop *next_hop)
{
	char buffer[256] = {0};
	struct nlmsghdr *message = begin(buffer, RTM_GETROUTE, 0);
	struct rtmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));
	int result;

	header->rtm_family = address_is_ipv4(destination) ? AF_INET : AF_INET6;
	header->rtm_dst_len = address_is_ipv4(destination) ? 32 : 128;
	put_address(message, RTA_DST, destination);
	memset(next_hop, 0, sizeof(*next_hop));
	next_hop->address = *destination;
	result = ask(netlink, message, on_route, next_hop);
	if (result == -ENETUNREACH || result == -EHOSTUNREACH || result == -EINVAL ||
	    result == -EACCES) {
		next_hop->kind = NEXT_HOP_NONE;
		return 0;
	}
	return result;
}

/* --- neighbours --------------------------------------------------------------------------------------------- */

static void put_neighbour(struct nlmsghdr *message, const struct next_hop *next_hop, uint8_t flags)
{
	struct ndmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

	header->ndm_family = address_is_ipv4(&next_hop->address) ? AF_INET : AF_INET6;
	header->ndm_ifindex = next_hop->index;
	header->ndm_flags = flags;
	put_address(message, NDA_DST, &next_hop->address);
}

struct neighbour_answer {
	uint16_t state;
	bool managed;
};

static int on_neighbour(const struct nlmsghdr *message, void *context)
{
	const struct ndmsg *header = mnl_nlmsg_get_payload(message);
	struct neighbour_answer *answer = context;
	const struct nlattr *attribute;

	if (message->nlmsg_type != RTM_NEWNEIGH)
		return MNL_CB_OK;
	answer->state = header->ndm_state;
	mnl_attr_for_each(attribute, message, sizeof(*header))
	{
		if (mnl_attr_get_type(attribute) == NDA_FLAGS_EXT)
			answer->managed = mnl_attr_get_u32(attribute) & NTF_EXT_MANAGED;
	}
	return MNL_CB_OK;
}

int netlink_neighbour_state(struct netlink *netlink, const struct next_hop *next_hop,
			    uint16_t *state, bool *managed)
{
	struct neighbour_answer answer = {0};
	char buffer[256] = {0};
	struct nlmsghdr *message = begin(buffer, RTM_GETNEIGH, 0);
	int result;

	put_neighbour(message, next_hop, 0);
	result = ask(netlink, message, on_neighbour, &answer);
	*state = answer.state;
	*managed = answer.managed;
	return result == -ENOENT ? 0 : result;
}

int netlink_resolve_neighbour(struct netlink *netlink, const struct next_hop *next_hop,
			      bool managed)
{
	char buffer[256] = {0};
	struct nlmsghdr *message =
		begin(buffer, RTM_NEWNEIGH, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE);

	put_neighbour(message, next_hop, managed ? 0 : NTF_USE);
	if (managed)
		mnl_attr_put_u32(message, NDA_FLAGS_EXT, NTF_EXT_MANAGED);
	return ask(netlink, message, NULL, NULL);
}

/* --- tc filters --------------------------------------------------------------------------------------------- */

static int on_filter(const struct nlmsghdr *message, void *context)
{
	const struct tcmsg *header = mnl_nlmsg_get_payload(message);
	int *count = context;

	/* Each filter is shown twice: once as the head of its priority, with handle 0. */
	if (message->nlmsg_type == RTM_NEWTFILTER && header->tcm_handle != 0)
		(*count)++;
	return MNL_CB_OK;
}

int netlink_count_filters(struct netlink *netlink, int index, uint32_t parent)
{
	char buffer[256] = {0};
	struct nlmsghdr *message = begin(buffer, RTM_GETTFILTER, NLM_F_DUMP);
	struct tcmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));
	int count = 0, result;

	header->tcm_family = AF_UNSPEC;
	header->tcm_ifindex = index;
	header->tcm_parent = parent;
	result = ask(netlink, message, on_filter, &count);
	return result ? result : count;
}

/* --- events ------------------------------------------------------------------------------------------------- */

int netlink_event_descriptor(const struct netlink *netlink)
{
	return mnl_socket_get_fd(netlink->events);
}

static int on_event(const struct nlmsghdr *message, void *context)
{
	unsigned int *about = context;

	switch (message->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		*about |= NETLINK_EVENT_LINK;
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
	case RTM_NEWADDR:
	case RTM_DELADDR:
		*about |= NETLINK_EVENT_ROUTE;
		break;
	case RTM_NEWQDISC:
	case RTM_DELQDISC:
	case RTM_NEWTFILTER:
	case RTM_DELTFILTER:
		*about |= NETLINK_EVENT_QUEUE;
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

unsigned int netlink_take_events(struct netlink *netlink)
{
	char buffer[BUFFER_SIZE];
	unsigned int about = 0;
	ssize_t length;

	for (;;) {
		length = mnl_socket_recvfrom(netlink->events, buffer, sizeof(buffer));
		if (length > 0) {
			mnl_cb_run(buffer, length, 0, 0, on_event, &about);
		} else if (length < 0 && errno == ENOBUFS) {
			about |= NETLINK_EVENT_LINK | NETLINK_EVENT_ROUTE | NETLINK_EVENT_QUEUE;
		} else {
			return about;
		}
	}
}
