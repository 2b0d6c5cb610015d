/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tc programs on one interface, as filters of its clsact hook, at a fixed priority and handle.
 *
 * Owns: hook and filters, telling our filter from others. May not know: configuration, XDP.
 */
#ifndef WARMPATH_AGENT_ATTACH_TC_H
#define WARMPATH_AGENT_ATTACH_TC_H

#include "agent/attach.h"

/*
 * Attaches the router program to ingress, or puts it in the place of the one a former agent attached. Fills kind, program_id. 0 or a
 * negative errno with a sentence (-EBUSY: another filter is at our place and `force` is not set).
 */
int attach_tc(const struct datapath *datapath, struct attachment *attachment, bool force,
	      struct error *error);

/* Whether it is on the interface. */
bool attach_tc_is_ours(const struct datapath *datapath, int index);

/* Takes it away, and the hook with it if nothing else is there. 0 or a negative errno with a sentence. */
int detach_tc(const struct datapath *datapath, struct netlink *netlink,
	      const struct attachment *attachment, struct error *error);

/*
 * What an interface needs besides a router program of any kind: in shape node-local the return program on egress, and, where servers
 * are on this machine and the kernel can, the program that takes connections over on ingress. In role replica the latter is all
 * there is, and the attachment itself (fills kind, program_id). As attach_tc().
 */
int attach_companions(const struct datapath *datapath, struct attachment *attachment, bool force,
		      struct error *error);

/*
 * Whether something sees what is sent out of the interface: a tc filter (ours are there in shape node-local), or a tcx program. Also if that
 * cannot be found out.
 */
bool egress_is_watched(struct netlink *netlink, int index);

/* Whether all, or any, of them are on the interface. */
bool companions_are_complete(const struct datapath *datapath, int index);
bool companions_are_ours(const struct datapath *datapath, int index);

/* Takes them away. As detach_tc(). */
int detach_companions(const struct datapath *datapath, struct netlink *netlink,
		      const struct attachment *attachment, struct error *error);

#endif /* WARMPATH_AGENT_ATTACH_TC_H */
