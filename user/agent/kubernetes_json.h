/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single objects of the Kubernetes API, from JSON.
 *
 * Owns: which fields are read, what stands for one that is absent. May not know: where the objects come from.
 */
#ifndef WARMPATH_AGENT_KUBERNETES_JSON_H
#define WARMPATH_AGENT_KUBERNETES_JSON_H

#include <jansson.h>

#include "agent/kubernetes_slices.h"

/* A text that fits, has no NUL in it and is not empty: copied to `text` (else "") and true. */
bool kubernetes_text(const json_t *object, const char *name, char *text, size_t size);

/* The message of a Status, or "": at most 200 characters, what is not printable as blanks. */
void kubernetes_message(const json_t *status, char message[256]);

/*
 * Reads an EndpointSlice into `slice`, whose endpoints the caller frees; those that are neither ready nor terminating are left out. What
 * is left out because it cannot be used is said in its note. 0, or a negative errno with a sentence's end.
 */
int kubernetes_read_slice(const json_t *object, const char *port_name,
			  struct kubernetes_slice *slice, struct error *error);

#endif /* WARMPATH_AGENT_KUBERNETES_JSON_H */
