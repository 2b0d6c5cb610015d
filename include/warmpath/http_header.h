/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which header of a request a line is, and what its value says.
 *
 * Owns: the buffer that a request head is read in, names and values of single headers. May not know: where lines start and end
 * (http_request.h), packets, maps.
 */
#ifndef WARMPATH_HTTP_HEADER_H
#define WARMPATH_HTTP_HEADER_H

#include "http.h"
#include "http_text.h"

enum http_header {
	HTTP_HEADER_OTHER,
	HTTP_HEADER_LENGTH,
	HTTP_HEADER_CODING,
	HTTP_HEADER_CONNECTION,
	HTTP_HEADER_EXPECT,
	HTTP_HEADER_UPGRADE,
	HTTP_HEADER_PROMPT_TOKENS,
	HTTP_HEADER_MAX_TOKENS,
	HTTP_HEADER_ID, /* + index of the name in the settings */
};

/* Memory of one scan. */
struct http_scan {
	__u32 length;	 /* bytes in the buffer */
	__u32 position;	 /* next byte to look at */
	__u32 start;	 /* of the target or the current line */
	__u32 value;	 /* of the current header: first character */
	__u32 value_end; /* and the one after its last */
	__u8 state;	 /* enum http_scan_state */
	__u8 verdict;	 /* enum http_verdict */
	__u8 header;	 /* enum http_header of the current line, or of the one it may continue */
	__u8 seen;	 /* bit per enum http_header: there was one */
	__u8 names_seen; /* bit per name of the settings: there was one */
	__u8 best;	 /* index of the most preferred name with a value so far */
	__u8 continued;	 /* that value goes on in another line */
	__u8 list_token; /* of http_list_character() */
	__u8 list_position; /* the same */
};

/*
 * A request head in memory: in a per-CPU array in the kernel, anywhere in user space. The parser's own memory lies in it, too: what
 * is loaded from there is an unknown number to the verifier, so that its walk through a loop ends after one round,
 * whatever the kernel's version.
 */
#define HTTP_HEAD_PADDING \
	64 /* words are read up to the last byte; what lies here has no influence */

struct http_head {
	__u8 bytes[HTTP_HEAD_SIZE + HTTP_HEAD_PADDING];
	struct http_request request; /* what was read */
	struct http_scan scan;
};

/* What the steps of a scan get: on the stack, as pointers cannot lie in a map. */
struct http_reading {
	struct http_head *head;
	const struct http_settings *settings;
};

/*
 * Where a byte lies. The mask is for the verifier: an offset of HTTP_HEAD_SIZE and more is never below `length`, so what is read there
 * decides nothing.
 */
static __always_inline const __u8 *http_at(const struct http_head *head, __u32 offset)
{
	offset &= HTTP_HEAD_SIZE - 1;
	WARMPATH_BARRIER(offset);
	return head->bytes + offset;
}

/* --- values ------------------------------------------------------------------------------------------------- */

HTTP_STEP long http_step_trim_start(HTTP_UNUSED __u32 index, void *context)
{
	struct http_head *head = ((struct http_reading *)context)->head;
	struct http_scan *scan = &head->scan;

	if (scan->value >= scan->value_end || !http_is_blank(*http_at(head, scan->value)))
		return 1;
	scan->value++;
	return 0;
}

HTTP_STEP long http_step_trim_end(HTTP_UNUSED __u32 index, void *context)
{
	struct http_head *head = ((struct http_reading *)context)->head;
	struct http_scan *scan = &head->scan;

	if (scan->value >= scan->value_end || !http_is_blank(*http_at(head, scan->value_end - 1)))
		return 1;
	scan->value_end--;
	return 0;
}

/* Takes the blanks off both ends of the value and returns its length. One blank in front is the usual case. */
static __always_inline __u32 http_trim(struct http_reading *reading)
{
	struct http_head *head = reading->head;
	struct http_scan *scan = &head->scan;

	if (scan->value < scan->value_end && *http_at(head, scan->value) == ' ')
		scan->value++;
	if (scan->value < scan->value_end && http_is_blank(*http_at(head, scan->value)))
		http_loop(HTTP_HEAD_SIZE, http_step_trim_start, reading);
	if (scan->value < scan->value_end && http_is_blank(*http_at(head, scan->value_end - 1)))
		http_loop(HTTP_HEAD_SIZE, http_step_trim_end, reading);
	return scan->value_end - scan->value;
}

HTTP_STEP long http_step_connection(HTTP_UNUSED __u32 index, void *context)
{
	struct http_head *head = ((struct http_reading *)context)->head;
	struct http_scan *scan = &head->scan;
	__u32 position = scan->value;
	bool end = position >= scan->value_end;
	enum http_token token = http_list_character(end ? ',' : *http_at(head, position),
						    &scan->list_token, &scan->list_position);

	if (token == HTTP_TOKEN_CLOSE)
		head->request.flags |= HTTP_CLOSE;
	else if (token == HTTP_TOKEN_KEEP_ALIVE)
		head->request.flags |= HTTP_KEEP_ALIVE;
	else if (token == HTTP_TOKEN_UPGRADE)
		head->request.flags |= HTTP_UPGRADE;
	scan->value = position + 1;
	return end;
}

static __always_inline void http_read_connection(struct http_reading *reading, __u32 length)
{
	struct http_head *head = reading->head;
	const __u8 *at = http_at(head, head->scan.value);
	__u64 first = http_lower(http_word(at)), second = http_lower(http_word(at + 8));

	if (length == 10 && first == HTTP_WORD('k', 'e', 'e', 'p', '-', 'a', 'l', 'i') &&
	    (second & http_mask(2)) == HTTP_WORD('v', 'e', 0, 0, 0, 0, 0, 0)) {
		head->request.flags |= HTTP_KEEP_ALIVE;
		return;
	}
	if (length == 5 && (first & http_mask(5)) == HTTP_WORD('c', 'l', 'o', 's', 'e', 0, 0, 0)) {
		head->request.flags |= HTTP_CLOSE;
		return;
	}
	head->scan.list_token = 0;
	head->scan.list_position = 0;
	http_loop(HTTP_HEAD_SIZE + 1, http_step_connection, reading);
}

static __always_inline void http_read_length(struct http_head *head, __u32 length)
{
	struct http_request *request = &head->request;
	__u64 number = http_decimal(http_at(head, head->scan.value), length);

	if (number == HTTP_NOT_A_NUMBER ||
	    ((request->flags & HTTP_HAS_LENGTH) && request->content_length != number)) {
		request->doubts |= HTTP_DOUBT_LENGTH;
		return;
	}
	request->content_length = number;
	request->flags |= HTTP_HAS_LENGTH;
}

static __always_inline void http_read_coding(struct http_head *head, __u32 length)
{
	__u64 word = http_lower(http_word(http_at(head, head->scan.value)));

	if (length == 7 &&
	    (word & http_mask(7)) == HTTP_WORD('c', 'h', 'u', 'n', 'k', 'e', 'd', 0) &&
	    !(head->scan.seen & 1 << HTTP_HEADER_CODING))
		head->request.flags |= HTTP_CHUNKED;
	else
		head->request.doubts |= HTTP_DOUBT_CODING;
}

static __always_inline void http_read_expect(struct http_head *head, __u32 length)
{
	const __u8 *at = http_at(head, head->scan.value);
	__u64 first = http_lower(http_word(at)), second = http_lower(http_word(at + 8));

	if (length == 12 && first == HTTP_WORD('1', '0', '0', '-', 'c', 'o', 'n', 't') &&
	    (second & http_mask(4)) == HTTP_WORD('i', 'n', 'u', 'e', 0, 0, 0, 0))
		head->request.flags |= HTTP_EXPECT_CONTINUE;
	else
		head->request.doubts |= HTTP_DOUBT_EXPECT;
}

static __always_inline void http_read_tokens(struct http_head *head, __u32 header, __u32 length)
{
	struct http_request *request = &head->request;
	__u64 number;

	if (head->scan.seen & 1u << header)
		return;
	number = http_decimal(http_at(head, head->scan.value), length);
	if (number > 0xffffffff)
		return;
	if (header == HTTP_HEADER_PROMPT_TOKENS) {
		request->prompt_tokens = number;
		request->flags |= HTTP_HAS_PROMPT_TOKENS;
	} else {
		request->max_tokens = number;
		request->flags |= HTTP_HAS_MAX_TOKENS;
	}
}

/* Only where the id lies is kept; whether it is valid is asked once, of the one that counts. */
static __always_inline void http_read_id(struct http_head *head, __u32 name, __u32 length)
{
	struct http_scan *scan = &head->scan;
	bool first = !(scan->names_seen >> name & 1);

	scan->names_seen |= 1u << name;
	if (!first || !length || name >= scan->best)
		return;
	scan->best = name;
	scan->continued = 0;
	head->request.id_offset = scan->value;
	head->request.id_length = length;
}

/* Index in the settings of a header from HTTP_HEADER_ID on. */
static __always_inline __u32 http_name_index(__u32 header)
{
	return (header - HTTP_HEADER_ID) & (HTTP_ID_NAMES_MAX - 1);
}

/* Reads the value from scan.value up to `end`. */
static __always_inline void http_read_value(struct http_reading *reading, __u32 end)
{
	struct http_head *head = reading->head;
	__u32 header = head->scan.header, length;

	head->scan.value_end = end;
	length = http_trim(reading);
	if (header >= HTTP_HEADER_ID) {
		http_read_id(head, http_name_index(header), length);
		return;
	}
	if (header == HTTP_HEADER_LENGTH)
		http_read_length(head, length);
	else if (header == HTTP_HEADER_CODING)
		http_read_coding(head, length);
	else if (header == HTTP_HEADER_CONNECTION)
		http_read_connection(reading, length);
	else if (header == HTTP_HEADER_EXPECT)
		http_read_expect(head, length);
	else if (header == HTTP_HEADER_UPGRADE)
		head->request.flags |= HTTP_UPGRADE;
	else
		http_read_tokens(head, header, length);
	head->scan.seen |= 1u << header;
}

/* --- names -------------------------------------------------------------------------------------------------- */

/* Is the name at `at`, whose first word in lower case is `first`, that name of the settings, of equal length? */
static __always_inline bool http_same_name(const struct http_name *name, const __u8 *at,
					   __u32 length, __u64 first)
{
	if (first != name->word[0])
		return false;
	for (__u32 i = 1; i < HTTP_NAME_WORDS; i++) {
		if (length <= i * 8)
			break;
		if ((http_lower(http_word(at + i * 8)) & http_mask(length - i * 8)) !=
		    name->word[i])
			return false;
	}
	return true;
}

/* Which header has the name of `length` characters (1 .. HTTP_NAME_MAX) at scan.start? */
static __always_inline enum http_header http_name_header(const struct http_reading *reading,
							 __u32 length)
{
	const struct http_settings *settings = reading->settings;
	const __u8 *at = http_at(reading->head, reading->head->scan.start);
	__u64 first = http_lower(http_word(at)) & http_mask(length), second;

	for (__u32 i = 0; i < HTTP_ID_NAMES_MAX; i++)
		if (i < settings->name_count && length == settings->name_length[i] &&
		    http_same_name(&settings->name[i], at, length, first))
			return HTTP_HEADER_ID + i;

	if (first == HTTP_WORD('e', 'x', 'p', 'e', 'c', 't', 0, 0))
		return HTTP_HEADER_EXPECT;
	if (first == HTTP_WORD('u', 'p', 'g', 'r', 'a', 'd', 'e', 0))
		return HTTP_HEADER_UPGRADE;
	if (length <= 8 || length > 17)
		return HTTP_HEADER_OTHER;
	second = http_lower(http_word(at + 8)) & http_mask(length - 8);
	if (first == HTTP_WORD('c', 'o', 'n', 't', 'e', 'n', 't', '-') && length == 14 &&
	    second == HTTP_WORD('l', 'e', 'n', 'g', 't', 'h', 0, 0))
		return HTTP_HEADER_LENGTH;
	if (first == HTTP_WORD('c', 'o', 'n', 'n', 'e', 'c', 't', 'i') && length == 10 &&
	    second == HTTP_WORD('o', 'n', 0, 0, 0, 0, 0, 0))
		return HTTP_HEADER_CONNECTION;
	if (first == HTTP_WORD('t', 'r', 'a', 'n', 's', 'f', 'e', 'r') && length == 17 &&
	    second == HTTP_WORD('-', 'e', 'n', 'c', 'o', 'd', 'i', 'n') &&
	    http_lower_byte(at[16]) == 'g')
		return HTTP_HEADER_CODING;
	if (first == HTTP_WORD('x', '-', 'm', 'a', 'x', '-', 't', 'o') && length == 12 &&
	    second == HTTP_WORD('k', 'e', 'n', 's', 0, 0, 0, 0))
		return HTTP_HEADER_MAX_TOKENS;
	if (first == HTTP_WORD('x', '-', 'p', 'r', 'o', 'm', 'p', 't') && length == 15 &&
	    second == HTTP_WORD('-', 't', 'o', 'k', 'e', 'n', 's', 0))
		return HTTP_HEADER_PROMPT_TOKENS;
	return HTTP_HEADER_OTHER;
}

#endif /* WARMPATH_HTTP_HEADER_H */
