/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One XDP program on one interface through libxdp's dispatcher, where it can share the interface with the XDP programs of others.
 *
 * Newer kernels refuse our program in the dispatcher of libxdp before 1.5.5 (Debian 12 has 1.3.1): there one of our own is used
 * (dispatcher_object.h). Where such programs are not allowed at all, the caller falls back to a link of its own.
 *
 * Owns: finding out whether the kernel can do it, our place in the dispatcher. May not know: configuration, plain links.
 */
#ifndef WARMPATH_AGENT_ATTACH_DISPATCHER_H
#define WARMPATH_AGENT_ATTACH_DISPATCHER_H

#include "agent/attach.h"

/*
 * Whether programs that extend others (BPF_PROG_TYPE_EXT) can be loaded, of which the dispatcher is made, and found again, which takes
 * CAP_SYS_ADMIN. Asked once.
 */
bool dispatcher_possible(void);

/* Whether any of the interfaces may be attached through a dispatcher. */
bool dispatcher_wanted(const struct attachments *attachments);

/* Whether our program is in the dispatcher of the interface; then `*id` is its id. */
bool attach_dispatched_is_ours(const struct datapath *datapath, int index, __u32 *id);

/*
 * Adds the router program to the interface's dispatcher in native mode. If a former agent's is there it is left as it is if it is the same
 * program on the same maps, else the new one is added before the old one is taken away, or after it where the kernel does not let the old
 * one move to another dispatcher. 0 or a negative errno with a sentence.
 */
int attach_dispatched(const struct attachments *attachments, struct attachment *attachment,
		      struct error *error);

/* Takes our program out of the dispatcher. 0 (also if it is not there) or a negative errno with a sentence. */
int detach_dispatched(const struct datapath *datapath, const struct attachment *attachment,
		      struct error *error);

#endif /* WARMPATH_AGENT_ATTACH_DISPATCHER_H */
