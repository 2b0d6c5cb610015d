/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/config.h"
#include "lib/config_schema.h"

#define SECTION "services[].policy"

struct policy_settings policy_published(enum routing_policy policy)
{
	return (struct policy_settings){
		.policy = policy,
		.load_metric = LOAD_REQUESTS,
		.epsilon_millionths = 250000,
		.long_epsilon_millionths = 1000000,
		.long_threshold_tokens = 800,
		.default_max_tokens = 256,
		.memory_max_entries = 50000,
		.token_load = 1,
		.long_stickiness = 1,
		.placement_memory = 1,
	};
}

static const char *configuration_name(const char *key)
{
	static const struct {
		const char *published;
		const char *name;
	} names[] = {
		{"memory_max", "memory_max_entries"},
		{"long_threshold", "long_threshold_tokens"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].published, key) == 0)
			return names[i].name;
	return key;
}

/* Where the value of a row of the schema is in the settings. */
static void *value_of(const struct schema_key *row, const struct policy_settings *settings)
{
	return (char *)settings + row->offset - offsetof(struct config_service, policy);
}

static void list_keys(char *text, size_t size)
{
	size_t used = 0;

	for (unsigned int i = 0; i < config_schema_count && used < size; i++)
		if (schema_is_child(&config_schema[i], SECTION))
			used += snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "",
					 schema_key_name(&config_schema[i]));
}

int policy_set(struct policy_settings *settings, const char *key, const char *value,
	       struct error *error)
{
	const struct schema_key *row;
	char path[128], text[512];

	snprintf(path, sizeof(path), SECTION ".%.80s", configuration_name(key));
	row = schema_find(path);
	if (!row) {
		list_keys(text, sizeof(text));
		return error_set(error, -EINVAL, "there is no policy setting \"%s\"; there are: %s",
				 key, text);
	}
	if (!schema_read_text(row, value, value_of(row, settings)))
		return error_set(error, -EINVAL, "%s is \"%s\"; allowed: %s", key, value,
				 schema_allowed(row, text, sizeof(text)));
	return 0;
}

int policy_set_pair(struct policy_settings *settings, const char *pair, struct error *error)
{
	const char *equals = strchr(pair, '=');
	char key[64];

	if (!equals)
		return error_set(error, -EINVAL, "\"%s\" is not a setting: write KEY=VALUE", pair);
	snprintf(key, sizeof(key), "%.*s", (int)(equals - pair), pair);
	return policy_set(settings, key, equals + 1, error);
}

int policy_check(const struct policy_settings *settings, struct error *error)
{
	char small[POLICY_VALUE_TEXT_SIZE], large[POLICY_VALUE_TEXT_SIZE];

	if (settings->long_epsilon_millionths >= settings->epsilon_millionths)
		return 0;
	schema_format_fraction(settings->long_epsilon_millionths, 6, small, sizeof(small));
	schema_format_fraction(settings->epsilon_millionths, 6, large, sizeof(large));
	return error_set(error, -EINVAL,
			 "long_epsilon is %s, but must not be smaller than epsilon, which is %s",
			 small, large);
}

bool policy_clears_memory(const struct policy_settings *from, const struct policy_settings *to)
{
	return from->policy != to->policy || from->placement_memory != to->placement_memory ||
	       from->memory_max_entries != to->memory_max_entries;
}

const char *policy_key(const struct policy_settings *settings, size_t index,
		       char value[POLICY_VALUE_TEXT_SIZE])
{
	for (unsigned int i = 0; i < config_schema_count; i++) {
		const struct schema_key *row = &config_schema[i];

		if (!schema_is_child(row, SECTION) || index-- > 0)
			continue;
		schema_write_text(row, value_of(row, settings), value, POLICY_VALUE_TEXT_SIZE);
		return schema_key_name(row);
	}
	return NULL;
}

const char *policy_name(enum routing_policy policy)
{
	return schema_word(choices_policy, policy);
}

int policy_parse_name(const char *name, enum routing_policy *policy)
{
	const struct schema_choice *choice;

	for (choice = choices_policy; choice->word; choice++) {
		if (strcmp(choice->word, name) == 0) {
			*policy = choice->value;
			return 0;
		}
	}
	return -EINVAL;
}
