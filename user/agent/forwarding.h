/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of the kernel's own forwarding that the data path depends on (shape inline): what the programs cannot send themselves, the
 * kernel must forward, and the programs' route look-ups respect the same switches.
 *
 * Owns: which settings matter, the sentences about them. May not know: how settings are changed; that is the operator's.
 */
#ifndef WARMPATH_AGENT_FORWARDING_H
#define WARMPATH_AGENT_FORWARDING_H

#include "agent/attach.h"
#include "agent/routing.h"

/* Calls `warn` with one sentence for each setting that is in the way. */
void forwarding_check(const struct attachments *attachments, const struct routing *routing,
		      struct netlink *netlink, void (*warn)(void *context, const char *sentence),
		      void *context);

#endif /* WARMPATH_AGENT_FORWARDING_H */
