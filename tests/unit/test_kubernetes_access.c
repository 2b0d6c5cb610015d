/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the Kubernetes API is reached: streams that come in pieces, waiting after failures, files and environment.
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
#include "agent/line_reader.h"

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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_in_pieces_of_any_length),
		cmocka_unit_test(a_line_is_bounded),
		cmocka_unit_test(waiting_grows_and_is_bounded),
		cmocka_unit_test(access_is_found_in_files_and_the_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
