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
 * Attaches the router program to ingress, in shape node-local also the return program to egress, or puts them in the place of
 * those a former agent attached. Fills kind, program_id. 0 or a negative errno with a sentence (-EBUSY: another filter is at
 * our place and `force` is not set).
 */
int attach_tc(const struct datapath *datapath, struct attachment *attachment, bool force,
	      struct error *error);

/* Whether a filter of ours is on the interface. */
bool attach_tc_is_ours(const struct datapath *datapath, int index);

/* Whether all filters are there that attach_tc() attaches. */
bool attach_tc_is_complete(const struct datapath *datapath, int index);

/* Takes our filters away, and the hook with them if nothing else is there. 0 or a negative errno with a sentence. */
int detach_tc(const struct datapath *datapath, struct netlink *netlink,
	      const struct attachment *attachment, struct error *error);

#endif /* WARMPATH_AGENT_ATTACH_TC_H */
