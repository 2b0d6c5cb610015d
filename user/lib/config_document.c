/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From YAML to struct config, led by the schema table: for each mapping of the document every key must be in the table and
 * every key of the table must be in the mapping; each value is checked against its row.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "lib/address.h"
#include "lib/config.h"
#include "lib/config_depth.h"
#include "lib/config_schema.h"

#define PATH_TEXT_SIZE	  192
#define ALLOWED_TEXT_SIZE 256
#define NESTING_MAX	  8

struct reader {
	yaml_document_t *document;
	const char *name; /* of the file */
	struct config_problems *problems;
};

/* Where the reader is: the schema's path, the same with the items' numbers for people, and the struct that is filled. */
struct place {
	char schema[PATH_TEXT_SIZE];
	char shown[PATH_TEXT_SIZE];
	void *base;
};

static int node_line(const yaml_node_t *node)
{
	return (int)node->start_mark.line + 1;
}

static struct place place_below(const struct place *parent, const char *key)
{
	struct place place = *parent;
	const char *dot = parent->schema[0] ? "." : "";

	snprintf(place.schema, sizeof(place.schema), "%.120s%s%.48s", parent->schema, dot, key);
	snprintf(place.shown, sizeof(place.shown), "%.120s%s%.48s", parent->shown, dot, key);
	return place;
}

/* What the value looks like in the file, for "is ...". */
static void describe_value(const yaml_node_t *node, char *text, size_t size)
{
	switch (node->type) {
	case YAML_MAPPING_NODE:
		snprintf(text, size, "a mapping");
		break;
	case YAML_SEQUENCE_NODE:
		snprintf(text, size, "a list");
		break;
	case YAML_SCALAR_NODE:
		if (node->data.scalar.length == 0)
			snprintf(text, size, "empty");
		else
			snprintf(text, size, "\"%.80s\"", (const char *)node->data.scalar.value);
		break;
	default:
		snprintf(text, size, "empty");
	}
}

static void wrong_value(struct reader *reader, const struct place *place,
			const struct schema_key *key, const yaml_node_t *node)
{
	char allowed[ALLOWED_TEXT_SIZE], value[128];

	describe_value(node, value, sizeof(value));
	schema_allowed(key, allowed, sizeof(allowed));
	config_problem(reader->problems, reader->name, node_line(node), "%s is %s; allowed: %s",
		       place->shown, value, allowed);
}

/* The text of a scalar without NULs in it, or NULL. */
static const char *scalar_text(const yaml_node_t *node)
{
	const char *text;

	if (node->type != YAML_SCALAR_NODE)
		return NULL;
	text = (const char *)node->data.scalar.value;
	return strlen(text) == node->data.scalar.length ? text : NULL;
}

static bool is_plain(const yaml_node_t *node)
{
	return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* --- values --------------------------------------------------------------------------------------------- */

/* Numbers and flags must be plain: "1" in quotes is text, whoever wrote it meant something else. */
static bool read_scalar(const struct schema_key *key, const yaml_node_t *node, void *target)
{
	const char *text = scalar_text(node);

	bool number = key->kind == SCHEMA_NUMBER || key->kind == SCHEMA_FRACTION ||
		      key->kind == SCHEMA_FLAG;

	if (!text || (number && !is_plain(node)))
		return false;
	return schema_read_text(key, text, target);
}

static bool read_wildcard(const char *text, struct address *address)
{
	memset(address, 0, sizeof(*address));
	if (strcmp(text, "0.0.0.0") == 0)
		address->word[2] = htonl(0xffff);
	else if (strcmp(text, "::") != 0)
		return false;
	return true;
}

static void read_addresses(struct reader *reader, const struct place *place,
			   const struct schema_key *key, const yaml_node_t *node)
{
	struct config_addresses *addresses =
		(struct config_addresses *)((char *)place->base + key->offset);
	yaml_node_item_t *item;
	size_t count;

	if (node->type != YAML_SEQUENCE_NODE) {
		wrong_value(reader, place, key, node);
		return;
	}
	count = node->data.sequence.items.top - node->data.sequence.items.start;
	if (count < key->minimum || count > key->maximum) {
		char allowed[ALLOWED_TEXT_SIZE];

		config_problem(reader->problems, reader->name, node_line(node),
			       "%s has %zu entries; allowed: %s", place->shown, count,
			       schema_allowed(key, allowed, sizeof(allowed)));
		return;
	}
	for (item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
		yaml_node_t *entry = yaml_document_get_node(reader->document, *item);
		struct config_address *address = &addresses->item[addresses->count];
		const char *text = scalar_text(entry);
		char allowed[ALLOWED_TEXT_SIZE];
		struct error error;

		schema_allowed(key, allowed, sizeof(allowed));
		if (!text) {
			config_problem(reader->problems, reader->name, node_line(entry),
				       "%s[%td] is not text; allowed: %s", place->shown,
				       item - node->data.sequence.items.start, allowed);
			continue;
		}
		address->prefix_length = 128;
		if (key->wildcards_allowed && read_wildcard(text, &address->address)) {
			addresses->count++;
			continue;
		}
		if (address_parse(text, &address->address,
				  key->prefixes_allowed ? &address->prefix_length : NULL, &error)) {
			config_problem(reader->problems, reader->name, node_line(entry),
				       "%s[%td]: %s; allowed: %s", place->shown,
				       item - node->data.sequence.items.start, error.text, allowed);
			continue;
		}
		addresses->count++;
	}
}

static void read_words(struct reader *reader, const struct place *place,
		       const struct schema_key *key, const yaml_node_t *node)
{
	struct config_words *words = (struct config_words *)((char *)place->base + key->offset);
	char allowed[ALLOWED_TEXT_SIZE];
	yaml_node_item_t *item;
	size_t count;

	if (node->type != YAML_SEQUENCE_NODE) {
		wrong_value(reader, place, key, node);
		return;
	}
	schema_allowed(key, allowed, sizeof(allowed));
	count = node->data.sequence.items.top - node->data.sequence.items.start;
	if (count < key->minimum || count > key->maximum) {
		config_problem(reader->problems, reader->name, node_line(node),
			       "%s has %zu entries; allowed: %s", place->shown, count, allowed);
		return;
	}
	for (item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
		yaml_node_t *entry = yaml_document_get_node(reader->document, *item);
		const char *text = scalar_text(entry);

		if (!text || !*text || strlen(text) > HTTP_NAME_MAX) {
			config_problem(reader->problems, reader->name, node_line(entry),
				       "%s[%td] is not such a name; allowed: %s", place->shown,
				       item - node->data.sequence.items.start, allowed);
			continue;
		}
		memcpy(words->item[words->count++], text, strlen(text) + 1);
	}
}

/* --- mappings ------------------------------------------------------------------------------------------- */

static void read_mapping(struct reader *reader, const struct place *place, const yaml_node_t *node,
			 unsigned int depth);

static void read_list(struct reader *reader, const struct place *place,
		      const struct schema_key *key, const yaml_node_t *node, unsigned int depth)
{
	char **items = (char **)((char *)place->base + key->offset);
	unsigned int *counter = (unsigned int *)((char *)place->base + key->count_offset);
	yaml_node_item_t *item;
	size_t count;

	if (node->type != YAML_SEQUENCE_NODE) {
		wrong_value(reader, place, key, node);
		return;
	}
	count = node->data.sequence.items.top - node->data.sequence.items.start;
	if (count > key->maximum) {
		config_problem(reader->problems, reader->name, node_line(node),
			       "%s has %zu entries; at most %llu are possible", place->shown, count,
			       (unsigned long long)key->maximum);
		return;
	}
	*items = calloc(count ? count : 1, key->size);
	*counter = 0;
	if (!*items) {
		config_problem(reader->problems, reader->name, node_line(node),
			       "not enough memory for %s", place->shown);
		return;
	}
	for (item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
		yaml_node_t *entry = yaml_document_get_node(reader->document, *item);
		struct place below = *place;
		int line = node_line(entry);

		snprintf(below.schema, sizeof(below.schema), "%.180s[]", place->schema);
		snprintf(below.shown, sizeof(below.shown), "%.170s[%u]", place->shown, *counter);
		below.base = *items + *counter * key->size;
		memcpy((char *)below.base + key->line_offset, &line, sizeof(line));
		(*counter)++;
		read_mapping(reader, &below, entry, depth + 1);
	}
}

static void read_value(struct reader *reader, const struct place *place,
		       const struct schema_key *key, const yaml_node_t *node, unsigned int depth)
{
	void *target = (char *)place->base + key->offset;
	bool good = true;

	switch (key->kind) {
	case SCHEMA_SECTION:
		read_mapping(reader, place, node, depth + 1);
		return;
	case SCHEMA_LIST:
		read_list(reader, place, key, node, depth);
		return;
	case SCHEMA_ADDRESSES:
		read_addresses(reader, place, key, node);
		return;
	case SCHEMA_WORDS:
		read_words(reader, place, key, node);
		return;
	case SCHEMA_NUMBER:
	case SCHEMA_FRACTION:
	case SCHEMA_CHOICE:
	case SCHEMA_FLAG:
	case SCHEMA_NAME:
	case SCHEMA_PATH:
	case SCHEMA_TEXT:
		good = read_scalar(key, node, target);
		break;
	}
	if (!good)
		wrong_value(reader, place, key, node);
}

static const yaml_node_pair_t *find_pair(struct reader *reader, const yaml_node_t *mapping,
					 const char *name)
{
	const yaml_node_pair_t *pair;

	for (pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top;
	     pair++) {
		yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
		const char *text = scalar_text(key);

		if (text && strcmp(text, name) == 0)
			return pair;
	}
	return NULL;
}

/* Whether `word` is among `words`: "a", "a or b", "a, b or c". */
static bool is_among(const char *word, const char *words)
{
	while (*words) {
		size_t length = strcspn(words, ", ");

		if (strlen(word) == length && memcmp(word, words, length) == 0)
			return true;
		words += length;
		words += strspn(words, ", ");
		if (strncmp(words, "or ", 3) == 0)
			words += 3;
	}
	return false;
}

/* Whether the key exists here, given the word of the sibling it depends on. */
static bool key_applies(struct reader *reader, const yaml_node_t *mapping,
			const struct schema_key *key)
{
	const yaml_node_pair_t *sibling;
	const char *word;

	if (!key->only_with)
		return true;
	sibling = find_pair(reader, mapping, key->only_with);
	word = sibling ? scalar_text(yaml_document_get_node(reader->document, sibling->value))
		       : NULL;
	return word && is_among(word, key->only_with_word);
}

static void unknown_key(struct reader *reader, const struct place *place, const yaml_node_t *node,
			const char *name)
{
	struct place below = place_below(place, name);
	const char *nearest = schema_nearest(place->schema, name);
	char known[512];
	size_t used = 0;
	unsigned int i;

	if (nearest) {
		config_problem(reader->problems, reader->name, node_line(node),
			       "%s is not a known key; did you mean %s?", below.shown, nearest);
		return;
	}
	known[0] = '\0';
	for (i = 0; i < config_schema_count && used < sizeof(known); i++) {
		if (schema_is_child(&config_schema[i], place->schema))
			used += snprintf(known + used, sizeof(known) - used, "%s%s",
					 used ? ", " : "", schema_key_name(&config_schema[i]));
	}
	config_problem(reader->problems, reader->name, node_line(node),
		       "%s is not a known key; known here: %s", below.shown, known);
}

static void read_pair(struct reader *reader, const struct place *place, const yaml_node_t *mapping,
		      const yaml_node_pair_t *pair, unsigned int depth)
{
	yaml_node_t *key_node = yaml_document_get_node(reader->document, pair->key);
	yaml_node_t *value = yaml_document_get_node(reader->document, pair->value);
	const char *name = scalar_text(key_node);
	const char *where = place->shown[0] ? place->shown : "the file";
	const struct schema_key *key;
	struct place below;

	if (!name || name[0] == '\0') {
		config_problem(reader->problems, reader->name, node_line(key_node),
			       "%s has a key that is not a word", where);
		return;
	}
	below = place_below(place, name);
	key = schema_find(below.schema);
	if (!key || strchr(name, '.') || strchr(name, '[')) {
		unknown_key(reader, place, key_node, name);
	} else if (find_pair(reader, mapping, name) != pair) {
		config_problem(reader->problems, reader->name, node_line(key_node),
			       "%s is stated twice", below.shown);
	} else if (!key_applies(reader, mapping, key)) {
		config_problem(reader->problems, reader->name, node_line(key_node),
			       "%s is only allowed with %s: %s", below.shown, key->only_with,
			       key->only_with_word);
	} else {
		read_value(reader, &below, key, value, depth);
	}
}

static void read_mapping(struct reader *reader, const struct place *place, const yaml_node_t *node,
			 unsigned int depth)
{
	const char *where = place->shown[0] ? place->shown : "the file";
	yaml_node_pair_t *pair;
	unsigned int i;

	/* The schema is not deeper than this; only aliases that contain themselves are. */
	if (depth > NESTING_MAX)
		return;
	if (node->type != YAML_MAPPING_NODE) {
		char value[128];

		describe_value(node, value, sizeof(value));
		config_problem(reader->problems, reader->name, node_line(node),
			       "%s is %s; allowed: a mapping (keys of its own, indented below it)",
			       where, value);
		return;
	}
	for (pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++)
		read_pair(reader, place, node, pair, depth);

	for (i = 0; i < config_schema_count; i++) {
		const struct schema_key *key = &config_schema[i];
		char allowed[ALLOWED_TEXT_SIZE];
		struct place below;

		if (!schema_is_child(key, place->schema) || !key_applies(reader, node, key) ||
		    find_pair(reader, node, schema_key_name(key)))
			continue;
		below = place_below(place, schema_key_name(key));
		config_problem(reader->problems, reader->name, node_line(node),
			       "%s is missing (%s); allowed: %s", below.shown, key->description,
			       schema_allowed(key, allowed, sizeof(allowed)));
	}
}

/* --- the document --------------------------------------------------------------------------------------- */

static void parser_problem(struct reader *reader, const yaml_parser_t *parser)
{
	config_problem(reader->problems, reader->name, (int)parser->problem_mark.line + 1,
		       "not valid YAML: %s%s%s", parser->problem ? parser->problem : "unreadable",
		       parser->context ? ", " : "", parser->context ? parser->context : "");
}

/* A second document in the file would be silently ignored. */
static void refuse_second_document(struct reader *reader, yaml_parser_t *parser)
{
	yaml_document_t document;
	yaml_node_t *root;

	if (!yaml_parser_load(parser, &document)) {
		parser_problem(reader, parser);
		return;
	}
	root = yaml_document_get_root_node(&document);
	if (root)
		config_problem(reader->problems, reader->name, node_line(root),
			       "a second document begins here; only one is allowed");
	yaml_document_delete(&document);
}

int config_parse(const char *text, size_t length, const char *name, struct config *config,
		 struct config_problems *problems)
{
	struct reader reader = {.name = name, .problems = problems};
	struct place top = {.base = config};
	yaml_document_t document;
	yaml_parser_t parser;
	yaml_node_t *root;

	memset(config, 0, sizeof(*config));
	if (config_is_too_deep(text, length, name, problems))
		return -EINVAL;
	if (!yaml_parser_initialize(&parser)) {
		config_problem(problems, name, 0, "not enough memory");
		return -ENOMEM;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	if (!yaml_parser_load(&parser, &document)) {
		parser_problem(&reader, &parser);
		yaml_parser_delete(&parser);
		return -EINVAL;
	}
	reader.document = &document;
	root = yaml_document_get_root_node(&document);
	if (root) {
		read_mapping(&reader, &top, root, 0);
		refuse_second_document(&reader, &parser);
	} else {
		config_problem(problems, name, 0, "the file is empty");
	}
	yaml_document_delete(&document);
	yaml_parser_delete(&parser);

	/* What spans several keys can only be judged where each is good. */
	if (problems->count == 0)
		config_check(config, name, problems);
	return problems->count ? -EINVAL : 0;
}
