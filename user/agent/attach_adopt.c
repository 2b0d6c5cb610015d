/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a former agent attached, found again.
 */
#include <string.h>

#include "agent/attach_dispatcher.h"
#include "agent/attach_list.h"
#include "agent/attach_overrides.h"
#include "agent/attach_tc.h"
#include "agent/attach_xdp.h"
#include "lib/log.h"

static void note_pinned(void *context, const char *interface)
{
	struct attachments *attachments = context;
	struct attachment *attachment;

	if (attachment_find(attachments, interface))
		return;
	attachment = attachment_find_or_add(attachments, interface);
	if (!attachment)
		return;
	attachment->by_command = true;
	attachment->wanted = ATTACH_NATIVE;
}

static void note_filtered(void *context, const struct link_info *link)
{
	struct attachments *attachments = context;
	struct attachment *attachment;
	enum attach_mode mode;
	__u32 id;

	if (attachment_find(attachments, link->name))
		return;
	if (attach_tc_is_ours(attachments->datapath, link->index) ||
	    companions_are_ours(attachments->datapath, link->index))
		mode = ATTACH_TC;
	else if (dispatcher_possible() &&
		 attach_dispatched_is_ours(attachments->datapath, link->index, &id))
		mode = ATTACH_NATIVE;
	else
		return;
	attachment = attachment_find_or_add(attachments, link->name);
	if (!attachment)
		return;
	attachment->by_command = true;
	attachment->wanted = mode;
}

void attachments_find(struct attachments *attachments)
{
	attach_xdp_each_pinned(attachments->pins, note_pinned, attachments);
	netlink_each_link(attachments->netlink, note_filtered, attachments);
	attachments_look_up_links(attachments);
}

/* What a former agent attached to interfaces that are not configured was attached by command: it stays. */
void attachments_adopt_unconfigured(struct attachments *attachments)
{
	unsigned int i = attachments->count;

	attachments_find(attachments);
	for (; i < attachments->count; i++) {
		struct attachment *attachment = &attachments->item[i];
		enum attach_mode mode;

		log_warning(
			"interface %s is attached, though not configured: it stays so until it is "
			"detached by command or the configuration is reloaded",
			attachment->name);
		if (attachment->wanted == ATTACH_NATIVE && attachment->index &&
		    attach_xdp_is_generic(attachment))
			attachment->wanted = ATTACH_GENERIC;
		if (attach_override_read(attachments->pins, attachment->name, &mode) &&
		    mode != ATTACH_OVERRIDE_DETACHED)
			attachment->wanted = mode;
	}
}
