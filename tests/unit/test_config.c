/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration file as a whole: that the example is read as written, rules between keys, and documents that are none. Single keys are in
 * test_config_schema.c, those of discovery in test_config_discovery.c.
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

#include "../common/config_example.h"
#include "lib/address.h"

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
	static const struct changed_example cases[] = {
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
		{"pin_path: /sys", "pin_path: [/sys", 1, "not valid YAML"},
		{"services:\n", "---\nservices:\n", 1, "a second document begins here"},
	};

	(void)state;
	expect_complaints(cases, sizeof(cases) / sizeof(cases[0]));
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
		cmocka_unit_test(the_example_is_read_as_written),
		cmocka_unit_test(an_offset_over_tcp),
		cmocka_unit_test(keys_that_do_not_go_together),
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
