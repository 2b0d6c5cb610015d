/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of attachments, for the files that make it up (attach.c, attach_adopt.c).
 *
 * Owns: finding entries. May not know: how anything is attached.
 */
#ifndef WARMPATH_AGENT_ATTACH_LIST_H
#define WARMPATH_AGENT_ATTACH_LIST_H

#include "agent/attach.h"

/* The entry of an interface, or NULL. */
struct attachment *attachment_find(struct attachments *attachments, const char *name);

/* The same, made if there is none; NULL: the list is full. */
struct attachment *attachment_find_or_add(struct attachments *attachments, const char *name);

/* Brings `index` of all up to date; an interface that vanished or was made anew is no longer attached. */
void attachments_look_up_links(struct attachments *attachments);

/* What a former agent attached to interfaces that are not configured was attached by command: it stays. */
void attachments_adopt_unconfigured(struct attachments *attachments);

#endif /* WARMPATH_AGENT_ATTACH_LIST_H */
