/* SPDX-License-Identifier: BSD-2-Clause */
#include "run_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static json_t *number_or_null(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

json_t *run_json(const struct run *run)
{
	return json_pack("{s:s,s:s,s:i,s:i,s:s,s:i,s:o,s:o,s:o,s:b,s:f,s:i,s:i}", "run_id",
			 run->run_id, "policy", run->policy, "repeat", (int)run->repeat, "seed",
			 (int)run->seed, "profile", run->profile, "base_replicas",
			 (int)run->base_replicas, "scale_to",
			 isnan(run->scale_at_s) ? json_null() : json_integer(run->scale_to),
			 "scale_at_s", number_or_null(run->scale_at_s), "new_replica_ready_s",
			 number_or_null(run->new_replica_ready_s), "scale_skipped",
			 run->scale_skipped, "duration_s", run->duration_s, "requests",
			 (int)run->requests, "errors", (int)run->errors);
}

static bool take_text(const json_t *object, const char *name, char *text, size_t size)
{
	const char *value = json_string_value(json_object_get(object, name));

	if (!value || strlen(value) >= size)
		return false;
	snprintf(text, size, "%s", value);
	return true;
}

static bool take_count(const json_t *object, const char *name, uint32_t *value)
{
	const json_t *number = json_object_get(object, name);

	if (!json_is_integer(number) || json_integer_value(number) < 0 ||
	    json_integer_value(number) > UINT32_MAX)
		return false;
	*value = (uint32_t)json_integer_value(number);
	return true;
}

static bool take_number(const json_t *object, const char *name, double *value)
{
	const json_t *number = json_object_get(object, name);

	*value = json_is_number(number) ? json_number_value(number) : NAN;
	return !number || json_is_null(number) || json_is_number(number);
}

static const char *wrong_field(const json_t *object, struct run *run)
{
	if (!take_text(object, "run_id", run->run_id, sizeof(run->run_id)))
		return "run_id";
	if (!take_text(object, "policy", run->policy, sizeof(run->policy)))
		return "policy";
	if (!take_text(object, "profile", run->profile, sizeof(run->profile)))
		return "profile";
	if (!take_count(object, "seed", &run->seed))
		return "seed";
	if (!take_count(object, "repeat", &run->repeat))
		return "repeat";
	if (!take_count(object, "base_replicas", &run->base_replicas))
		return "base_replicas";
	if (!take_number(object, "scale_at_s", &run->scale_at_s))
		return "scale_at_s";
	if (!isnan(run->scale_at_s) && !take_count(object, "scale_to", &run->scale_to))
		return "scale_to";
	if (!take_number(object, "new_replica_ready_s", &run->new_replica_ready_s))
		return "new_replica_ready_s";
	if (!take_number(object, "duration_s", &run->duration_s) || isnan(run->duration_s))
		return "duration_s";
	if (!take_count(object, "requests", &run->requests))
		return "requests";
	if (!take_count(object, "errors", &run->errors))
		return "errors";
	run->scale_skipped = json_is_true(json_object_get(object, "scale_skipped"));
	return NULL;
}

int run_read(const char *path, struct run *run, char error[TOOLS_ERROR_SIZE])
{
	json_error_t fault;
	json_t *object = json_load_file(path, 0, &fault);
	const char *wrong;

	*run = (struct run){0};
	if (!json_is_object(object)) {
		snprintf(error, TOOLS_ERROR_SIZE, "%s: not the JSON of a run: %s", path,
			 object ? "no object" : fault.text);
		json_decref(object);
		return -EINVAL;
	}
	wrong = wrong_field(object, run);
	json_decref(object);
	if (!wrong)
		return 0;
	snprintf(error, TOOLS_ERROR_SIZE, "%s: the field \"%s\" is missing or wrong", path, wrong);
	return -EINVAL;
}
