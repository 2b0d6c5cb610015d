/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration file. The tests of single keys are made from the schema table itself and from the shipped example: each key is
 * in turn left out, misspelt, of a wrong kind and out of range, so a new row is tested without anyone remembering to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "lib/address.h"
#include "lib/config.h"
#include "lib/config_schema.h"

#define EXAMPLE "deploy/warmpath.yaml"

/* --- the example as a document that can be changed ------------------------------------------------------- */

static char *read_example(size_t *length)
{
	FILE *file = fopen(EXAMPLE, "r");
	char *text = malloc(1 << 20);

	assert_non_null(file);
	*length = fread(text, 1, (1 << 20) - 1, file);
	text[*length] = '\0';
	fclose(file);
	return text;
}

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

/* What the reader says about a text; "" if it has no complaint. The caller frees. */
static char *complaint(const char *text)
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

static void assert_says(const char *said, const char *expected, const char *key)
{
	if (!strstr(said, expected))
		fail_msg("%s: expected \"%s\" in: %s", key, expected, said[0] ? said : "(nothing)");
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

/* --- the example's values arrive -------------------------------------------------------------------------- */

static void the_example_is_read_as_written(void **state)
{
	struct config_problems problems = {0};
	const struct config_service *service;
	struct config config;
	char text[ENDPOINT_TEXT_SIZE];

	(void)state;
	assert_int_equal(config_load(EXAMPLE, &config, &problems), 0);
	assert_null(problems.text);
	assert_string_equal(config.pin_path, "/sys/fs/bpf/warmpath");
	assert_string_equal(config.control_socket, "/run/warmpath/control.sock");
	assert_int_equal(config.log_level, LOG_LEVEL_INFO);
	assert_int_equal(config.shape, SHAPE_INLINE);
	assert_int_equal(config.limits.flows, 262144);
	assert_int_equal(config.limits.requests, 65536);
	assert_int_equal(config.limits.fragments, 8192);
	assert_int_equal(config.trace.decisions_per_second, 1000);
	assert_int_equal(config.metrics.addresses.count, 2);
	assert_int_equal(config.metrics.port, 9798);
	assert_int_equal(config.metrics.datapath_time, 0);
	assert_int_equal(config.services[0].health.check, HEALTH_CHECK_HTTP);
	assert_string_equal(config.services[0].health.path, "/health");
	assert_int_equal(config.services[0].health.status, 200);
	assert_int_equal(config.services[0].health.port, 8001);
	assert_int_equal(config.services[0].health.interval_milliseconds, 2000);
	assert_int_equal(config.services[0].health.timeout_milliseconds, 1000);
	assert_int_equal(config.services[0].health.fall, 3);
	assert_int_equal(config.services[0].health.rise, 2);
	assert_int_equal(config.services[0].health.passive_failures, 0);
	assert_int_equal(config.services[0].health.slow_start_milliseconds, 30000);
	assert_int_equal(config.services[1].health.port, 0);
	assert_int_equal(config.services[0].reported_load.from, LOAD_FROM_LLAMA);
	assert_string_equal(config.services[0].reported_load.path, "/metrics");
	assert_int_equal(config.services[0].reported_load.port, 8001);
	assert_int_equal(config.services[0].reported_load.interval_milliseconds, 5000);
	assert_int_equal(config.services[0].reported_load.correct, 0);
	assert_int_equal(config.services[1].reported_load.from, LOAD_FROM_NONE);
	assert_int_equal(config.interface_count, 1);
	assert_string_equal(config.interfaces[0].name, "eth0");
	assert_int_equal(config.interfaces[0].mode, ATTACH_AUTO);
	assert_int_equal(config.role, ROLE_ROUTER);
	assert_string_equal(config.handoff.secret_file, "/etc/warmpath/secret");
	assert_string_equal(config.handoff.second_secret_file, "");
	assert_int_equal(config.service_count, 3);

	service = &config.services[0];
	assert_string_equal(service->name, "chat");
	assert_int_equal(service->addresses.count, 2);
	assert_string_equal(
		endpoint_format(&service->addresses.item[0].address, htons(service->port), text),
		"10.9.9.9:8000");
	assert_string_equal(
		endpoint_format(&service->addresses.item[1].address, htons(service->port), text),
		"[fd00:9::9]:8000");
	assert_int_equal(service->protocol, PROTOCOL_UDP);
	assert_int_equal(service->id_from, ID_FROM_OFFSET);
	assert_int_equal(service->id_offset, 8);
	assert_int_equal(service->id_length, 16);
	assert_int_equal(service->prompt_tokens_offset, OFFSET_NONE);
	assert_int_equal(service->max_tokens_offset, OFFSET_NONE);
	assert_int_equal(service->ring.dialect, RING_LLM);
	assert_int_equal(service->ring.vnodes, 100);
	assert_int_equal(service->ring.hash_key_length, 0);
	assert_int_equal(service->policy.policy, POLICY_CONSISTENT);
	assert_int_equal(service->policy.load_metric, LOAD_REQUESTS);
	assert_int_equal(service->policy.epsilon_millionths, 250000);
	assert_int_equal(service->policy.long_epsilon_millionths, 1000000);
	assert_int_equal(service->policy.long_threshold_tokens, 800);
	assert_int_equal(service->policy.default_max_tokens, 256);
	assert_int_equal(service->policy.memory_max_entries, 50000);
	assert_int_equal(service->policy.token_load, 1);
	assert_int_equal(service->policy.long_stickiness, 1);
	assert_int_equal(service->policy.placement_memory, 1);
	assert_int_equal(service->request_timeout_milliseconds, 300000);
	assert_int_equal(service->replica_count, 3);
	assert_string_equal(service->replicas[2].name, "llm-2");
	assert_int_equal(service->replicas[2].port, 8001);
	assert_int_equal(service->replicas[2].weight_thousandths, 1000);

	service = &config.services[1];
	assert_int_equal(service->id_from, ID_FROM_ADDRESS);
	assert_int_equal(service->addresses.item[0].prefix_length, 64);
	assert_int_equal(service->protocol, PROTOCOL_ANY);
	config_free(&config);
	config_problems_free(&problems);
}

/* --- what spans several keys ------------------------------------------------------------------------------ */

/* The example with each `from` replaced by `to`, at most `times` times; the complaint about it. */
static char *complaint_after(const char *from, const char *to, int times)
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

/* An id at an offset of a connection's first bytes: such connections are handed over, and that takes the cluster's secret. */
static void an_offset_over_tcp(void **state)
{
	static const char *const secrets[] = {"secret_file: /etc/warmpath/secret",
					      "secret_file: none"};
	static const char *const protocols[] = {"tcp", "any"};
	struct config_service service = {.id_from = ID_FROM_OFFSET};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		size_t length;
		char *text = read_example(&length), *at, *said;

		at = strstr(text, "protocol: udp");
		assert_non_null(at);
		memcpy(at + 10, protocols[i % 2], 3);
		at = strstr(text, secrets[0]);
		assert_non_null(at);
		memset(at, ' ', strlen(secrets[0]));
		memcpy(at, secrets[i / 2], strlen(secrets[i / 2]));
		said = complaint(text);
		if (i < 2)
			assert_string_equal(said, "");
		else
			assert_non_null(strstr(said, "service chat: id.from: offset over TCP needs "
						     "handoff.secret_file"));
		free(said);
		free(text);
	}
	service.protocol = PROTOCOL_UDP;
	assert_false(config_service_is_handed_over(&service));
	service.protocol = PROTOCOL_ANY;
	assert_true(config_service_is_handed_over(&service));
	service.id_from = ID_FROM_ADDRESS;
	assert_false(config_service_is_handed_over(&service));
}

static void keys_that_do_not_go_together(void **state)
{
	static const struct {
		const char *from, *to;
		int times;
		const char *says;
	} cases[] = {
		{"\"fd00:9::9\"", "\"fd00:9:0:7::/64\"", 1,
		 "service chat: the prefix fd00:9:0:7::/64 is only allowed with id.from: address"},
		{"fd00:9:0:1::/64", "fd00:9:0:1::1", 1,
		 "service chat-by-address: fd00:9:0:1::1 is a single address"},
		{"fd00:9:0:1::/64", "fd00:9::/48", 1, "the prefix fd00:9::/48 is not a /64"},
		{"fd00:9:0:1::/64", "fd00:9:0:1::5/64", 1,
		 "\"fd00:9:0:1::5/64\" has bits set behind its prefix"},
		{"\"10.9.9.9\"", "\"10.9.9.0/24\"", 1,
		 "\"10.9.9.0/24\" is an IPv4 prefix; only IPv6 prefixes"},
		{"\"10.9.9.9\"", "\"example.org\"", 1,
		 "\"example.org\" is not an IPv4 or IPv6 address"},
		{"\"10.9.9.9\"", "\"224.0.0.1\"", 1, "is not the address of one machine"},
		{"\"10.9.9.9\"", "\"::ffff:10.9.9.9\"", 1, "write it as IPv4"},
		{"\"10.9.9.9\"", "\"fd00:9::9\"", 1, "service chat: fd00:9::9 is listed twice"},
		{"\"10.9.9.9\", \"fd00:9::9\"", "", 1, "services[0].addresses has 0 entries"},
		{"name: llm-1,", "name: llm-0,", 1, "service chat has two replicas named llm-0"},
		{"\"10.0.2.11\"", "\"10.0.2.10\"", 1,
		 "replicas llm-0 and llm-1 of service chat both have 10.0.2.10:8001"},
		{"\"10.0.2.11\", ", "", 1,
		 "replica llm-1 of service chat has no IPv4 address, but the service has"},
		{", \"fd00:2::11\"", "", 1,
		 "replica llm-1 of service chat has no IPv6 address, but the service has"},
		{"\"10.0.2.11\"", "\"fd00:2::77\"", 1,
		 "replica llm-1 of service chat has two addresses of one family"},
		{"\"10.0.2.11\"", "\"10.0.2.0/24\"", 1, "is a prefix; only an address is allowed"},
		{"name: chat-by-address", "name: chat", 1, "two services are named chat"},
		{"long_epsilon: 1.0 ", "long_epsilon: 0.2 ", 1,
		 "policy.long_epsilon must not be smaller than policy.epsilon"},
		{"vnodes: 100 ", "vnodes: 400000 ", 1,
		 "would have 1200000 points, at most 1048576 are possible; with these replicas and "
		 "weights set ring.vnodes to 349525 or less"},
		{"hash_key_file: none", "hash_key_file: /nonexistent/key", 1,
		 "the hash key file /nonexistent/key cannot be opened: No such file"},
		{"hash_key_file: none", "hash_key_file: /dev/null", 1, "is empty"},
		{"hash_key_file: none", "hash_key_file: /dev/zero", 1, "is too long"},
		{"from: address\n    ring", "from: address\n      offset: 3\n    ring", 1,
		 "services[1].id.offset is only allowed with from: offset"},
		{"\"10.0.2.12\", \"fd00:2::12\"], port: 8001",
		 "\"10.9.9.9\", \"fd00:2::12\"], port: 8000", 1,
		 "replica llm-2 of service chat is at 10.9.9.9:8000, which is public in service chat"},
		{"[\"fd00:2::12\"], port: 8443", "[\"fd00:9:0:1::12\"], port: 8443", 1,
		 "is at [fd00:9:0:1::12]:8443, which is public in service chat-by-address"},
		{"protocol: tcp", "protocol: any", 1,
		 "service chat-http: id.from: header needs protocol: tcp"},
		{"secret_file: /etc/warmpath/secret", "secret_file: none", 1,
		 "service chat-http: id.from: header needs handoff.secret_file"},
		{"[x-conversation-id]", "[x-conversation-id, X-Conversation-Id]", 1,
		 "service chat-http: id.names has X-Conversation-Id twice"},
		{"[x-conversation-id]", "[\"x conversation\"]", 1,
		 "service chat-http: id.names: \"x conversation\" is not the name of an HTTP header"},
		{"[x-conversation-id]", "[\"\"]", 1, "services[2].id.names[0] is not such a name"},
		{"[x-conversation-id]", "[a, b, c, d, e]", 1, "services[2].id.names has 5 entries"},
		{"role: router", "role: \"\\e[31mboth\"", 1, "role is \"?[31mboth\""},
		{"role: router", "role: both", 1,
		 "role is \"both\"; allowed: one of router, replica"},
		{"  - name: eth0\n", "  - {name: eth0, mode: tc}\n  - name: eth0\n", 1,
		 "interface eth0 is listed twice"},
		{"\"127.0.0.1\", \"::1\"", "\"::1\", \"::1\"", 1,
		 "metrics.addresses has ::1 twice"},
		{"from: none\n", "from: none\n      interval: 5\n", 1,
		 "services[1].reported_load.interval is only allowed with from: vllm, sglang or llama.cpp"},
		{"timeout: 1 ", "timeout: 2.001 ", 1,
		 "service chat: health.timeout must not be longer than health.interval"},
		{"check: http                   #", "check: tcp #", 1,
		 "services[0].health.path is only allowed with check: http"},
		{"check: tcp\n", "check: none\n", 1,
		 "services[1].health.interval is only allowed with check: tcp or http"},
		{"path: /health   ", "path: \"/he alth\"   ", 1,
		 "service chat: health.path \"/he alth\" has a character"},
		{"slow_start: 30 ", "slow_start: 0.5 ", 1,
		 "services[0].health.slow_start is \"0.5\"; allowed: a number from 1 to 3600 with at most 3 "
		 "digits after the point, or none"},
		{"name: _http._tcp.llm.example.org", "name: _http._tcp..example.org", 1,
		 "service chat: discovery: name is \"_http._tcp..example.org\"; allowed: a full DNS name"},
		{"server: none ", "server: dns.example.org ", 1,
		 "service chat: discovery: server is \"dns.example.org\"; allowed: ADDRESS or ADDRESS:PORT"},
		{"server: none ", "server: 10.0.0.53:0 ", 1,
		 "discovery: server is \"10.0.0.53:0\""},
		{"server: none ", "server: \"[fd00::53\" ", 1,
		 "discovery: server is \"[fd00::53\""},
		{"records: srv", "records: a", 1,
		 "discovery of _http._tcp.llm.example.org: records: a have no port; state the replicas' port"},
		{"records: srv", "records: aaaa", 1,
		 "records: aaaa give replicas an IPv6 address alone, but the service has a public IPv4 one"},
		{"port: none ", "port: 8001 ", 1,
		 "records: srv have the port themselves; state port: none"},
		{"records: srv\n", "records: srv\n        namespace: default\n", 1,
		 "services[0].discovery[0].namespace is only allowed with from: kubernetes"},
		{"api_server: in-cluster ", "api_server: http://example.org ", 1,
		 "service chat-http: discovery: api_server is \"http://example.org\"; allowed: https://HOST"},
		{"api_server: in-cluster ", "api_server: http://127.0.0.1.example.org ", 1,
		 "discovery: api_server is \"http://127.0.0.1.example.org\""},
		{"api_server: in-cluster ", "api_server: https://user@example.org ", 1,
		 "discovery: api_server is \"https://user@example.org\""},
		{"api_server: in-cluster ", "api_server: \"https://[fd00::1]:66000\" ", 1,
		 "discovery: api_server is \"https://[fd00::1]:66000\""},
		{"namespace: in-cluster ", "namespace: Default ", 1,
		 "discovery: namespace is \"Default\"; allowed: the name of a namespace, or in-cluster"},
		{"service: llm ", "service: llm/x ", 1,
		 "discovery: service is \"llm/x\"; allowed: the name of a Kubernetes service"},
		{"port_name: http ", "port_name: -http ", 1, "discovery: port_name is \"-http\""},
		{"token_file: /var/run/secrets/kubernetes.io/serviceaccount/token",
		 "token_file: none", 1,
		 "discovery of llm: namespace: in-cluster is read from the file beside the token, but "
		 "token_file is none"},
		{"pin_path: /sys", "pin_path: [/sys", 1, "not valid YAML"},
		{"services:\n", "---\nservices:\n", 1, "a second document begins here"},
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *said = complaint_after(cases[i].from, cases[i].to, cases[i].times);

		assert_says(said, cases[i].says, cases[i].from);
		free(said);
	}
}

static void sources_that_are_fine(void **state)
{
	static const char *const servers[][2] = {
		{"server: none ", "server: 10.0.0.53:5353 "},
		{"server: none ", "server: \"[fd00::53]\" "},
		{"server: none ", "server: \"[fd00::53]:53\" "},
		{"api_server: in-cluster ", "api_server: https://example.org "},
		{"api_server: in-cluster ", "api_server: \"https://[fd00::1]:6443\" "},
		{"api_server: in-cluster ", "api_server: http://127.0.0.1:8001 "},
		{"api_server: in-cluster ", "api_server: \"http://[::1]\" "},
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		char *said = complaint_after(servers[i][0], servers[i][1], 1);

		assert_string_equal(said, "");
		free(said);
	}
}

static void the_same_public_address_twice(void **state)
{
	size_t length;
	char *text = read_example(&length);
	char *second = strstr(text, "  - name: chat-by-address");
	char *both = malloc(2 * length + 1), *said, *name;

	(void)state;
	/* the prefix service once more, under another name */
	sprintf(both, "%s%s", text, second);
	name = strstr(both + length, "chat-by-address");
	memcpy(name, "other-service--", 15);
	said = complaint(both);
	assert_says(
		said,
		"services chat-by-address and other-service-- both have fd00:9:0:1::/64 port 8443",
		"services");
	free(said);
	free(both);
	free(text);
}

static void too_many_replicas(void **state)
{
	size_t length;
	char *text = read_example(&length);
	char *many = malloc(length + 200000), *at, *said;
	unsigned int i;

	(void)state;
	at = many + sprintf(many, "%s", text);
	for (i = 0; i < 1024; i++)
		at += sprintf(
			at,
			"      - { name: more-%u, addresses: [\"fd00:3::%x\"], port: 1, weight: 1 }\n",
			i, i + 1);
	said = complaint(many);
	assert_says(said, "services[2].replicas has 1027 entries; at most 1024", "replicas");
	free(said);
	/* 1,018 more make 1,027 in all services together, though neither has too many */
	at = strstr(many, "      - { name: more-1018,");
	*at = '\0';
	said = complaint(many);
	assert_says(
		said,
		"1027 replicas in all services together, at most 1024 are possible; remove 3 of them",
		"replicas");
	free(said);
	free(many);
	free(text);
}

static void all_problems_are_told_with_their_lines(void **state)
{
	char *said = complaint_after("port: 80", "port: x", 9);

	(void)state;
	assert_says(said, "services[0].port is \"x00\"", "port");
	assert_says(said, "services[0].replicas[2].port is \"x01\"", "port");
	free(said);
	said = complaint("pin_path: /a\npin_path: /b\n\n\nshap: 1\n");
	assert_says(said, "test.yaml:2: pin_path is stated twice", "pin_path");
	assert_says(said, "test.yaml:5: shap is not a known key; did you mean shape?", "shap");
	free(said);
}

static void odd_documents_are_refused(void **state)
{
	static const char *const documents[] = {
		"",
		"\n",
		"# nothing\n",
		"text",
		"- a\n- b\n",
		"? [a]\n: b\n",
		"\"a\\0b\": 1\n",
		"pin_path: \"/a\\0b\"\n",
		"services: &x [*x]\n",
		"interfaces: &y\n  - *y\n",
		"services: [[[[[[]]]]]]\n",
		"a.b: 1\n",
		"services[]: 1\n",
		"interfaces: [{}, 3, null]\n",
		"\xff\xfe",
		"\t",
		"%YAML 9.9\n---\na: 1\n",
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		char *said = complaint(documents[i]);

		assert_says(said, "test.yaml", documents[i]);
		free(said);
	}
}

/* The library's time rises with the square of the depth: without a bound this would take hours, and the agent with it. */
static void bottomless_documents_are_refused(void **state)
{
	static const char *const openings[] = {"[", "{a: "};
	const size_t times = 1000000;

	(void)state;
	for (int i = 0; i < 2; i++) {
		size_t length = strlen(openings[i]);
		char *text = malloc(times * length + 1), *said;

		assert_non_null(text);
		for (size_t at = 0; at < times; at++)
			memcpy(text + at * length, openings[i], length);
		text[times * length] = 0;
		said = complaint(text);
		assert_says(said, "nested more than 32 deep", openings[i]);
		free(said);
		free(text);
	}
}

/* A file cut in the middle of a service is refused, never read half. */
static void each_truncation_of_the_example(void **state)
{
	size_t length, cut, first_complete, second_begins, second_complete;
	char *text = read_example(&length);

	(void)state;
	first_complete = strstr(text, "    replicas:") - text;
	second_begins = strstr(text, "name: chat-by-address") - text;
	second_complete = strstr(text + second_begins, "    replicas:") - text;
	for (cut = 0; cut < second_complete; cut += 7) {
		struct config_problems problems = {0};
		struct config config;

		if (cut >= first_complete && cut < second_begins)
			continue;
		assert_int_equal(config_parse(text, cut, "test.yaml", &config, &problems), -EINVAL);
		assert_non_null(problems.text);
		config_free(&config);
		config_problems_free(&problems);
	}
	free(text);
}

static void a_key_file_is_read_whole(void **state)
{
	char path[] = "/tmp/warmpath-key-XXXXXX", replacement[128];
	int descriptor = mkstemp(path);
	struct config_problems problems = {0};
	struct config config;
	size_t length;
	char *text = read_example(&length), *at;

	(void)state;
	assert_true(descriptor >= 0);
	assert_int_equal(write(descriptor, "secret\n\0x", 9), 9);
	close(descriptor);
	snprintf(replacement, sizeof(replacement), "%s", path);
	at = strstr(text, "hash_key_file: none") + strlen("hash_key_file: ");
	memmove(at + strlen(replacement), at + 4, strlen(at + 4) + 1);
	memcpy(at, replacement, strlen(replacement));
	assert_int_equal(config_parse(text, strlen(text), "test.yaml", &config, &problems), 0);
	assert_int_equal(config.services[0].ring.hash_key_length, 9);
	assert_memory_equal(config.services[0].ring.hash_key, "secret\n\0x", 9);
	config_free(&config);
	unlink(path);
	free(text);
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
		cmocka_unit_test(the_example_is_read_as_written),
		cmocka_unit_test(an_offset_over_tcp),
		cmocka_unit_test(keys_that_do_not_go_together),
		cmocka_unit_test(sources_that_are_fine),
		cmocka_unit_test(the_same_public_address_twice),
		cmocka_unit_test(too_many_replicas),
		cmocka_unit_test(all_problems_are_told_with_their_lines),
		cmocka_unit_test(odd_documents_are_refused),
		cmocka_unit_test(bottomless_documents_are_refused),
		cmocka_unit_test(each_truncation_of_the_example),
		cmocka_unit_test(a_key_file_is_read_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
