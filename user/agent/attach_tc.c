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
#define FILTER_PRIORITY		10
#define FILTER_PRIORITY_HANDOFF 11 /* behind the router, which marks what the handoff takes */
#define FILTER_HANDLE		0x77

#define TCX_EGRESS \
	47 /* BPF_TCX_EGRESS of enum bpf_attach_type, Linux 6.6, for builds on older kernels */

static const char *direction_name(enum bpf_tc_attach_point direction)
{
	return direction == BPF_TC_INGRESS ? "ingress" : "egress";
}

static struct bpf_tc_hook hook_of(int index, enum bpf_tc_attach_point direction)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = index, .attach_point = direction);

	return hook;
}

/* The program at a place of ours, 0 if there is none. */
static __u32 program_at_our_place(int index, enum bpf_tc_attach_point direction,
				  unsigned int priority)
{
	struct bpf_tc_hook hook = hook_of(index, direction);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE, .priority = priority);

	return bpf_tc_query(&hook, &options) ? 0 : options.prog_id;
}

static bool is_ours_in(const struct datapath *datapath, int index,
		       enum bpf_tc_attach_point direction, unsigned int priority)
{
	__u32 program = program_at_our_place(index, direction, priority);

	return program && program_is_ours(datapath, program);
}

bool egress_is_watched(struct netlink *netlink, int index)
{
	__u32 programs = 0;

	/* kernels before 6.6 know no tcx, and refuse to say */
	if (bpf_prog_query(index, TCX_EGRESS, 0, NULL, NULL, &programs) && errno == ENOSPC)
		programs = 1;
	return programs > 0 ||
	       netlink_count_filters(netlink, index, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)) != 0;
}

bool attach_tc_is_ours(const struct datapath *datapath, int index)
{
	return is_ours_in(datapath, index, BPF_TC_INGRESS, FILTER_PRIORITY);
}

bool companions_are_ours(const struct datapath *datapath, int index)
{
	return is_ours_in(datapath, index, BPF_TC_EGRESS, FILTER_PRIORITY) ||
	       is_ours_in(datapath, index, BPF_TC_INGRESS, FILTER_PRIORITY_HANDOFF);
}

static bool wants_return(const struct datapath *datapath)
{
	return datapath->role == ROLE_ROUTER && datapath->shape == SHAPE_NODE_LOCAL;
}

bool companions_are_complete(const struct datapath *datapath, int index)
{
	return (!wants_return(datapath) ||
		is_ours_in(datapath, index, BPF_TC_EGRESS, FILTER_PRIORITY)) &&
	       (!datapath->handoff_program ||
		is_ours_in(datapath, index, BPF_TC_INGRESS, FILTER_PRIORITY_HANDOFF));
}

static int attach_filter(const struct datapath *datapath, struct attachment *attachment,
			 enum bpf_tc_attach_point direction, unsigned int priority,
			 const struct bpf_program *program, bool force, __u32 *id,
			 struct error *error)
{
	struct bpf_tc_hook hook = hook_of(attachment->index, direction);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE, .priority = priority,
		    .prog_fd = bpf_program__fd(program), .flags = BPF_TC_F_REPLACE);
	__u32 there = program_at_our_place(attachment->index, direction, priority);
	char name[BPF_OBJ_NAME_LEN], other[PATH_MAX + 64];
	int result;

	if (there && !program_is_ours(datapath, there)) {
		program_name(there, name);
		if (!force && program_of_another_agent(datapath, there, other))
			return error_set(
				error, -EBUSY,
				"%s serves interface %s (tc %s program %u): let it detach (`warmpath detach "
				"%s` there), or take its place with --force",
				other, attachment->name, direction_name(direction), there,
				attachment->name);
		if (!force)
			return error_set(
				error, -EBUSY,
				"interface %s has a tc %s filter of someone else at priority %u, "
				"handle %#x (%s, id %u); --force replaces it",
				attachment->name, direction_name(direction), priority,
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

static int make_hook(const struct attachment *attachment, struct error *error)
{
	struct bpf_tc_hook hook = hook_of(attachment->index, BPF_TC_INGRESS | BPF_TC_EGRESS);
	int result = bpf_tc_hook_create(&hook);

	if (result && result != -EEXIST)
		return error_set(error, result, "interface %s cannot be given a clsact hook: %s",
				 attachment->name, strerror(-result));
	return 0;
}

int attach_companions(const struct datapath *datapath, struct attachment *attachment, bool force,
		      struct error *error)
{
	__u32 program = 0;
	int result = 0;

	if (!wants_return(datapath) && !datapath->handoff_program)
		return 0;
	result = make_hook(attachment, error);
	if (!result && wants_return(datapath))
		result = attach_filter(datapath, attachment, BPF_TC_EGRESS, FILTER_PRIORITY,
				       datapath->tc->progs.warmpath_return_tc, force, &program,
				       error);
	if (!result && datapath->handoff_program)
		result =
			attach_filter(datapath, attachment, BPF_TC_INGRESS, FILTER_PRIORITY_HANDOFF,
				      datapath->handoff_program, force, &program, error);
	if (result || datapath->role != ROLE_REPLICA)
		return result;
	attachment->kind = ATTACHED_TC;
	attachment->program_id = program;
	attachment->dispatched = false;
	return 0;
}

int attach_tc(const struct datapath *datapath, struct attachment *attachment, bool force,
	      struct error *error)
{
	__u32 program = 0;
	int result = make_hook(attachment, error);

	if (!result)
		result = attach_filter(datapath, attachment, BPF_TC_INGRESS, FILTER_PRIORITY,
				       datapath->tc->progs.warmpath_router_tc, force, &program,
				       error);
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

static int detach_filter(const struct datapath *datapath, struct netlink *netlink,
			 const struct attachment *attachment, enum bpf_tc_attach_point direction,
			 unsigned int priority, struct error *error)
{
	struct bpf_tc_hook hook = hook_of(attachment->index, direction);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE, .priority = priority);
	__u32 program = program_at_our_place(attachment->index, direction, priority);
	int result;

	if (!program || !program_is_ours(datapath, program))
		return 0;
	result = bpf_tc_detach(&hook, &options);
	if (result && result != -ENOENT)
		return error_set(error, result,
				 "the tc %s program of interface %s cannot be detached: %s",
				 direction_name(direction), attachment->name, strerror(-result));
	remove_empty_hook(netlink, attachment->index);
	return 0;
}

int detach_companions(const struct datapath *datapath, struct netlink *netlink,
		      const struct attachment *attachment, struct error *error)
{
	int result = detach_filter(datapath, netlink, attachment, BPF_TC_INGRESS,
				   FILTER_PRIORITY_HANDOFF, error);

	return result ? result
		      : detach_filter(datapath, netlink, attachment, BPF_TC_EGRESS, FILTER_PRIORITY,
				      error);
}

int detach_tc(const struct datapath *datapath, struct netlink *netlink,
	      const struct attachment *attachment, struct error *error)
{
	return detach_filter(datapath, netlink, attachment, BPF_TC_INGRESS, FILTER_PRIORITY, error);
}
