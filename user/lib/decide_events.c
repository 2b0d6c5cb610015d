/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/decide_events.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/decide_text.h"

static int event_replicas(struct engine *engine, json_t *event, struct error *error)
{
	json_t *list = json_object_get(event, "names"), *item;
	const char **names;
	size_t index, count = json_array_size(list);
	int err = 0;

	if (!json_is_array(list))
		return error_set(error, -EINVAL, "\"names\" is not a list of names");
	names = calloc(count + 1, sizeof(*names));
	if (!names)
		return error_set(error, -ENOMEM, "there is no memory for the replicas");
	json_array_foreach(list, index, item)
	{
		names[index] = json_string_value(item);
		if (!names[index])
			err = error_set(error, -EINVAL, "\"names\" is not a list of names");
	}
	if (!err)
		err = engine_set_replicas(engine, names, count, error);
	free(names);
	return err;
}

static int read_tokens(json_t *event, const char *key, __u32 *tokens, struct error *error)
{
	json_t *value = json_object_get(event, key);

	if (!value)
		return error_set(error, -EINVAL, "\"%s\" is missing", key);
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > REQUEST_TOKENS_MAX)
		return error_set(error, -EINVAL, "\"%s\" is not a whole number from 0 to %u", key,
				 REQUEST_TOKENS_MAX);
	*tokens = json_integer_value(value);
	return 0;
}

static int read_request_number(json_t *event, json_int_t *number, struct error *error)
{
	json_t *value = json_object_get(event, "req");

	if (!value)
		return error_set(error, -EINVAL, "\"req\" is missing");
	if (!json_is_integer(value))
		return error_set(error, -EINVAL, "\"req\" is not a whole number");
	*number = json_integer_value(value);
	return 0;
}

static int event_request(struct engine *engine, json_t *event, FILE *output, struct error *error)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
	const char *id = json_string_value(json_object_get(event, "id"));
	const struct policy_settings *policy = &engine->settings.policy;
	__u32 loads[REPLICAS_MAX];
	struct engine_request request = {.id = id};
	struct decision decision;
	json_int_t number = 0;
	int err;

	if (!json_object_get(event, "id"))
		return error_set(error, -EINVAL, "\"id\" is missing");
	request.id_length = id ? strlen(id) : 0;
	if (request.id_length < 1 || request.id_length > ID_LENGTH_MAX ||
	    strspn(id, allowed) != request.id_length)
		return error_set(
			error, -EINVAL,
			"\"id\" is not 1 to %d characters out of letters, digits and . _ : -",
			ID_LENGTH_MAX);
	err = read_request_number(event, &number, error);
	if (!err)
		err = read_tokens(event, "prompt_tokens", &request.prompt_tokens, error);
	if (!err)
		err = read_tokens(event, "max_tokens", &request.max_tokens, error);
	if (err)
		return err;
	request.request = number;
	/* before the decision, as nobody else is there to change them */
	err = engine_loads(engine, loads, error);
	if (!err)
		err = engine_request(engine, &request, &decision, error);
	if (err)
		return err;
	decision_print_json(output, number, id, &decision, policy, &engine->ring, loads);
	return 0;
}

static int event_finish(struct engine *engine, json_t *event, struct error *error)
{
	json_t *status = json_object_get(event, "status");
	json_int_t number = 0, code;
	int err = read_request_number(event, &number, error);

	if (err)
		return err;
	if (!status)
		return error_set(error, -EINVAL, "\"status\" is missing");
	if (!json_is_integer(status))
		return error_set(error, -EINVAL, "\"status\" is not a whole number");
	code = json_integer_value(status);
	return engine_finish(engine, number, code >= 200 && code < 300, error);
}

int decide_event_take(struct engine *engine, const char *line, size_t length, FILE *output,
		      struct error *error)
{
	json_error_t problem;
	json_t *event = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
	const char *operation = json_string_value(json_object_get(event, "op"));
	int err;

	if (!event)
		err = error_set(error, -EINVAL, "not JSON: %s", problem.text);
	else if (!operation)
		err = error_set(error, -EINVAL, "not an event: \"op\" is missing");
	else if (strcmp(operation, "replicas") == 0)
		err = event_replicas(engine, event, error);
	else if (strcmp(operation, "request") == 0)
		err = event_request(engine, event, output, error);
	else if (strcmp(operation, "finish") == 0)
		err = event_finish(engine, event, error);
	else
		err = error_set(error, -EINVAL,
				"\"op\" is \"%s\"; allowed: replicas, request, finish", operation);
	json_decref(event);
	return err;
}
