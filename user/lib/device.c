/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/device.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

const char *device_driver(const char *interface, char *driver, size_t size)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {0};
	int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(driver, size, "?");
	if (descriptor < 0)
		return driver;
	strncpy(request.ifr_name, interface, sizeof(request.ifr_name) - 1);
	request.ifr_data = (char *)&info;
	if (ioctl(descriptor, SIOCETHTOOL, &request) == 0 && info.driver[0])
		snprintf(driver, size, "%.*s", (int)sizeof(info.driver), info.driver);
	close(descriptor);
	return driver;
}

bool driver_has_partial_checksums(const char *driver)
{
	/* "?" is the loopback device and other purely virtual ones. */
	static const char *const drivers[] = {"veth",
					      "virtio_net",
					      "tun",
					      "bridge",
					      "macvlan",
					      "ipvlan",
					      "dummy",
					      "netvsc",
					      "vif",
					      "xen_netfront",
					      "bonding",
					      "team",
					      "802.1Q VLAN Support",
					      "?"};
	unsigned int i;

	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (strcmp(driver, drivers[i]) == 0)
			return true;
	}
	return false;
}

/* --- XDP features, by the generic netlink family "netdev" (Linux 6.3; not in Debian 12's headers) ------------------ */

#define NETDEV_FAMILY	       "netdev"
#define NETDEV_COMMAND_DEV_GET 1
#define NETDEV_ATTRIBUTE_INDEX 1
#define NETDEV_ATTRIBUTE_XDP   3

struct feature_answer {
	uint16_t family;
	uint64_t features;
	bool known;
};

static int on_family(const struct nlmsghdr *message, void *context)
{
	struct feature_answer *answer = context;
	const struct nlattr *attribute;

	mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
	{
		if (mnl_attr_get_type(attribute) == CTRL_ATTR_FAMILY_ID)
			answer->family = mnl_attr_get_u16(attribute);
	}
	return MNL_CB_OK;
}

static int on_device(const struct nlmsghdr *message, void *context)
{
	struct feature_answer *answer = context;
	const struct nlattr *attribute;

	mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
	{
		if (mnl_attr_get_type(attribute) == NETDEV_ATTRIBUTE_XDP) {
			answer->features = mnl_attr_get_u64(attribute);
			answer->known = true;
		}
	}
	return MNL_CB_OK;
}

static int ask(struct mnl_socket *netlink, struct nlmsghdr *message, mnl_cb_t callback,
	       struct feature_answer *answer)
{
	char buffer[8192];
	ssize_t length;

	if (mnl_socket_sendto(netlink, message, message->nlmsg_len) < 0)
		return -errno;
	length = mnl_socket_recvfrom(netlink, buffer, sizeof(buffer));
	if (length < 0)
		return -errno;
	if (mnl_cb_run(buffer, length, message->nlmsg_seq, mnl_socket_get_portid(netlink), callback,
		       answer) < 0)
		return -errno;
	return 0;
}

static struct nlmsghdr *begin(char *buffer, uint16_t family, uint8_t command, uint32_t sequence)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *header;

	message->nlmsg_type = family;
	message->nlmsg_flags = NLM_F_REQUEST;
	message->nlmsg_seq = sequence;
	header = mnl_nlmsg_put_extra_header(message, sizeof(*header));
	header->cmd = command;
	header->version = 1;
	return message;
}

/* 0 and *features, or a negative errno. */
static int ask_features(int index, uint64_t *features)
{
	struct feature_answer answer = {0};
	struct nlmsghdr *message;
	struct mnl_socket *netlink = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	char buffer[256] = {0};
	int result;

	if (!netlink)
		return -errno;
	if (mnl_socket_bind(netlink, 0, MNL_SOCKET_AUTOPID)) {
		result = -errno;
		goto out;
	}
	message = begin(buffer, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	mnl_attr_put_strz(message, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY);
	result = ask(netlink, message, on_family, &answer);
	if (result)
		goto out;
	message = begin(buffer, answer.family, NETDEV_COMMAND_DEV_GET, 2);
	mnl_attr_put_u32(message, NETDEV_ATTRIBUTE_INDEX, index);
	result = ask(netlink, message, on_device, &answer);
	if (!result && !answer.known)
		result = -ENODATA;
	*features = answer.features;
out:
	mnl_socket_close(netlink);
	return result;
}

int64_t device_xdp_features(int index)
{
	uint64_t features = 0;

	return ask_features(index, &features) ? -1 : (int64_t)features;
}

int device_takes_redirects(int index)
{
	uint64_t features = 0;
	int result = ask_features(index, &features);

	return result ? result : (features & DEVICE_XDP_NDO_XMIT) != 0;
}
