/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the Kubernetes API is reached: server, token, namespace, from the configuration, the environment and files.
 *
 * Owns: where each of them is found, the URLs. May not know: when something is asked.
 */
#ifndef WARMPATH_AGENT_KUBERNETES_ACCESS_H
#define WARMPATH_AGENT_KUBERNETES_ACCESS_H

#include <stdbool.h>

#include "lib/config.h"
#include "lib/error.h"

#define KUBERNETES_TOKEN_SIZE 16384

struct kubernetes_access {
	char server[PATH_MAX / 4]; /* "https://10.96.0.1:443" */
	char namespace[KUBERNETES_NAME_SIZE];
	char token[KUBERNETES_TOKEN_SIZE]; /* a secret; empty: none */
};

/*
 * Finds everything anew, as tokens are renewed and pods may be moved. 0, or a negative errno with a sentence that says what is missing.
 * The caller forgets the token with explicit_bzero().
 */
int kubernetes_access_read(const struct config_discovery *settings,
			   struct kubernetes_access *access, struct error *error);

/*
 * The URL of the service's EndpointSlices in `version` ("v1"), with `query` ("&limit=10") at its end; freed by the caller. NULL: not enough memory.
 */
char *kubernetes_url(const struct kubernetes_access *access, const char *version,
		     const char *service, const char *query);

/* `text` as it may stand in a query; freed by the caller. NULL: not enough memory. */
char *kubernetes_escape(const char *text);

#endif /* WARMPATH_AGENT_KUBERNETES_ACCESS_H */
