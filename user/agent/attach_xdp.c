/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/attach_xdp.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/xdp_links.h"
#include "router_xdp.skel.h"

#define PROGRAM_MAPS_MAX 64

/* --- whose program is it? ------------------------------------------------------------------------------------- */

const char *program_name(__u32 id, char name[BPF_OBJ_NAME_LEN])
{
	struct bpf_prog_info info = {0};
	__u32 length = sizeof(info);
	int descriptor = bpf_prog_get_fd_by_id(id);

	strcpy(name, "?");
	if (descriptor < 0)
		return name;
	if (bpf_obj_get_info_by_fd(descriptor, &info, &length) == 0 && info.name[0])
		memcpy(name, info.name, BPF_OBJ_NAME_LEN);
	close(descriptor);
	return name;
}

const char *program_of_another_agent(const struct datapath *datapath, __u32 id,
				     char text[PATH_MAX + 64])
{
	static const char ours[] = "warmpath_";
	char owner[PATH_MAX], name[BPF_OBJ_NAME_LEN];

	if (program_pins_owner(datapath->directory, id, owner))
		snprintf(text, PATH_MAX + 64, "another warmpathd, with pin_path %s,", owner);
	else if (strncmp(program_name(id, name), ours, strlen(ours)) == 0)
		snprintf(
			text, PATH_MAX + 64,
			"another warmpathd, with another pin_path or one whose pins were deleted,");
	else
		return NULL;
	return text;
}

static __u32 map_id(int map)
{
	struct bpf_map_info info = {0};
	__u32 length = sizeof(info);

	return bpf_obj_get_info_by_fd(map, &info, &length) ? 0 : info.id;
}

bool program_is_ours(const struct datapath *datapath, __u32 id)
{
	__u32 maps[PROGRAM_MAPS_MAX], i;
	/* router programs have the one, programs of the replica's side the other, and some have both */
	__u32 counters = map_id(datapath->counters), keys = map_id(datapath->handoff_keys);
	struct bpf_prog_info info = {
		.nr_map_ids = PROGRAM_MAPS_MAX,
		.map_ids = (__u64)(unsigned long)maps,
	};
	__u32 length = sizeof(info);
	bool ours = false;
	int descriptor;

	if (program_is_known(&datapath->known_programs, id))
		return true;
	/* What is in libxdp's dispatcher is a copy. This needs CAP_SYS_ADMIN, which is kept where there can be a dispatcher. */
	descriptor = bpf_prog_get_fd_by_id(id);
	if (descriptor < 0)
		return false;
	if (bpf_obj_get_info_by_fd(descriptor, &info, &length) == 0) {
		for (i = 0; i < info.nr_map_ids && i < PROGRAM_MAPS_MAX; i++)
			ours |= maps[i] != 0 && (maps[i] == counters || maps[i] == keys);
	}
	close(descriptor);
	return ours;
}

/* --- the pin ---------------------------------------------------------------------------------------------------- */

#define PIN_PREFIX "xdp_"

/* The BPF file system allows no dots in names, so those of "eth0.100" become "%2e". */
void interface_pin_name(const char *prefix, const char *interface,
			char name[INTERFACE_PIN_NAME_SIZE])
{
	char *to = name + sprintf(name, "%.15s", prefix);

	for (; *interface; interface++) {
		if (*interface == '.')
			to += sprintf(to, "%%2e");
		else
			*to++ = *interface;
	}
	*to = '\0';
}

static void interface_of_pin(const char *name, char interface[IF_NAMESIZE])
{
	size_t used = 0;

	for (name += strlen(PIN_PREFIX); *name && used + 1 < IF_NAMESIZE; name++) {
		if (strncmp(name, "%2e", 3) == 0) {
			interface[used++] = '.';
			name += 2;
		} else {
			interface[used++] = *name;
		}
	}
	interface[used] = '\0';
}

static void pin_path(const struct pins *pins, const char *interface, char path[PATH_MAX])
{
	char name[INTERFACE_PIN_NAME_SIZE];

	interface_pin_name(PIN_PREFIX, interface, name);
	snprintf(path, PATH_MAX, "%.3500s/%s", pins->links_directory, name);
}

void attach_xdp_each_pinned(const struct pins *pins,
			    void (*each)(void *context, const char *interface), void *context)
{
	DIR *directory = opendir(pins->links_directory);
	char interface[IF_NAMESIZE];
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (strncmp(entry->d_name, PIN_PREFIX, strlen(PIN_PREFIX)) != 0)
			continue;
		interface_of_pin(entry->d_name, interface);
		each(context, interface);
	}
	if (directory)
		closedir(directory);
}

/* The pinned link if it is (still) on this interface, else -1. */
static int open_link(const struct pins *pins, const struct attachment *attachment)
{
	struct bpf_link_info info = {0};
	__u32 length = sizeof(info);
	char path[PATH_MAX];
	int link;

	pin_path(pins, attachment->name, path);
	link = bpf_obj_get(path);
	if (link < 0)
		return -1;
	if (bpf_obj_get_info_by_fd(link, &info, &length) || info.type != BPF_LINK_TYPE_XDP ||
	    (int)info.xdp.ifindex != attachment->index) {
		close(link);
		return -1;
	}
	return link;
}

bool attach_xdp_is_ours(const struct pins *pins, const struct attachment *attachment)
{
	int link = open_link(pins, attachment);

	if (link >= 0)
		close(link);
	return link >= 0;
}

/* --- what is on the interface ------------------------------------------------------------------------------------ */

static enum attached_kind current_kind(int index, __u32 *program)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	*program = 0;
	if (bpf_xdp_query(index, 0, &query))
		return ATTACHED_NOT;
	switch (query.attach_mode) {
	case XDP_ATTACHED_DRV:
		*program = query.drv_prog_id;
		return ATTACHED_NATIVE;
	case XDP_ATTACHED_SKB:
		*program = query.skb_prog_id;
		return ATTACHED_GENERIC;
	case XDP_ATTACHED_MULTI:
		*program = query.drv_prog_id ? query.drv_prog_id : query.skb_prog_id;
		return query.drv_prog_id ? ATTACHED_NATIVE : ATTACHED_GENERIC;
	default:
		return ATTACHED_NOT;
	}
}

bool attach_xdp_is_generic(const struct attachment *attachment)
{
	__u32 program;

	return current_kind(attachment->index, &program) == ATTACHED_GENERIC;
}

/* Takes away the program of others that is on the interface: one attached by netlink, or through a link. */
static void remove_foreign(int index, enum attached_kind kind, __u32 program)
{
	__u32 flags = kind == ATTACHED_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	__u32 id = 0, left;

	if (bpf_xdp_detach(index, flags, NULL) == 0)
		return;
	while (current_kind(index, &left) != ATTACHED_NOT &&
	       xdp_link_detach_next(&id, index, program) == 0)
		;
}

bool xdp_in_the_way(const struct datapath *datapath, const char *interface, int *index,
		    __u32 *program)
{
	*index = (int)if_nametoindex(interface);
	return *index && current_kind(*index, program) != ATTACHED_NOT &&
	       !program_is_ours(datapath, *program);
}

static int make_room(const struct datapath *datapath, struct attachment *attachment, bool force,
		     struct error *error)
{
	char name[BPF_OBJ_NAME_LEN], other[PATH_MAX + 64];
	enum attached_kind kind;
	__u32 program;

	kind = current_kind(attachment->index, &program);
	if (kind == ATTACHED_NOT)
		return 0;
	program_name(program, name);
	if (!force && program_of_another_agent(datapath, program, other))
		return error_set(
			error, -EBUSY,
			"%s serves interface %s (XDP program %u): let it detach (`warmpath detach %s` "
			"there), or take its place with --force",
			other, attachment->name, program, attachment->name);
	if (!force)
		return error_set(
			error, -EBUSY,
			"interface %s has an XDP program of someone else already (%s, id %u); "
			"--force replaces it",
			attachment->name, name, program);
	log_warning("interface %s: replacing the XDP program %s (id %u), as forced",
		    attachment->name, name, program);
	remove_foreign(attachment->index, kind, program);
	if (current_kind(attachment->index, &program) == ATTACHED_NOT)
		return 0;
	/* A running agent has given up what that takes; `warmpath attach --force` does it then (xdp_in_the_way). */
	return error_set(
		error, -EBUSY,
		"the XDP program %s (id %u) of interface %s is held by a link of another process, which takes "
		"CAP_SYS_ADMIN to replace: end that process, or let root call `warmpath attach %s --force`",
		name, program, attachment->name, attachment->name);
}

/* --- attaching --------------------------------------------------------------------------------------------------- */

static int link_failed(const struct attachment *attachment, enum attached_kind kind, int result,
		       struct error *error)
{
	if (kind == ATTACHED_NATIVE && (result == -EOPNOTSUPP || result == -EINVAL))
		return error_set(
			error, -EOPNOTSUPP,
			"interface %s (driver %s) cannot run XDP in the driver as it is set up: use "
			"mode generic, tc or auto",
			attachment->name, attachment->driver);
	return error_set(error, result,
			 "the XDP program cannot be attached to interface %s (driver %s): %s",
			 attachment->name, attachment->driver, strerror(-result));
}

static int make_link(const struct datapath *datapath, const char *path,
		     struct attachment *attachment, enum attached_kind kind, struct error *error)
{
	LIBBPF_OPTS(bpf_link_create_opts, options,
		    .flags = kind == ATTACHED_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	int program = bpf_program__fd(datapath->xdp->progs.warmpath_router_xdp);
	int link = bpf_link_create(program, attachment->index, BPF_XDP, &options);
	int result = 0;

	if (link < 0)
		return link_failed(attachment, kind, -errno, error);
	if (bpf_obj_pin(link, path))
		result = error_set(error, -errno,
				   "the link of interface %s cannot be pinned as %s: %s",
				   attachment->name, path, strerror(errno));
	close(link);
	return result;
}

int attach_xdp(const struct datapath *datapath, const struct pins *pins,
	       struct attachment *attachment, enum attached_kind kind, bool force,
	       struct error *error)
{
	int program = bpf_program__fd(datapath->xdp->progs.warmpath_router_xdp);
	int link = open_link(pins, attachment);
	char path[PATH_MAX];
	__u32 current;
	int result;

	pin_path(pins, attachment->name, path);
	if (link >= 0 && current_kind(attachment->index, &current) == kind) {
		result = bpf_link_update(link, program, NULL);
		close(link);
		if (result)
			return error_set(error, -errno,
					 "the XDP program of interface %s cannot be exchanged: %s",
					 attachment->name, strerror(errno));
	} else {
		/* Another mode than wanted, or a link of an interface that is gone: the kernel cannot convert it. */
		if (link >= 0) {
			bpf_link_detach(link);
			close(link);
			attachment->kind = ATTACHED_NOT;
		}
		unlink(path);
		result = make_room(datapath, attachment, force, error);
		if (!result)
			result = make_link(datapath, path, attachment, kind, error);
		if (result)
			return result;
	}
	attachment->kind = current_kind(attachment->index, &attachment->program_id);
	attachment->dispatched = false;
	return 0;
}

int detach_xdp(const struct pins *pins, const struct attachment *attachment, struct error *error)
{
	int link = open_link(pins, attachment);
	char path[PATH_MAX];

	/* Not only the pin: whoever else holds the link would keep it attached. */
	if (link >= 0) {
		bpf_link_detach(link);
		close(link);
	}
	pin_path(pins, attachment->name, path);
	if (unlink(path) && errno != ENOENT)
		return error_set(error, -errno, "pin %s cannot be removed: %s", path,
				 strerror(errno));
	return 0;
}
