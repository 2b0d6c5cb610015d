/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy_specification.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int policy_specification_parse(const char *text, struct policy_settings *settings,
			       struct error *error)
{
	size_t length = strcspn(text, ":");
	enum routing_policy policy;
	char part[128];

	snprintf(part, sizeof(part), "%.*s", (int)length, text);
	if (policy_parse_name(part, &policy))
		return error_set(
			error, -EINVAL,
			"policy \"%s\": there is no policy \"%s\"; there are round-robin, mod-n, consistent, bounded, llm-aware",
			text, part);
	*settings = policy_published(policy);
	if (!text[length])
		return 0;
	for (text += length + 1;; text += length + 1) {
		length = strcspn(text, ",");
		if (length >= sizeof(part))
			return error_set(error, -EINVAL, "policy setting \"%.40s...\" is too long",
					 text);
		snprintf(part, sizeof(part), "%.*s", (int)length, text);
		if (policy_set_pair(settings, part, error))
			return -EINVAL;
		if (!text[length])
			break;
	}
	return policy_check(settings, error);
}
