/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/web_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEPALIVE_SECONDS \
	15L /* a peer that has gone without a word is found out after about four times that */
#define RETRY_SECONDS_MAX 300

struct web_transfer {
	struct transfers *transfers;
	CURL *easy;
	struct curl_slist *headers;
	struct web_request request; /* of it, the functions and their context */
	bool refused;		    /* take() wants no more */
	char said[CURL_ERROR_SIZE]; /* by libcurl */
};

/* --- the end of a transfer ---------------------------------------------------------------------------------------- */

static void free_transfer(struct web_transfer *transfer)
{
	curl_easy_cleanup(transfer->easy);
	curl_slist_free_all(transfer->headers);
	free(transfer);
}

void web_transfer_cancel(struct web_transfer *transfer)
{
	if (!transfer)
		return;
	transfers_cancel(transfer->transfers, transfer->easy);
	free_transfer(transfer);
}

static void describe(const struct web_transfer *transfer, CURLcode code, struct web_result *result)
{
	long status = 0;
	curl_off_t retry = 0;

	memset(result, 0, sizeof(*result));
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &retry);
	result->status = status;
	result->complete = code == CURLE_OK;
	result->timed_out = code == CURLE_OPERATION_TIMEDOUT;
	if (retry > 0)
		result->retry_milliseconds =
			(retry < RETRY_SECONDS_MAX ? retry : RETRY_SECONDS_MAX) * 1000;
	if (code == CURLE_OK || transfer->refused)
		return;
	error_set(&result->error, 0, "%s",
		  transfer->said[0] ? transfer->said : curl_easy_strerror(code));
}

static void on_end(void *context, CURL *easy, CURLcode code)
{
	struct web_transfer *transfer = context;
	struct web_request request = transfer->request;
	struct web_result result;

	(void)easy;
	describe(transfer, code, &result);
	free_transfer(transfer);
	request.done(request.context, &result);
}

/* --- a transfer ----------------------------------------------------------------------------------------------------- */

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
	struct web_transfer *transfer = context;
	long status = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	if (transfer->request.take(transfer->request.context, status, bytes, size * count))
		return size * count;
	transfer->refused = true;
	return 0;
}

/* The headers end with an empty line, also those of an interim answer. */
static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
	struct web_transfer *transfer = context;
	long status = 0;

	if (transfer->request.header)
		transfer->request.header(transfer->request.context, bytes, size * count);
	if (transfer->request.begun && size * count == 2 && bytes[0] == '\r') {
		curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
		if (status >= 200)
			transfer->request.begun(transfer->request.context, status);
	}
	return size * count;
}

static int set_token(struct web_transfer *transfer, const char *token)
{
	char *header;
	int length;

	if (!token)
		return 0;
	length = asprintf(&header, "Authorization: Bearer %s", token);
	if (length < 0)
		return -ENOMEM;
	transfer->headers = curl_slist_append(NULL, header);
	explicit_bzero(header, length);
	free(header);
	if (!transfer->headers)
		return -ENOMEM;
	curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
	return 0;
}

static void set_options(struct web_transfer *transfer, const struct web_request *request)
{
	CURL *easy = transfer->easy;

	curl_easy_setopt(easy, CURLOPT_URL, request->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_SECONDS);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_SECONDS);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_milliseconds);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->total_milliseconds);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->said);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	if (request->begun || request->header) {
		curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
		curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
	}
	if (request->ca_file) {
		curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
		curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT,
				 0L); /* a file that was renewed counts at once */
	}
}

int web_client_get(struct transfers *transfers, const struct web_request *request,
		   struct web_transfer **result, struct error *error)
{
	struct web_transfer *transfer = calloc(1, sizeof(*transfer));

	*result = NULL;
	if (!transfer)
		return error_set(error, -ENOMEM, "not enough memory");
	transfer->transfers = transfers;
	transfer->request = *request;
	transfer->easy = transfers_handle();
	if (!transfer->easy || set_token(transfer, request->bearer_token))
		goto no_memory;
	set_options(transfer, request);
	if (transfers_begin(transfers, transfer->easy, on_end, transfer))
		goto no_memory;
	*result = transfer;
	return 0;
no_memory:
	free_transfer(transfer);
	return error_set(error, -ENOMEM, "not enough memory");
}
