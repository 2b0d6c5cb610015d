/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How deep a YAML document is.
 *
 * Owns: the limit. May not know: keys.
 */
#ifndef WARMPATH_USER_CONFIG_DEPTH_H
#define WARMPATH_USER_CONFIG_DEPTH_H

#include "lib/config.h"

/* Whether lists and mappings are nested too deep, whatever they are; that is then among the problems. `name`: of the file. */
bool config_is_too_deep(const char *text, size_t length, const char *name,
			struct config_problems *problems);

#endif /* WARMPATH_USER_CONFIG_DEPTH_H */
