/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one more character means to an answer that is being followed: the state machine of http_answer.h, which can be left and
 * taken up again at any byte.
 *
 * Owns: the rules of where an answer ends (RFC 9112, sections 6 and 7). May not know: segments, sequence numbers, windows.
 *
 * Rules, where the RFC leaves a choice:
 * - A status line is exactly `HTTP/1.x SP three digits`, then a blank or the line's end.
 * - In the head LF alone ends a line (RFC 9112, 2.2); in chunk lines and trailers only CR LF does.
 * - Lost, never guessed: CR without LF, a header without a name or colon or with a blank before the colon, a continued line behind a header
 *   of interest, a Content-Length that is no number of 1 to 18 digits or differs from another, a chunk length that is no
 *   hexadecimal number of 1 to 15 digits, anything but CR LF after a chunk.
 * - Transfer-Encoding counts before Content-Length; with both, or in HTTP/1.0, the connection is not used again.
 */
#ifndef WARMPATH_HTTP_MESSAGE_H
#define WARMPATH_HTTP_MESSAGE_H

#include "http.h"
#include "http_text.h"

enum http_follow_header {
	HTTP_FOLLOW_HEADER_LENGTH = 0,
	HTTP_FOLLOW_HEADER_CODING = 1,
	HTTP_FOLLOW_HEADER_CONNECTION = 2,
	HTTP_FOLLOW_HEADER_OTHER = 3,
};

#define HTTP_FOLLOW_NAME_SIZE 32
#define HTTP_FOLLOW_NAMES_ALL 7 /* a bit for each of the three names */

static const __u8 http_follow_names[4 * HTTP_FOLLOW_NAME_SIZE] __attribute__((unused)) =
	"content-length\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
	"transfer-encoding\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
	"connection\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

static __always_inline __u8 http_follow_name_element(__u32 name, __u32 position)
{
	return http_element(http_follow_names, sizeof(http_follow_names),
			    name * HTTP_FOLLOW_NAME_SIZE + position);
}

#define HTTP_FOLLOW_BLANKS_BEFORE 0 /* http_follower.position in a number */
#define HTTP_FOLLOW_DIGITS	  1
#define HTTP_FOLLOW_BLANKS_AFTER  2

#define HTTP_DECIMAL_LIMIT	    100000000000000000ull /* one more digit makes 18 */
#define HTTP_HEXADECIMAL_DIGITS_MAX 15

/* Starts the value of a header whose name has just ended. */
static __always_inline void http_follow_value(struct http_follower *follower, __u32 header)
{
	follower->position = 0;
	follower->token = 0;
	follower->number = 0;
	follower->header = header;
	if (header == HTTP_FOLLOW_HEADER_LENGTH) {
		follower->state = HTTP_FOLLOW_VALUE_LENGTH;
	} else if (header == HTTP_FOLLOW_HEADER_CODING) {
		follower->state = HTTP_FOLLOW_VALUE_CODING;
		follower->flags |= HTTP_FOLLOW_CODING;
	} else if (header == HTTP_FOLLOW_HEADER_CONNECTION) {
		follower->state = HTTP_FOLLOW_VALUE_CONNECTION;
	} else {
		follower->state = HTTP_FOLLOW_VALUE_OTHER;
	}
}

/* A status line or a chunk's length is read next. */
static __always_inline void http_follow_start_line(struct http_follower *follower)
{
	follower->number = 0;
	follower->position = 0;
}

/* The head has ended: what follows (RFC 9112, 6.3)? */
static __always_inline enum http_follow_state http_follow_head_end(struct http_follower *follower)
{
	__u32 flags = follower->flags, status = follower->status;

	http_follow_start_line(follower);
	if (status == 101)
		return flags & HTTP_FOLLOW_UPGRADE ? HTTP_FOLLOW_TUNNEL : HTTP_FOLLOW_LOST;
	if (status < 200) {
		/* An interim answer: the real one follows (RFC 9110, 15.2). */
		follower->flags = flags & HTTP_FOLLOW_REQUEST;
		follower->remaining = 0;
		return HTTP_FOLLOW_STATUS;
	}
	if ((flags & HTTP_FOLLOW_CODING) && (flags & (HTTP_FOLLOW_LENGTH | HTTP_FOLLOW_VERSION_0)))
		follower->flags = flags | HTTP_FOLLOW_CLOSE;
	if ((flags & HTTP_FOLLOW_CONNECT) && status < 300)
		return HTTP_FOLLOW_TUNNEL;
	if ((flags & HTTP_FOLLOW_HEAD) || status == 204 || status == 304)
		return HTTP_FOLLOW_DONE;
	if (flags & HTTP_FOLLOW_CHUNKED)
		return HTTP_FOLLOW_CHUNK_SIZE;
	if (!(flags & HTTP_FOLLOW_CODING) && (flags & HTTP_FOLLOW_LENGTH))
		return follower->remaining ? HTTP_FOLLOW_COUNTED : HTTP_FOLLOW_DONE;
	follower->flags = flags | HTTP_FOLLOW_CLOSE;
	return HTTP_FOLLOW_UNTIL_CLOSE;
}

static __always_inline enum http_follow_state
http_follow_status_character(struct http_follower *follower, __u8 character)
{
	__u64 start = HTTP_WORD('H', 'T', 'T', 'P', '/', '1', '.', 0);
	__u32 position = follower->position, digit = (__u32)character - '0';

	follower->position = position + 1;
	if (position < 7)
		return character == (__u8)(start >> position * 8) ? HTTP_FOLLOW_STATUS
								  : HTTP_FOLLOW_LOST;
	if (position == 7) {
		if (!digit)
			follower->flags |= HTTP_FOLLOW_VERSION_0;
		follower->status = 0;
		follower->header = HTTP_FOLLOW_NAMES_ALL; /* a line continued here is lost */
		return digit <= 9 ? HTTP_FOLLOW_STATUS : HTTP_FOLLOW_LOST;
	}
	if (position == 8)
		return character == ' ' ? HTTP_FOLLOW_STATUS : HTTP_FOLLOW_LOST;
	if (position < 12) {
		if (digit > 9)
			return HTTP_FOLLOW_LOST;
		follower->status = follower->status * 10 + digit;
		return HTTP_FOLLOW_STATUS;
	}
	if (follower->status < 100)
		return HTTP_FOLLOW_LOST;
	if (character == ' ')
		return HTTP_FOLLOW_REASON;
	if (character == '\r')
		return HTTP_FOLLOW_LINE_LF;
	return character == '\n' ? HTTP_FOLLOW_LINE_START : HTTP_FOLLOW_LOST;
}

static __always_inline enum http_follow_state
http_follow_name_character(struct http_follower *follower, __u8 character)
{
	__u32 position = follower->position, possible = follower->header, names = 0;

	if (character == ':') {
		if (!position)
			return HTTP_FOLLOW_LOST;
		for (__u32 i = 0; i < HTTP_FOLLOW_HEADER_OTHER; i++) {
			if ((possible >> i & 1) && !http_follow_name_element(i, position)) {
				http_follow_value(follower, i);
				return follower->state;
			}
		}
		http_follow_value(follower, HTTP_FOLLOW_HEADER_OTHER);
		return follower->state;
	}
	if (character <= ' ' || character >= 0x7f)
		return HTTP_FOLLOW_LOST;
	character = http_lower_byte(character);
	for (__u32 i = 0; i < HTTP_FOLLOW_HEADER_OTHER; i++)
		if (http_follow_name_element(i, position) == character)
			names |= 1u << i;
	follower->header = possible & names;
	follower->position = position + 1;
	return follower->header ? HTTP_FOLLOW_NAME : HTTP_FOLLOW_NAME_OTHER;
}

/* A character of a value of interest that neither ends the line nor begins its end. */
static __always_inline enum http_follow_state
http_follow_value_character(struct http_follower *follower, __u8 character)
{
	__u32 digit = (__u32)character - '0', state = follower->state;
	enum http_token token;

	if (state == HTTP_FOLLOW_VALUE_LENGTH) {
		if (http_is_blank(character)) {
			if (follower->position == HTTP_FOLLOW_DIGITS)
				follower->position = HTTP_FOLLOW_BLANKS_AFTER;
			return state;
		}
		if (digit > 9 || follower->position == HTTP_FOLLOW_BLANKS_AFTER ||
		    follower->number >= HTTP_DECIMAL_LIMIT)
			return HTTP_FOLLOW_LOST;
		follower->position = HTTP_FOLLOW_DIGITS;
		follower->number = follower->number * 10 + digit;
		return state;
	}
	token = http_list_character(character, &follower->token, &follower->position);
	if (token == HTTP_TOKEN_NONE)
		return state;
	if (state == HTTP_FOLLOW_VALUE_CODING) {
		/* Only the last coding says how the body ends (RFC 9112, 6.3). */
		follower->flags &= ~HTTP_FOLLOW_CHUNKED;
		if (token == HTTP_TOKEN_CHUNKED)
			follower->flags |= HTTP_FOLLOW_CHUNKED;
	} else if (token == HTTP_TOKEN_CLOSE) {
		follower->flags |= HTTP_FOLLOW_CLOSE;
	} else if (token == HTTP_TOKEN_KEEP_ALIVE) {
		follower->flags |= HTTP_FOLLOW_KEEP_ALIVE;
	}
	return state;
}

/* The line with a value of interest ends. Returns false where the value is none. */
static __always_inline bool http_follow_value_end(struct http_follower *follower)
{
	if (follower->state != HTTP_FOLLOW_VALUE_LENGTH) {
		http_follow_value_character(follower, ',');
		return true;
	}
	if (follower->position == HTTP_FOLLOW_BLANKS_BEFORE)
		return false;
	if ((follower->flags & HTTP_FOLLOW_LENGTH) && follower->remaining != follower->number)
		return false;
	follower->flags |= HTTP_FOLLOW_LENGTH;
	follower->remaining = follower->number;
	return true;
}

static __always_inline enum http_follow_state http_follow_line_start(struct http_follower *follower,
								     __u8 character)
{
	if (character == '\r')
		return HTTP_FOLLOW_HEAD_LF;
	if (character == '\n')
		return http_follow_head_end(follower);
	if (http_is_blank(character))
		return follower->header == HTTP_FOLLOW_HEADER_OTHER ? HTTP_FOLLOW_VALUE_OTHER
								    : HTTP_FOLLOW_LOST;
	follower->header = HTTP_FOLLOW_NAMES_ALL;
	follower->position = 0;
	return http_follow_name_character(follower, character);
}

static __always_inline enum http_follow_state
http_follow_chunk_character(struct http_follower *follower, __u8 character)
{
	__u32 digit = http_hexadecimal_digit(character);

	if (digit <= 15) {
		follower->number = follower->number << 4 | digit;
		follower->position++;
		return follower->position <= HTTP_HEXADECIMAL_DIGITS_MAX ? HTTP_FOLLOW_CHUNK_SIZE
									 : HTTP_FOLLOW_LOST;
	}
	if (!follower->position)
		return HTTP_FOLLOW_LOST;
	if (character == '\r')
		return HTTP_FOLLOW_CHUNK_SIZE_LF;
	return http_is_blank(character) || character == ';' ? HTTP_FOLLOW_CHUNK_EXTENSION
							    : HTTP_FOLLOW_LOST;
}

/* Where CR LF is due: `next` if this is the LF. */
static __always_inline enum http_follow_state http_follow_lf(__u8 character,
							     enum http_follow_state next)
{
	return character == '\n' ? next : HTTP_FOLLOW_LOST;
}

/* Where a line goes on until CR LF. */
static __always_inline enum http_follow_state
http_follow_until_cr(__u8 character, enum http_follow_state same, enum http_follow_state next)
{
	return character == '\r' ? next : character == '\n' ? HTTP_FOLLOW_LOST : same;
}

/* Takes one character in any state but those of bodies (counted, until close, tunnel, chunk data), done and lost. */
static __always_inline void http_follow_character(struct http_follower *follower, __u8 character)
{
	enum http_follow_state next = HTTP_FOLLOW_LOST;

	switch (follower->state) {
	case HTTP_FOLLOW_STATUS:
		next = http_follow_status_character(follower, character);
		break;
	case HTTP_FOLLOW_LINE_START:
		next = http_follow_line_start(follower, character);
		break;
	case HTTP_FOLLOW_NAME:
		next = http_follow_name_character(follower, character);
		break;
	case HTTP_FOLLOW_NAME_OTHER:
		if (character == ':') {
			follower->header = HTTP_FOLLOW_HEADER_OTHER;
			next = HTTP_FOLLOW_VALUE_OTHER;
		} else if (character > ' ' && character < 0x7f) {
			next = HTTP_FOLLOW_NAME_OTHER;
		}
		break;
	case HTTP_FOLLOW_REASON:
	case HTTP_FOLLOW_VALUE_OTHER:
		next = character == '\r'   ? HTTP_FOLLOW_LINE_LF
		       : character == '\n' ? HTTP_FOLLOW_LINE_START
					   : follower->state;
		break;
	case HTTP_FOLLOW_VALUE_LENGTH:
	case HTTP_FOLLOW_VALUE_CODING:
	case HTTP_FOLLOW_VALUE_CONNECTION:
		if (character != '\r' && character != '\n')
			next = http_follow_value_character(follower, character);
		else if (http_follow_value_end(follower))
			next = character == '\r' ? HTTP_FOLLOW_LINE_LF : HTTP_FOLLOW_LINE_START;
		break;
	case HTTP_FOLLOW_LINE_LF:
		next = http_follow_lf(character, HTTP_FOLLOW_LINE_START);
		break;
	case HTTP_FOLLOW_HEAD_LF:
		if (character == '\n')
			next = http_follow_head_end(follower);
		break;
	case HTTP_FOLLOW_CHUNK_SIZE:
		next = http_follow_chunk_character(follower, character);
		break;
	case HTTP_FOLLOW_CHUNK_EXTENSION:
		next = http_follow_until_cr(character, HTTP_FOLLOW_CHUNK_EXTENSION,
					    HTTP_FOLLOW_CHUNK_SIZE_LF);
		break;
	case HTTP_FOLLOW_CHUNK_SIZE_LF:
		follower->remaining = follower->number;
		next = http_follow_lf(character, follower->number ? HTTP_FOLLOW_CHUNK_DATA
								  : HTTP_FOLLOW_TRAILER_START);
		break;
	case HTTP_FOLLOW_CHUNK_CR:
		next = character == '\r' ? HTTP_FOLLOW_CHUNK_LF : HTTP_FOLLOW_LOST;
		break;
	case HTTP_FOLLOW_CHUNK_LF:
		http_follow_start_line(follower);
		next = http_follow_lf(character, HTTP_FOLLOW_CHUNK_SIZE);
		break;
	case HTTP_FOLLOW_TRAILER_START:
		next = http_follow_until_cr(character, HTTP_FOLLOW_TRAILER,
					    HTTP_FOLLOW_TRAILERS_LF);
		break;
	case HTTP_FOLLOW_TRAILER:
		next = http_follow_until_cr(character, HTTP_FOLLOW_TRAILER, HTTP_FOLLOW_TRAILER_LF);
		break;
	case HTTP_FOLLOW_TRAILER_LF:
		next = http_follow_lf(character, HTTP_FOLLOW_TRAILER_START);
		break;
	case HTTP_FOLLOW_TRAILERS_LF:
		next = http_follow_lf(character, HTTP_FOLLOW_DONE);
		break;
	}
	follower->state = next;
}

#endif /* WARMPATH_HTTP_MESSAGE_H */
