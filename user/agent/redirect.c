/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/redirect.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

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

void redirect_refresh(struct attachments *attachments)
{
	int map = attachments->datapath->redirect_devices;
	const struct redirect_device device = {.usable = 1};
	__u32 key = 0, stale[ATTACHMENTS_MAX], *previous = NULL;
	unsigned int i, stale_count = 0;

	for (i = 0; i < attachments->count; i++)
		attachments->item[i].redirect_target =
			is_redirect_target(attachments, &attachments->item[i]);

	while (stale_count < ATTACHMENTS_MAX && bpf_map_get_next_key(map, previous, &key) == 0) {
		previous = &key;
		for (i = 0; i < attachments->count; i++) {
			if (attachments->item[i].index == (int)key &&
			    attachments->item[i].redirect_target)
				break;
		}
		if (i == attachments->count)
			stale[stale_count++] = key;
	}
	for (i = 0; i < stale_count; i++)
		bpf_map_delete_elem(map, &stale[i]);
	for (i = 0; i < attachments->count; i++) {
		if (attachments->item[i].redirect_target &&
		    bpf_map_update_elem(map, &attachments->item[i].index, &device, BPF_ANY))
			log_warning("map redirect_devices cannot be written: %s", strerror(errno));
	}
}
