/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "NAME" or "NAME:KEY=VALUE,KEY=VALUE": which policy, and what of its settings differs from the published ones.
 *
 * Owns: that notation. May not know: what the policies do.
 */
#ifndef SIMULATE_POLICY_SPECIFICATION_H
#define SIMULATE_POLICY_SPECIFICATION_H

#include "lib/policy.h"

/* 0, or -EINVAL with a sentence that names the part that is wrong and what is allowed. */
int policy_specification_parse(const char *text, struct policy_settings *settings,
			       struct error *error);

#endif /* SIMULATE_POLICY_SPECIFICATION_H */
