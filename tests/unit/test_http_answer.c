// SPDX-License-Identifier: BSD-2-Clause
/* The answer follower in user space: a table of cases, cut, repeated and torn in every way, and a second parser to compare with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <warmpath/http_answer.h>

#include "../common/http_answer_cases.h"
#include "../common/http_answer_model.h"

/* So that sequence numbers wrap within the head of any case. */
#define SEQUENCE 0xfffffff5u

static struct http_window window;

/* Of the byte at `at` of the stream. */
static __u32 sequence(__u64 at)
{
	return SEQUENCE + (__u32)at;
}

/* Feeds bytes [from, to) of the stream, as the data of one segment behind 13 other bytes. */
static enum http_follow_event feed(struct http_follower *follower, const char *bytes, size_t from,
				   size_t to)
{
	char segment[4096];

	assert_true(to - from + 13 <= sizeof(segment));
	memset(segment, 'x', 13);
	memcpy(segment + 13, bytes + from, to - from);
	memset(window.bytes, '\n', sizeof(window.bytes));
	return http_follow(follower, &window, segment, 13, to - from, sequence(from));
}

static void check_end(const struct http_follower *follower, enum http_follow_event event,
		      const struct answer_case *expected)
{
	static const char *const ends[] = {"open", "complete", "ends with the connection", "lost"};
	enum answer_end end = END_OPEN;

	if (follower->state == HTTP_FOLLOW_LOST)
		end = END_LOST;
	else if (follower->state == HTTP_FOLLOW_DONE)
		end = END_COMPLETE;
	else if (follower->state == HTTP_FOLLOW_UNTIL_CLOSE ||
		 follower->state == HTTP_FOLLOW_TUNNEL)
		end = END_CLOSE;
	if (end != expected->end)
		fail_msg("%s: %s, not %s", expected->name, ends[end], ends[expected->end]);
	if (follower->status != expected->status)
		fail_msg("%s: status %u, not %u", expected->name, follower->status,
			 expected->status);
	if (end == END_LOST) {
		assert_int_equal(event, HTTP_FOLLOW_GAVE_UP);
		return;
	}
	assert_int_equal(event, end == END_COMPLETE ? HTTP_FOLLOW_COMPLETE : HTTP_FOLLOW_GOING_ON);
	assert_int_equal(follower->bytes, expected->length);
	assert_int_equal(follower->next_sequence, sequence(expected->length));
	if (end == END_COMPLETE && http_follow_keeps_alive(follower) == expected->last)
		fail_msg("%s: the connection %s be used again", expected->name,
			 expected->last ? "will not" : "will");
}

/* The connection ends behind the last byte. */
static void check_fin(struct http_follower *follower, const struct answer_case *expected)
{
	enum http_follow_event event = http_follow_end(follower, sequence(expected->length));

	if (expected->end == END_COMPLETE) {
		assert_int_equal(event, HTTP_FOLLOW_GOING_ON);
	} else if (expected->end == END_CLOSE) {
		assert_int_equal(event, HTTP_FOLLOW_COMPLETE);
		assert_int_equal(follower->status, expected->status);
		assert_false(http_follow_keeps_alive(follower));
	} else {
		assert_int_equal(event, HTTP_FOLLOW_CUT_OFF);
	}
	assert_int_equal(http_follow_end(follower, sequence(expected->length)),
			 HTTP_FOLLOW_GOING_ON);
}

static void cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ANSWER_CASE_COUNT; i++) {
		const struct answer_case *expected = &answer_cases[i];
		struct http_follower follower;
		enum http_follow_event event;
		struct model_answer model = {.bytes = (const unsigned char *)expected->bytes,
					     .length = expected->length,
					     .request = expected->request};

		http_follow_answer(&follower, expected->request, SEQUENCE);
		event = feed(&follower, expected->bytes, 0, expected->length);
		check_end(&follower, event, expected);
		check_fin(&follower, expected);
		if (model_answer(&model) != expected->end)
			fail_msg("%s: the model says otherwise", expected->name);
		assert_int_equal(model.status, expected->status);
		if (expected->end == END_COMPLETE) {
			assert_int_equal(model.at, expected->length);
			assert_int_equal(model.last, expected->last);
		}
	}
}

/* Two segments, cut at every byte; each is then repeated, alone and together with the other. */
static void cut_anywhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < ANSWER_CASE_COUNT; i++) {
		const struct answer_case *expected = &answer_cases[i];

		for (size_t cut = 1; cut < expected->length; cut++) {
			struct http_follower follower, before;
			enum http_follow_event event;

			http_follow_answer(&follower, expected->request, SEQUENCE);
			event = feed(&follower, expected->bytes, 0, cut);
			if (event == HTTP_FOLLOW_GAVE_UP) {
				assert_int_equal(expected->end, END_LOST);
				continue;
			}
			assert_int_equal(event, HTTP_FOLLOW_GOING_ON);
			before = follower;
			feed(&follower, expected->bytes, 0, cut);
			assert_memory_equal(&before, &follower, sizeof(before));
			event = feed(&follower, expected->bytes, cut % 3 ? cut : 0,
				     expected->length);
			check_end(&follower, event, expected);
			before = follower;
			feed(&follower, expected->bytes, cut, expected->length);
			feed(&follower, expected->bytes, 0, expected->length);
			assert_memory_equal(&before, &follower, sizeof(before));
			check_fin(&follower, expected);
		}
	}
}

static void byte_by_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < ANSWER_CASE_COUNT; i++) {
		const struct answer_case *expected = &answer_cases[i];
		enum http_follow_event event = HTTP_FOLLOW_GOING_ON;
		struct http_follower follower;

		http_follow_answer(&follower, expected->request, SEQUENCE);
		for (size_t at = 0; at < expected->length && event == HTTP_FOLLOW_GOING_ON; at++)
			event = feed(&follower, expected->bytes, at, at + 1);
		if (expected->end == END_LOST)
			assert_int_equal(event, HTTP_FOLLOW_GAVE_UP);
		else
			check_end(&follower, event, expected);
	}
}

/* Segments of random sizes, repeated and overlapping at random. */
static void random_segments(void **state)
{
	(void)state;
	srand(11);
	for (int round = 0; round < 40000; round++) {
		const struct answer_case *expected = &answer_cases[round % ANSWER_CASE_COUNT];
		enum http_follow_event event = HTTP_FOLLOW_GOING_ON;
		struct http_follower follower;
		size_t at = 0;

		http_follow_answer(&follower, expected->request, SEQUENCE);
		while (at < expected->length && event == HTTP_FOLLOW_GOING_ON) {
			size_t to = at + 1 + rand() % 40,
			       from = rand() % 3 ? at : (size_t)(rand() % (at + 1));

			if (to > expected->length)
				to = expected->length;
			if (from < at && rand() % 4 == 0)
				assert_int_equal(feed(&follower, expected->bytes, from, at),
						 HTTP_FOLLOW_GOING_ON);
			event = feed(&follower, expected->bytes, from, to);
			at = to;
		}
		if (expected->end == END_LOST)
			assert_int_equal(event, HTTP_FOLLOW_GAVE_UP);
		else
			check_end(&follower, event, expected);
	}
}

/* A segment is missing: within a body nothing is lost, elsewhere it is said. When it comes late it changes nothing. */
static void gaps(void **state)
{
	(void)state;
	for (size_t i = 0; i < ANSWER_CASE_COUNT; i++) {
		const struct answer_case *expected = &answer_cases[i];

		if (expected->end == END_LOST)
			continue;
		for (size_t from = 1; from < expected->length; from++) {
			for (size_t to = from + 1; to < expected->length; to += 1 + to % 3) {
				struct http_follower follower, after;
				enum http_follow_event event;
				bool body;

				http_follow_answer(&follower, expected->request, SEQUENCE);
				if (feed(&follower, expected->bytes, 0, from) !=
				    HTTP_FOLLOW_GOING_ON)
					continue;
				body = follower.state == HTTP_FOLLOW_UNTIL_CLOSE ||
				       follower.state == HTTP_FOLLOW_TUNNEL ||
				       ((follower.state == HTTP_FOLLOW_COUNTED ||
					 follower.state == HTTP_FOLLOW_CHUNK_DATA) &&
					follower.remaining >= to - from);
				event = feed(&follower, expected->bytes, to, expected->length);
				if (body) {
					check_end(&follower, event, expected);
					after = follower;
					feed(&follower, expected->bytes, from, to);
					assert_memory_equal(&after, &follower, sizeof(after));
				} else {
					assert_int_equal(event, HTTP_FOLLOW_GAVE_UP);
					assert_int_equal(follower.state, HTTP_FOLLOW_LOST);
				}
			}
		}
	}
}

/* Bytes behind the end of an answer: it was complete, but the connection cannot move. */
static void excess(void **state)
{
	(void)state;
	for (size_t i = 0; i < ANSWER_CASE_COUNT; i++) {
		const struct answer_case *expected = &answer_cases[i];
		char bytes[2048];
		struct http_follower follower;

		if (expected->end != END_COMPLETE)
			continue;
		memcpy(bytes, expected->bytes, expected->length);
		bytes[expected->length] = 'H';
		http_follow_answer(&follower, expected->request, SEQUENCE);
		assert_int_equal(feed(&follower, bytes, 0, expected->length + 1),
				 HTTP_FOLLOW_COMPLETE);
		assert_int_equal(follower.bytes, expected->length);
		assert_false(http_follow_keeps_alive(&follower));

		http_follow_answer(&follower, expected->request, SEQUENCE);
		assert_int_equal(feed(&follower, bytes, 0, expected->length), HTTP_FOLLOW_COMPLETE);
		assert_int_equal(feed(&follower, bytes, expected->length, expected->length + 1),
				 HTTP_FOLLOW_GAVE_UP);
		assert_int_equal(follower.state, HTTP_FOLLOW_LOST);
		assert_false(http_follow_keeps_alive(&follower));
	}
}

/* A gap that reaches beyond the end of a counted body: the answer was complete, but where the next one starts is not known. */
static void gap_beyond_the_end(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
	struct http_follower follower;
	size_t length = sizeof(head) - 1;

	(void)state;
	for (int beyond = 0; beyond < 2; beyond++) {
		http_follow_answer(&follower, 0, SEQUENCE);
		assert_int_equal(feed(&follower, head, 0, length), HTTP_FOLLOW_GOING_ON);
		assert_int_equal(http_follow(&follower, &window, (void *)head, 0, 5,
					     sequence(length + 100 + beyond)),
				 HTTP_FOLLOW_COMPLETE);
		assert_int_equal(follower.bytes, length + 100);
		assert_false(http_follow_keeps_alive(&follower));
	}
	/* FIN overtakes the last bytes: within the count, at its end, too early */
	for (int missing = 98; missing <= 100; missing++) {
		http_follow_answer(&follower, 0, SEQUENCE);
		feed(&follower, head, 0, length);
		assert_int_equal(http_follow_end(&follower, sequence(length + missing)),
				 missing < 100 ? HTTP_FOLLOW_CUT_OFF : HTTP_FOLLOW_COMPLETE);
	}
}

/* Big bodies: never read, in segments of GRO's size, and with a hole. */
static void big_bodies(void **state)
{
	const char counted[] = "HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n";
	const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n12a05f200\r\n";
	const char last[] = "\r\n0\r\n\r\n";
	__u64 size = 5000000000, head;
	struct http_follower follower;

	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		__u64 at = 0;

		head = kind ? sizeof(chunked) - 1 : sizeof(counted) - 1;
		http_follow_answer(&follower, 0, SEQUENCE);
		assert_int_equal(feed(&follower, kind ? chunked : counted, 0, head),
				 HTTP_FOLLOW_GOING_ON);
		for (; at + 65536 < size; at += 65536)
			if (at % 7) /* NULL: must not be read */
				assert_int_equal(http_follow(&follower, &window, NULL, 0, 65536,
							     sequence(head + at)),
						 HTTP_FOLLOW_GOING_ON);
		assert_int_equal(
			http_follow(&follower, &window, NULL, 0, size - at, sequence(head + at)),
			kind ? HTTP_FOLLOW_GOING_ON : HTTP_FOLLOW_COMPLETE);
		if (kind)
			assert_int_equal(http_follow(&follower, &window, (void *)last, 0,
						     sizeof(last) - 1, sequence(head + size)),
					 HTTP_FOLLOW_COMPLETE);
		assert_int_equal(follower.bytes, head + size + (kind ? sizeof(last) - 1 : 0));
		assert_true(http_follow_keeps_alive(&follower));
	}
}

/* As many chunks in one segment as fit: of one byte each, and of an event each. */
static void many_chunks(void **state)
{
	const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	const int sizes[] = {1, 2, 17, 33, 245};
	static char segment[65536];
	struct http_follower follower;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t length = 0;

		while (length + sizes[i] + 6 + 5 < sizeof(segment)) {
			length += sprintf(segment + length, "%x\r\n", sizes[i]);
			memset(segment + length, '\r', sizes[i]);
			length += sizes[i];
			length += sprintf(segment + length, "\r\n");
		}
		length += sprintf(segment + length, "0\r\n\r\n");
		http_follow_answer(&follower, 0, SEQUENCE);
		feed(&follower, head, 0, sizeof(head) - 1);
		assert_int_equal(http_follow(&follower, &window, segment, 0, length,
					     sequence(sizeof(head) - 1)),
				 HTTP_FOLLOW_COMPLETE);
		assert_int_equal(follower.bytes, sizeof(head) - 1 + length);
	}
}

/* A segment of more steps than are taken is given up, not misread: each of these tabs is one. */
static void too_many_steps(void **state)
{
	const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;";
	const char rest[] = "\r\nx\r\n0\r\n\r\n";
	static char segment[HTTP_FOLLOW_STEPS + sizeof(rest) - 1];
	const size_t fitting = HTTP_FOLLOW_STEPS - 10;

	(void)state;
	for (size_t tabs = fitting; tabs <= HTTP_FOLLOW_STEPS; tabs += 10) {
		struct http_follower follower;

		memset(segment, '\t', tabs);
		memcpy(segment + tabs, rest, sizeof(rest) - 1);
		http_follow_answer(&follower, 0, SEQUENCE);
		feed(&follower, head, 0, sizeof(head) - 1);
		assert_int_equal(http_follow(&follower, &window, segment, 0,
					     tabs + sizeof(rest) - 1, sequence(sizeof(head) - 1)),
				 tabs == fitting ? HTTP_FOLLOW_COMPLETE : HTTP_FOLLOW_GAVE_UP);
	}
}

/* What a request says about its answer. */
static void request_flags(void **state)
{
	struct http_request request = {.minor_version = 1};

	(void)state;
	assert_int_equal(http_follow_flags(&request), 0);
	request.flags = HTTP_CLOSE;
	assert_int_equal(http_follow_flags(&request), HTTP_FOLLOW_REQUEST_CLOSE);
	request.flags = HTTP_UPGRADE;
	request.method = HTTP_METHOD_HEAD;
	assert_int_equal(http_follow_flags(&request), HTTP_FOLLOW_UPGRADE | HTTP_FOLLOW_HEAD);
	request.minor_version = 0;
	request.flags = 0;
	request.method = HTTP_METHOD_CONNECT;
	assert_int_equal(http_follow_flags(&request),
			 HTTP_FOLLOW_REQUEST_CLOSE | HTTP_FOLLOW_CONNECT);
	request.flags = HTTP_KEEP_ALIVE;
	assert_int_equal(http_follow_flags(&request), HTTP_FOLLOW_CONNECT);
	request.flags = HTTP_KEEP_ALIVE | HTTP_CLOSE;
	assert_int_equal(http_follow_flags(&request),
			 HTTP_FOLLOW_REQUEST_CLOSE | HTTP_FOLLOW_CONNECT);
}

/* Nothing is expected: nothing is said. */
static void idle(void **state)
{
	struct http_follower follower = {0};

	(void)state;
	assert_int_equal(feed(&follower, "HTTP/1.1 408 Timeout\r\n\r\n", 0, 24),
			 HTTP_FOLLOW_GOING_ON);
	assert_int_equal(http_follow_end(&follower, SEQUENCE), HTTP_FOLLOW_GOING_ON);
	assert_int_equal(follower.state, HTTP_FOLLOW_IDLE);
}

/* Cases changed at random, in segments of random sizes: the follower and the model agree on every one. */
static void changed_cases(void **state)
{
	static const char pieces[] = "\r\n\r\n0123: \t,;cC-_\x7f\x80\xff\x01\0aF";
	char text[2048];

	(void)state;
	srand(13);
	for (int round = 0; round < 60000; round++) {
		const struct answer_case *source = &answer_cases[rand() % ANSWER_CASE_COUNT];
		struct model_answer model = {.bytes = (unsigned char *)text,
					     .request = source->request};
		struct answer_case expected = {.name = source->name, .request = source->request};
		enum http_follow_event event = HTTP_FOLLOW_GOING_ON;
		struct http_follower follower;
		size_t length = source->length;

		memcpy(text, source->bytes, length);
		for (int change = rand() % 3; change >= 0 && length > 30; change--) {
			size_t at = rand() % (length - 12);

			if (rand() % 3) {
				text[at] = pieces[rand() % (sizeof(pieces) - 1)];
			} else {
				memmove(text + at, text + at + 1, length - at - 1);
				length--;
			}
		}
		model.length = length;
		expected.end = model_answer(&model);
		expected.status = model.status;
		expected.last = model.last;
		expected.length = expected.end == END_COMPLETE ? model.at : length;
		http_follow_answer(&follower, source->request, SEQUENCE);
		for (size_t at = 0, to; at < expected.length && event == HTTP_FOLLOW_GOING_ON;
		     at = to) {
			to = at + 1 + rand() % (round % 2 ? 100 : 900);
			if (to > expected.length)
				to = expected.length;
			event = feed(&follower, text, at, to);
		}
		check_end(&follower, event, &expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cases),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(byte_by_byte),
		cmocka_unit_test(random_segments),
		cmocka_unit_test(gaps),
		cmocka_unit_test(excess),
		cmocka_unit_test(gap_beyond_the_end),
		cmocka_unit_test(big_bodies),
		cmocka_unit_test(many_chunks),
		cmocka_unit_test(too_many_steps),
		cmocka_unit_test(request_flags),
		cmocka_unit_test(idle),
		cmocka_unit_test(changed_cases),
	};

	return cmocka_run_group_tests_name("http_answer", tests, NULL, NULL);
}
