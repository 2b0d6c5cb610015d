/* SPDX-License-Identifier: BSD-2-Clause */
/* Does the profile fit the replica? The published project keeps this link by hand. */
#include "traffic.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
	bytes_add(context, data, size * count);
	return size * count;
}

static int get(const char *url, const char *path, json_t **answer, char *error)
{
	struct bytes body = {0}, whole = {0};
	char reason[CURL_ERROR_SIZE] = "";
	CURL *easy = curl_easy_init();
	long status = 0;
	CURLcode code;

	if (!easy)
		return -ENOMEM;
	bytes_print(&whole, "%s%s", url, path);
	curl_easy_setopt(easy, CURLOPT_URL, whole.data);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, reason);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10000L);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	code = curl_easy_perform(easy);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(easy);
	*answer = json_loadb(body.data ? body.data : "", body.length, 0, NULL);
	bytes_free(&body);
	bytes_free(&whole);
	if (code != CURLE_OK) {
		snprintf(error, TOOLS_ERROR_SIZE, "no replica answers at %s: %.200s", url,
			 reason[0] ? reason : curl_easy_strerror(code));
		return -ECONNREFUSED;
	}
	return status == 200 && *answer ? 0 : -ENOENT;
}

static int ask(const char *url, uint32_t *context, char *error)
{
	json_t *answer = NULL;
	json_int_t tokens = 0;
	int result = get(url, "/props", &answer, error);

	if (!result)
		tokens = json_integer_value(json_object_get(
			json_object_get(answer, "default_generation_settings"), "n_ctx"));
	json_decref(answer);
	if (result == -ECONNREFUSED)
		return result;
	if (tokens <= 0) {
		answer = NULL;
		result = get(url, "/slots", &answer, error);
		tokens = json_integer_value(json_object_get(json_array_get(answer, 0), "n_ctx"));
		json_decref(answer);
	}
	if (result || tokens <= 0 || tokens > UINT32_MAX) {
		snprintf(
			error, TOOLS_ERROR_SIZE,
			"%s says nothing of its context (/props, /slots); --no-context-check goes on without",
			url);
		return -ENOENT;
	}
	*context = (uint32_t)tokens;
	return 0;
}

int context_check(const char *url, uint32_t max_context_tokens, char error[TOOLS_ERROR_SIZE])
{
	uint32_t context;
	int result = ask(url, &context, error);

	if (!result && max_context_tokens >= context) {
		snprintf(
			error, TOOLS_ERROR_SIZE,
			"max_context_tokens is %u, but a slot of the replica at %s has a context of %u tokens: "
			"it must be below that",
			max_context_tokens, url, context);
		result = -E2BIG;
	}
	return result;
}
