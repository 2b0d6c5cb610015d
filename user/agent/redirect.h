/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interfaces that packets may be sent out of in other ways than through their queue (map `redirect_devices`): XDP may redirect to some,
 * and tc may give packets to the other ends of others.
 *
 * Owns: which interfaces those are. May not know: how programs are attached.
 */
#ifndef WARMPATH_AGENT_REDIRECT_H
#define WARMPATH_AGENT_REDIRECT_H

#include "agent/attach.h"

/* Finds out anew for each attachment and link, and brings the map there. To be called after every change, and now and then. */
void redirect_refresh(struct attachments *attachments);

#endif /* WARMPATH_AGENT_REDIRECT_H */
