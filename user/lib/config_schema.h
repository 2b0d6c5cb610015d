/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The schema of the configuration file: one table, one row for each key. Parser, error sentences and tests all read this
 * table, so a key cannot exist in one and be forgotten in another.
 *
 * Owns: paths, kinds, ranges, words allowed, descriptions. May not know: YAML.
 */
#ifndef WARMPATH_USER_CONFIG_SCHEMA_H
#define WARMPATH_USER_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum schema_kind {
	SCHEMA_SECTION, /* a mapping with keys of its own, inside the same struct */
	SCHEMA_LIST,	/* a list of mappings; each item is a struct of its own */
	SCHEMA_NAME,	/* text: see config_name_valid() */
	SCHEMA_PATH,	/* text: an absolute path, or `none` */
	SCHEMA_NUMBER,	/* a whole number */
	SCHEMA_FRACTION, /* a number with up to `digits` digits behind the point, kept as a whole number of 10^-digits */
	SCHEMA_CHOICE,	  /* one of `choices` */
	SCHEMA_FLAG,	  /* true or false */
	SCHEMA_ADDRESSES, /* a list of addresses (struct config_addresses) */
	SCHEMA_WORDS,	  /* a list of names of HTTP headers (struct config_words) */
	SCHEMA_TEXT, /* text without blanks; `form` says what it is, config_check*.c whether it is so */
};

struct schema_choice {
	const char *word; /* NULL ends the list */
	int value;
};

struct schema_key {
	const char *path; /* "services[].id.offset": sections by dots, list items by [] */
	enum schema_kind kind;
	size_t offset; /* of the value, in the struct of the list item (or in struct config) */
	size_t size;   /* of the value, in bytes; lists: of one item */

	/* numbers and fractions (after scaling); lists and addresses: how many items */
	uint64_t minimum;
	uint64_t maximum;
	unsigned int digits;
	uint64_t scale; /* a number is multiplied by this before it is kept; 0: 1 */

	const struct schema_choice *choices;
	bool none_allowed; /* the word `none`: a number becomes none_value, a path the empty string */
	uint64_t none_value;
	const char *none_word;	/* texts: stands for the empty one in place of "none" */
	const char *form;	/* texts: what is allowed */
	bool prefixes_allowed;	/* addresses */
	bool wildcards_allowed; /* addresses: 0.0.0.0 and :: stand for all of this machine */
	size_t count_offset;	/* lists: where the number of items is kept */
	size_t line_offset;	/* lists: where an item keeps its line */

	/* The key exists only where its sibling `only_with` has the word `only_with_word`, or one of several: "a, b or c". */
	const char *only_with;
	const char *only_with_word;

	const char
		*description; /* completes "is missing (...)": what the value is, with its unit */
};

extern const struct schema_key config_schema[];
extern const unsigned int config_schema_count;

/* The row of `path`, or NULL. */
const struct schema_key *schema_find(const char *path);

/* The last part of the path: what the key is called in the file. */
const char *schema_key_name(const struct schema_key *key);

/* The word that stands for nothing there. */
const char *schema_none_word(const struct schema_key *key);

/* Whether `key` stands directly below `parent` ("" is the top, "services[]" an item of the list). */
bool schema_is_child(const struct schema_key *key, const char *parent);

/* Writes what values are allowed, as the end of a sentence: "a whole number from 1 to 65535". Returns `text`. */
const char *schema_allowed(const struct schema_key *key, char *text, size_t size);

/*
 * Reads the text of a value that is not a list into `target`, which has key->size bytes. False, and target untouched, if
 * it is not an allowed value.
 */
bool schema_read_text(const struct schema_key *key, const char *text, void *target);

/* The reverse: what a file would say for the value at `source`. Returns `text`. */
const char *schema_write_text(const struct schema_key *key, const void *source, char *text,
			      size_t size);

/* A whole number of 10^-digits as text, without closing zeros. Returns `text`. */
const char *schema_format_fraction(uint64_t value, unsigned int digits, char *text, size_t size);

/* The known key below `parent` that is nearest to `name` (fewest edits), or NULL if none is near. */
const char *schema_nearest(const char *parent, const char *name);

/* The choice of that word, or NULL. */
const struct schema_choice *schema_find_word(const struct schema_choice *choices, const char *word);

/* The word of a choice's value, "unknown" if there is none. */
const char *schema_word(const struct schema_choice *choices, int value);

extern const struct schema_choice choices_log_level[];
extern const struct schema_choice choices_role[];
extern const struct schema_choice choices_shape[];
extern const struct schema_choice choices_attach_mode[];
extern const struct schema_choice choices_protocol[];
extern const struct schema_choice choices_id_from[];
extern const struct schema_choice choices_dialect[];
extern const struct schema_choice choices_policy[];
extern const struct schema_choice choices_load_metric[];
extern const struct schema_choice choices_discovery_from[];
extern const struct schema_choice choices_dns_records[];
extern const struct schema_choice choices_health_check[];
extern const struct schema_choice choices_load_source[];

#endif /* WARMPATH_USER_CONFIG_SCHEMA_H */
