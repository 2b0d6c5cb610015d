// SPDX-License-Identifier: BSD-2-Clause
/* The request parser in user space: a table of cases, every cut of each, and a second parser to compare with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <warmpath/http_request.h>

#include "../common/http_request_cases.h"
#include "../common/http_request_model.h"

static const char *const names[] = {CASE_NAME_FIRST, CASE_NAME_SECOND, CASE_NAME_THIRD, NULL};
static struct http_settings settings;

static enum http_verdict parse(struct http_head *head, const void *bytes, size_t length, bool last,
			       int garbage)
{
	size_t taken = length < HTTP_HEAD_SIZE ? length : HTTP_HEAD_SIZE;

	memset(head, garbage, sizeof(*head));
	memcpy(head->bytes, bytes, taken);
	return http_request_read(head, length, last, &settings);
}

/* Parses and compares with the model; what lies beyond the end must not matter. */
static enum http_verdict parse_twice(struct http_head *head, const void *bytes, size_t length,
				     bool last)
{
	static const int garbage[] = {0, '\n', '\r', ':', 'a', ' ', 0xff};
	struct http_request expected;
	enum http_verdict verdict =
		model_request(bytes, length, last, names, CASE_KEY_BYTES, &expected);

	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		enum http_verdict got = parse(head, bytes, length, last, garbage[i]);

		assert_int_equal(got, verdict);
		if (got == HTTP_HEAD_COMPLETE || got == HTTP_HEAD_TOO_LONG)
			assert_memory_equal(&head->request, &expected, sizeof(expected));
	}
	return verdict;
}

static void check_case(const struct http_head *head, enum http_verdict verdict,
		       const struct request_case *expected)
{
	const struct http_request *request = &head->request;

	if (verdict != expected->verdict)
		fail_msg("%s: verdict %d, not %d", expected->name, verdict, expected->verdict);
	if (verdict != HTTP_HEAD_COMPLETE && verdict != HTTP_HEAD_TOO_LONG)
		return;
	if (request->id != expected->id)
		fail_msg("%s: id %d, not %d", expected->name, request->id, expected->id);
	if (request->id == HTTP_ID_FOUND) {
		assert_int_equal(request->id_length, strlen(expected->id_text));
		assert_memory_equal(head->bytes + request->id_offset, expected->id_text,
				    request->id_length);
	}
	if (request->flags != expected->flags)
		fail_msg("%s: flags %#x, not %#x", expected->name, request->flags, expected->flags);
	if (request->doubts != expected->doubts)
		fail_msg("%s: doubts %#x, not %#x", expected->name, request->doubts,
			 expected->doubts);
	if (request->method != expected->method)
		fail_msg("%s: method %d, not %d", expected->name, request->method,
			 expected->method);
	if (verdict == HTTP_HEAD_TOO_LONG && !request->minor_version)
		return; /* the request line itself is too long */
	assert_int_equal(request->minor_version, expected->version_0 ? 0 : 1);
	assert_int_equal(request->content_length, expected->content_length);
	assert_int_equal(request->prompt_tokens, expected->prompt_tokens);
	assert_int_equal(request->max_tokens, expected->max_tokens);
	assert_int_equal(request->key_missing, expected->key_missing);
	assert_int_equal(request->key_length, expected->key ? strlen(expected->key) : 0);
	if (expected->key)
		assert_memory_equal(head->bytes + request->key_offset, expected->key,
				    request->key_length);
	if (verdict == HTTP_HEAD_COMPLETE)
		assert_int_equal(request->body_present, expected->length - request->head_length);
}

static void cases(void **state)
{
	(void)state;
	struct http_head head;

	for (size_t i = 0; i < REQUEST_CASE_COUNT; i++) {
		const struct request_case *expected = &request_cases[i];

		check_case(&head, parse_twice(&head, expected->bytes, expected->length, false),
			   expected);
	}
}

/* A request that comes in two pieces, cut anywhere, or byte by byte: what is there so far asks for more, then the same is read. */
static void cut_anywhere(void **state)
{
	(void)state;
	struct http_head head;

	for (size_t i = 0; i < REQUEST_CASE_COUNT; i++) {
		const struct request_case *expected = &request_cases[i];
		enum http_verdict verdict = HTTP_HEAD_MORE;
		size_t length, head_length;

		parse(&head, expected->bytes, expected->length, false, 0);
		head_length = head.request.head_length;
		for (length = 0; length < expected->length && verdict != HTTP_HEAD_TOO_LONG;
		     length++) {
			verdict = parse_twice(&head, expected->bytes, length, false);
			if (expected->verdict == HTTP_HEAD_COMPLETE)
				assert_int_equal(verdict, length < head_length
								  ? HTTP_HEAD_MORE
								  : HTTP_HEAD_COMPLETE);
			else if (expected->verdict != HTTP_HEAD_MALFORMED)
				assert_int_equal(verdict, length < HTTP_HEAD_SIZE
								  ? HTTP_HEAD_MORE
								  : HTTP_HEAD_TOO_LONG);
			if (verdict == HTTP_HEAD_MORE)
				assert_true(parse_twice(&head, expected->bytes, length, true) ==
					    HTTP_HEAD_TOO_LONG);
		}
		/* Once no request, never one again. */
		if (verdict == HTTP_HEAD_MALFORMED)
			assert_int_equal(expected->verdict, HTTP_HEAD_MALFORMED);
	}
}

/* The id line at every distance from the start of a word and of a search. */
static void every_alignment(void **state)
{
	(void)state;
	struct http_head head;
	char text[1024];

	for (int fill = 0; fill <= 100; fill++) {
		for (int length = 1; length <= 130; length += length < 20 ? 1 : 11) {
			int size = snprintf(
				text, sizeof(text),
				"GET /%.*s HTTP/1.1\r\nX-Conversation-ID:%.*s%.*s\r\n\r\n", fill,
				HUNDRED, fill % 9, "          ", length, ID_128 "xyz");

			assert_int_equal(parse_twice(&head, text, size, false), HTTP_HEAD_COMPLETE);
			assert_int_equal(head.request.id,
					 length <= 128 ? HTTP_ID_FOUND : HTTP_ID_INVALID);
			assert_int_equal(head.request.id_length, length);
		}
	}
}

/* Every character at every place of an id, of a header's name, of a value and of a method. */
static void every_character(void **state)
{
	(void)state;
	struct http_head head;
	char text[256];
	int size, id, name, value;

	size = snprintf(
		text, sizeof(text),
		"POST / HTTP/1.1\r\nx-conversation-id: 0123456789abcdefghij\r\nContent-Length: 7\r\nConnection: close\r\n\r\n");
	id = strstr(text, "0123") - text;
	name = strstr(text, "Content") - text;
	value = strstr(text, "close") - text;
	for (int at = 0; at < size; at++) {
		char kept = text[at];

		for (int character = 0; character < 256; character++) {
			text[at] = character;
			parse_twice(&head, text, size, false);
		}
		text[at] = kept;
	}
	for (int character = 0; character < 256; character++) {
		bool good = (character < 0x80 && isalnum(character)) ||
			    (character && strchr("._:-", character));

		for (int at = 0; at < 20; at++) {
			char kept = text[id + at];

			/* LF ends the line; blanks at the ends are trimmed */
			if (character == '\n' ||
			    ((character == ' ' || character == '\t') && (at == 0 || at == 19)))
				continue;
			text[id + at] = character;
			parse(&head, text, size, false, 0);
			assert_int_equal(head.request.id, good ? HTTP_ID_FOUND : HTTP_ID_INVALID);
			text[id + at] = kept;
		}
	}
	/* letters in either case, nothing else */
	text[name] = 'c';
	text[value] = 'C';
	parse(&head, text, size, false, 0);
	assert_int_equal(head.request.flags, HTTP_HAS_LENGTH | HTTP_CLOSE);
	text[name + 7] = '\r'; /* '-' without one bit */
	parse(&head, text, size, false, 0);
	assert_int_equal(head.request.flags, HTTP_CLOSE);
}

static void numbers(void **state)
{
	(void)state;
	struct http_head head;
	char text[256];

	srand(3);
	for (int digits = 1; digits <= 22; digits++) {
		for (int round = 0; round < 50; round++) {
			char number[32] = {0};
			int size;

			for (int i = 0; i < digits; i++)
				number[i] = '0' + rand() % 10;
			size = snprintf(text, sizeof(text),
					"PUT / HTTP/1.1\r\nContent-Length: %s\r\n\r\n", number);
			parse_twice(&head, text, size, false);
			if (digits <= 18)
				assert_int_equal(head.request.content_length,
						 strtoull(number, NULL, 10));
			else
				assert_int_equal(head.request.doubts, HTTP_DOUBT_LENGTH);
			/* no digit at one place */
			size = strcspn(text, "\r") + 18 + rand() % digits;
			text[size] = ":/.a"[rand() % 4];
			parse_twice(&head, text, strlen(text), false);
			assert_int_equal(head.request.content_length, 0);
		}
	}
}

/* Cases changed at random: the parser and the model agree on every one. */
static void changed_cases(void **state)
{
	(void)state;
	static const char pieces[] = "\r\n\r\n: \t,;aA-_09\x7f\x80\xff\x01x-conversation-id:\r\n ";
	struct http_head head;
	unsigned char text[HTTP_HEAD_SIZE + 300];

	srand(7);
	for (int round = 0; round < 60000; round++) {
		const struct request_case *source = &request_cases[rand() % REQUEST_CASE_COUNT];
		size_t length = source->length < 600 || round % 50 == 0 ? source->length : 600;

		if (length > sizeof(text) - 64)
			length = sizeof(text) - 64;
		memcpy(text, source->bytes, length);
		for (int change = rand() % 4; change >= 0 && length > 40; change--) {
			size_t at = rand() % (length - 20);

			switch (rand() % 4) {
			case 0:
				text[at] = pieces[rand() % (sizeof(pieces) - 1)];
				break;
			case 1: /* take out */
				memmove(text + at, text + at + 1 + at % 7,
					length - at - 1 - at % 7);
				length -= 1 + at % 7;
				break;
			case 2: /* double */
				memmove(text + at + 5, text + at, length - at);
				length += 5;
				break;
			case 3: /* a piece from elsewhere */
				memmove(text + at, text + rand() % (length - 20), 1 + rand() % 19);
				break;
			}
		}
		parse_twice(&head, text, length, rand() % 8 == 0);
	}
}

static void settings_refuse(void **state)
{
	(void)state;
	struct http_settings refused;
	char longest[HTTP_NAME_MAX + 2];

	memset(longest, 'n', sizeof(longest));
	longest[HTTP_NAME_MAX + 1] = 0;
	assert_int_equal(http_settings_init(&refused, HTTP_KEY_BYTES_MAX + 1), -ERANGE);
	assert_int_equal(http_settings_init(&refused, HTTP_KEY_BYTES_MAX), 0);
	assert_int_equal(http_settings_add_name(&refused, ""), -ERANGE);
	assert_int_equal(http_settings_add_name(&refused, longest), -ERANGE);
	assert_int_equal(http_settings_add_name(&refused, longest + 1), 0);
	assert_int_equal(http_settings_add_name(&refused, "x y"), -EINVAL);
	assert_int_equal(http_settings_add_name(&refused, "x:"), -EINVAL);
	assert_int_equal(http_settings_add_name(&refused, "n\xc3\xa4me"), -EINVAL);
	assert_int_equal(http_settings_add_name(&refused, "Transfer-Encoding"), -EBUSY);
	assert_int_equal(http_settings_add_name(&refused, "X-A"), 0);
	assert_int_equal(http_settings_add_name(&refused, "x-a"), -EEXIST);
	assert_int_equal(http_settings_add_name(&refused, "x-b"), 0);
	assert_int_equal(http_settings_add_name(&refused, "x-c"), 0);
	assert_int_equal(http_settings_add_name(&refused, "x-d"), -ENOSPC);
}

/* The longest name there can be, and none at all. */
static void longest_name(void **state)
{
	(void)state;
	struct http_settings longest;
	struct http_head head;
	char name[HTTP_NAME_MAX + 1] = {0}, text[256];
	int size;

	memset(name, 'n', HTTP_NAME_MAX);
	http_settings_init(&longest, 0);
	size = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n%s: a\r\n\r\n", name);
	memcpy(head.bytes, text, size);
	http_request_read(&head, size, false, &longest);
	assert_int_equal(head.request.id, HTTP_ID_NONE);
	assert_int_equal(http_settings_add_name(&longest, name), 0);
	http_request_read(&head, size, false, &longest);
	assert_int_equal(head.request.id, HTTP_ID_FOUND);
	head.bytes[16 + HTTP_NAME_MAX - 1] = 'm';
	http_request_read(&head, size, false, &longest);
	assert_int_equal(head.request.id, HTTP_ID_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cases),	   cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(every_alignment), cmocka_unit_test(every_character),
		cmocka_unit_test(numbers),	   cmocka_unit_test(changed_cases),
		cmocka_unit_test(settings_refuse), cmocka_unit_test(longest_name),
	};

	case_settings(&settings);
	return cmocka_run_group_tests_name("http_request", tests, NULL, NULL);
}
