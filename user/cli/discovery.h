/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How sources of replicas are printed.
 *
 * Owns: the table. May not know: which subcommand wants it.
 */
#ifndef WARMPATH_CLI_DISCOVERY_H
#define WARMPATH_CLI_DISCOVERY_H

#include <jansson.h>

/* Prints an empty line and a row for each source of these services; nothing if none has any. */
void discovery_print(const json_t *services);

#endif /* WARMPATH_CLI_DISCOVERY_H */
