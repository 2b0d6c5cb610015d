/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interfaces that XDP may redirect to (map `redirect_devices`).
 *
 * Owns: which interfaces those are. May not know: how programs are attached.
 */
#ifndef WARMPATH_AGENT_REDIRECT_H
#define WARMPATH_AGENT_REDIRECT_H

#include "agent/attach.h"

/* Finds out anew for each attachment, and brings the map there. To be called after every change, and now and then. */
void redirect_refresh(struct attachments *attachments);

#endif /* WARMPATH_AGENT_REDIRECT_H */
