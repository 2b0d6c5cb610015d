/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/redirect.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "agent/attach_tc.h"
#include "lib/device.h"
#include "lib/log.h"

/*
 * XDP may redirect to an interface whose driver takes frames from XDP. Where the kernel cannot say (before 6.3), a native program
 * of ours is taken as a sign, but not on the drivers where it depends on the other end. Where everything is generic
 * XDP, frames are sent the usual way, which all Ethernet devices take.
 */
static bool is_redirect_target(const struct attachments *attachments,
			       const struct attachment *attachment)
{
	bool any_native = false;
	unsigned int i;
	int takes;

	if (!attachment->index || !attachment->ethernet || attachment->kind == ATTACHED_NOT)
		return false;
	for (i = 0; i < attachments->count; i++)
		any_native |= attachments->item[i].kind == ATTACHED_NATIVE;
	if (!any_native)
		return true;
	takes = device_takes_redirects(attachment->index);
	if (takes >= 0)
		return takes;
	return attachment->kind == ATTACHED_NATIVE &&
	       !driver_has_partial_checksums(attachment->driver);
}

/* What the map is to hold. */
struct targets {
	struct {
		__u32 index;
		struct redirect_device device;
	} item[REDIRECT_DEVICES_MAX];
	unsigned int count;
};
_Static_assert(ATTACHMENTS_MAX <= REDIRECT_DEVICES_MAX, "attached interfaces always have room");

static struct redirect_device *find_target(struct targets *targets, __u32 index)
{
	unsigned int i;

	for (i = 0; i < targets->count; i++) {
		if (targets->item[i].index == index)
			return &targets->item[i].device;
	}
	return NULL;
}

/* The entry for `index`, made if need be. NULL: the map has no more room, and the interface's queue will do. */
static struct redirect_device *need_target(struct targets *targets, __u32 index)
{
	struct redirect_device *device = find_target(targets, index);

	if (device || targets->count == REDIRECT_DEVICES_MAX)
		return device;
	targets->item[targets->count].index = index;
	return &targets->item[targets->count++].device;
}

static void on_link(void *context, const struct link_info *link)
{
	bool peer = link->veth_across && link->queueless && link->up;
	struct redirect_device *device =
		peer ? need_target(context, link->index) : find_target(context, link->index);

	if (device)
		device->peer = peer;
}

/*
 * A packet that is given to the other end of a veth passes by what is on this end's way out. So only where nothing is there: no queueing discipline, no
 * filter of others. The other end's namespace cannot be looked into from here: there, what a packet meets first is tc, not XDP.
 */
static void find_peers(const struct attachments *attachments, struct targets *targets)
{
	bool any_tc = false;
	unsigned int i;
	int result;

	for (i = 0; i < attachments->count; i++)
		any_tc |= attachments->item[i].kind == ATTACHED_TC;
	if (!any_tc || !attachments->redirect_peer || attachments->datapath->role != ROLE_ROUTER ||
	    attachments->datapath->shape != SHAPE_INLINE)
		return;
	result = netlink_each_link(attachments->netlink, on_link, targets);
	if (result)
		log_warning("the interfaces cannot be listed: %s", strerror(-result));
	for (i = 0; i < targets->count; i++) {
		struct redirect_device *device = &targets->item[i].device;

		if (device->peer &&
		    egress_is_watched(attachments->netlink, (int)targets->item[i].index))
			device->peer = 0;
	}
}

/* Takes out of the map what is not to be in it. */
static void remove_stale(int map, struct targets *targets)
{
	__u32 key = 0, stale[REDIRECT_DEVICES_MAX], *previous = NULL;
	unsigned int i, count = 0;

	while (count < REDIRECT_DEVICES_MAX && bpf_map_get_next_key(map, previous, &key) == 0) {
		previous = &key;
		if (!find_target(targets, key))
			stale[count++] = key;
	}
	for (i = 0; i < count; i++)
		bpf_map_delete_elem(map, &stale[i]);
}

void redirect_refresh(struct attachments *attachments)
{
	int map = attachments->datapath->redirect_devices;
	struct targets targets = {0};
	unsigned int i;

	/* before the veths, of which there may be more than have room */
	for (i = 0; i < attachments->count; i++) {
		struct attachment *attachment = &attachments->item[i];

		attachment->redirect_target = is_redirect_target(attachments, attachment);
		if (attachment->redirect_target)
			need_target(&targets, attachment->index)->usable = 1;
	}
	find_peers(attachments, &targets);
	for (i = 0; i < attachments->count; i++) {
		struct attachment *attachment = &attachments->item[i];
		const struct redirect_device *device = find_target(&targets, attachment->index);

		attachment->redirect_peer = device && device->peer;
	}
	remove_stale(map, &targets);
	for (i = 0; i < targets.count; i++) {
		const struct redirect_device *device = &targets.item[i].device;

		if (!device->usable && !device->peer)
			bpf_map_delete_elem(map, &targets.item[i].index);
		else if (bpf_map_update_elem(map, &targets.item[i].index, device, BPF_ANY))
			log_warning("map redirect_devices cannot be written: %s", strerror(errno));
	}
}
