// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fuzzes what is read of a line of the control socket, as the commands read it: a message or a refusal that is JSON, arguments within their
 * ranges or a sentence.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/control.h"
#include "lib/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "it does not hold that %s\n", what);
		__builtin_trap();
	}
}

/* A refusal reaches who asked, whatever is in the sentence. */
static void check_refusal(const struct error *error)
{
	json_t *refusal = control_refusal(error->text);
	char *line = refusal ? json_dumps(refusal, JSON_COMPACT) : NULL;

	check(line && !strchr(line, '\n'), "a refusal can be sent as one line");
	check(json_string_length(json_object_get(refusal, "error")) > 0, "a refusal says why");
	free(line);
	json_decref(refusal);
}

static void read_text(const json_t *message, const char *name)
{
	struct error error;
	const char *text;

	if (control_text(message, name, true, &text, &error)) {
		check_refusal(&error);
		return;
	}
	for (; *text; text++)
		check((unsigned char)*text >= ' ' && *text != 0x7f,
		      "text has no control characters");
}

static void read_numbers(const json_t *message, const char *name)
{
	struct error error;
	json_int_t number;
	bool flag;

	if (control_number(message, name, true, 1, 65535, &number, &error))
		check_refusal(&error);
	else
		check(number >= 1 && number <= 65535, "a number is within its range");
	if (control_thousandths(message, name, true, 1, 1000000, &number, &error))
		check_refusal(&error);
	else
		check(number >= 1 && number <= 1000000, "thousandths are within their range");
	if (control_flag(message, name, &flag, &error))
		check_refusal(&error);
}

static void read_settings(const json_t *message)
{
	struct policy_settings settings = policy_published(POLICY_LLM_AWARE);
	json_t *setting;
	struct error error;
	size_t i;

	json_array_foreach(json_object_get(message, "settings"), i, setting)
	{
		const char *pair = json_string_value(setting);

		if (pair && policy_set_pair(&settings, pair, &error))
			check_refusal(&error);
	}
	check(settings.epsilon_millionths >= 1, "epsilon stays within its range");
	check(settings.memory_max_entries >= 1, "the memory stays within its range");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const known[] = {"service", "id", "name", NULL};
	struct error error;
	json_t *message = control_parse((const char *)data, size, &error);
	const char *name;
	json_t *value;

	if (!message) {
		check_refusal(&error);
		return 0;
	}
	check(json_is_string(json_object_get(message, "command")), "a message has a command");
	if (control_only(message, known, &error))
		check_refusal(&error);
	json_object_foreach(message, name, value)
	{
		read_text(message, name);
		read_numbers(message, name);
	}
	read_settings(message);
	json_decref(message);
	return 0;
}
