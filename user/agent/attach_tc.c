/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/attach_tc.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <string.h>

#include "agent/attach_xdp.h"
#include "lib/log.h"
#include "router_tc.skel.h"

/* Where our filters are. Low, as what others do with a packet should see it as it goes on; not 1, to leave room before it. */
#define FILTER_PRIORITY 10
#define FILTER_HANDLE	0x77

static const enum bpf_tc_attach_point directions[] = {BPF_TC_INGRESS, BPF_TC_EGRESS};

static const char *direction_name(enum bpf_tc_attach_point direction)
{
	return direction == BPF_TC_INGRESS ? "ingress" : "egress";
}

static struct bpf_tc_hook hook_of(int index, enum bpf_tc_attach_point direction)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = index, .attach_point = direction);

	return hook;
}

/* The program at our place, 0 if there is none. */
static __u32 program_at_our_place(int index, enum bpf_tc_attach_point direction)
{
	struct bpf_tc_hook hook = hook_of(index, direction);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE, .priority = FILTER_PRIORITY);

	return bpf_tc_query(&hook, &options) ? 0 : options.prog_id;
}

static bool is_ours_in(const struct datapath *datapath, int index,
		       enum bpf_tc_attach_point direction)
{
	__u32 program = program_at_our_place(index, direction);

	return program && program_is_ours(datapath, program);
}

bool attach_tc_is_ours(const struct datapath *datapath, int index)
{
	return is_ours_in(datapath, index, BPF_TC_INGRESS) ||
	       is_ours_in(datapath, index, BPF_TC_EGRESS);
}

bool attach_tc_is_complete(const struct datapath *datapath, int index)
{
	return is_ours_in(datapath, index, BPF_TC_INGRESS) &&
	       (datapath->shape != SHAPE_NODE_LOCAL || is_ours_in(datapath, index, BPF_TC_EGRESS));
}

static int attach_filter(const struct datapath *datapath, struct attachment *attachment,
			 enum bpf_tc_attach_point direction, const struct bpf_program *program,
			 bool force, __u32 *id, struct error *error)
{
	struct bpf_tc_hook hook = hook_of(attachment->index, direction);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE, .priority = FILTER_PRIORITY,
		    .prog_fd = bpf_program__fd(program), .flags = BPF_TC_F_REPLACE);
	__u32 there = program_at_our_place(attachment->index, direction);
	char name[BPF_OBJ_NAME_LEN];
	int result;

	if (there && !program_is_ours(datapath, there)) {
		program_name(there, name);
		if (!force)
			return error_set(
				error, -EBUSY,
				"interface %s has a tc %s filter of someone else at priority %d, "
				"handle %#x (%s, id %u); --force replaces it",
				attachment->name, direction_name(direction), FILTER_PRIORITY,
				FILTER_HANDLE, name, there);
		log_warning("interface %s: replacing the tc %s filter %s (id %u), as forced",
			    attachment->name, direction_name(direction), name, there);
	}
	result = bpf_tc_attach(&hook, &options);
	if (result)
		return error_set(error, result,
				 "the tc %s program cannot be attached to interface %s: %s",
				 direction_name(direction), attachment->name, strerror(-result));
	*id = options.prog_id;
	return 0;
}

int attach_tc(const struct datapath *datapath, struct attachment *attachment, bool force,
	      struct error *error)
{
	struct bpf_tc_hook hook = hook_of(attachment->index, BPF_TC_INGRESS | BPF_TC_EGRESS);
	__u32 program, egress_program;
	int result = bpf_tc_hook_create(&hook);

	if (result && result != -EEXIST)
		return error_set(error, result, "interface %s cannot be given a clsact hook: %s",
				 attachment->name, strerror(-result));
	result = attach_filter(datapath, attachment, BPF_TC_INGRESS,
			       datapath->tc->progs.warmpath_router_tc, force, &program, error);
	if (!result && datapath->shape == SHAPE_NODE_LOCAL)
		result = attach_filter(datapath, attachment, BPF_TC_EGRESS,
				       datapath->tc->progs.warmpath_return_tc, force,
				       &egress_program, error);
	if (result)
		return result;
	attachment->kind = ATTACHED_TC;
	attachment->program_id = program;
	attachment->dispatched = false;
	return 0;
}

/* The hook may be someone else's; it goes only when nothing hangs on it. */
static void remove_empty_hook(struct netlink *netlink, int index)
{
	struct bpf_tc_hook hook = hook_of(index, BPF_TC_INGRESS | BPF_TC_EGRESS);

	if (netlink_count_filters(netlink, index, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)) == 0 &&
	    netlink_count_filters(netlink, index, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)) == 0)
		bpf_tc_hook_destroy(&hook);
}

int detach_tc(const struct datapath *datapath, struct netlink *netlink,
	      const struct attachment *attachment, struct error *error)
{
	bool removed = false;
	unsigned int i;

	for (i = 0; i < sizeof(directions) / sizeof(directions[0]); i++) {
		struct bpf_tc_hook hook = hook_of(attachment->index, directions[i]);
		LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE,
			    .priority = FILTER_PRIORITY);
		__u32 program = program_at_our_place(attachment->index, directions[i]);
		int result;

		if (!program || !program_is_ours(datapath, program))
			continue;
		result = bpf_tc_detach(&hook, &options);
		if (result && result != -ENOENT)
			return error_set(error, result,
					 "the tc %s program of interface %s cannot be detached: %s",
					 direction_name(directions[i]), attachment->name,
					 strerror(-result));
		removed = true;
	}
	if (removed)
		remove_empty_hook(netlink, attachment->index);
	return 0;
}
