/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/policy_json.h"

#include <stdlib.h>
#include <string.h>

#include "lib/policy.h"

static json_t *value_json(const char *text)
{
	char *end;
	double number;

	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		return json_boolean(text[0] == 't');
	if (strspn(text, "0123456789") == strlen(text))
		return json_integer(strtoll(text, NULL, 10));
	number = strtod(text, &end);
	return *end == '\0' ? json_real(number) : json_string(text);
}

json_t *policy_to_json(const struct policy_settings *settings)
{
	char value[POLICY_VALUE_TEXT_SIZE];
	json_t *object = json_object();
	const char *key;

	for (size_t i = 0; (key = policy_key(settings, i, value)); i++)
		json_object_set_new(object, key, value_json(value));
	return object;
}
