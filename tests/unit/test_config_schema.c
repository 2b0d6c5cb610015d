/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The single keys of the configuration file. The tests are made from the schema table itself and from the shipped example: each key is
 * in turn left out, misspelt, of a wrong kind and out of range, so a new row is tested without anyone remembering to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "../common/config_example.h"
#include "lib/config_schema.h"

/* --- the example as a document that can be changed ------------------------------------------------------- */

static void load_example(yaml_document_t *document)
{
	yaml_parser_t parser;
	size_t length;
	char *text = read_example(&length);

	assert_true(yaml_parser_initialize(&parser));
	yaml_parser_set_input_string(&parser, (unsigned char *)text, length);
	assert_true(yaml_parser_load(&parser, document));
	yaml_parser_delete(&parser);
	free(text);
}

static yaml_node_pair_t *find_key(yaml_document_t *document, yaml_node_t *node, const char *name,
				  size_t length)
{
	yaml_node_pair_t *pair;

	assert_int_equal(node->type, YAML_MAPPING_NODE);
	for (pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		yaml_node_t *key = yaml_document_get_node(document, pair->key);

		if (key->data.scalar.length == length &&
		    memcmp(key->data.scalar.value, name, length) == 0)
			return pair;
	}
	return NULL;
}

/* The rest of a schema path below `node`: of a list's items the first that has it. Writes it with the items' numbers to `shown`. */
static yaml_node_pair_t *find_below(yaml_document_t *document, yaml_node_t *node, const char *path,
				    yaml_node_t **mapping, char *shown)
{
	size_t length = strcspn(path, ".[");
	const char *rest = path + length;
	yaml_node_pair_t *pair = find_key(document, node, path, length), *found;
	yaml_node_item_t *item;

	shown += sprintf(shown, "%.*s", (int)length, path);
	if (!pair || !*rest) {
		*mapping = node;
		return pair;
	}
	node = yaml_document_get_node(document, pair->value);
	if (*rest == '.') {
		*shown++ = '.';
		return find_below(document, node, rest + 1, mapping, shown);
	}
	if (strcmp(rest, "[]") == 0)
		return pair;
	for (item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
		char *below =
			shown + sprintf(shown, "[%td].", item - node->data.sequence.items.start);

		found = find_below(document, yaml_document_get_node(document, *item), rest + 3,
				   mapping, below);
		if (found)
			return found;
	}
	return NULL;
}

/* The mapping that holds the key of a schema path, and the pair in it. */
static yaml_node_pair_t *find_pair(yaml_document_t *document, const char *path,
				   yaml_node_t **mapping)
{
	char shown[256];
	yaml_node_pair_t *pair =
		find_below(document, yaml_document_get_root_node(document), path, mapping, shown);

	if (!pair)
		fail_msg("%s is not stated in " EXAMPLE, path);
	return pair;
}

static int append(void *data, unsigned char *buffer, size_t size)
{
	char **text = data;
	size_t length = strlen(*text);

	*text = realloc(*text, length + size + 1);
	memcpy(*text + length, buffer, size);
	(*text)[length + size] = '\0';
	return 1;
}

/* Emits (and so deletes) the document. */
static char *emit(yaml_document_t *document)
{
	yaml_emitter_t emitter;
	char *text = calloc(1, 1);

	assert_true(yaml_emitter_initialize(&emitter));
	yaml_emitter_set_output(&emitter, append, &text);
	assert_true(yaml_emitter_open(&emitter));
	assert_true(yaml_emitter_dump(&emitter, document));
	assert_true(yaml_emitter_close(&emitter));
	yaml_emitter_delete(&emitter);
	return text;
}

static int scalar_node(yaml_document_t *document, const char *value, bool quoted)
{
	int node = yaml_document_add_scalar(
		document, NULL, (const unsigned char *)value, strlen(value),
		quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE);

	assert_true(node);
	return node;
}

static char *complaint_of_document(yaml_document_t *document)
{
	char *text = emit(document);
	char *said = complaint(text);

	free(text);
	return said;
}

/* The path as the reader shows it, where the key is in the example. */
static void shown_path(const char *path, char shown[256])
{
	yaml_document_t document;
	yaml_node_t *mapping;

	load_example(&document);
	find_below(&document, yaml_document_get_root_node(&document), path, &mapping, shown);
	yaml_document_delete(&document);
}

/* Replaces the value of the key by a scalar and expects to be told the key and what is allowed. */
static void expect_refused(const struct schema_key *key, const char *value, bool quoted)
{
	char shown[256], allowed[256], expected[600];
	yaml_document_t document;
	yaml_node_pair_t *pair;
	yaml_node_t *mapping;
	ptrdiff_t index;
	char *said;
	int node;

	load_example(&document);
	/* Adding a node may move the others: find the pair afterwards. */
	node = scalar_node(&document, value, quoted);
	pair = find_pair(&document, key->path, &mapping);
	index = pair - mapping->data.mapping.pairs.start;
	mapping->data.mapping.pairs.start[index].value = node;
	said = complaint_of_document(&document);
	shown_path(key->path, shown);
	snprintf(expected, sizeof(expected), "%s is %s%s%s; allowed: %s", shown,
		 value[0] ? "\"" : "", value[0] ? value : "empty", value[0] ? "\"" : "",
		 schema_allowed(key, allowed, sizeof(allowed)));
	assert_says(said, expected, key->path);
	assert_says(said, "test.yaml:", key->path);
	free(said);
}

/* --- each key of the schema ------------------------------------------------------------------------------ */

static void each_key_is_in_the_example(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < config_schema_count; i++) {
		yaml_document_t document;
		yaml_node_t *mapping;

		load_example(&document);
		find_pair(&document, config_schema[i].path, &mapping);
		yaml_document_delete(&document);
	}
}

static void each_missing_key_is_named(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < config_schema_count; i++) {
		const struct schema_key *key = &config_schema[i];
		char shown[256], allowed[256], expected[600];
		yaml_document_t document;
		yaml_node_pair_t *pair;
		yaml_node_t *mapping;
		char *said;

		load_example(&document);
		pair = find_pair(&document, key->path, &mapping);
		memmove(pair, pair + 1,
			(char *)mapping->data.mapping.pairs.top - (char *)(pair + 1));
		mapping->data.mapping.pairs.top--;
		said = complaint_of_document(&document);
		shown_path(key->path, shown);
		snprintf(expected, sizeof(expected), "%s is missing (%s); allowed: %s", shown,
			 key->description, schema_allowed(key, allowed, sizeof(allowed)));
		assert_says(said, expected, key->path);
		free(said);
	}
}

static void each_misspelt_key_is_named_with_the_right_one(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < config_schema_count; i++) {
		const struct schema_key *key = &config_schema[i];
		const char *name = schema_key_name(key);
		char shown[256], wrong[64], expected[600];
		yaml_document_t document;
		yaml_node_pair_t *pair;
		yaml_node_t *mapping;
		ptrdiff_t index;
		char *said;
		int node;

		/* The first letter doubled: no two keys are that near to each other. */
		snprintf(wrong, sizeof(wrong), "%c%s", name[0], name);
		load_example(&document);
		node = scalar_node(&document, wrong, false);
		pair = find_pair(&document, key->path, &mapping);
		index = pair - mapping->data.mapping.pairs.start;
		mapping->data.mapping.pairs.start[index].key = node;
		said = complaint_of_document(&document);
		shown_path(key->path, shown);
		shown[strlen(shown) - strlen(name)] = '\0';
		snprintf(expected, sizeof(expected), "%s%s is not a known key; did you mean %s?",
			 shown, wrong, name);
		assert_says(said, expected, key->path);
		free(said);
	}
}

static void each_key_stated_twice_is_named(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < config_schema_count; i++) {
		const struct schema_key *key = &config_schema[i];
		char shown[256], expected[600];
		yaml_document_t document;
		yaml_node_pair_t *pair;
		yaml_node_t *mapping;
		int map, name, value;
		char *said;

		load_example(&document);
		name = scalar_node(&document, schema_key_name(key), false);
		value = scalar_node(&document, "x", false);
		pair = find_pair(&document, key->path, &mapping);
		(void)pair;
		map = mapping - document.nodes.start + 1;
		assert_true(yaml_document_append_mapping_pair(&document, map, name, value));
		said = complaint_of_document(&document);
		shown_path(key->path, shown);
		snprintf(expected, sizeof(expected), "%s is stated twice", shown);
		assert_says(said, expected, key->path);
		free(said);
	}
}

/* Whether any word, also a number or "none", may be a value. */
static bool is_words(const struct schema_key *key)
{
	return key->kind == SCHEMA_NAME || key->kind == SCHEMA_TEXT;
}

static bool may_be_none(const struct schema_key *key)
{
	const struct schema_choice *choice;

	for (choice = key->choices; choice && choice->word; choice++) {
		if (strcmp(choice->word, "none") == 0)
			return true;
	}
	return key->none_allowed;
}

static void each_wrong_kind_is_refused(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < config_schema_count; i++) {
		const struct schema_key *key = &config_schema[i];

		/* Empty, a word, a number and a quoted number: each is wrong for all kinds but those excepted. */
		if (key->kind != SCHEMA_SECTION)
			expect_refused(key, "", true);
		if (!is_words(key) && key->kind != SCHEMA_SECTION)
			expect_refused(key, "nonsense", false);
		if (!is_words(key) && key->kind != SCHEMA_NUMBER && key->kind != SCHEMA_FRACTION &&
		    key->kind != SCHEMA_SECTION)
			expect_refused(key, "7", false);
		if (key->kind == SCHEMA_NUMBER || key->kind == SCHEMA_FRACTION ||
		    key->kind == SCHEMA_FLAG)
			expect_refused(key, key->kind == SCHEMA_FLAG ? "true" : "7", true);
		if (key->kind == SCHEMA_SECTION)
			expect_refused(key, "nonsense", false);
		if (is_words(key))
			expect_refused(key, "two words", true);
		if (!may_be_none(key) && !is_words(key) && key->kind != SCHEMA_SECTION)
			expect_refused(key, "none", false);
	}
}

static void each_value_out_of_range_is_refused(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < config_schema_count; i++) {
		const struct schema_key *key = &config_schema[i];
		unsigned long long scale = 1;
		char value[5000];
		unsigned int digit;

		switch (key->kind) {
		case SCHEMA_NUMBER:
			if (key->minimum > 0) {
				snprintf(value, sizeof(value), "%llu",
					 (unsigned long long)key->minimum - 1);
				expect_refused(key, value, false);
			}
			snprintf(value, sizeof(value), "%llu",
				 (unsigned long long)key->maximum + 1);
			expect_refused(key, value, false);
			expect_refused(key, "-1", false);
			expect_refused(key, "1.5", false);
			expect_refused(key, "0x10", false);
			expect_refused(key, "18446744073709551617", false);
			break;
		case SCHEMA_FRACTION:
			for (digit = 0; digit < key->digits; digit++)
				scale *= 10;
			snprintf(value, sizeof(value), "%llu.%0*d",
				 (unsigned long long)key->maximum / scale, (int)key->digits, 1);
			expect_refused(key, value, false);
			expect_refused(key, "0", false);
			expect_refused(key, "-0.5", false);
			expect_refused(key, "0.12345678", false);
			expect_refused(key, "1.", false);
			expect_refused(key, ".5", false);
			expect_refused(key, "1e3", false);
			break;
		case SCHEMA_NAME:
		case SCHEMA_TEXT:
			memset(value, 'a', key->size);
			value[key->size] = '\0';
			/* The sentence shows at most 80 characters of a value. */
			if (key->size <= 80)
				expect_refused(key, value, false);
			break;
		case SCHEMA_PATH:
			expect_refused(key, "relative/path", false);
			break;
		default:
			break;
		}
	}
}

static void each_choice_is_accepted(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < config_schema_count; i++) {
		const struct schema_key *key = &config_schema[i];
		const struct schema_choice *choice;

		for (choice = key->choices; choice && choice->word; choice++) {
			yaml_document_t document;
			yaml_node_pair_t *pair;
			yaml_node_t *mapping;
			char shown[256], *said;
			ptrdiff_t index;
			int node;

			load_example(&document);
			node = scalar_node(&document, choice->word, false);
			pair = find_pair(&document, key->path, &mapping);
			index = pair - mapping->data.mapping.pairs.start;
			mapping->data.mapping.pairs.start[index].value = node;
			said = complaint_of_document(&document);
			shown_path(key->path, shown);
			/* Other keys may now not go with it, but this one is not complained of. */
			strcat(shown, " is ");
			assert_null(strstr(said, shown));
			free(said);
		}
	}
}

static void a_far_off_key_gets_the_list_of_known_ones(void **state)
{
	char *said = complaint("zzzzzzzzzz: 1\n");

	(void)state;
	assert_says(said, "test.yaml:1: zzzzzzzzzz is not a known key; known here: pin_path, ",
		    "zzzzzzzzzz");
	free(said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_is_in_the_example),
		cmocka_unit_test(each_missing_key_is_named),
		cmocka_unit_test(each_misspelt_key_is_named_with_the_right_one),
		cmocka_unit_test(each_key_stated_twice_is_named),
		cmocka_unit_test(each_wrong_kind_is_refused),
		cmocka_unit_test(each_value_out_of_range_is_refused),
		cmocka_unit_test(each_choice_is_accepted),
		cmocka_unit_test(a_far_off_key_gets_the_list_of_known_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
