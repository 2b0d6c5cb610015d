/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XDP links of other processes.
 *
 * Owns: finding them by what they hold, detaching them. May not know: whether that is wanted.
 */
#ifndef WARMPATH_USER_XDP_LINKS_H
#define WARMPATH_USER_XDP_LINKS_H

#include <linux/types.h>

/*
 * Detaches the next link after `*id` (0: the first of all) that holds the loaded program `program` on an interface of this index, and
 * makes its id `*id`. The kernel lists the links of all network namespaces, with interface indexes that mean something only in theirs: so
 * look after each whether the interface is free, and touch no further one then. 0; -ENOENT: there is none further; -EPERM: links of others
 * are found with CAP_SYS_ADMIN alone.
 */
int xdp_link_detach_next(__u32 *id, int interface_index, __u32 program);

#endif /* WARMPATH_USER_XDP_LINKS_H */
