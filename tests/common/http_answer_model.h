/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where an answer ends, written a second time: over the whole of its bytes at once, without anything of the follower. Tests and
 * fuzzers compare the two.
 */
#ifndef WARMPATH_TEST_HTTP_ANSWER_MODEL_H
#define WARMPATH_TEST_HTTP_ANSWER_MODEL_H

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http_answer_cases.h"

struct model_answer {
	const unsigned char *bytes;
	size_t length;
	__u16 request;

	size_t at; /* END_COMPLETE: where the answer ends */
	unsigned int status;
	bool last;
	bool version_0, has_length, has_coding, chunked, close, keep_alive;
	unsigned long long content_length;
};

/* What reading one thing came to; the first two are also answers about the whole. */
enum model_step { STEP_OPEN, STEP_LOST, STEP_ON };

#define MODEL_TRY(step)                       \
	do {                                  \
		enum model_step tried = step; \
		if (tried != STEP_ON)         \
			return tried;         \
	} while (0)

static enum model_step model_next(struct model_answer *answer, unsigned char *character)
{
	if (answer->at == answer->length)
		return STEP_OPEN;
	*character = answer->bytes[answer->at++];
	return STEP_ON;
}

static enum model_step model_expect(struct model_answer *answer, const char *text)
{
	unsigned char character;

	for (; *text; text++) {
		MODEL_TRY(model_next(answer, &character));
		if (character != (unsigned char)*text)
			return STEP_LOST;
	}
	return STEP_ON;
}

/* Up to a line's end; LF alone is one only in the head. */
static enum model_step model_skip_line(struct model_answer *answer, bool head)
{
	unsigned char character;

	for (;;) {
		MODEL_TRY(model_next(answer, &character));
		if (character == '\r')
			return model_expect(answer, "\n");
		if (character == '\n')
			return head ? STEP_ON : STEP_LOST;
	}
}

static enum model_step model_status_line(struct model_answer *answer)
{
	unsigned char character;

	MODEL_TRY(model_expect(answer, "HTTP/1."));
	MODEL_TRY(model_next(answer, &character));
	answer->version_0 = character == '0';
	answer->status = 0;
	if (!isdigit(character))
		return STEP_LOST;
	MODEL_TRY(model_expect(answer, " "));
	for (int i = 0; i < 3; i++) {
		MODEL_TRY(model_next(answer, &character));
		if (!isdigit(character))
			return STEP_LOST;
		answer->status = answer->status * 10 + character - '0';
	}
	if (answer->at == answer->length)
		return STEP_OPEN;
	character = answer->bytes[answer->at];
	if (answer->status < 100 || !strchr(" \r\n", character) || !character)
		return STEP_LOST;
	return model_skip_line(answer, true);
}

static enum model_step model_length(struct model_answer *answer)
{
	unsigned long long number = 0;
	int part = 0; /* blanks, digits, blanks */
	unsigned char character;

	for (;;) {
		MODEL_TRY(model_next(answer, &character));
		if (character == '\r' || character == '\n')
			break;
		if (character == ' ' || character == '\t') {
			part = part ? 2 : 0;
			continue;
		}
		if (!isdigit(character) || part == 2 || number > 99999999999999999)
			return STEP_LOST;
		part = 1;
		number = number * 10 + character - '0';
	}
	if (!part || (answer->has_length && answer->content_length != number))
		return STEP_LOST;
	answer->has_length = true;
	answer->content_length = number;
	return character == '\r' ? model_expect(answer, "\n") : STEP_ON;
}

static enum model_step model_list(struct model_answer *answer, bool coding)
{
	size_t start = answer->at, end = start;
	char *text, *rest, *element;
	unsigned char character;

	do
		MODEL_TRY(model_next(answer, &character));
	while (character != '\r' && character != '\n');
	end = answer->at - 1;
	text = malloc(end - start + 1);
	for (size_t i = start; i < end; i++)
		text[i - start] = answer->bytes[i] ? answer->bytes[i] : 1;
	text[end - start] = 0;
	for (rest = text; (element = strsep(&rest, ","));) {
		size_t length;

		element += strspn(element, " \t");
		length = strlen(element);
		while (length && strchr(" \t", element[length - 1]))
			element[--length] = 0;
		if (!length)
			continue;
		if (coding)
			answer->chunked = !strcasecmp(element, "chunked");
		else if (!strcasecmp(element, "close"))
			answer->close = true;
		else if (!strcasecmp(element, "keep-alive"))
			answer->keep_alive = true;
	}
	free(text);
	return character == '\r' ? model_expect(answer, "\n") : STEP_ON;
}

static enum model_step model_head(struct model_answer *answer)
{
	bool interest = true; /* was the line before one that must not be continued? */
	unsigned char character;

	answer->has_length = answer->has_coding = answer->chunked = answer->close =
		answer->keep_alive = false;
	MODEL_TRY(model_status_line(answer));
	for (;;) {
		char name[20] = {0};
		size_t length = 0;

		MODEL_TRY(model_next(answer, &character));
		if (character == '\r')
			return model_expect(answer, "\n");
		if (character == '\n')
			return STEP_ON;
		if (character == ' ' || character == '\t') {
			if (interest)
				return STEP_LOST;
			MODEL_TRY(model_skip_line(answer, true));
			continue;
		}
		while (character != ':') {
			if (character <= ' ' || character >= 0x7f)
				return STEP_LOST;
			if (length < sizeof(name) - 1)
				name[length] = character;
			length++;
			MODEL_TRY(model_next(answer, &character));
		}
		if (!length)
			return STEP_LOST;
		interest = true;
		if (!strcasecmp(name, "content-length")) {
			MODEL_TRY(model_length(answer));
		} else if (!strcasecmp(name, "transfer-encoding")) {
			answer->has_coding = true;
			MODEL_TRY(model_list(answer, true));
		} else if (!strcasecmp(name, "connection")) {
			MODEL_TRY(model_list(answer, false));
		} else {
			interest = false;
			MODEL_TRY(model_skip_line(answer, true));
		}
	}
}

static enum model_step model_chunks(struct model_answer *answer)
{
	unsigned long long size;
	unsigned char character;

	do {
		int digits = 0;

		for (size = 0;; digits++) {
			char text[2] = {0};

			MODEL_TRY(model_next(answer, &character));
			if (!isxdigit(character))
				break;
			if (digits == 15)
				return STEP_LOST;
			text[0] = character;
			size = size * 16 + strtoul(text, NULL, 16);
		}
		if (!digits)
			return STEP_LOST;
		if (character == ';' || character == ' ' || character == '\t') {
			MODEL_TRY(model_skip_line(answer, false));
		} else if (character == '\r') {
			MODEL_TRY(model_expect(answer, "\n"));
		} else {
			return STEP_LOST;
		}
		if (size > answer->length - answer->at)
			return STEP_OPEN;
		answer->at += size;
		if (size)
			MODEL_TRY(model_expect(answer, "\r\n"));
	} while (size);
	for (;;) {
		MODEL_TRY(model_next(answer, &character));
		if (character == '\r')
			return model_expect(answer, "\n");
		if (character == '\n')
			return STEP_LOST;
		MODEL_TRY(model_skip_line(answer, false));
	}
}

static enum answer_end model_end(enum model_step step)
{
	return step == STEP_LOST ? END_LOST : step == STEP_OPEN ? END_OPEN : END_COMPLETE;
}

static enum answer_end model_answer(struct model_answer *answer)
{
	enum model_step step;

	answer->at = 0;
	answer->status = 0;
	answer->last = false;
	do {
		step = model_head(answer);
		if (step != STEP_ON)
			return model_end(step);
	} while (answer->status < 200 && answer->status != 101);

	answer->last = answer->close || (answer->request & HTTP_FOLLOW_REQUEST_CLOSE) ||
		       (answer->version_0 && !answer->keep_alive) ||
		       (answer->has_coding && (answer->has_length || answer->version_0));
	if (answer->status == 101 && !(answer->request & HTTP_FOLLOW_UPGRADE))
		return END_LOST;
	if (answer->status == 101 ||
	    ((answer->request & HTTP_FOLLOW_CONNECT) && answer->status < 300)) {
		answer->last = true;
		return END_CLOSE;
	}
	if ((answer->request & HTTP_FOLLOW_HEAD) || answer->status == 204 || answer->status == 304)
		return END_COMPLETE;
	if (answer->has_coding && answer->chunked)
		return model_end(model_chunks(answer));
	if (!answer->has_coding && answer->has_length) {
		if (answer->content_length > answer->length - answer->at)
			return END_OPEN;
		answer->at += answer->content_length;
		return END_COMPLETE;
	}
	answer->last = true;
	return END_CLOSE;
}

#endif /* WARMPATH_TEST_HTTP_ANSWER_MODEL_H */
