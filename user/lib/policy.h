/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of a policy by key and value, as operators write them.
 *
 * Owns: names, defaults as published, what goes together. May not know: maps, the agent. Ranges are those of the configuration's schema.
 */
#ifndef WARMPATH_USER_POLICY_H
#define WARMPATH_USER_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <warmpath/layout.h>

#include "lib/error.h"

#define POLICY_VALUE_TEXT_SIZE 32

/* The values that the published router uses where nothing else is said. Tools only: the agent's configuration states every one. */
struct policy_settings policy_published(enum routing_policy policy);

/*
 * Sets one. key: as in the configuration file below `policy`; the published router's own names memory_max and
 * long_threshold are understood, too.
 * 0; or -EINVAL with a sentence that names the key, the value and what is allowed.
 */
int policy_set(struct policy_settings *settings, const char *key, const char *value,
	       struct error *error);

/* The same for "KEY=VALUE". */
int policy_set_pair(struct policy_settings *settings, const char *pair, struct error *error);

/* Whether the settings go together. 0, or -EINVAL with a sentence. */
int policy_check(const struct policy_settings *settings, struct error *error);

/* Whether placements made under one are of no use under the other: policy or memory differ. */
bool policy_clears_memory(const struct policy_settings *from, const struct policy_settings *to);

/* Key number `index` as in the configuration file, with its value's text; NULL behind the last. */
const char *policy_key(const struct policy_settings *settings, size_t index,
		       char value[POLICY_VALUE_TEXT_SIZE]);

/* "llm-aware" */
const char *policy_name(enum routing_policy policy);

/* 0, or -EINVAL if there is no policy of this name. */
int policy_parse_name(const char *name, enum routing_policy *policy);

#endif /* WARMPATH_USER_POLICY_H */
