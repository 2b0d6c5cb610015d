/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of a policy as JSON.
 *
 * Owns: keys as in the configuration file, numbers and flags as such. May not know: who asks.
 */
#ifndef WARMPATH_USER_POLICY_JSON_H
#define WARMPATH_USER_POLICY_JSON_H

#include <jansson.h>
#include <warmpath/layout.h>

/* A new reference; NULL without memory. */
json_t *policy_to_json(const struct policy_settings *settings);

#endif /* WARMPATH_USER_POLICY_JSON_H */
