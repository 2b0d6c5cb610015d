/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must be read out of a request head, written a second time: character by character, for clearness, without anything of the
 * parser. Tests and fuzzers compare the two.
 */
#ifndef WARMPATH_TEST_HTTP_REQUEST_MODEL_H
#define WARMPATH_TEST_HTTP_REQUEST_MODEL_H

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#include <warmpath/http.h>

struct model {
	const unsigned char *bytes;
	size_t length;
	const char *const *names; /* most preferred first, NULL at the end */
	unsigned int key_bytes;
	struct http_request *out;
	int best; /* index of the id's name, -1: none */
	bool names_seen[4];
	bool continued;
	bool seen_length, seen_coding, seen_prompt, seen_max;
};

/* Headers by their place here; ids from MODEL_ID on; -1: any other. */
static const char *const model_headers[] = {
	"content-length", "transfer-encoding", "connection",   "expect",
	"upgrade",	  "x-prompt-tokens",   "x-max-tokens", NULL};
#define MODEL_ID 100

static int model_header(const struct model *model, const unsigned char *name, size_t length)
{
	for (int i = 0; model->names[i]; i++)
		if (strlen(model->names[i]) == length &&
		    !strncasecmp((const char *)name, model->names[i], length))
			return MODEL_ID + i;
	for (int i = 0; model_headers[i]; i++)
		if (strlen(model_headers[i]) == length &&
		    !strncasecmp((const char *)name, model_headers[i], length))
			return i;
	return -1;
}

static bool model_number(const char *text, size_t length, unsigned long long *number)
{
	if (length < 1 || length > 18 || strspn(text, "0123456789") != length)
		return false;
	*number = strtoull(text, NULL, 10);
	return true;
}

static void model_connection(struct http_request *out, char *text)
{
	char *rest = text, *element;

	while ((element = strsep(&rest, ","))) {
		size_t length;

		element += strspn(element, " \t");
		length = strlen(element);
		while (length && strchr(" \t", element[length - 1]))
			element[--length] = 0;
		if (!strcasecmp(element, "close"))
			out->flags |= HTTP_CLOSE;
		else if (!strcasecmp(element, "keep-alive"))
			out->flags |= HTTP_KEEP_ALIVE;
		else if (!strcasecmp(element, "upgrade"))
			out->flags |= HTTP_UPGRADE;
	}
}

/* The value of `header` lies in [start, end). */
static void model_value(struct model *model, int header, size_t start, size_t end)
{
	struct http_request *out = model->out;
	unsigned long long number;
	char text[HTTP_HEAD_SIZE + 1];
	size_t length;

	while (start < end && (model->bytes[start] == ' ' || model->bytes[start] == '\t'))
		start++;
	while (start < end && (model->bytes[end - 1] == ' ' || model->bytes[end - 1] == '\t'))
		end--;
	length = end - start;
	memcpy(text, model->bytes + start, length);
	text[length] = 0;
	if (header >= MODEL_ID) {
		int name = header - MODEL_ID;
		bool first = !model->names_seen[name];

		model->names_seen[name] = true;
		if (!first || !length || (model->best >= 0 && model->best <= name))
			return;
		model->best = name;
		model->continued = false;
		out->id_offset = start;
		out->id_length = length;
		return;
	}
	switch (header) {
	case 0:
		model->seen_length = true;
		if (!model_number(text, length, &number) ||
		    ((out->flags & HTTP_HAS_LENGTH) && number != out->content_length)) {
			out->doubts |= HTTP_DOUBT_LENGTH;
			break;
		}
		out->flags |= HTTP_HAS_LENGTH;
		out->content_length = number;
		break;
	case 1:
		if (!model->seen_coding && length == 7 && !strcasecmp(text, "chunked"))
			out->flags |= HTTP_CHUNKED;
		else
			out->doubts |= HTTP_DOUBT_CODING;
		model->seen_coding = true;
		break;
	case 2:
		/* a NUL in it ends no element */
		for (size_t i = 0; i < length; i++)
			if (!text[i])
				text[i] = 1;
		model_connection(out, text);
		break;
	case 3:
		if (length == 12 && !strcasecmp(text, "100-continue"))
			out->flags |= HTTP_EXPECT_CONTINUE;
		else
			out->doubts |= HTTP_DOUBT_EXPECT;
		break;
	case 4:
		out->flags |= HTTP_UPGRADE;
		break;
	case 5:
		if (!model->seen_prompt && model_number(text, length, &number) &&
		    number <= 0xffffffff) {
			out->prompt_tokens = number;
			out->flags |= HTTP_HAS_PROMPT_TOKENS;
		}
		model->seen_prompt = true;
		break;
	case 6:
		if (!model->seen_max && model_number(text, length, &number) &&
		    number <= 0xffffffff) {
			out->max_tokens = number;
			out->flags |= HTTP_HAS_MAX_TOKENS;
		}
		model->seen_max = true;
		break;
	}
}

static bool model_is_token(unsigned char character)
{
	return isalnum(character) || (character && strchr("!#$%&'*+-.^_`|~", character));
}

/* Finds the end of a line from `at` on: returns the offset of the next line, 0: not there. The value ends at *end. */
static size_t model_line_end(struct model *model, size_t at, size_t *end)
{
	for (; at < model->length; at++) {
		unsigned char character = model->bytes[at];

		*end = at;
		if (character == '\n') {
			model->out->doubts |= HTTP_DOUBT_BARE_LF;
			return at + 1;
		}
		if (character == '\r') {
			if (at + 1 == model->length)
				return 0;
			if (model->bytes[at + 1] == '\n')
				return at + 2;
			model->out->doubts |= HTTP_DOUBT_BARE_CR;
		} else if (character < 0x20 && character != '\t') {
			model->out->doubts |= HTTP_DOUBT_CONTROL;
		}
	}
	return 0;
}

/* Returns the offset of the first header line, or a verdict as a negative number. */
static long model_request_line(struct model *model)
{
	static const struct {
		const char *name;
		enum http_method method;
	} methods[] = {{"GET", HTTP_METHOD_GET},
		       {"HEAD", HTTP_METHOD_HEAD},
		       {"POST", HTTP_METHOD_POST},
		       {"PUT", HTTP_METHOD_PUT},
		       {"CONNECT", HTTP_METHOD_CONNECT}};
	const unsigned char *bytes = model->bytes;
	size_t length = model->length, start = 0, at, target;

	for (; start < length; start++) {
		if (bytes[start] == '\n') {
			model->out->doubts |= HTTP_DOUBT_BARE_LF;
		} else if (bytes[start] == '\r') {
			if (start + 1 == length)
				break;
			if (bytes[++start] != '\n')
				return -HTTP_HEAD_MALFORMED;
		} else {
			break;
		}
	}
	if (start >= length || bytes[start] == '\r')
		return -HTTP_HEAD_MORE;
	for (at = start; at < length && bytes[at] > ' '; at++)
		if (at - start >= 31)
			return -HTTP_HEAD_MALFORMED;
	if (at == length)
		return -HTTP_HEAD_MORE;
	if (bytes[at] != ' ' || at == start)
		return -HTTP_HEAD_MALFORMED;
	for (size_t i = start; i < at; i++)
		if (!model_is_token(bytes[i]))
			return -HTTP_HEAD_MALFORMED;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strlen(methods[i].name) == at - start &&
		    !memcmp(methods[i].name, bytes + start, at - start))
			model->out->method = methods[i].method;
	for (target = ++at; at < length && bytes[at] > ' ';)
		at++;
	if (at == length)
		return -HTTP_HEAD_MORE;
	if (bytes[at] != ' ' || at == target)
		return -HTTP_HEAD_MALFORMED;
	if (at + 10 >= length)
		return -HTTP_HEAD_MORE;
	if (memcmp(bytes + at + 1, "HTTP/1.", 7) || !isdigit(bytes[at + 8]))
		return -HTTP_HEAD_MALFORMED;
	model->out->minor_version = bytes[at + 8] != '0';
	if (bytes[at + 9] == '\n') {
		model->out->doubts |= HTTP_DOUBT_BARE_LF;
		return at + 10;
	}
	return bytes[at + 9] == '\r' && bytes[at + 10] == '\n' ? (long)at + 11
							       : -HTTP_HEAD_MALFORMED;
}

static void model_id(struct model *model)
{
	struct http_request *out = model->out;

	if (model->best < 0)
		return;
	out->id_name = model->best;
	out->id = HTTP_ID_FOUND;
	if (model->continued || out->id_length > 128)
		out->id = HTTP_ID_INVALID;
	for (size_t i = 0; i < out->id_length; i++) {
		unsigned char character = model->bytes[out->id_offset + i];

		if (!(character < 0x80 && isalnum(character)) &&
		    (!character || !strchr("._:-", character)))
			out->id = HTTP_ID_INVALID;
	}
}

static void model_key(struct model *model)
{
	struct http_request *out = model->out;
	size_t start = out->head_length, wanted = model->key_bytes, present;
	unsigned long long size = out->content_length;

	if (out->flags & HTTP_CHUNKED) {
		size_t digits = 0;

		while (digits < 8 && start + digits < model->length &&
		       isxdigit(model->bytes[start + digits]))
			digits++;
		if (start + digits + 2 > model->length) {
			out->key_missing = wanted;
			return;
		}
		if (memcmp(model->bytes + start + digits, "\r\n", 2))
			return;
		size = 0;
		for (size_t i = 0; i < digits; i++) {
			char digit[2] = {model->bytes[start + i], 0};

			size = size * 16 + strtoul(digit, NULL, 16);
		}
		start += digits + 2;
	}
	if (wanted > size)
		wanted = size;
	present = model->length - start;
	out->key_offset = start;
	out->key_length = present < wanted ? present : wanted;
	out->key_missing = wanted - out->key_length;
}

static enum http_verdict model_request(const void *data, size_t length, bool last,
				       const char *const *names, unsigned int key_bytes,
				       struct http_request *out)
{
	struct model model = {.bytes = data,
			      .length = length < HTTP_HEAD_SIZE ? length : HTTP_HEAD_SIZE,
			      .names = names,
			      .key_bytes = key_bytes,
			      .out = out,
			      .best = -1};
	const unsigned char *bytes = data;
	long at;
	int header = -1;

	memset(out, 0, sizeof(*out));
	at = model_request_line(&model);
	length = model.length;
	if (at == -HTTP_HEAD_MALFORMED)
		return HTTP_HEAD_MALFORMED;
	while (at > 0 && (size_t)at < length) {
		size_t from = at, value = 0, end, next;
		bool named = false;

		if (bytes[at] == '\r' && (size_t)at + 1 == length)
			break;
		if (bytes[at] == '\n' || (bytes[at] == '\r' && bytes[at + 1] == '\n')) {
			if (bytes[at] == '\n')
				out->doubts |= HTTP_DOUBT_BARE_LF;
			out->head_length = at + (bytes[at] == '\n' ? 1 : 2);
			break;
		}
		if (bytes[at] == ' ' || bytes[at] == '\t') {
			out->doubts |= HTTP_DOUBT_FOLDED;
			if (header >= MODEL_ID &&
			    (model.best < 0 || header - MODEL_ID <= model.best)) {
				model.best = header - MODEL_ID;
				model.continued = true;
			}
			header = -1;
		} else {
			while (from < length && bytes[from] > ' ' && bytes[from] < 0x7f &&
			       bytes[from] != ':')
				from++;
			if (from == length)
				break;
			header = -1;
			if (bytes[from] != ':' || from == (size_t)at) {
				out->doubts |= HTTP_DOUBT_NAME;
			} else {
				header = model_header(&model, bytes + at, from - at);
				value = ++from;
				named = true;
			}
		}
		next = model_line_end(&model, from, &end);
		if (!next) {
			/* cut in an id that is too long already */
			size_t first = value, behind = length;

			while (first < behind && (bytes[first] == ' ' || bytes[first] == '\t'))
				first++;
			while (first < behind &&
			       (bytes[behind - 1] == ' ' || bytes[behind - 1] == '\t'))
				behind--;
			if (named && header >= MODEL_ID && behind - first > 128 &&
			    (last || length == HTTP_HEAD_SIZE))
				model_value(&model, header, value, length);
			break;
		}
		if (named)
			model_value(&model, header, value, end);
		at = next;
	}
	if (!out->head_length && !last && length < HTTP_HEAD_SIZE)
		return HTTP_HEAD_MORE;
	if (model.seen_coding && !out->minor_version)
		out->doubts |= HTTP_DOUBT_CODING;
	if (model.seen_coding && model.seen_length)
		out->doubts |= HTTP_DOUBT_BOTH;
	model_id(&model);
	if (!out->head_length) {
		out->doubts |= HTTP_DOUBT_UNFINISHED;
		return HTTP_HEAD_TOO_LONG;
	}
	out->body_present = length - out->head_length;
	if (!(out->flags & HTTP_CHUNKED) && out->body_present > out->content_length)
		out->flags |= HTTP_PIPELINED;
	model_key(&model);
	return HTTP_HEAD_COMPLETE;
}

#endif /* WARMPATH_TEST_HTTP_REQUEST_MODEL_H */
