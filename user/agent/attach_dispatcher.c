/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/attach_dispatcher.h"

#include <bpf/bpf.h>
#include <cap-ng.h>
#include <errno.h>
#include <string.h>
#include <xdp/libxdp.h>

#include "agent/attach_xdp.h"
#include "agent/dispatcher_object.h"
#include "lib/log.h"
#include "router_xdp.skel.h"

/* Early in the chain: what is for a service is of no concern to programs behind us, all else is passed on to them. */
#define RUN_PRIORITY 20

bool dispatcher_possible(void)
{
	static int possible = -1;

	if (possible < 0) {
		/* libxdp opens programs by their ids: without CAP_SYS_ADMIN what it has attached could not be found again */
		possible = capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN) &&
			   libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_EXT, NULL) == 1;
		log_debug("libxdp's dispatcher is %s", possible ? "possible" : "not possible");
	}
	return possible;
}

bool dispatcher_wanted(const struct attachments *attachments)
{
	unsigned int i;

	if (attachments->datapath->role == ROLE_REPLICA || !dispatcher_possible())
		return false;
	for (i = 0; i < attachments->count; i++) {
		if (attachments->item[i].wanted == ATTACH_NATIVE ||
		    attachments->item[i].wanted == ATTACH_AUTO)
			return true;
	}
	return false;
}

/* Our program in the dispatcher `chain`; NULL if it is not there. It belongs to the chain. */
static struct xdp_program *find_ours(const struct datapath *datapath, struct xdp_multiprog *chain)
{
	struct xdp_program *program = NULL;

	while ((program = xdp_multiprog__next_prog(program, chain))) {
		if (program_is_ours(datapath, xdp_program__id(program)))
			return program;
	}
	return NULL;
}

/* The dispatcher of the interface; NULL if it has none. */
static struct xdp_multiprog *open_chain(int index)
{
	struct xdp_multiprog *chain = xdp_multiprog__get_from_ifindex(index);

	if (!chain || libxdp_get_error(chain))
		return NULL;
	if (xdp_multiprog__is_legacy(chain)) {
		xdp_multiprog__close(chain);
		return NULL;
	}
	return chain;
}

bool attach_dispatched_is_ours(const struct datapath *datapath, int index, __u32 *id)
{
	struct xdp_multiprog *chain = open_chain(index);
	struct xdp_program *program = chain ? find_ours(datapath, chain) : NULL;

	if (program)
		*id = xdp_program__id(program);
	if (chain)
		xdp_multiprog__close(chain);
	return program != NULL;
}

/* Whether the attached program has the instructions of the one loaded by this agent. */
static bool same_instructions(const struct datapath *datapath, const struct xdp_program *program)
{
	struct bpf_prog_info info = {0};
	__u32 length = sizeof(info);
	int loaded = bpf_program__fd(datapath->xdp->progs.warmpath_router_xdp);

	if (bpf_obj_get_info_by_fd(loaded, &info, &length))
		return false;
	return memcmp(info.tag, xdp_program__tag(program), sizeof(info.tag)) == 0;
}

static int add_program(const struct datapath *datapath, struct attachment *attachment,
		       struct error *error)
{
	struct router_xdp_bpf *copy = datapath_open_xdp_copy(datapath, error);
	struct xdp_program *program;
	long result;

	if (!copy)
		return -EINVAL;
	DECLARE_LIBXDP_OPTS(xdp_program_opts, options, .obj = copy->obj,
			    .prog_name = "warmpath_router_xdp");
	program = xdp_program__create(&options);
	result = libxdp_get_error(program);
	if (result) {
		router_xdp_bpf__destroy(copy);
		return error_set(error, (int)result, "libxdp cannot use the XDP program: %s",
				 strerror((int)-result));
	}
	xdp_program__set_run_prio(program, RUN_PRIORITY);
	xdp_program__set_chain_call_enabled(program, XDP_PASS, true);
	result = xdp_program__attach(program, attachment->index, XDP_MODE_NATIVE, 0);
	if (result)
		error_set(error, (int)result,
			  "the XDP program cannot be added to the dispatcher of interface %s "
			  "(driver %s): %s",
			  attachment->name, attachment->driver, strerror((int)-result));
	else
		attachment->program_id = xdp_program__id(program);
	xdp_program__close(program);
	router_xdp_bpf__destroy(copy);
	return (int)result;
}

/*
 * The same; if the kernel refuses it, with a dispatcher that newer kernels take. The refusal is EBUSY if a program like ours is in the
 * chain already and cannot move to libxdp's dispatcher.
 */
static int add_to_either(const struct attachments *attachments, struct attachment *attachment,
			 struct error *error)
{
	const char *directory = attachments->run_directory;
	struct error refusal;
	int result = add_program(attachments->datapath, attachment, error);

	if (result != -EINVAL && result != -EBUSY)
		return result;
	if (dispatcher_object_use(directory, &refusal)) {
		log_debug("%s", refusal.text);
		return result;
	}
	result = add_program(attachments->datapath, attachment, error);
	if (result)
		dispatcher_object_drop();
	else
		log_info(
			"this kernel does not take the dispatcher of this libxdp: using %s/xdp-dispatcher.o",
			directory);
	return result;
}

int attach_dispatched(const struct attachments *attachments, struct attachment *attachment,
		      struct error *error)
{
	const struct datapath *datapath = attachments->datapath;
	struct xdp_multiprog *chain = open_chain(attachment->index);
	struct xdp_program *old = chain ? find_ours(datapath, chain) : NULL;
	int result = 0;

	if (old && same_instructions(datapath, old)) {
		attachment->program_id = xdp_program__id(old);
	} else {
		/* For a moment both are there: what the first has rewritten means nothing to the second. */
		result = add_to_either(attachments, attachment, error);
		if (old && (!result || result == -EBUSY || result == -EOPNOTSUPP))
			xdp_program__detach(old, attachment->index, XDP_MODE_NATIVE, 0);
		/* Where the old one cannot move to another dispatcher it has to go first; packets go past the router for a moment. */
		if (old && (result == -EBUSY || result == -EOPNOTSUPP))
			result = add_to_either(attachments, attachment, error);
	}
	if (chain)
		xdp_multiprog__close(chain);
	if (result)
		return result;
	attachment->kind = ATTACHED_NATIVE;
	attachment->dispatched = true;
	return 0;
}

int detach_dispatched(const struct datapath *datapath, const struct attachment *attachment,
		      struct error *error)
{
	struct xdp_multiprog *chain = open_chain(attachment->index);
	struct xdp_program *program = chain ? find_ours(datapath, chain) : NULL;
	int result = 0;

	if (program) {
		result = xdp_program__detach(program, attachment->index, XDP_MODE_NATIVE, 0);
		if (result)
			error_set(error, result,
				  "the XDP program cannot be taken from the dispatcher of "
				  "interface %s: %s",
				  attachment->name, strerror(-result));
	}
	if (chain)
		xdp_multiprog__close(chain);
	return result;
}
