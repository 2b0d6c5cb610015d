/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is read of the Kubernetes API: lists, events of a watch, endpoints, and streams that come in pieces.
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
#include <unistd.h>

#include "agent/backoff.h"
#include "agent/kubernetes_access.h"
#include "agent/kubernetes_slices.h"
#include "agent/line_reader.h"
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

/* --- streams --------------------------------------------------------------------------------------------------------- */

struct lines {
	char text[16][32];
	unsigned int count;
	unsigned int most;
};

static bool take_line(void *context, const char *line, size_t length)
{
	struct lines *lines = context;

	snprintf(lines->text[lines->count++], 32, "%.*s", (int)length, line);
	return lines->count < lines->most;
}

static void lines_come_in_pieces_of_any_length(void **state)
{
	static const char stream[] = "first\nsecond line\n\n\nthird\nnot finished";
	size_t piece, at;

	(void)state;
	for (piece = 1; piece <= sizeof(stream); piece++) {
		struct line_reader reader = {.most = 12};
		struct lines lines = {.most = 16};

		for (at = 0; at < sizeof(stream) - 1; at += piece)
			assert_int_equal(line_reader_take(&reader, stream + at,
							  sizeof(stream) - 1 - at < piece
								  ? sizeof(stream) - 1 - at
								  : piece,
							  take_line, &lines),
					 0);
		assert_int_equal(lines.count, 3);
		assert_string_equal(lines.text[0], "first");
		assert_string_equal(lines.text[1], "second line");
		assert_string_equal(lines.text[2], "third");
		line_reader_reset(&reader);
		assert_int_equal(line_reader_take(&reader, "new\n", 4, take_line, &lines), 0);
		assert_string_equal(lines.text[3], "new");
		line_reader_free(&reader);
	}
}

static void a_line_is_bounded(void **state)
{
	struct line_reader reader = {.most = 5};
	struct lines lines = {.most = 2};

	(void)state;
	assert_int_equal(line_reader_take(&reader, "12345\n", 6, take_line, &lines), 0);
	assert_int_equal(line_reader_take(&reader, "123", 3, take_line, &lines), 0);
	assert_int_equal(line_reader_take(&reader, "456", 3, take_line, &lines), -EMSGSIZE);
	line_reader_reset(&reader);
	assert_int_equal(line_reader_take(&reader, "a\nb\n", 4, take_line, &lines), -ECANCELED);
	assert_int_equal(lines.count, 2);
	line_reader_free(&reader);
}

static void waiting_grows_and_is_bounded(void **state)
{
	struct backoff backoff = {0};
	uint64_t full = BACKOFF_FIRST_MILLISECONDS;
	unsigned int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		uint64_t wait = backoff_next(&backoff, 0);

		assert_true(wait >= full / 2 && wait <= full);
		full = full * 2 < BACKOFF_MOST_MILLISECONDS ? full * 2 : BACKOFF_MOST_MILLISECONDS;
	}
	assert_int_equal(backoff_next(&backoff, 60000), 60000);
	backoff.failures = 0;
	assert_true(backoff_next(&backoff, 0) <= BACKOFF_FIRST_MILLISECONDS);
}

/* --- access ------------------------------------------------------------------------------------------------------------ */

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void access_is_found_in_files_and_the_environment(void **state)
{
	struct config_discovery settings = {.service = "llm"};
	static struct kubernetes_access access;
	char directory[] = "/tmp/warmpath-access.XXXXXX", path[64], *url;
	struct error error;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(settings.token_file, sizeof(settings.token_file), "%s/token", directory);
	snprintf(path, sizeof(path), "%s/namespace", directory);
	write_file(settings.token_file, "abc.def-123\n");
	write_file(path, "default");
	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_int_equal(kubernetes_access_read(&settings, &access, &error), -ENOENT);
	assert_non_null(strstr(error.text, "which only a pod has; state the server's URL"));
	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	assert_int_equal(kubernetes_access_read(&settings, &access, &error), 0);
	assert_string_equal(access.server, "https://[fd00::1]:443");
	assert_string_equal(access.token, "abc.def-123");
	assert_string_equal(access.namespace, "default");
	strcpy(settings.api_server, "https://example.org/");
	assert_int_equal(kubernetes_access_read(&settings, &access, &error), 0);
	url = kubernetes_url(&access, "v1", "llm", "&limit=10");
	assert_string_equal(
		url, "https://example.org/apis/discovery.k8s.io/v1/namespaces/default/"
		     "endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dllm&limit=10");
	free(url);

	/* what could end a header is no token */
	write_file(settings.token_file, "abc\r\nX-Other: 1");
	assert_int_equal(kubernetes_access_read(&settings, &access, &error), -EINVAL);
	assert_non_null(strstr(error.text, "more in it than one word"));
	assert_null(strstr(error.text, "abc"));
	write_file(settings.token_file, "\n");
	assert_int_equal(kubernetes_access_read(&settings, &access, &error), -EINVAL);
	assert_non_null(strstr(error.text, "is empty"));
	unlink(settings.token_file);
	assert_int_equal(kubernetes_access_read(&settings, &access, &error), -ENOENT);
	assert_non_null(strstr(error.text, "cannot be opened"));
	unlink(path);
	rmdir(directory);
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
		TEST(lines_come_in_pieces_of_any_length),
		TEST(a_line_is_bounded),
		TEST(waiting_grows_and_is_bounded),
		TEST(access_is_found_in_files_and_the_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
