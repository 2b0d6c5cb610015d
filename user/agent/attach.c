/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/attach.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>

#include "agent/attach_dispatcher.h"
#include "agent/attach_list.h"
#include "agent/attach_overrides.h"
#include "agent/attach_tc.h"
#include "agent/attach_xdp.h"
#include "lib/device.h"
#include "agent/redirect.h"
#include "lib/config_schema.h"
#include "lib/log.h"

const char *attached_kind_name(enum attached_kind kind)
{
	static const char *const names[] = {
		[ATTACHED_NOT] = "not attached",
		[ATTACHED_NATIVE] = "native",
		[ATTACHED_GENERIC] = "generic",
		[ATTACHED_TC] = "tc",
	};

	return names[kind];
}

struct attachment *attachment_find(struct attachments *attachments, const char *name)
{
	unsigned int i;

	for (i = 0; i < attachments->count; i++) {
		if (strcmp(attachments->item[i].name, name) == 0)
			return &attachments->item[i];
	}
	return NULL;
}

struct attachment *attachment_find_or_add(struct attachments *attachments, const char *name)
{
	struct attachment *attachment = attachment_find(attachments, name);

	if (attachment)
		return attachment;
	if (attachments->count == ATTACHMENTS_MAX)
		return NULL;
	attachment = &attachments->item[attachments->count++];
	memset(attachment, 0, sizeof(*attachment));
	snprintf(attachment->name, sizeof(attachment->name), "%s", name);
	return attachment;
}

/* --- one interface --------------------------------------------------------------------------------------------- */

static int attach_native(struct attachments *attachments, struct attachment *attachment, bool force,
			 struct error *error)
{
	/* One that a former agent attached by a link stays one: changing over would leave a gap. */
	if (dispatcher_possible() && !attach_xdp_is_ours(attachments->pins, attachment)) {
		int result = attach_dispatched(attachments, attachment, error);

		if (!result)
			return 0;
		log_info(
			"interface %s: not through libxdp's dispatcher, trying a link of its own: %s",
			attachment->name, error->text);
	}
	return attach_xdp(attachments->datapath, attachments->pins, attachment, ATTACHED_NATIVE,
			  force, error);
}

static int attach_auto(struct attachments *attachments, struct attachment *attachment, bool force,
		       struct error *error)
{
	int result;

	if (!driver_has_partial_checksums(attachment->driver)) {
		result = attach_native(attachments, attachment, force, error);
		/* Someone else's program is a reason to ask the operator, not to go round it. */
		if (result != -EOPNOTSUPP)
			return result;
	}
	return attach_tc(attachments->datapath, attachment, force, error);
}

/* Takes away our programs of the other kinds: on a change of mode, after the new one is there. */
static void detach_others(struct attachments *attachments, const struct attachment *attachment)
{
	struct error error;

	if ((attachment->kind != ATTACHED_TC || attachments->datapath->role == ROLE_REPLICA) &&
	    detach_tc(attachments->datapath, attachments->netlink, attachment, &error))
		log_warning("%s", error.text);
	if ((attachment->kind == ATTACHED_TC || attachment->dispatched) &&
	    detach_xdp(attachments->pins, attachment, &error))
		log_warning("%s", error.text);
	if (dispatcher_possible() && attachment->kind != ATTACHED_NATIVE &&
	    detach_dispatched(attachments->datapath, attachment, &error))
		log_warning("%s", error.text);
}

static int attach_as_wanted(struct attachments *attachments, struct attachment *attachment,
			    bool force, struct error *error)
{
	switch (attachment->wanted) {
	case ATTACH_NATIVE:
		return attach_native(attachments, attachment, force, error);
	case ATTACH_GENERIC:
		if (dispatcher_possible())
			detach_dispatched(attachments->datapath, attachment, NULL);
		return attach_xdp(attachments->datapath, attachments->pins, attachment,
				  ATTACHED_GENERIC, force, error);
	case ATTACH_TC:
		return attach_tc(attachments->datapath, attachment, force, error);
	default:
		return attach_auto(attachments, attachment, force, error);
	}
}

/* Attaches as wanted to the interface that `attachment->index` names. */
static int attach_now(struct attachments *attachments, struct attachment *attachment, bool force,
		      struct error *error)
{
	enum attached_kind before = attachment->kind;
	int result;

	device_driver(attachment->name, attachment->driver, sizeof(attachment->driver));
	/* before what marks segments, so that nothing marked finds nobody */
	result = attach_companions(attachments->datapath, attachment, force, error);
	if (result && attachment->kind == ATTACHED_NOT)
		attachment->problem = *error;
	if (result)
		return result;
	if (attachments->datapath->role != ROLE_REPLICA)
		result = attach_as_wanted(attachments, attachment, force, error);
	if (result) {
		/* A change of mode that failed leaves the former mode in place. */
		if (attachment->kind == ATTACHED_NOT)
			attachment->problem = *error;
		return result;
	}
	attachment->problem.text[0] = '\0';
	detach_others(attachments, attachment);
	if (before != attachment->kind)
		log_info("interface %s: attached (%s%s)", attachment->name,
			 attached_kind_name(attachment->kind),
			 attachment->dispatched ? ", libxdp dispatcher" : "");
	return 0;
}

static int detach_now(struct attachments *attachments, struct attachment *attachment,
		      struct error *error)
{
	int result = detach_xdp(attachments->pins, attachment, error);

	if (!result && attachment->index)
		result = detach_tc(attachments->datapath, attachments->netlink, attachment, error);
	if (!result && attachment->index && dispatcher_possible())
		result = detach_dispatched(attachments->datapath, attachment, error);
	if (!result && attachment->index)
		result = detach_companions(attachments->datapath, attachments->netlink, attachment,
					   error);
	if (result)
		return result;
	if (attachment->index)
		bpf_map_delete_elem(attachments->datapath->redirect_devices, &attachment->index);
	/* a first start that has failed comes by here with what it could not attach */
	if (attachment->kind != ATTACHED_NOT || attachment->by_command)
		log_info("interface %s: detached", attachment->name);
	return 0;
}

static void forget(struct attachments *attachments, const struct attachment *attachment)
{
	unsigned int i = attachment - attachments->item;

	memmove(&attachments->item[i], &attachments->item[i + 1],
		(attachments->count - i - 1) * sizeof(attachments->item[0]));
	attachments->count--;
}

/* --- interfaces that are there, and what is on them --------------------------------------------------------------- */

static void on_link(void *context, const struct link_info *link)
{
	struct attachments *attachments = context;
	struct attachment *attachment = attachment_find(attachments, link->name);

	if (attachment) {
		attachment->index = link->index;
		attachment->ethernet = link->hardware_type == ARPHRD_ETHER;
	}
}

/* Brings `index` of all up to date; an interface that vanished or was made anew is no longer attached. */
void attachments_look_up_links(struct attachments *attachments)
{
	int before[ATTACHMENTS_MAX] = {0};
	unsigned int i;
	int result;

	for (i = 0; i < attachments->count; i++) {
		before[i] = attachments->item[i].index;
		attachments->item[i].index = 0;
	}
	result = netlink_each_link(attachments->netlink, on_link, attachments);
	if (result) {
		log_warning("the interfaces cannot be listed: %s", strerror(-result));
		for (i = 0; i < attachments->count; i++)
			attachments->item[i].index = before[i];
		return;
	}
	for (i = 0; i < attachments->count; i++) {
		struct attachment *attachment = &attachments->item[i];

		if (attachment->index == before[i])
			continue;
		if (before[i]) {
			log_warning("interface %s is gone", attachment->name);
			bpf_map_delete_elem(attachments->datapath->redirect_devices, &before[i]);
		}
		attachment->kind = ATTACHED_NOT;
		attachment->program_id = 0;
		attachment->dispatched = false;
	}
}

/* Whether what we attached is still there: others can take a filter or a link away without asking. */
static bool still_attached(const struct attachments *attachments,
			   const struct attachment *attachment)
{
	__u32 id;

	if (!companions_are_complete(attachments->datapath, attachment->index))
		return false;
	if (attachments->datapath->role == ROLE_REPLICA)
		return true;
	if (attachment->kind == ATTACHED_TC)
		return attach_tc_is_ours(attachments->datapath, attachment->index);
	if (attachment->dispatched)
		return attach_dispatched_is_ours(attachments->datapath, attachment->index, &id);
	return attach_xdp_is_ours(attachments->pins, attachment);
}

/* Attaches again; says only once why it cannot. Never by force: whoever took our place may have meant it. */
static void attach_again(struct attachments *attachments, struct attachment *attachment)
{
	const struct error before = attachment->problem;
	struct error error;

	if (attach_now(attachments, attachment, false, &error) &&
	    strcmp(before.text, error.text) != 0)
		log_warning("%s", error.text);
}

void attachments_refresh(struct attachments *attachments)
{
	unsigned int i;

	attachments_look_up_links(attachments);
	for (i = 0; i < attachments->count; i++) {
		struct attachment *attachment = &attachments->item[i];

		if (!attachment->index)
			continue;
		if (attachment->kind != ATTACHED_NOT && !still_attached(attachments, attachment)) {
			log_warning(
				"interface %s: someone took our program away; attaching it again",
				attachment->name);
			attachment->kind = ATTACHED_NOT;
		}
		if (attachment->kind == ATTACHED_NOT)
			attach_again(attachments, attachment);
	}
	redirect_refresh(attachments);
}

/* --- the configured set ------------------------------------------------------------------------------------------- */

static bool is_configured(const struct config *config, const char *name)
{
	unsigned int i;

	for (i = 0; i < config->interface_count; i++) {
		if (strcmp(config->interfaces[i].name, name) == 0)
			return true;
	}
	return false;
}

void attachments_detach_unconfigured(struct attachments *attachments, const struct config *config)
{
	unsigned int i = 0;

	while (i < attachments->count) {
		struct attachment *attachment = &attachments->item[i];
		struct error error;

		if (is_configured(config, attachment->name)) {
			i++;
			continue;
		}
		if (detach_now(attachments, attachment, &error))
			log_warning("%s", error.text);
		forget(attachments, attachment);
	}
	attach_overrides_clear(attachments->pins);
	redirect_refresh(attachments);
}

void attachments_restore(struct attachments *attachments, const struct attachments *before)
{
	struct error error;
	unsigned int i = 0;

	attachments->redirect_peer = before->redirect_peer;
	while (i < attachments->count) {
		struct attachment *attachment = &attachments->item[i];
		const struct attachment *former = NULL;
		unsigned int j;

		for (j = 0; j < before->count; j++) {
			if (strcmp(before->item[j].name, attachment->name) == 0)
				former = &before->item[j];
		}
		if (!former) {
			if (detach_now(attachments, attachment, &error))
				log_warning("%s", error.text);
			forget(attachments, attachment);
			continue;
		}
		attachment->by_command = former->by_command;
		if (attachment->wanted != former->wanted || attachment->kind != former->kind) {
			attachment->wanted = former->wanted;
			if (attachment->index &&
			    attach_now(attachments, attachment, attachments->force, &error))
				log_warning("%s", error.text);
		}
		i++;
	}
	redirect_refresh(attachments);
}

int attachments_configure(struct attachments *attachments, const struct config *config, bool first,
			  struct error *error)
{
	unsigned int i;
	int result = 0;

	attachments->redirect_peer = config->redirect_peer;
	for (i = 0; i < config->interface_count; i++) {
		const struct config_interface *interface = &config->interfaces[i];
		enum attach_mode mode = interface->mode;
		struct attachment *attachment;

		if (first && attach_override_read(attachments->pins, interface->name, &mode))
			log_info(
				"interface %s keeps what was set by command (%s); reload to take the "
				"file's mode",
				interface->name, attach_override_word(mode));
		if (mode == ATTACH_OVERRIDE_DETACHED)
			continue;
		attachment = attachment_find_or_add(attachments, interface->name);
		if (!attachment)
			return error_set(error, -ENOSPC, "too many interfaces: at most %d",
					 ATTACHMENTS_MAX);
		attachment->wanted = mode;
		attachment->by_command = false;
	}
	if (first)
		attachments_adopt_unconfigured(attachments);
	attachments_look_up_links(attachments);
	for (i = 0; i < attachments->count; i++) {
		struct attachment *attachment = &attachments->item[i];
		struct error problem;
		int failed;

		if (!attachment->index) {
			log_warning(
				"interface %s does not exist; it will be attached when it appears",
				attachment->name);
			continue;
		}
		failed = attach_now(attachments, attachment, attachments->force, &problem);
		if (failed && !result)
			result = error_set(error, failed, "%s", problem.text);
	}
	redirect_refresh(attachments);
	return result;
}

int attachments_add(struct attachments *attachments, const char *name, enum attach_mode mode,
		    bool force, struct error *error)
{
	bool known = attachment_find(attachments, name) != NULL;
	struct attachment *attachment = attachment_find_or_add(attachments, name);
	enum attach_mode before;
	int result;

	if (!attachment)
		return error_set(error, -ENOSPC, "too many interfaces: at most %d",
				 ATTACHMENTS_MAX);
	before = attachment->wanted;
	attachment->wanted = mode;
	if (!known)
		attachment->by_command = true;
	attachments_look_up_links(attachments);
	if (!attachment->index)
		result = error_set(error, -ENODEV, "there is no interface %s", name);
	else
		result = attach_now(attachments, attachment, force, error);
	if (result && !known)
		forget(attachments, attachment);
	else if (result)
		attachment->wanted = before;
	else
		attach_override_write(attachments->pins, name, mode);
	redirect_refresh(attachments);
	return result;
}

int attachments_remove(struct attachments *attachments, const char *name, struct error *error)
{
	struct attachment *attachment = attachment_find(attachments, name);
	int result;

	if (!attachment)
		return error_set(error, -ENOENT, "interface %s is not attached", name);
	attachments_look_up_links(attachments);
	result = detach_now(attachments, attachment, error);
	if (!result) {
		attach_override_write(attachments->pins, name, ATTACH_OVERRIDE_DETACHED);
		forget(attachments, attachment);
	}
	redirect_refresh(attachments);
	return result;
}

int attachments_remove_all(struct attachments *attachments, struct error *error)
{
	unsigned int i = 0;
	int result = 0;

	attachments_look_up_links(attachments);
	while (i < attachments->count) {
		struct error problem;
		int failed = detach_now(attachments, &attachments->item[i], &problem);

		if (!failed) {
			forget(attachments, &attachments->item[i]);
			continue;
		}
		i++;
		if (!result)
			result = error_set(error, failed, "%s", problem.text);
	}
	return result;
}
