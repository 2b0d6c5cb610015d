/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single values of the schema, from and to text: the same for the configuration file, `warmpath policy set` and `warmpath decide --set`.
 */
#include <stdio.h>
#include <string.h>

#include "lib/config_schema.h"
#include "lib/config.h"

/* A decimal number with up to `digits` digits behind the point, as a whole number of 10^-digits. */
static bool parse_decimal(const char *text, unsigned int digits, uint64_t *value)
{
	uint64_t number = 0;
	unsigned int fraction = 0, seen = 0;
	bool point = false;

	for (; *text; text++) {
		if (*text == '.' && digits > 0 && !point && seen > 0) {
			point = true;
			continue;
		}
		if (*text < '0' || *text > '9' || number > UINT64_MAX / 100)
			return false;
		if (point && ++fraction > digits)
			return false;
		number = number * 10 + (*text - '0');
		seen++;
	}
	if (seen == 0 || (point && fraction == 0))
		return false;
	for (; fraction < digits; fraction++) {
		if (number > UINT64_MAX / 10)
			return false;
		number *= 10;
	}
	*value = number;
	return true;
}

static void store_number(void *target, size_t size, uint64_t value)
{
	__u8 byte = value;
	__u16 half = value;
	__u32 word = value;

	if (size == sizeof(byte))
		memcpy(target, &byte, size);
	else if (size == sizeof(half))
		memcpy(target, &half, size);
	else
		memcpy(target, &word, sizeof(word));
}

static uint64_t load_number(const void *source, size_t size)
{
	__u8 byte;
	__u16 half;
	__u32 word;

	if (size == sizeof(byte)) {
		memcpy(&byte, source, size);
		return byte;
	}
	if (size == sizeof(half)) {
		memcpy(&half, source, size);
		return half;
	}
	memcpy(&word, source, sizeof(word));
	return word;
}

static bool read_number(const struct schema_key *key, const char *text, void *target)
{
	uint64_t value;

	if (key->none_allowed && strcmp(text, "none") == 0) {
		store_number(target, key->size, key->none_value);
		return true;
	}
	if (!parse_decimal(text, key->digits, &value))
		return false;
	if (value < key->minimum || value > key->maximum)
		return false;
	store_number(target, key->size, value * (key->scale ? key->scale : 1));
	return true;
}

static bool read_choice(const struct schema_key *key, const char *text, void *target)
{
	const struct schema_choice *choice;

	for (choice = key->choices; choice->word; choice++) {
		if (strcmp(text, choice->word) == 0) {
			store_number(target, key->size, choice->value);
			return true;
		}
	}
	return false;
}

static bool read_flag(const struct schema_key *key, const char *text, void *target)
{
	bool value = strcmp(text, "true") == 0;

	if (!value && strcmp(text, "false") != 0)
		return false;
	store_number(target, key->size, value);
	return true;
}

static bool store_text(const struct schema_key *key, const char *text, void *target)
{
	if (strlen(text) >= key->size)
		return false;
	memcpy(target, text, strlen(text) + 1);
	return true;
}

/* Whether a part of the path is "..": what is made and removed along a path must lie where the path says. */
static bool climbs(const char *path)
{
	const char *at = path;

	while ((at = strstr(at, "/.."))) {
		if (at[3] == '/' || at[3] == '\0')
			return true;
		at += 3;
	}
	return false;
}

static bool read_path(const struct schema_key *key, const char *text, void *target)
{
	if (key->none_allowed && strcmp(text, schema_none_word(key)) == 0)
		text = "";
	else if (text[0] != '/' || climbs(text))
		return false;
	return store_text(key, text, target);
}

/* Printable and without blanks: it may be shown in a sentence, and put into a request. */
static bool read_plain_text(const struct schema_key *key, const char *text, void *target)
{
	const char *letter;

	if (key->none_allowed && strcmp(text, schema_none_word(key)) == 0)
		return store_text(key, "", target);
	for (letter = text; *letter > ' ' && *letter < 0x7f; letter++)
		;
	return letter > text && !*letter && store_text(key, text, target);
}

bool schema_read_text(const struct schema_key *key, const char *text, void *target)
{
	switch (key->kind) {
	case SCHEMA_NUMBER:
	case SCHEMA_FRACTION:
		return read_number(key, text, target);
	case SCHEMA_CHOICE:
		return read_choice(key, text, target);
	case SCHEMA_FLAG:
		return read_flag(key, text, target);
	case SCHEMA_NAME:
		return config_name_valid(text, key->size) && store_text(key, text, target);
	case SCHEMA_PATH:
		return read_path(key, text, target);
	case SCHEMA_TEXT:
		return read_plain_text(key, text, target);
	default:
		return false;
	}
}

const char *schema_format_fraction(uint64_t value, unsigned int digits, char *text, size_t size)
{
	uint64_t unit = 1;
	unsigned int i;
	size_t length;

	for (i = 0; i < digits; i++)
		unit *= 10;
	snprintf(text, size, "%llu.%0*llu", (unsigned long long)(value / unit), (int)digits,
		 (unsigned long long)(value % unit));
	for (length = strlen(text); length > 1 && text[length - 1] == '0'; length--)
		text[length - 1] = '\0';
	if (text[length - 1] == '.')
		text[length - 1] = '\0';
	return text;
}

const char *schema_write_text(const struct schema_key *key, const void *source, char *text,
			      size_t size)
{
	uint64_t value = load_number(source, key->size);

	if (key->none_allowed && value == key->none_value)
		snprintf(text, size, "none");
	else if (key->kind == SCHEMA_CHOICE)
		snprintf(text, size, "%s", schema_word(key->choices, value));
	else if (key->kind == SCHEMA_FLAG)
		snprintf(text, size, "%s", value ? "true" : "false");
	else
		schema_format_fraction(value / (key->scale ? key->scale : 1), key->digits, text,
				       size);
	return text;
}
