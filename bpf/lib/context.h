/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What context_xdp.h and context_tc.h share.
 *
 * Owns: how a field of a program's context is read, where replicas are. May not know: which program it is.
 */
#ifndef WARMPATH_BPF_CONTEXT_H
#define WARMPATH_BPF_CONTEXT_H

#include "packet.h"

/* Set before loading. Replicas run on this machine: what the route look-up calls not forwarded is theirs. */
const volatile bool replicas_are_local = false;

/*
 * A function that reads a packet pointer out of the context. In assembly, as the compiler may otherwise compute the field's address
 * beforehand, for several reads at once, and the verifier lets nobody calculate with a context (clang 19 does so).
 */
#define CONTEXT_FIELD(name, field)                                                         \
	static __always_inline void *name(const struct packet_context *context)            \
	{                                                                                  \
		void *value;                                                               \
                                                                                           \
		asm volatile("%0 = *(u32 *)(%1 + %2)"                                      \
			     : "=r"(value)                                                 \
			     : "r"(context), "i"(offsetof(struct packet_context, field))); \
		return value;                                                              \
	}

#endif /* WARMPATH_BPF_CONTEXT_H */
