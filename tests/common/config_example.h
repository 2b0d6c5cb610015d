/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests of the configuration share: the shipped example, changed, and what the reader says about it.
 *
 * Owns: reading the example, replacing text in it, asking the reader. May not know: any key.
 */
#ifndef WARMPATH_TESTS_CONFIG_EXAMPLE_H
#define WARMPATH_TESTS_CONFIG_EXAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/config.h"

#define EXAMPLE "deploy/warmpath.yaml"

/* A pair of texts for complaint_after(), and what the reader has to say then. */
struct changed_example {
	const char *from, *to;
	int times;
	const char *says;
};

/* The text of the example, with room behind it for another; the caller frees. */
static inline char *read_example(size_t *length)
{
	FILE *file = fopen(EXAMPLE, "r");
	char *text = malloc(1 << 20);

	assert_non_null(file);
	*length = fread(text, 1, (1 << 20) - 1, file);
	text[*length] = '\0';
	fclose(file);
	return text;
}

/* What the reader says about a text; "" if it has no complaint. The caller frees. */
static inline char *complaint(const char *text)
{
	struct config_problems problems = {0};
	struct config config;
	int result = config_parse(text, strlen(text), "test.yaml", &config, &problems);
	char *said = strdup(problems.text ? problems.text : "");

	assert_int_equal(result, problems.count ? -EINVAL : 0);
	config_free(&config);
	config_problems_free(&problems);
	return said;
}

static inline void assert_says(const char *said, const char *expected, const char *key)
{
	if (!strstr(said, expected))
		fail_msg("%s: expected \"%s\" in: %s", key, expected, said[0] ? said : "(nothing)");
}

/* The example with each `from` replaced by `to`, at most `times` times; the complaint about it. */
static inline char *complaint_after(const char *from, const char *to, int times)
{
	size_t length;
	char *text = read_example(&length), *at = text, *said;

	while (times-- > 0) {
		char *found = strstr(at, from);

		if (!found)
			break;
		memmove(found + strlen(to), found + strlen(from), strlen(found + strlen(from)) + 1);
		memcpy(found, to, strlen(to));
		at = found + strlen(to);
	}
	assert_true(at != text);
	said = complaint(text);
	free(text);
	return said;
}

/* Expects each to be refused with its sentence. */
static inline void expect_complaints(const struct changed_example *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *said = complaint_after(cases[i].from, cases[i].to, cases[i].times);

		assert_says(said, cases[i].says, cases[i].from);
		free(said);
	}
}

#endif /* WARMPATH_TESTS_CONFIG_EXAMPLE_H */
