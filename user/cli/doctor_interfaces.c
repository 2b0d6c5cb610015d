/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath doctor: the interfaces, and what their devices can do.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/doctor.h"
#include "lib/config_schema.h"
#include "lib/device.h"

#define MTU_LEAST 1280 /* of IPv6 (RFC 8200) */

/* --- what is asked ------------------------------------------------------------------------------------------------ */

static int ask_device(unsigned long what, const char *name, struct ifreq *request)
{
	int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), result;

	if (descriptor < 0)
		return -errno;
	snprintf(request->ifr_name, sizeof(request->ifr_name), "%s", name);
	result = ioctl(descriptor, what, request) ? -errno : 0;
	close(descriptor);
	return result;
}

static int interface_mtu(const char *name)
{
	struct ifreq request = {0};

	return ask_device(SIOCGIFMTU, name, &request) ? -1 : request.ifr_mtu;
}

static bool interface_is_up(const char *name)
{
	struct ifreq request = {0};

	return ask_device(SIOCGIFFLAGS, name, &request) == 0 && (request.ifr_flags & IFF_UP);
}

static bool joins_segments(const char *name)
{
	struct ethtool_value value = {.cmd = ETHTOOL_GFLAGS};
	struct ifreq request = {.ifr_data = (char *)&value};

	return ask_device(SIOCETHTOOL, name, &request) == 0 && (value.data & ETH_FLAG_LRO);
}

/* The agent's word about an interface; NULL: none runs, or it has no such interface. */
static const json_t *agent_interface(const struct doctor *doctor, const char *name)
{
	const json_t *interfaces = json_object_get(doctor->status, "interfaces"), *entry;
	size_t i;

	json_array_foreach(interfaces, i, entry)
	{
		if (strcmp(client_text(entry, "name"), name) == 0)
			return entry;
	}
	return NULL;
}

/* --- what follows --------------------------------------------------------------------------------------------------- */

static bool uses_xdp(const struct doctor *doctor, const struct config_interface *interface)
{
	const json_t *entry = agent_interface(doctor, interface->name);

	if (!doctor->routes)
		return false;
	if (entry && strcmp(client_text(entry, "attached"), "not attached") != 0)
		return strcmp(client_text(entry, "attached"), "tc") != 0;
	return interface->mode == ATTACH_NATIVE || interface->mode == ATTACH_GENERIC;
}

static void check_modes(struct doctor *doctor, const struct config_interface *interface, int index)
{
	const char *mode = schema_word(choices_attach_mode, interface->mode);
	int64_t features = device_xdp_features(index);
	char driver[32];

	device_driver(interface->name, driver, sizeof(driver));
	if (interface->mode == ATTACH_NATIVE && features >= 0 && !(features & DEVICE_XDP_BASIC)) {
		doctor_find(doctor, FINDING_PROBLEM, "attach-mode",
			    "set the interface's mode to tc, generic or auto", NULL,
			    "%s (driver %s) cannot run XDP in its driver, as mode native demands",
			    interface->name, driver);
		return;
	}
	if (uses_xdp(doctor, interface) && driver_has_partial_checksums(driver))
		doctor_find(
			doctor, FINDING_WARNING, "offloads",
			"use mode tc or auto on %s, or switch transmit checksums off at the other end "
			"of the link (ethtool -K DEVICE tx off)",
			interface->name,
			"%s (driver %s) may take in packets whose checksums are left to be filled in; "
			"XDP cannot tell",
			interface->name, driver);
	doctor_find(doctor, FINDING_OK, "attach-mode", NULL, NULL,
		    "%s (driver %s): mode %s; possible are tc, generic%s%s", interface->name,
		    driver, mode,
		    features < 0		  ? ", and perhaps native"
		    : features & DEVICE_XDP_BASIC ? ", native"
						  : "",
		    features >= 0 && (features & DEVICE_XDP_BASIC) &&
				    !(features & DEVICE_XDP_NDO_XMIT)
			    ? " (takes no redirected frames: the kernel sends them on)"
			    : "");
}

static void check_one(struct doctor *doctor, const struct config_interface *interface)
{
	int index = doctor_interface_index(interface->name);

	if (!index) {
		doctor_find(
			doctor, FINDING_PROBLEM, "interface",
			"correct the name in interfaces, or make it; the agent attaches to it when it "
			"appears",
			NULL, "there is no interface %s", interface->name);
		return;
	}
	if (!interface_is_up(interface->name))
		doctor_find(doctor, FINDING_PROBLEM, "interface", "ip link set %s up",
			    interface->name, "interface %s is down", interface->name);
	if (doctor->inline_ && joins_segments(interface->name))
		doctor_find(
			doctor, FINDING_PROBLEM, "offloads", "ethtool -K %s lro off",
			interface->name,
			"%s joins received segments in a way that cannot be undone (large receive "
			"offload): they are too big to be sent on",
			interface->name);
	if (doctor->routes)
		check_modes(doctor, interface, index);
}

static void check_mtu(struct doctor *doctor)
{
	const struct config *config = doctor->config;
	const char *smallest = NULL, *largest = NULL;
	int least = 0, most = 0;

	for (unsigned int i = 0; i < config->interface_count; i++) {
		const char *name = config->interfaces[i].name;
		int mtu = interface_mtu(name);

		if (mtu < 0)
			continue;
		if (mtu < MTU_LEAST)
			doctor_find(
				doctor, FINDING_PROBLEM, "mtu", "ip link set %s mtu 1500", name,
				"the MTU of %s is %d: IPv6 needs %d, and clients are told to send "
				"segments for as much",
				name, mtu, MTU_LEAST);
		if (!smallest || mtu < least) {
			smallest = name;
			least = mtu;
		}
		if (!largest || mtu > most) {
			largest = name;
			most = mtu;
		}
	}
	if (smallest && least != most && doctor->inline_)
		doctor_find(
			doctor, FINDING_WARNING, "mtu",
			"give the interfaces of the router the same MTU", NULL,
			"the MTU of %s is %d, that of %s %d: what does not fit is not sent on, its "
			"sender is told",
			smallest, least, largest, most);
	else if (smallest && least >= MTU_LEAST)
		doctor_find(doctor, FINDING_OK, "mtu", NULL, NULL, "the MTU is %d", least);
}

void doctor_check_interfaces(struct doctor *doctor)
{
	for (unsigned int i = 0; i < doctor->config->interface_count; i++)
		check_one(doctor, &doctor->config->interfaces[i]);
	check_mtu(doctor);
}
