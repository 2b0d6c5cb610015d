/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/health_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/text_hash.h"
#include "lib/address.h"
#include "lib/config_schema.h"

#define BODY_MAX 65536 /* read of an answer */

struct health_check {
	struct transfers *transfers;
	health_answered answered;
	void *context;
	CURL *easy;
	bool under_way;
	struct config_health kept; /* the settings of the check under way */
	uint64_t begun;		   /* uv_hrtime() */
	size_t body;		   /* bytes of it */
	__u32 process;
};

/* --- which process answers ---------------------------------------------------------------------------------------- */

static const char *const start_headers[] = {
	"process-start-time-unix:", /* llama-server */
	"x-boot-id:",
};

__u32 health_process_of_header(const char *line, size_t length, __u32 process)
{
	unsigned int i;
	size_t at;

	for (i = 0; i < sizeof(start_headers) / sizeof(start_headers[0]); i++) {
		size_t name = strlen(start_headers[i]);

		if (length <= name || strncasecmp(line, start_headers[i], name) != 0)
			continue;
		if (!process)
			process = TEXT_HASH_START;
		for (at = name; at < length; at++) {
			if (!strchr(" \t\r\n", line[at]))
				process = text_hash_add(process, &line[at], 1);
		}
		return text_hash_end(process);
	}
	return process;
}

static size_t take_header(char *data, size_t size, size_t count, void *context)
{
	struct health_check *check = context;

	check->process = health_process_of_header(data, size * count, check->process);
	return size * count;
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
	struct health_check *check = context;

	(void)data;
	check->body += size * count;
	return check->body > BODY_MAX ? 0 : size * count;
}

/* --- the answer ---------------------------------------------------------------------------------------------------- */

static void describe(const struct health_check *check, CURLcode result, char *text, size_t size)
{
	char seconds[32];
	curl_off_t connected = 0;
	long number = 0;

	schema_format_fraction(check->kept.timeout_milliseconds, 3, seconds, sizeof(seconds));
	curl_easy_getinfo(check->easy, CURLINFO_OS_ERRNO, &number);
	curl_easy_getinfo(check->easy, CURLINFO_CONNECT_TIME_T, &connected);
	switch (result) {
	case CURLE_COULDNT_CONNECT:
		snprintf(text, size, "no connection: %s",
			 number ? strerror((int)number) : "refused");
		break;
	case CURLE_OPERATION_TIMEDOUT:
		snprintf(text, size, "no %s within %s s", connected ? "answer" : "connection",
			 seconds);
		break;
	case CURLE_GOT_NOTHING:
		snprintf(text, size, "the connection was closed without an answer");
		break;
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		snprintf(text, size, "the connection broke: %s",
			 number ? strerror((int)number) : "reset");
		break;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_HTTP2:
		snprintf(text, size, "the answer is not HTTP");
		break;
	default:
		snprintf(text, size, "%s", curl_easy_strerror(result));
	}
}

/* Whether this process, and not the replica, let the time pass. */
static bool was_late(const struct health_check *check, CURLcode result)
{
	uint64_t took = (uv_hrtime() - check->begun) / 1000000;

	return result == CURLE_OPERATION_TIMEDOUT &&
	       took > check->kept.timeout_milliseconds + check->kept.timeout_milliseconds / 2 + 50;
}

static void on_ended(void *context, CURL *easy, CURLcode result)
{
	struct health_check *check = context;
	struct health_answer answer = {.process = check->process};
	char text[HEALTH_TEXT_SIZE];
	long status = 0;

	check->under_way = false;
	answer.milliseconds = (uv_hrtime() - check->begun) / 1000000;
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	/* the head has come, and more of the body than is wanted */
	if (result == CURLE_WRITE_ERROR && check->body > BODY_MAX)
		result = CURLE_OK;
	if (was_late(check, result)) {
		check->answered(check->context, NULL);
		return;
	}
	if (result != CURLE_OK) {
		describe(check, result, text, sizeof(text));
		answer.failure = text;
	} else if (check->kept.check == HEALTH_CHECK_HTTP && status != check->kept.status) {
		snprintf(text, sizeof(text), "status %ld, expected %u", status, check->kept.status);
		answer.failure = text;
	}
	check->answered(check->context, &answer);
}

/* --- the request ---------------------------------------------------------------------------------------------------- */

struct health_check *health_check_new(struct transfers *transfers, health_answered answered,
				      void *context)
{
	struct health_check *check = calloc(1, sizeof(*check));

	if (!check)
		return NULL;
	check->transfers = transfers;
	check->answered = answered;
	check->context = context;
	check->easy = transfers_handle();
	if (!check->easy) {
		free(check);
		return NULL;
	}
	/* A new connection each time, as a user's would be. */
	curl_easy_setopt(check->easy, CURLOPT_FRESH_CONNECT, 1L);
	curl_easy_setopt(check->easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(check->easy, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(check->easy, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(check->easy, CURLOPT_HEADERDATA, check);
	curl_easy_setopt(check->easy, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(check->easy, CURLOPT_WRITEDATA, check);
	return check;
}

void health_check_free(struct health_check *check)
{
	if (!check)
		return;
	if (check->under_way)
		transfers_cancel(check->transfers, check->easy);
	curl_easy_cleanup(check->easy);
	free(check);
}

int health_check_begin(struct health_check *check, const struct config_health *settings,
		       const struct address *address, __be16 port)
{
	char place[ENDPOINT_TEXT_SIZE], url[ENDPOINT_TEXT_SIZE + HEALTH_PATH_SIZE + 16];
	int result;

	if (settings->port)
		port = htons(settings->port);
	snprintf(url, sizeof(url), "http://%s%s", endpoint_format(address, port, place),
		 settings->check == HEALTH_CHECK_HTTP ? settings->path : "/");
	check->kept = *settings;
	check->body = 0;
	check->process = 0;
	curl_easy_setopt(check->easy, CURLOPT_URL, url);
	curl_easy_setopt(check->easy, CURLOPT_CONNECT_ONLY,
			 settings->check == HEALTH_CHECK_TCP ? 1L : 0L);
	curl_easy_setopt(check->easy, CURLOPT_TIMEOUT_MS, (long)settings->timeout_milliseconds);
	curl_easy_setopt(check->easy, CURLOPT_CONNECTTIMEOUT_MS,
			 (long)settings->timeout_milliseconds);
	check->begun = uv_hrtime();
	result = transfers_begin(check->transfers, check->easy, on_ended, check);
	check->under_way = result == 0;
	return result;
}
