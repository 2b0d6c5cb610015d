/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the head of an HTTP/1.x request that lies at the start of a buffer: the conversation id and what else decides where
 * the request goes and where it ends.
 *
 * Owns: the bounded scan and the rules below. May not know: packets, TCP, maps, where the bytes came from.
 *
 * The scan goes 32 bytes at a time, from one control character to the next; a header's name is compared only if its first
 * letter is that of a header of interest. Nothing is kept between calls: with more bytes in the buffer the caller asks again
 * from the start.
 *
 * Rules (the RFC of each doubt: http.h):
 * - Empty lines before the request line are skipped (RFC 9112, 2.2). The request line is exactly `method SP target SP HTTP/1.x`;
 *   anything else, TLS and HTTP/2 included, is HTTP_HEAD_MALFORMED as soon as it is seen.
 * - A header's name is compared as a whole, letters regardless of case, every other character as it is.
 * - Of two equal headers the first counts. An empty value is as good as none.
 * - Several names in the settings: the first *in the settings* that has a value counts, wherever it stands in the request, so
 *   that the order in which a client or proxy sends its headers means nothing. It alone decides whether the id is valid.
 * - A continued line behind an id header makes the id invalid: unfolded it would have a blank in it.
 * - What two servers may read differently sets a doubt and goes to the replica, which answers as it sees fit; it is never
 *   repaired here.
 * - HTTP_HEAD_TOO_LONG: lines that ended count; an unfinished id line counts if it is longer than any id already.
 */
#ifndef WARMPATH_HTTP_REQUEST_H
#define WARMPATH_HTTP_REQUEST_H

#include "http_header.h"

/* Each step takes at least one byte of the buffer, or ends the scan. */
#define HTTP_REQUEST_STEPS HTTP_HEAD_SIZE
#define HTTP_REQUEST_A_STEP \
	4 /* header lines: the loop calls a function for each step, which costs as much as reading a line */

enum http_scan_state {
	HTTP_SCAN_START,  /* empty lines, method */
	HTTP_SCAN_TARGET, /* target, version */
	HTTP_SCAN_LINE,	  /* start of a header line, or the empty line */
	HTTP_SCAN_NAME,	  /* in a name longer than one search */
	HTTP_SCAN_VALUE,
};

/* Steps and what they call return one of these. */
enum http_scan_result {
	HTTP_SCAN_ON = 0,
	HTTP_SCAN_STOP = 1, /* the scan has ended, or the buffer has */
	HTTP_SCAN_TO_VALUE, /* the line goes on with a value: look at it at once */
};

static __always_inline long http_scan_end(struct http_head *head, enum http_verdict verdict)
{
	head->scan.verdict = verdict;
	return HTTP_SCAN_STOP;
}

static __always_inline bool http_token_character(__u8 character)
{
	/* RFC 9110, 5.6.2: a bit for each character from 0x00 and from 0x40 on */
	__u64 low = 0x03ff6cfa00000000ull, high = 0x57ffffffc7fffffeull;

	if (character >= 0x80)
		return false;
	return (character < 0x40 ? low >> character : high >> (character - 0x40)) & 1;
}

HTTP_STEP long http_step_method(HTTP_UNUSED __u32 index, void *context)
{
	struct http_head *head = ((struct http_reading *)context)->head;
	struct http_scan *scan = &head->scan;

	if (scan->value >= scan->value_end)
		return HTTP_SCAN_STOP;
	if (!http_token_character(*http_at(head, scan->value)))
		return http_scan_end(head, HTTP_HEAD_MALFORMED);
	scan->value++;
	return HTTP_SCAN_ON;
}

static __always_inline enum http_method http_known_method(__u64 word, __u32 length)
{
	word &= http_mask(length);
	if (word == HTTP_WORD('P', 'O', 'S', 'T', 0, 0, 0, 0))
		return HTTP_METHOD_POST;
	if (word == HTTP_WORD('G', 'E', 'T', 0, 0, 0, 0, 0))
		return HTTP_METHOD_GET;
	if (word == HTTP_WORD('H', 'E', 'A', 'D', 0, 0, 0, 0))
		return HTTP_METHOD_HEAD;
	if (word == HTTP_WORD('P', 'U', 'T', 0, 0, 0, 0, 0))
		return HTTP_METHOD_PUT;
	if (word == HTTP_WORD('C', 'O', 'N', 'N', 'E', 'C', 'T', 0))
		return HTTP_METHOD_CONNECT;
	return HTTP_METHOD_OTHER;
}

static __always_inline long http_scan_start(struct http_reading *reading)
{
	struct http_head *head = reading->head;
	struct http_scan *scan = &head->scan;
	__u32 position = scan->position, available = scan->length - position, found;
	const __u8 *at = http_at(head, position);
	__u64 word = http_word(at);

	if ((__u8)word == '\r') {
		if (available < 2)
			return HTTP_SCAN_STOP;
		if ((__u16)word != HTTP_CRLF)
			return http_scan_end(head, HTTP_HEAD_MALFORMED);
		scan->position = position + 2;
		return HTTP_SCAN_ON;
	}
	if ((__u8)word == '\n') {
		head->request.doubts |= HTTP_DOUBT_BARE_LF;
		scan->position = position + 1;
		return HTTP_SCAN_ON;
	}
	/* A method, of up to 31 characters, and the blank after it. */
	found = http_search_below(at, 0x21);
	if (found >= available && available < HTTP_SEARCH)
		return HTTP_SCAN_STOP;
	if (!found || found == HTTP_SEARCH || *http_at(head, position + found) != ' ')
		return http_scan_end(head, HTTP_HEAD_MALFORMED);
	head->request.method = http_known_method(word, found);
	if (head->request.method == HTTP_METHOD_OTHER) {
		scan->value = position;
		scan->value_end = position + found;
		http_loop(HTTP_SEARCH, http_step_method, reading);
		if (scan->verdict == HTTP_HEAD_MALFORMED)
			return HTTP_SCAN_STOP;
	}
	scan->position = position + found + 1;
	scan->start = scan->position;
	scan->state = HTTP_SCAN_TARGET;
	return HTTP_SCAN_ON;
}

static __always_inline long http_scan_target(struct http_head *head)
{
	struct http_scan *scan = &head->scan;
	__u32 position = scan->position, end;
	__u32 found = http_search_below(http_at(head, position), 0x21);
	const __u8 *at;
	__u64 version;

	end = position + found;
	if (found == HTTP_SEARCH) {
		scan->position = end;
		return HTTP_SCAN_ON;
	}
	if (end >= scan->length)
		return HTTP_SCAN_STOP;
	at = http_at(head, end);
	if (*at != ' ' || end == scan->start)
		return http_scan_end(head, HTTP_HEAD_MALFORMED);
	/* " HTTP/1.1\r\n": even if LF alone ends the line, one more byte has to come. */
	if (end + 10 >= scan->length)
		return HTTP_SCAN_STOP;
	version = http_word(at + 1);
	if ((version & http_mask(7)) != HTTP_WORD('H', 'T', 'T', 'P', '/', '1', '.', 0) ||
	    (version >> 56) - '0' > 9)
		return http_scan_end(head, HTTP_HEAD_MALFORMED);
	head->request.minor_version = version >> 56 != '0';
	scan->state = HTTP_SCAN_LINE;
	if (at[9] == '\n') {
		head->request.doubts |= HTTP_DOUBT_BARE_LF;
		scan->position = end + 10;
		return HTTP_SCAN_ON;
	}
	if (at[9] != '\r' || at[10] != '\n')
		return http_scan_end(head, HTTP_HEAD_MALFORMED);
	scan->position = end + 11;
	return HTTP_SCAN_ON;
}

static __always_inline long http_scan_name(struct http_reading *reading)
{
	struct http_head *head = reading->head;
	struct http_scan *scan = &head->scan;
	__u32 end, length, found = http_search_name_end(http_at(head, scan->position));

	end = scan->position + found;
	scan->position = end;
	if (found == HTTP_SEARCH) {
		scan->state = HTTP_SCAN_NAME;
		return HTTP_SCAN_ON;
	}
	if (end >= scan->length)
		return HTTP_SCAN_STOP;
	scan->state = HTTP_SCAN_VALUE;
	scan->header = HTTP_HEADER_OTHER;
	length = end - scan->start;
	if (*http_at(head, end) != ':' || !length) {
		head->request.doubts |= HTTP_DOUBT_NAME;
		return HTTP_SCAN_TO_VALUE;
	}
	scan->position = end + 1;
	scan->value = end + 1;
	if (length <= HTTP_NAME_MAX &&
	    (reading->settings->first_letters >> (*http_at(head, scan->start) & 31) & 1))
		scan->header = http_name_header(reading, length);
	return HTTP_SCAN_TO_VALUE;
}

static __always_inline long http_scan_line(struct http_reading *reading)
{
	struct http_head *head = reading->head;
	struct http_scan *scan = &head->scan;
	__u32 position = scan->position, available = scan->length - position;
	__u16 pair = http_word(http_at(head, position));

	if ((__u8)pair == '\r' && available < 2)
		return HTTP_SCAN_STOP;
	if (pair == HTTP_CRLF) {
		head->request.head_length = position + 2;
		return http_scan_end(head, HTTP_HEAD_COMPLETE);
	}
	if ((__u8)pair == '\n') {
		head->request.doubts |= HTTP_DOUBT_BARE_LF;
		head->request.head_length = position + 1;
		return http_scan_end(head, HTTP_HEAD_COMPLETE);
	}
	if (http_is_blank((__u8)pair)) {
		head->request.doubts |= HTTP_DOUBT_FOLDED;
		if (scan->header >= HTTP_HEADER_ID && http_name_index(scan->header) <= scan->best) {
			scan->best = http_name_index(scan->header);
			scan->continued = 1;
		}
		scan->header = HTTP_HEADER_OTHER;
		scan->state = HTTP_SCAN_VALUE;
		return HTTP_SCAN_TO_VALUE;
	}
	scan->start = position;
	return http_scan_name(reading);
}

static __always_inline long http_scan_value(struct http_reading *reading)
{
	struct http_head *head = reading->head;
	struct http_scan *scan = &head->scan;
	__u32 end, next, found = http_search_below(http_at(head, scan->position), 0x20);
	__u16 pair;

	end = scan->position + found;
	if (found == HTTP_SEARCH) {
		scan->position = end;
		return HTTP_SCAN_ON;
	}
	if (end >= scan->length)
		return HTTP_SCAN_STOP;
	pair = http_word(http_at(head, end));
	next = end + 1;
	if ((__u8)pair == '\r') {
		if (next >= scan->length)
			return HTTP_SCAN_STOP;
		if (pair != HTTP_CRLF) {
			head->request.doubts |= HTTP_DOUBT_BARE_CR;
			scan->position = next;
			return HTTP_SCAN_ON;
		}
		next = end + 2;
	} else if ((__u8)pair == '\n') {
		head->request.doubts |= HTTP_DOUBT_BARE_LF;
	} else {
		if ((__u8)pair != '\t')
			head->request.doubts |= HTTP_DOUBT_CONTROL;
		scan->position = next;
		return HTTP_SCAN_ON;
	}
	if (scan->header != HTTP_HEADER_OTHER)
		http_read_value(reading, end);
	scan->position = next;
	scan->state = HTTP_SCAN_LINE;
	return HTTP_SCAN_ON;
}

/* The request line, as far as it is there. */
static __always_inline long http_scan_request_line(struct http_reading *reading)
{
	struct http_scan *scan = &reading->head->scan;
	long result = HTTP_SCAN_ON;

	if (scan->state == HTTP_SCAN_START)
		result = http_scan_start(reading);
	if (scan->state == HTTP_SCAN_TARGET && result == HTTP_SCAN_ON)
		result = http_scan_target(reading->head);
	return result;
}

/* A header line, or the part of it that can be taken at once. */
static __always_inline long http_scan_header_line(struct http_reading *reading)
{
	struct http_scan *scan = &reading->head->scan;
	long result = HTTP_SCAN_TO_VALUE;

	if (scan->position >= scan->length)
		return HTTP_SCAN_STOP;
	if (scan->state == HTTP_SCAN_LINE)
		result = http_scan_line(reading);
	else if (scan->state == HTTP_SCAN_NAME)
		result = http_scan_name(reading);
	return result == HTTP_SCAN_TO_VALUE ? http_scan_value(reading) : result;
}

HTTP_STEP long http_step_request(HTTP_UNUSED __u32 index, void *context)
{
	struct http_reading *reading = context;
	struct http_scan *scan = &reading->head->scan;
	long result = HTTP_SCAN_ON;

	if (scan->position >= scan->length)
		return HTTP_SCAN_STOP;
	if (scan->state < HTTP_SCAN_LINE) {
		result = http_scan_request_line(reading);
		if (scan->state < HTTP_SCAN_LINE)
			return result;
	}
	for (int i = 0; i < HTTP_REQUEST_A_STEP && result == HTTP_SCAN_ON; i++)
		result = http_scan_header_line(reading);
	return result;
}

/* --- after the scan ------------------------------------------------------------------------------------------ */

static __always_inline bool http_id_valid(const struct http_head *head, __u32 offset, __u32 length)
{
	__u64 bad = length > HTTP_ID_LENGTH_MAX;

	for (__u32 i = 0; i < HTTP_ID_LENGTH_MAX; i += 8) {
		if (i >= length)
			break;
		bad |= http_not_id(http_word(http_at(head, offset + i))) & http_mask(length - i);
	}
	return !bad;
}

static __always_inline void http_decide_id(struct http_reading *reading)
{
	struct http_head *head = reading->head;
	struct http_request *request = &head->request;
	struct http_scan *scan = &head->scan;

	/* An id line cut by the end of the buffer: all that can be known is that it is too long. */
	if (scan->verdict == HTTP_HEAD_TOO_LONG && scan->state == HTTP_SCAN_VALUE &&
	    scan->header >= HTTP_HEADER_ID) {
		scan->value_end = scan->length;
		if (http_trim(reading) > HTTP_ID_LENGTH_MAX)
			http_read_id(head, http_name_index(scan->header),
				     scan->value_end - scan->value);
	}
	if (scan->best >= HTTP_ID_NAMES_MAX) {
		request->id = HTTP_ID_NONE;
		return;
	}
	request->id_name = scan->best;
	if (!scan->continued && http_id_valid(head, request->id_offset, request->id_length))
		request->id = HTTP_ID_FOUND;
	else
		request->id = HTTP_ID_INVALID;
}

/*
 * The fallback key is the start of the body's *data*: what a chunk's length line says depends on the whole of the conversation. Of
 * a chunked body only the first chunk counts, and only if its line is nothing but the length, of up to eight digits.
 */
static __always_inline void http_find_key(struct http_head *head, __u32 wanted)
{
	struct http_request *request = &head->request;
	__u32 length = head->scan.length, offset = request->head_length, digits, digit;
	__u64 size = request->content_length;

	if (request->flags & HTTP_CHUNKED) {
		size = 0;
		for (digits = 0; digits < 8; digits++) {
			digit = http_hexadecimal_digit(*http_at(head, offset + digits));
			if (digit > 15)
				break;
			size = size << 4 | digit;
		}
		offset += digits + 2;
		if (offset > length) {
			request->key_missing = wanted;
			return;
		}
		if ((__u16)http_word(http_at(head, offset - 2)) != HTTP_CRLF)
			return;
	}
	if (wanted > size)
		wanted = size;
	length -= offset;
	if (length > wanted)
		length = wanted;
	request->key_offset = offset;
	request->key_length = length;
	request->key_missing = wanted - length;
}

static __always_inline void http_finish(struct http_reading *reading)
{
	struct http_head *head = reading->head;
	struct http_request *request = &head->request;
	struct http_scan *scan = &head->scan;

	if ((scan->seen & 1 << HTTP_HEADER_CODING) && !request->minor_version)
		request->doubts |= HTTP_DOUBT_CODING;
	if ((scan->seen & 1 << HTTP_HEADER_LENGTH) && (scan->seen & 1 << HTTP_HEADER_CODING))
		request->doubts |= HTTP_DOUBT_BOTH;
	http_decide_id(reading);
	if (scan->verdict == HTTP_HEAD_TOO_LONG) {
		request->doubts |= HTTP_DOUBT_UNFINISHED;
		return;
	}
	request->body_present = scan->length - request->head_length;
	if (!(request->flags & HTTP_CHUNKED) && request->body_present > request->content_length)
		request->flags |= HTTP_PIPELINED;
	http_find_key(head, reading->settings->key_bytes);
}

/*
 * Reads the request head at the start of head->bytes, of which the first `length` bytes (0 .. HTTP_HEAD_SIZE; more counts as that)
 * are from the wire. `last`: no more bytes will be looked at, so HTTP_HEAD_MORE is no answer; with a full buffer it never is.
 *
 * Fills head->request; with HTTP_HEAD_MORE and HTTP_HEAD_MALFORMED nothing in it is final.
 */
static __always_inline enum http_verdict http_request_read(struct http_head *head, __u32 length,
							   bool last,
							   const struct http_settings *settings)
{
	struct http_reading reading = {.head = head, .settings = settings};
	struct http_scan *scan = &head->scan;

	if (length > HTTP_HEAD_SIZE)
		length = HTTP_HEAD_SIZE;
	__builtin_memset(&head->request, 0, sizeof(head->request));
	__builtin_memset(scan, 0, sizeof(*scan));
	scan->length = length;
	scan->best = HTTP_ID_NAMES_MAX;
	http_loop(HTTP_REQUEST_STEPS, http_step_request, &reading);
	if (scan->verdict == HTTP_HEAD_MORE && (last || scan->length == HTTP_HEAD_SIZE))
		scan->verdict = HTTP_HEAD_TOO_LONG;
	if (scan->verdict == HTTP_HEAD_COMPLETE || scan->verdict == HTTP_HEAD_TOO_LONG)
		http_finish(&reading);
	return scan->verdict;
}

#endif /* WARMPATH_HTTP_REQUEST_H */
