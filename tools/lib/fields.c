/* SPDX-License-Identifier: BSD-2-Clause */
#include "fields.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int read_field(const char *path, const struct field *field, const json_t *value,
		      void *values, char *error)
{
	char *place = (char *)values + field->offset;
	bool whole = field->kind == FIELD_COUNT;
	double number = json_number_value(value);

	if (!json_is_number(value) || number < field->low || number > field->high ||
	    (whole && number != floor(number))) {
		char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		snprintf(error, TOOLS_ERROR_SIZE,
			 "%s: \"%s\" is %.60s; allowed is a %s from %g to %g", path, field->name,
			 text ? text : "?", whole ? "whole number" : "number", field->low,
			 field->high);
		free(text);
		return -EINVAL;
	}
	if (whole)
		*(uint32_t *)(void *)place = (uint32_t)number;
	else
		*(double *)(void *)place = number;
	return 0;
}

static int read_object(const char *path, const struct field *fields, size_t count, json_t *object,
		       void *values, char *error)
{
	const char *name;
	json_t *value;

	for (size_t i = 0; i < count; i++) {
		int result;

		value = json_object_get(object, fields[i].name);
		if (!value) {
			snprintf(error, TOOLS_ERROR_SIZE,
				 "%s: the key \"%s\" is missing (a number from %g to %g)", path,
				 fields[i].name, fields[i].low, fields[i].high);
			return -ENOENT;
		}
		result = read_field(path, &fields[i], value, values, error);
		if (result)
			return result;
	}
	json_object_foreach(object, name, value)
	{
		bool known = name[0] == '_';

		for (size_t i = 0; i < count && !known; i++)
			known = strcmp(name, fields[i].name) == 0;
		if (!known) {
			snprintf(error, TOOLS_ERROR_SIZE, "%s: the key \"%.60s\" is unknown", path,
				 name);
			return -EINVAL;
		}
	}
	return 0;
}

int fields_read(const char *path, const struct field *fields, size_t count, void *values,
		char error[TOOLS_ERROR_SIZE])
{
	json_error_t fault;
	FILE *file = fopen(path, "re");
	json_t *object;
	int result;

	if (!file) {
		result = -errno;
		snprintf(error, TOOLS_ERROR_SIZE, "%s: cannot be read: %s", path,
			 strerror(-result));
		return result;
	}
	object = json_loadf(file, JSON_REJECT_DUPLICATES, &fault);
	fclose(file);
	if (!json_is_object(object)) {
		snprintf(error, TOOLS_ERROR_SIZE, "%s: not a JSON object: %s (line %d)", path,
			 object ? "another kind of value" : fault.text, object ? 1 : fault.line);
		json_decref(object);
		return -EINVAL;
	}
	result = read_object(path, fields, count, object, values, error);
	json_decref(object);
	return result;
}
