// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fuzzes the request parser against the model. Input: one byte (bit 0: no more bytes will come; the rest is what lies behind the
 * request in the buffer), then the request.
 */
#include <stdint.h>
#include <stdio.h>

#include <warmpath/http_request.h>

#include "../common/http_request_cases.h"
#include "../common/http_request_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {CASE_NAME_FIRST, CASE_NAME_SECOND, CASE_NAME_THIRD, NULL};

static void check(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "the parser and the model differ in %s\n", what);
		__builtin_trap();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http_settings settings;
	static struct http_head head;
	struct http_request expected;
	enum http_verdict verdict, wanted;
	size_t length, inside;
	bool last;

	if (!settings.name_count)
		case_settings(&settings);
	if (!size)
		return 0;
	last = data[0] & 1;
	length = size - 1;
	inside = length < HTTP_HEAD_SIZE ? length : HTTP_HEAD_SIZE;
	memset(&head, data[0], sizeof(head));
	memcpy(head.bytes, data + 1, inside);
	verdict = http_request_read(&head, length, last, &settings);
	wanted = model_request(data + 1, length, last, names, CASE_KEY_BYTES, &expected);
	check(verdict == wanted, "the verdict");
	if (verdict != HTTP_HEAD_COMPLETE && verdict != HTTP_HEAD_TOO_LONG)
		return 0;
	check(!memcmp(&head.request, &expected, sizeof(expected)), "what was read");

	/* What the callers rely upon, whatever the model says. */
	check(head.request.head_length <= inside, "the head's length");
	check(head.request.id_offset + head.request.id_length <= inside, "where the id lies");
	check(head.request.key_offset + head.request.key_length <= inside, "where the key lies");
	check(head.request.id != HTTP_ID_FOUND || head.request.id_length <= HTTP_ID_LENGTH_MAX,
	      "the id's length");
	check(head.request.key_length + head.request.key_missing <= CASE_KEY_BYTES,
	      "the key's length");
	return 0;
}
