/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One XDP program on one interface through a pinned BPF link.
 *
 * Owns: the link and its pin, telling our program from others. May not know: configuration, other kinds of attachment.
 */
#ifndef WARMPATH_AGENT_ATTACH_XDP_H
#define WARMPATH_AGENT_ATTACH_XDP_H

#include "agent/attach.h"

/*
 * Attaches the router program in the mode `kind` (native or generic), or puts it in the place of the one a former agent attached.
 * Fills kind, program_id. 0 or a negative errno with a sentence: -EOPNOTSUPP: the driver has no native XDP; -EBUSY: another
 * program is there and `force` is not set.
 */
int attach_xdp(const struct datapath *datapath, const struct pins *pins,
	       struct attachment *attachment, enum attached_kind kind, bool force,
	       struct error *error);

/* Whether a link of ours is pinned for the interface of this name and still attached to it. */
bool attach_xdp_is_ours(const struct pins *pins, const struct attachment *attachment);

/* Whether the XDP program on the interface, whosever, runs in generic mode. */
bool attach_xdp_is_generic(const struct attachment *attachment);

/* Takes our link away. 0 (also if there is none) or a negative errno with a sentence. */
int detach_xdp(const struct pins *pins, const struct attachment *attachment, struct error *error);

/* Calls `each` with the name of every interface that a link is pinned for. */
void attach_xdp_each_pinned(const struct pins *pins,
			    void (*each)(void *context, const char *interface), void *context);

/* Whether an XDP program that is not ours is on the interface of this name; `index` and `program` (its id) are set then. */
bool xdp_in_the_way(const struct datapath *datapath, const char *interface, int *index,
		    __u32 *program);

/* Whether the loaded program `id` counts in the pinned map `counters` of this data path: then it is ours. */
bool program_is_ours(const struct datapath *datapath, __u32 id);

/*
 * "another warmpathd, with pin_path DIRECTORY," if that one's the program is; NULL if not. Returns `text`.
 */
const char *program_of_another_agent(const struct datapath *datapath, __u32 id,
				     char text[PATH_MAX + 64]);

/* What something about an interface is called on the BPF file system, which allows no dots in names. */
#define INTERFACE_PIN_NAME_SIZE (16 + 3 * IF_NAMESIZE)
void interface_pin_name(const char *prefix, const char *interface,
			char name[INTERFACE_PIN_NAME_SIZE]);

/* The name of a loaded program, "?" if it cannot be read. Returns `name`. */
const char *program_name(__u32 id, char name[BPF_OBJ_NAME_LEN]);

#endif /* WARMPATH_AGENT_ATTACH_XDP_H */
