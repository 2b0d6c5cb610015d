// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fuzzes the answer follower against the model. Input: one byte for the request, one that says how the answer is cut into
 * segments, then the answer. The segments come with repetitions.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <warmpath/http_answer.h>

#include "../common/http_answer_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct http_window window;

static void check(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "the follower and the model differ in %s\n", what);
		__builtin_trap();
	}
}

/* In a buffer of its own size, so that a byte read beyond it is seen. */
static enum http_follow_event feed(struct http_follower *follower, const uint8_t *bytes,
				   size_t from, size_t to)
{
	enum http_follow_event event;
	uint8_t *segment = malloc(to - from);

	memcpy(segment, bytes + from, to - from);
	event = http_follow(follower, &window, segment, 0, to - from, 0x7ffffff0u + (__u32)from);
	free(segment);
	return event;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model_answer model = {0};
	struct http_follower follower, before;
	enum http_follow_event event = HTTP_FOLLOW_GOING_ON;
	enum answer_end end, expected;
	size_t length, at, to;
	uint32_t random;

	if (size < 3)
		return 0;
	model.request = data[0] & HTTP_FOLLOW_REQUEST;
	model.bytes = data + 2;
	model.length = size - 2;
	expected = model_answer(&model);
	length = expected == END_COMPLETE ? model.at : model.length;

	random = data[1] * 2654435761u + 1;
	http_follow_answer(&follower, model.request, 0x7ffffff0u);
	for (at = 0; at < length && event == HTTP_FOLLOW_GOING_ON; at = to) {
		random = random * 1664525u + 1013904223u;
		to = data[1] < 8 ? length
				 : at + 1 + (random >> 16) % (data[1] < 64 ? 600 : data[1]);
		if (to > length)
			to = length;
		event = feed(&follower, data + 2,
			     random >> 30 || !at ? at : at - (random >> 8) % at, to);
		before = follower;
		if (at && !(random >> 10 & 7)) {
			check(feed(&follower, data + 2, (random >> 13) % at, at) ==
				      HTTP_FOLLOW_GOING_ON,
			      "a repetition");
			check(!memcmp(&before, &follower, sizeof(before)),
			      "the state after a repetition");
		}
	}
	end = follower.state == HTTP_FOLLOW_DONE   ? END_COMPLETE
	      : follower.state == HTTP_FOLLOW_LOST ? END_LOST
	      : follower.state == HTTP_FOLLOW_UNTIL_CLOSE || follower.state == HTTP_FOLLOW_TUNNEL
		      ? END_CLOSE
		      : END_OPEN;
	check(end == expected, "where the answer ends");
	check((end == END_COMPLETE) == (event == HTTP_FOLLOW_COMPLETE), "the event of completion");
	check((end == END_LOST) == (event == HTTP_FOLLOW_GAVE_UP), "the event of loss");
	if (end == END_LOST)
		return 0;
	check(follower.status == model.status, "the status");
	check(follower.bytes == length, "the number of bytes");
	check(follower.next_sequence == 0x7ffffff0u + (__u32)length, "the next sequence number");
	if (end == END_COMPLETE)
		check(http_follow_keeps_alive(&follower) == !model.last,
		      "the use of the connection");
	return 0;
}
