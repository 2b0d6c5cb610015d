/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the table of the schema: which key is meant, what is allowed there.
 */
#include <stdio.h>
#include <string.h>

#include "lib/config.h"
#include "lib/config_schema.h"

const struct schema_key *schema_find(const char *path)
{
	unsigned int i;

	for (i = 0; i < config_schema_count; i++) {
		if (strcmp(config_schema[i].path, path) == 0)
			return &config_schema[i];
	}
	return NULL;
}

const char *schema_key_name(const struct schema_key *key)
{
	const char *dot = strrchr(key->path, '.');

	return dot ? dot + 1 : key->path;
}

const char *schema_none_word(const struct schema_key *key)
{
	return key->none_word ? key->none_word : "none";
}

bool schema_is_child(const struct schema_key *key, const char *parent)
{
	size_t length = strlen(parent);

	if (length == 0)
		return strchr(key->path, '.') == NULL;
	return strncmp(key->path, parent, length) == 0 && key->path[length] == '.' &&
	       strchr(key->path + length + 1, '.') == NULL;
}

const char *schema_word(const struct schema_choice *choices, int value)
{
	for (; choices->word; choices++) {
		if (choices->value == value)
			return choices->word;
	}
	return "unknown";
}

const struct schema_choice *schema_find_word(const struct schema_choice *choices, const char *word)
{
	for (; choices->word; choices++) {
		if (strcmp(choices->word, word) == 0)
			return choices;
	}
	return NULL;
}

static void allowed_choices(const struct schema_key *key, char *text, size_t size)
{
	const struct schema_choice *choice;
	size_t used = snprintf(text, size, "one of");

	for (choice = key->choices; choice->word && used < size; choice++)
		used += snprintf(text + used, size - used, "%s %s",
				 choice == key->choices ? "" : ",", choice->word);
}

const char *schema_allowed(const struct schema_key *key, char *text, size_t size)
{
	const char *or_none = key->none_allowed ? ", or none" : "";
	char from[32], to[32];

	switch (key->kind) {
	case SCHEMA_SECTION:
		snprintf(text, size, "a mapping (keys of its own, indented below it)");
		break;
	case SCHEMA_LIST:
		snprintf(text, size, "a list of %llu to %llu mappings",
			 (unsigned long long)key->minimum, (unsigned long long)key->maximum);
		break;
	case SCHEMA_NAME:
		snprintf(
			text, size,
			"a name of 1 to %zu characters out of letters, digits and . _ -, the first no -",
			key->size - 1);
		break;
	case SCHEMA_PATH:
		snprintf(text, size,
			 "an absolute path of at most %zu characters, without .. in it%s",
			 key->size - 1, or_none);
		break;
	case SCHEMA_TEXT:
		snprintf(text, size, "%s%s%s", key->form, key->none_allowed ? ", or " : "",
			 key->none_allowed ? schema_none_word(key) : "");
		break;
	case SCHEMA_NUMBER:
		snprintf(text, size, "a whole number from %llu to %llu%s",
			 (unsigned long long)key->minimum, (unsigned long long)key->maximum,
			 or_none);
		break;
	case SCHEMA_FRACTION:
		schema_format_fraction(key->minimum, key->digits, from, sizeof(from));
		schema_format_fraction(key->maximum, key->digits, to, sizeof(to));
		snprintf(text, size,
			 "a number from %s to %s with at most %u digits after the point%s", from,
			 to, key->digits, or_none);
		break;
	case SCHEMA_CHOICE:
		allowed_choices(key, text, size);
		break;
	case SCHEMA_FLAG:
		snprintf(text, size, "true or false");
		break;
	case SCHEMA_ADDRESSES:
		snprintf(text, size, "a list of %llu to %llu IPv4 or IPv6 addresses%s",
			 (unsigned long long)key->minimum, (unsigned long long)key->maximum,
			 key->prefixes_allowed	  ? ", or IPv6 prefixes"
			 : key->wildcards_allowed ? "; 0.0.0.0 and :: are all of this machine"
						  : "");
		break;
	case SCHEMA_WORDS:
		snprintf(text, size,
			 "a list of %llu to %llu names of HTTP headers, each of 1 to %d characters",
			 (unsigned long long)key->minimum, (unsigned long long)key->maximum,
			 HTTP_NAME_MAX);
		break;
	}
	return text;
}

/* --- "did you mean": Levenshtein distance over short words ------------------------------------------------ */

#define WORD_MAX 48

static unsigned int edit_distance(const char *a, const char *b)
{
	size_t length_a = strlen(a), length_b = strlen(b), i, j;
	unsigned int row[WORD_MAX + 1];

	if (length_a > WORD_MAX || length_b > WORD_MAX)
		return WORD_MAX;
	for (j = 0; j <= length_b; j++)
		row[j] = j;
	for (i = 1; i <= length_a; i++) {
		unsigned int diagonal = row[0];

		row[0] = i;
		for (j = 1; j <= length_b; j++) {
			unsigned int above = row[j];
			unsigned int best = diagonal + (a[i - 1] != b[j - 1]);

			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
			diagonal = above;
		}
	}
	return row[length_b];
}

const char *schema_nearest(const char *parent, const char *name)
{
	/* Up to a third of the letters wrong is a slip; more is another word. */
	unsigned int best = strlen(name) / 3 + 2;
	const char *nearest = NULL;
	unsigned int i;

	for (i = 0; i < config_schema_count; i++) {
		const char *known = schema_key_name(&config_schema[i]);
		unsigned int distance;

		if (!schema_is_child(&config_schema[i], parent))
			continue;
		distance = edit_distance(name, known);
		if (distance < best) {
			best = distance;
			nearest = known;
		}
	}
	return nearest;
}
