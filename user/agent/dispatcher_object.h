/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A dispatcher for libxdp (bpf/libxdp_dispatcher.bpf.c) where the kernel refuses to put our program into libxdp's own: Linux 6.13 and
 * newer, and 6.12 of Debian, want a function whose place is taken by a program that changes packets' sizes to do so as well
 * ("Extension program changes packet data, while original does not"), which those of libxdp before 1.5.5 do not.
 *
 * Owns: the file that libxdp reads it from. May not know: what is attached where.
 */
#ifndef WARMPATH_AGENT_DISPATCHER_OBJECT_H
#define WARMPATH_AGENT_DISPATCHER_OBJECT_H

#include "lib/error.h"

/*
 * Has libxdp use our dispatcher from now on in this process: writes it into `directory` as xdp-dispatcher.o and names the directory in
 * the environment, where libxdp looks. 0, or a negative errno with a sentence: -EALREADY if that was done before, -EPERM if the operator has
 * named a directory (LIBXDP_OBJECT_PATH).
 */
int dispatcher_object_use(const char *directory, struct error *error);

/* Has libxdp use its own again: for when ours was of no use either. */
void dispatcher_object_drop(void);

#endif /* WARMPATH_AGENT_DISPATCHER_OBJECT_H */
