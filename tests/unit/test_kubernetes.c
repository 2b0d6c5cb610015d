/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is read of the Kubernetes API: lists, events of a watch, endpoints.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kubernetes_slices.h"
#include "lib/address.h"

#define PORTS "\"ports\":[{\"name\":\"metrics\",\"port\":9100},{\"name\":\"http\",\"port\":8001}]"
#define META(name, version) \
	"\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}"
#define READY(pod, address)                                                                       \
	"{\"addresses\":[\"" address "\"],\"conditions\":{\"ready\":true,\"terminating\":false}," \
	"\"targetRef\":{\"kind\":\"Pod\",\"name\":\"" pod "\",\"uid\":\"uid-of-" pod "\"}}"
#define SLICE(name, version, endpoints) \
	"{" META(name, version) ",\"addressType\":\"IPv4\",\"endpoints\":[" endpoints "]," PORTS "}"

struct fixture {
	struct kubernetes_slices slices;
	struct discovered_member members[64];
	unsigned int count;
	struct error note;
	char next[KUBERNETES_CONTINUE_SIZE];
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	assert_non_null(*state);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	kubernetes_slices_clear(&fixture->slices);
	free(fixture);
	return 0;
}

static int list(struct fixture *fixture, const char *text, struct error *error)
{
	return kubernetes_slices_list(&fixture->slices, "http", text, strlen(text), fixture->next,
				      error);
}

static int event(struct fixture *fixture, const char *line, enum kubernetes_event *what,
		 struct error *error)
{
	return kubernetes_slices_event(&fixture->slices, "http", line, strlen(line), what, error);
}

static void expect_event(struct fixture *fixture, const char *line, enum kubernetes_event expected)
{
	enum kubernetes_event what;
	struct error error = {0};

	if (event(fixture, line, &what, &error))
		fail_msg("%s", error.text);
	assert_int_equal(what, expected);
}

static void make_members(struct fixture *fixture, const char *port_name)
{
	struct config_discovery settings = {.weight_thousandths = 1500};

	snprintf(settings.port_name, sizeof(settings.port_name), "%s", port_name);
	memset(fixture->members, 0, sizeof(fixture->members));
	fixture->count = kubernetes_slices_members(&fixture->slices, &settings, fixture->members,
						   64, &fixture->note);
}

/* "llm-0=10.0.2.10:8001 llm-1=... (ending)" */
static const char *shown(struct fixture *fixture)
{
	static char text[4096];
	size_t used = 0;
	unsigned int i;

	make_members(fixture, "http");
	text[0] = '\0';
	for (i = 0; i < fixture->count; i++) {
		const struct discovered_member *member = &fixture->members[i];
		char address[INET6_ADDRSTRLEN];

		assert_int_equal(member->replica.addresses.count, 1);
		used += snprintf(
			text + used, sizeof(text) - used, "%s%s=%s:%u%s", used ? " " : "",
			member->replica.name,
			address_format(&member->replica.addresses.item[0].address, address),
			member->replica.port, member->terminating ? "(ending)" : "");
	}
	return text;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static void a_list_of_two_pages(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	assert_int_equal(
		list(fixture,
		     "{\"metadata\":{\"resourceVersion\":\"41\",\"continue\":\"abc=\"},\"items\":[" SLICE(
			     "a", "7", READY("llm-1", "10.0.2.11")) "]}",
		     &error),
		0);
	assert_string_equal(fixture->next, "abc=");
	assert_int_equal(
		list(fixture,
		     "{\"metadata\":{\"resourceVersion\":\"41\",\"continue\":\"\"},\"items\":[" SLICE(
			     "b", "8", READY("llm-0", "10.0.2.10")) "]}",
		     &error),
		0);
	assert_string_equal(fixture->next, "");
	assert_string_equal(fixture->slices.version, "41");
	assert_string_equal(shown(fixture), "llm-0=10.0.2.10:8001 llm-1=10.0.2.11:8001");
	assert_int_equal(fixture->members[0].replica.weight_thousandths, 1500);
	assert_true(fixture->members[0].life && fixture->members[1].life);
	assert_true(fixture->members[0].life != fixture->members[1].life);
}

static void lists_that_are_none_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"null",
		"{\"items\":[]}",
		"{\"metadata\":{\"resourceVersion\":\"1\"}}",
		"{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":{}}",
		"{\"metadata\":{\"resourceVersion\":1},\"items\":[]}",
		"{\"metadata\":{\"resourceVersion\":\"\"},\"items\":[]}",
		"{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{}]}",
		"{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[7]}",
		"{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]",
		"{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]} x",
	};
	struct fixture *fixture = *state;
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error error = {0};

		if (list(fixture, wrong[i], &error) != -EINVAL || !error.text[0])
			fail_msg("accepted: %s", wrong[i]);
	}
	assert_int_equal(
		list(fixture, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}", NULL),
		0);
}

/* --- endpoints ---------------------------------------------------------------------------------------------------- */

static void who_counts(void **state)
{
	struct fixture *fixture = *state;

	expect_event(
		fixture,
		"{\"type\":\"ADDED\",\"object\":" SLICE(
			"a", "7",
			/* conditions absent, or null: ready */
			"{\"addresses\":[\"10.0.2.1\"],\"hostname\":\"by-name\"},"
			"{\"addresses\":[\"10.0.2.2\"],\"conditions\":{\"ready\":null}},"
			"{\"addresses\":[\"10.0.2.3\"],\"hostname\":\"no\",\"conditions\":{\"ready\":false}},"
			"{\"addresses\":[\"10.0.2.4\"],\"hostname\":\"ends\",\"conditions\":{\"ready\":false,"
			"\"serving\":true,\"terminating\":true}},"
			/* published while not ready: terminating all the same */
			"{\"addresses\":[\"10.0.2.5\"],\"hostname\":\"ends-ready\",\"conditions\":{\"ready\":true,"
			"\"terminating\":true}},"
			/* the first address of several */
			"{\"addresses\":[\"10.0.2.6\",\"10.0.2.66\"],\"hostname\":\"two\"}," READY(
				"llm-0", "10.0.2.10")) "}",
		KUBERNETES_CHANGED);
	assert_string_equal(
		shown(fixture),
		"10.0.2.2=10.0.2.2:8001 by-name=10.0.2.1:8001 ends=10.0.2.4:8001(ending) "
		"ends-ready=10.0.2.5:8001(ending) llm-0=10.0.2.10:8001 two=10.0.2.6:8001");
	assert_string_equal(fixture->note.text, "");
}

static void what_cannot_be_used_is_said(void **state)
{
	struct fixture *fixture = *state;

	expect_event(
		fixture,
		"{\"type\":\"ADDED\",\"object\":{" META(
			"bad-address",
			"1") ",\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[]}]," PORTS
			     "}}",
		KUBERNETES_CHANGED);
	assert_string_equal(shown(fixture), "");
	assert_string_equal(fixture->note.text,
			    "EndpointSlice bad-address has an endpoint without a usable address");
	expect_event(
		fixture,
		"{\"type\":\"MODIFIED\",\"object\":{" META(
			"bad-address",
			"2") ",\"addressType\":\"FQDN\",\"endpoints\":[{\"addresses\":[\"a.example\"]}]," PORTS
			     "}}",
		KUBERNETES_CHANGED);
	make_members(fixture, "http");
	assert_non_null(strstr(fixture->note.text, "its addresses are neither IPv4 nor IPv6"));
	expect_event(
		fixture,
		"{\"type\":\"MODIFIED\",\"object\":" SLICE(
			"bad-address", "3",
			READY("a-pod-whose-name-has-sixty-four-characters-which-is-one-too-many-x",
			      "10.0.2.10")) "}",
		KUBERNETES_CHANGED);
	make_members(fixture, "http");
	assert_int_equal(fixture->count, 0);
	assert_non_null(strstr(fixture->note.text, "more than 63 characters"));

	/* with the slice, what was wrong with it is gone */
	expect_event(fixture, "{\"type\":\"DELETED\",\"object\":{" META("bad-address", "4") "}}",
		     KUBERNETES_CHANGED);
	make_members(fixture, "http");
	assert_string_equal(fixture->note.text, "");
}

static void the_port_is_the_named_one_or_the_only_one(void **state)
{
	static const struct {
		const char *wanted, *ports;
		unsigned int port;
	} cases[] = {
		{"http", "[{\"name\":\"metrics\",\"port\":1},{\"name\":\"http\",\"port\":2}]", 2},
		{"http", "[{\"name\":\"metrics\",\"port\":1}]", 0},
		{"http", "[{\"name\":null,\"port\":1}]", 0},
		{"http", "[{\"name\":\"http\",\"port\":null}]", 0},
		{"http", "[{\"name\":\"http\",\"port\":65536}]", 0},
		{"http", "[{\"name\":\"http\",\"port\":\"80\"}]", 0},
		{"http", "null", 0},
		{"", "[{\"name\":\"any\",\"port\":3}]", 3},
		{"", "[{\"port\":4}]", 4},
		{"", "[{\"port\":4},{\"port\":5}]", 0},
		{"", "[]", 0},
	};
	struct fixture *fixture = *state;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum kubernetes_event what;
		struct error error;
		char line[512];

		snprintf(
			line, sizeof(line),
			"{\"type\":\"ADDED\",\"object\":{" META(
				"a",
				"1") ",\"addressType\":\"IPv4\",\"endpoints\":[" READY("llm-0",
										       "10.0.2.10") "],\"ports\":%s}}",
			cases[i].ports);
		assert_int_equal(kubernetes_slices_event(&fixture->slices, cases[i].wanted, line,
							 strlen(line), &what, &error),
				 0);
		make_members(fixture, cases[i].wanted);
		assert_int_equal(fixture->count, cases[i].port ? 1 : 0);
		if (cases[i].port)
			assert_int_equal(fixture->members[0].replica.port, cases[i].port);
		else if (cases[i].wanted[0])
			assert_string_equal(
				fixture->note.text,
				"EndpointSlice a has no port named http: its endpoints are left out");
		else
			assert_non_null(strstr(fixture->note.text, "name one with port_name"));
	}
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void events_change_the_set_and_the_version(void **state)
{
	struct fixture *fixture = *state;

	expect_event(
		fixture,
		"{\"type\":\"ADDED\",\"object\":" SLICE("a", "7", READY("llm-0", "10.0.2.10")) "}",
		KUBERNETES_CHANGED);
	assert_string_equal(fixture->slices.version, "7");
	expect_event(fixture,
		     "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"},"
		     "\"endpoints\":null}}",
		     KUBERNETES_BOOKMARK);
	assert_string_equal(fixture->slices.version, "9");
	assert_string_equal(shown(fixture), "llm-0=10.0.2.10:8001");
	/* the same again is the same */
	expect_event(
		fixture,
		"{\"type\":\"ADDED\",\"object\":" SLICE("a", "7", READY("llm-0", "10.0.2.10")) "}",
		KUBERNETES_CHANGED);
	assert_string_equal(shown(fixture), "llm-0=10.0.2.10:8001");
	expect_event(fixture, "{\"type\":\"DELETED\",\"object\":" SLICE("b", "10", "") "}",
		     KUBERNETES_CHANGED);
	assert_string_equal(shown(fixture), "llm-0=10.0.2.10:8001");
	expect_event(fixture, "{\"type\":\"DELETED\",\"object\":" SLICE("a", "11", "") "}",
		     KUBERNETES_CHANGED);
	assert_string_equal(shown(fixture), "");
	assert_string_equal(fixture->slices.version, "11");
}

static void errors_in_the_stream(void **state)
{
	struct fixture *fixture = *state;
	enum kubernetes_event what;
	struct error error;

	expect_event(fixture, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}",
		     KUBERNETES_EXPIRED);
	assert_int_equal(event(fixture,
			       "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,"
			       "\"message\":\"etcd\\nis away\"}}",
			       &what, &error),
			 0);
	assert_int_equal(what, KUBERNETES_REFUSED);
	assert_string_equal(error.text, "the watch has ended with an error: etcd is away");
}

static void events_that_are_none_change_nothing(void **state)
{
	static const char *const wrong[] = {
		"{}",
		"7",
		"{\"type\":\"ADDED\"}",
		"{\"type\":\"ADDED\",\"object\":[]}",
		"{\"type\":\"ADDED\",\"object\":{}}",
		"{\"type\":7,\"object\":{}}",
		"{\"type\":\"CHANGED\",\"object\":{}}",
		"{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"\"}}}",
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\\u0000b\"}}}",
		"{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Endpoi",
	};
	struct fixture *fixture = *state;
	unsigned int i;

	expect_event(
		fixture,
		"{\"type\":\"ADDED\",\"object\":" SLICE("a", "7", READY("llm-0", "10.0.2.10")) "}",
		KUBERNETES_CHANGED);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		enum kubernetes_event what;
		struct error error = {0};

		if (event(fixture, wrong[i], &what, &error) != -EINVAL || !error.text[0])
			fail_msg("accepted: %s", wrong[i]);
	}
	assert_string_equal(shown(fixture), "llm-0=10.0.2.10:8001");
	assert_string_equal(fixture->slices.version, "7");
}

static void everything_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	enum kubernetes_event what;
	struct error error;
	char *line = malloc(1 << 20);
	unsigned int i;
	size_t used;

	for (i = 0; i < KUBERNETES_SLICES_MAX; i++) {
		sprintf(line,
			"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"s%u\"},"
			"\"addressType\":\"IPv4\"}}",
			i);
		expect_event(fixture, line, KUBERNETES_CHANGED);
	}
	assert_int_equal(event(fixture,
			       "{\"type\":\"ADDED\",\"object\":" SLICE("one-more", "7", "") "}",
			       &what, &error),
			 -E2BIG);
	assert_string_equal(error.text, "the service has more than 256 EndpointSlices");
	used = sprintf(line, "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"s0\"},"
			     "\"addressType\":\"IPv4\",\"endpoints\":[");
	for (i = 0; i < KUBERNETES_ENDPOINTS_MAX - 1; i++)
		used += sprintf(line + used, "{\"addresses\":[\"10.%u.%u.1\"]},", i / 200, i % 200);
	sprintf(line + used, "{\"addresses\":[\"10.200.1.1\"]}]}}");
	expect_event(fixture, line, KUBERNETES_CHANGED);
	assert_int_equal(event(fixture,
			       "{\"type\":\"MODIFIED\",\"object\":" SLICE(
				       "s1", "7", READY("llm-0", "10.0.2.10")) "}",
			       &what, &error),
			 -E2BIG);
	assert_string_equal(error.text, "the service has more than 2048 endpoints");
	free(line);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_list_of_two_pages),
		TEST(lists_that_are_none_are_refused),
		TEST(who_counts),
		TEST(what_cannot_be_used_is_said),
		TEST(the_port_is_the_named_one_or_the_only_one),
		TEST(events_change_the_set_and_the_version),
		TEST(errors_in_the_stream),
		TEST(events_that_are_none_change_nothing),
		TEST(everything_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
