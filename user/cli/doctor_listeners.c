/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath doctor: servers on this machine that connections are handed to.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "cli/doctor.h"
#include "lib/address.h"

#define LISTENERS_MAX 1024
#define BUFFER_SIZE   32768

struct listener {
	struct address address; /* all zero, or ::ffff:0.0.0.0: any */
	__u16 port;
	bool ipv6_only, mptcp;
};

struct listeners {
	struct listener item[LISTENERS_MAX];
	unsigned int count;
};

static int on_listener(const struct nlmsghdr *message, void *context)
{
	const struct inet_diag_msg *found = mnl_nlmsg_get_payload(message);
	struct listeners *listeners = context;
	struct listener *listener;
	const struct nlattr *attribute, *inner;

	if (listeners->count == LISTENERS_MAX)
		return MNL_CB_OK;
	listener = &listeners->item[listeners->count++];
	memset(listener, 0, sizeof(*listener));
	listener->port = ntohs(found->id.idiag_sport);
	if (found->idiag_family == AF_INET) {
		listener->address.word[2] = htonl(0xffff);
		listener->address.word[3] = found->id.idiag_src[0];
	} else {
		memcpy(&listener->address, found->id.idiag_src, sizeof(listener->address));
	}
	mnl_attr_for_each(attribute, message, sizeof(*found))
	{
		if (mnl_attr_get_type(attribute) == INET_DIAG_SKV6ONLY)
			listener->ipv6_only = mnl_attr_get_u8(attribute);
		if (mnl_attr_get_type(attribute) != INET_DIAG_ULP_INFO)
			continue;
		mnl_attr_for_each_nested(inner, attribute)
		{
			if (mnl_attr_get_type(inner) == INET_ULP_INFO_NAME)
				listener->mptcp = strcmp(mnl_attr_get_str(inner), "mptcp") == 0;
		}
	}
	return MNL_CB_OK;
}

static int list_family(struct mnl_socket *socket, int family, struct listeners *listeners)
{
	char buffer[BUFFER_SIZE] = {0};
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct inet_diag_req_v2 *request =
		mnl_nlmsg_put_extra_header(message, sizeof(struct inet_diag_req_v2));
	int result = MNL_CB_OK;
	ssize_t length;

	message->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	request->sdiag_family = family;
	request->sdiag_protocol = IPPROTO_TCP;
	request->idiag_states = 1 << TCP_LISTEN;
	request->idiag_ext = 1 << (INET_DIAG_INFO - 1);
	if (mnl_socket_sendto(socket, message, message->nlmsg_len) < 0)
		return -errno;
	while (result > MNL_CB_STOP) {
		length = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
		if (length < 0)
			return -errno;
		result = mnl_cb_run(buffer, length, 0, 0, on_listener, listeners);
		if (result < 0)
			return -errno;
	}
	return 0;
}

static int list_listeners(struct listeners *listeners)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
	int result;

	if (!socket)
		return -errno;
	result = mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) ? -errno : 0;
	if (!result)
		result = list_family(socket, AF_INET, listeners);
	if (!result)
		result = list_family(socket, AF_INET6, listeners);
	mnl_socket_close(socket);
	return result;
}

/* Would the kernel give a connection to this address and port to the listener? */
static bool listens_at(const struct listener *listener, const struct address *address, __u16 port)
{
	bool ipv4 = address_is_ipv4(address);
	const __u32 *word = listener->address.word;

	if (listener->port != port)
		return false;
	if (memcmp(&listener->address, address, sizeof(*address)) == 0)
		return true;
	if (word[0] || word[1] || word[3])
		return false;
	/* any of its own family; :: is also for IPv4 unless it is for IPv6 alone */
	return word[2] ? ipv4 : !ipv4 || !listener->ipv6_only;
}

static void check_server(struct doctor *doctor, const struct listeners *listeners,
			 const struct config_replica *replica, const struct address *address)
{
	const struct listener *found = NULL;
	char text[INET6_ADDRSTRLEN];

	address_format(address, text);
	for (unsigned int i = 0; i < listeners->count; i++) {
		if (listens_at(&listeners->item[i], address, replica->port))
			found = &listeners->item[i];
	}
	if (!found)
		doctor_find(doctor, FINDING_WARNING, "listeners",
			    "start the server of %s, or correct its address and port",
			    replica->name,
			    "nothing listens at %s port %u, where replica %s should be", text,
			    replica->port, replica->name);
}

static void check_servers(struct doctor *doctor, const struct listeners *listeners)
{
	const struct config *config = doctor->config;

	for (unsigned int i = 0; i < config->service_count; i++) {
		const struct config_service *service = &config->services[i];

		if (!config_service_is_handed_over(service))
			continue;
		for (unsigned int j = 0; j < service->replica_count; j++) {
			const struct config_replica *replica = &service->replicas[j];

			for (unsigned int k = 0; k < replica->addresses.count; k++)
				check_server(doctor, listeners, replica,
					     &replica->addresses.item[k].address);
		}
	}
}

void doctor_check_listeners(struct doctor *doctor)
{
	static struct listeners listeners;
	unsigned int mptcp = 0;
	int result;

	if (!doctor->takes_over)
		return;
	result = list_listeners(&listeners);
	if (result) {
		doctor_find(doctor, FINDING_WARNING, "listeners",
			    "is the kernel module inet_diag there?", NULL,
			    "the listening sockets cannot be listed: %s", strerror(-result));
		return;
	}
	for (unsigned int i = 0; i < listeners.count; i++) {
		char number[16];

		if (!listeners.item[i].mptcp)
			continue;
		mptcp++;
		snprintf(number, sizeof(number), "%u", listeners.item[i].port);
		doctor_find(
			doctor, FINDING_PROBLEM, "listeners",
			"have the server on port %s listen without MPTCP (nginx: no \"multipath\"; Go: "
			"GODEBUG=multipathtcp=0), or sysctl net.mptcp.enabled=0 and restart it",
			number,
			"the server on port %s listens with MPTCP: the kernel hands nothing over to it",
			number);
	}
	if (!mptcp)
		doctor_find(doctor, FINDING_OK, "listeners", NULL, NULL,
			    "none of %u listening sockets is one of MPTCP", listeners.count);
	if (doctor->routes)
		check_servers(doctor, &listeners);
}
