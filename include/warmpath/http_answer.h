/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Follows an answer, segment by segment, until it is known to be complete: only then is the load of its replica released and the
 * connection free to move.
 *
 * Owns: TCP sequence numbers against the state of http_message.h, and which bytes of a segment are read at all. May not
 * know: packets, maps, flows.
 *
 * Bytes of a body are counted, not read. Of the head and of chunk lines, windows of up to 256 bytes are loaded and searched 32
 * bytes at a time; single characters are taken only where a value of interest or the end of a segment is.
 *
 * Bytes come through http_load_bytes(context, offset, to, length), 0 or negative errno, which a BPF program has to
 * define before it includes this header (bpf_xdp_load_bytes, bpf_skb_load_bytes); user space gets a copy from memory, `context` being
 * the first byte.
 *
 * Every step takes at least one byte, so a segment of up to HTTP_FOLLOW_STEPS bytes is followed to its end whatever is in it, chunks
 * of one byte included. A larger one (GRO beyond 64 KiB) is, too, unless it has more than that many characters, or four times as many
 * lines, to look at.
 *
 * Lost (HTTP_FOLLOW_GAVE_UP) means: the connection stays on its replica for good, and the load is released when the
 * client's next request comes (a client that does not pipeline has its answer then), at FIN, RST or timeout.
 */
#ifndef WARMPATH_HTTP_ANSWER_H
#define WARMPATH_HTTP_ANSWER_H

#include "http_message.h"

#ifndef __bpf__
static inline long http_load_bytes(const void *context, __u32 offset, void *to, __u32 length)
{
	memcpy(to, (const __u8 *)context + offset, length);
	return 0;
}
#elif !defined(http_load_bytes)
#error "define http_load_bytes(context, offset, to, length) before including http_answer.h"
#endif

#define HTTP_WINDOW_SIZE  256
#define HTTP_WINDOW_CHUNK 64 /* loaded where a chunk's length is due: it has a few bytes */
#define HTTP_FOLLOW_STEPS 65536
#define HTTP_FOLLOW_A_STEP \
	4 /* stretches: the loop calls a function for each step, which costs as much as reading a line */

/*
 * Memory of one call: in a per-CPU array in the kernel. The follower is worked on here, for the same reason as in struct
 * http_head: to the verifier everything loaded from here is an unknown number.
 */
struct http_window {
	__u8 bytes[HTTP_WINDOW_SIZE + HTTP_SEARCH];
	struct http_follower follower;
	__u32 offset;	/* of the bytes to follow, in the packet */
	__u32 length;	/* of them */
	__u32 position; /* of the next one */
	__u32 start;	/* which of them bytes[] holds: from here */
	__u32 end;	/* to before here */
	__u32 reserved;
};

/* What the steps get: on the stack, as pointers cannot lie in a map. */
struct http_following {
	struct http_window *window;
	void *context;
};

/* --- starting ----------------------------------------------------------------------------------------------- */

/* What a request says about its answer: HTTP_FOLLOW_* for http_follow_answer(). */
static __always_inline __u16 http_follow_flags(const struct http_request *request)
{
	__u16 flags = 0;

	if (request->method == HTTP_METHOD_HEAD)
		flags |= HTTP_FOLLOW_HEAD;
	if (request->method == HTTP_METHOD_CONNECT)
		flags |= HTTP_FOLLOW_CONNECT;
	if (request->flags & HTTP_UPGRADE)
		flags |= HTTP_FOLLOW_UPGRADE;
	if (!http_request_keeps_alive(request))
		flags |= HTTP_FOLLOW_REQUEST_CLOSE;
	return flags;
}

/* From now on an answer is expected, whose first byte has the sequence number `sequence`. */
static __always_inline void http_follow_answer(struct http_follower *follower, __u16 flags,
					       __u32 sequence)
{
	__builtin_memset(follower, 0, sizeof(*follower));
	follower->flags = flags & HTTP_FOLLOW_REQUEST;
	follower->next_sequence = sequence;
	follower->state = HTTP_FOLLOW_STATUS;
}

/* --- following ---------------------------------------------------------------------------------------------- */

/* Takes up to `length` bytes of a body without reading them. Returns how many; the state changes after the last one. */
static __always_inline __u32 http_follow_count(struct http_follower *follower, __u32 length)
{
	__u8 state = follower->state;

	if (state == HTTP_FOLLOW_UNTIL_CLOSE || state == HTTP_FOLLOW_TUNNEL)
		return length;
	if (state != HTTP_FOLLOW_COUNTED && state != HTTP_FOLLOW_CHUNK_DATA)
		return 0;
	if (follower->remaining > length) {
		follower->remaining -= length;
		return length;
	}
	length = follower->remaining;
	follower->remaining = 0;
	follower->state = state == HTTP_FOLLOW_COUNTED ? HTTP_FOLLOW_DONE : HTTP_FOLLOW_CHUNK_CR;
	return length;
}

/* Sees to it that bytes[] holds the byte at `position` and as many after it as a search needs, or all there are. */
static __always_inline bool http_fill_window(struct http_following *following)
{
	struct http_window *window = following->window;
	__u32 position = window->position, wanted = window->length - position;
	__u32 most =
		window->follower.state < HTTP_FOLLOW_COUNTED ? HTTP_WINDOW_SIZE : HTTP_WINDOW_CHUNK;

	if (position + HTTP_SEARCH <= window->end || window->end >= window->length)
		return true;
	if (wanted > most)
		wanted = most;
	wanted = http_count(wanted, HTTP_WINDOW_SIZE);
	window->start = position;
	window->end = position + wanted;
	return !http_load_bytes(following->context, window->offset + position, window->bytes,
				wanted);
}

/* The bytes from `position` on. The mask is for the verifier. */
static __always_inline const __u8 *http_window_at(const struct http_window *window, __u32 position)
{
	__u32 offset = (position - window->start) & (HTTP_WINDOW_SIZE - 1);

	WARMPATH_BARRIER(offset);
	return window->bytes + offset;
}

/* A whole status line's start: `HTTP/1.1 200` and the character after it. Returns false if it is none: character by character, then. */
static __always_inline bool http_follow_status(struct http_follower *follower, const __u8 *at)
{
	__u64 first = http_word(at), second = http_word(at + 8);
	__u32 hundreds = (__u8)(second >> 8) - '0', tens = (__u8)(second >> 16) - '0';
	__u32 units = (__u8)(second >> 24) - '0';
	__u8 minor = first >> 56, after = second >> 32;

	if ((first & http_mask(7)) != HTTP_WORD('H', 'T', 'T', 'P', '/', '1', '.', 0) ||
	    (minor != '1' && minor != '0') || (__u8)second != ' ' || after != ' ')
		return false;
	if (hundreds - 1 > 8 || tens > 9 || units > 9)
		return false;
	if (minor == '0')
		follower->flags |= HTTP_FOLLOW_VERSION_0;
	follower->status = hundreds * 100 + tens * 10 + units;
	follower->header = HTTP_FOLLOW_NAMES_ALL;
	follower->state = HTTP_FOLLOW_REASON;
	return true;
}

/* A whole name of interest with its colon. Returns its length with the colon; 0: it is another, or is to be read by character. */
static __always_inline __u32 http_follow_name(struct http_follower *follower, const __u8 *at)
{
	__u64 first = http_lower(http_word(at)), second = http_lower(http_word(at + 8));
	__u64 third = http_lower(http_word(at + 16));

	if (first == HTTP_WORD('c', 'o', 'n', 't', 'e', 'n', 't', '-') &&
	    (second & http_mask(7)) == HTTP_WORD('l', 'e', 'n', 'g', 't', 'h', ':', 0)) {
		http_follow_value(follower, HTTP_FOLLOW_HEADER_LENGTH);
		return 15;
	}
	if (first == HTTP_WORD('c', 'o', 'n', 'n', 'e', 'c', 't', 'i') &&
	    (second & http_mask(3)) == HTTP_WORD('o', 'n', ':', 0, 0, 0, 0, 0)) {
		http_follow_value(follower, HTTP_FOLLOW_HEADER_CONNECTION);
		return 11;
	}
	if (first == HTTP_WORD('t', 'r', 'a', 'n', 's', 'f', 'e', 'r') &&
	    second == HTTP_WORD('-', 'e', 'n', 'c', 'o', 'd', 'i', 'n') &&
	    (third & http_mask(2)) == HTTP_WORD('g', ':', 0, 0, 0, 0, 0, 0)) {
		http_follow_value(follower, HTTP_FOLLOW_HEADER_CODING);
		return 18;
	}
	return 0;
}

/*
 * A value of interest that has one of the usual forms and whose line ends within one search; also the last element of a list. Returns how
 * far the line goes; 0: it is to be taken by character.
 */
static __always_inline __u32 http_follow_usual_value(struct http_window *window, __u32 position,
						     __u32 available)
{
	struct http_follower *follower = &window->follower;
	__u32 end = http_search_below(http_window_at(window, position), ' ');
	__u32 blank = *http_window_at(window, position) == ' ', length = end - blank;
	const __u8 *at = http_window_at(window, position + blank);
	__u64 first = http_lower(http_word(at)), second = http_lower(http_word(at + 8)), number;

	if (end + 2 > available ||
	    (__u16)http_word(http_window_at(window, position + end)) != HTTP_CRLF)
		return 0;
	if (follower->state == HTTP_FOLLOW_VALUE_LENGTH) {
		number = http_decimal(at, length);
		if (number == HTTP_NOT_A_NUMBER ||
		    ((follower->flags & HTTP_FOLLOW_LENGTH) && follower->remaining != number))
			return 0;
		follower->remaining = number;
		follower->flags |= HTTP_FOLLOW_LENGTH;
	} else if (length == 7 && follower->state == HTTP_FOLLOW_VALUE_CODING &&
		   (first & http_mask(7)) == HTTP_WORD('c', 'h', 'u', 'n', 'k', 'e', 'd', 0)) {
		follower->flags |= HTTP_FOLLOW_CHUNKED;
	} else if (length == 10 && follower->state == HTTP_FOLLOW_VALUE_CONNECTION &&
		   first == HTTP_WORD('k', 'e', 'e', 'p', '-', 'a', 'l', 'i') &&
		   (second & http_mask(2)) == HTTP_WORD('v', 'e', 0, 0, 0, 0, 0, 0)) {
		follower->flags |= HTTP_FOLLOW_KEEP_ALIVE;
	} else if (length == 5 && follower->state == HTTP_FOLLOW_VALUE_CONNECTION &&
		   (first & http_mask(5)) == HTTP_WORD('c', 'l', 'o', 's', 'e', 0, 0, 0)) {
		follower->flags |= HTTP_FOLLOW_CLOSE;
	} else {
		return 0;
	}
	follower->state = HTTP_FOLLOW_LINE_START;
	return end + 2;
}

/* How far a value that is of no interest goes, and with the line's end if that is there: state `next` then. */
static __always_inline __u32 http_follow_skip(struct http_window *window, __u32 position,
					      __u32 available, __u8 next)
{
	__u32 found = http_search_below(http_window_at(window, position), ' ');

	if (found >= available)
		return available;
	if (found + 2 > available ||
	    (__u16)http_word(http_window_at(window, position + found)) != HTTP_CRLF)
		return found;
	window->follower.state = next;
	return found + 2;
}

/* How far a name that is of no interest goes, and the value behind it. */
static __always_inline __u32 http_follow_skip_name(struct http_window *window, __u32 position,
						   __u32 available)
{
	__u32 found = http_search_name_end(http_window_at(window, position));

	if (found >= available)
		return available;
	if (*http_window_at(window, position + found) != ':')
		return found;
	window->follower.header = HTTP_FOLLOW_HEADER_OTHER;
	window->follower.state = HTTP_FOLLOW_VALUE_OTHER;
	found++;
	return found + http_follow_skip(window, position + found, available - found,
					HTTP_FOLLOW_LINE_START);
}

/* A chunk's line that is nothing but up to seven digits. Returns its length; 0: it is another, or not all there. */
static __always_inline __u32 http_follow_chunk(struct http_window *window, __u32 position,
					       __u32 available)
{
	struct http_follower *follower = &window->follower;
	__u64 word = http_word(http_window_at(window, position));
	__u32 count = http_first(http_not_hexadecimal(word));

	if (!count || count > 7 || available < count + 2 ||
	    (__u16)http_word(http_window_at(window, position + count)) != HTTP_CRLF)
		return 0;
	follower->remaining = http_hexadecimal(word, count);
	follower->state = follower->remaining ? HTTP_FOLLOW_CHUNK_DATA : HTTP_FOLLOW_TRAILER_START;
	return count + 2;
}

/*
 * Takes what can be taken in whole words at `position`, from where `available` bytes are in the window. Returns how many bytes
 * that was; 0: the next one has to be taken as a character.
 */
static __always_inline __u32 http_follow_words(struct http_window *window, __u32 position,
					       __u32 available)
{
	struct http_follower *follower = &window->follower;
	const __u8 *at = http_window_at(window, position);
	__u32 state = follower->state, taken = 0;

	if (state == HTTP_FOLLOW_STATUS) {
		if (follower->position || available < 16 || !http_follow_status(follower, at))
			return 0;
		taken = 13;
		state = HTTP_FOLLOW_REASON;
	} else if (state == HTTP_FOLLOW_LINE_START) {
		if (available >= 2 && (__u16)http_word(at) == HTTP_CRLF) {
			follower->state = http_follow_head_end(follower);
			return 2;
		}
		if (available < 24 || *at <= ' ' || *at == ':')
			return 0;
		taken = http_follow_name(follower, at);
		state = taken ? follower->state : HTTP_FOLLOW_NAME_OTHER;
		follower->state = state;
	}
	/* what follows in the line, in the same stretch */
	if (state == HTTP_FOLLOW_NAME_OTHER)
		return http_follow_skip_name(window, position, available);
	if (state == HTTP_FOLLOW_REASON || state == HTTP_FOLLOW_VALUE_OTHER)
		return taken + http_follow_skip(window, position + taken, available - taken,
						HTTP_FOLLOW_LINE_START);
	if (state >= HTTP_FOLLOW_VALUE_LENGTH && state <= HTTP_FOLLOW_VALUE_CONNECTION)
		return follower->position
			       ? 0
			       : taken + http_follow_usual_value(window, position + taken,
								 available - taken);
	if (state == HTTP_FOLLOW_TRAILER)
		return http_follow_skip(window, position, available, HTTP_FOLLOW_TRAILER_START);
	if (state == HTTP_FOLLOW_CHUNK_EXTENSION) {
		taken = http_search_below(at, ' ');
		return taken < available ? taken : available;
	}
	if (state == HTTP_FOLLOW_CHUNK_SIZE && !follower->position)
		return http_follow_chunk(window, position, available);
	if (state == HTTP_FOLLOW_CHUNK_CR && available >= 2 && (__u16)http_word(at) == HTTP_CRLF) {
		http_follow_start_line(follower);
		follower->state = HTTP_FOLLOW_CHUNK_SIZE;
		return 2 + http_follow_chunk(window, position + 2, available - 2);
	}
	return 0;
}

enum http_follow_progress {
	HTTP_FOLLOW_ON = 0,
	HTTP_FOLLOW_STOP = 1,	  /* nothing more is to be read of the segment */
	HTTP_FOLLOW_BY_CHARACTER, /* the next byte has to be taken as a character */
};

/* Takes what can be taken at once. */
static __always_inline enum http_follow_progress
http_follow_stretch(struct http_following *following)
{
	struct http_window *window = following->window;
	struct http_follower *follower = &window->follower;
	__u32 position = window->position, left = window->length - position, taken;

	if (!left || follower->state >= HTTP_FOLLOW_DONE)
		return HTTP_FOLLOW_STOP;
	taken = http_follow_count(follower, left);
	if (taken) {
		window->position = position + taken;
		return taken == left ? HTTP_FOLLOW_STOP : HTTP_FOLLOW_ON;
	}
	if (!http_fill_window(following)) {
		follower->state = HTTP_FOLLOW_LOST;
		return HTTP_FOLLOW_STOP;
	}
	taken = http_follow_words(window, position, window->end - position);
	window->position = position + taken;
	return taken ? HTTP_FOLLOW_ON : HTTP_FOLLOW_BY_CHARACTER;
}

HTTP_STEP long http_step_follow(HTTP_UNUSED __u32 index, void *context)
{
	struct http_following *following = context;
	enum http_follow_progress progress = HTTP_FOLLOW_ON;
	struct http_window *window = following->window;

	for (int i = 0; i < HTTP_FOLLOW_A_STEP && progress == HTTP_FOLLOW_ON; i++)
		progress = http_follow_stretch(following);
	if (progress != HTTP_FOLLOW_BY_CHARACTER)
		return progress;
	http_follow_character(&window->follower, *http_window_at(window, window->position));
	window->position++;
	return HTTP_FOLLOW_ON;
}

/* Bytes from next_sequence on did not come by: `missing` of them. Within a body they can be counted all the same. */
static __always_inline void http_follow_gap(struct http_follower *follower, __u32 missing)
{
	__u32 counted = http_follow_count(follower, missing);

	follower->bytes += counted;
	follower->next_sequence += counted;
	if (counted == missing)
		return;
	if (follower->state == HTTP_FOLLOW_DONE)
		follower->flags |= HTTP_FOLLOW_EXCESS;
	else
		follower->state = HTTP_FOLLOW_LOST;
}

/*
 * A segment of the followed direction goes by: `length` bytes of payload at `offset` of what http_load_bytes() reads from `context`, the
 * first one with the sequence number `sequence`. Bytes that were followed before (retransmission, overlap) are skipped. A gap is
 * counted over if it lies in a body, else the answer is lost.
 *
 * Nothing is locked: of two segments of one connection that two CPUs see at the same moment one may be missed, which then is a gap,
 * or lost.
 */
static __always_inline enum http_follow_event http_follow(struct http_follower *follower,
							  struct http_window *window, void *context,
							  __u32 offset, __u32 length,
							  __u32 sequence)
{
	struct http_following following = {.window = window, .context = context};
	struct http_follower *work = &window->follower;
	__s32 ahead = sequence - follower->next_sequence;
	__u32 taken;

	if (!length || follower->state == HTTP_FOLLOW_IDLE || follower->state == HTTP_FOLLOW_LOST)
		return HTTP_FOLLOW_GOING_ON;
	if (ahead < 0) {
		taken = follower->next_sequence - sequence;
		if (taken >= length)
			return HTTP_FOLLOW_GOING_ON;
		offset += taken;
		length -= taken;
	}
	if (follower->state == HTTP_FOLLOW_DONE) {
		follower->flags |= HTTP_FOLLOW_EXCESS;
		follower->state = HTTP_FOLLOW_LOST;
		return HTTP_FOLLOW_GAVE_UP;
	}
	if (ahead > 0)
		http_follow_gap(follower, ahead);

	/* Most segments are nothing but body. */
	taken = http_follow_count(follower, length);
	follower->bytes += taken;
	follower->next_sequence += taken;
	if (taken == length && follower->state != HTTP_FOLLOW_DONE)
		return HTTP_FOLLOW_GOING_ON;

	*work = *follower;
	window->offset = offset;
	window->length = length;
	window->position = taken;
	window->start = 0;
	window->end = 0;
	http_loop(HTTP_FOLLOW_STEPS, http_step_follow, &following);
	work->bytes += window->position - taken;
	work->next_sequence += window->position - taken;
	if (work->state == HTTP_FOLLOW_DONE) {
		if (window->position < length)
			work->flags |= HTTP_FOLLOW_EXCESS;
		*follower = *work;
		return HTTP_FOLLOW_COMPLETE;
	}
	if (window->position < length)
		work->state = HTTP_FOLLOW_LOST;
	*follower = *work;
	return work->state == HTTP_FOLLOW_LOST ? HTTP_FOLLOW_GAVE_UP : HTTP_FOLLOW_GOING_ON;
}

/*
 * The followed direction ends with a FIN whose sequence number is `sequence` (after the payload of its segment, which is
 * followed first). For RST, and where the answer is not wanted any more, the caller just forgets the follower.
 */
static __always_inline enum http_follow_event http_follow_end(struct http_follower *follower,
							      __u32 sequence)
{
	__s32 ahead = sequence - follower->next_sequence;

	if (follower->state == HTTP_FOLLOW_IDLE || follower->state == HTTP_FOLLOW_DONE)
		return HTTP_FOLLOW_GOING_ON;
	if (ahead > 0)
		http_follow_gap(follower, ahead);
	if (follower->state == HTTP_FOLLOW_UNTIL_CLOSE || follower->state == HTTP_FOLLOW_TUNNEL)
		follower->state = HTTP_FOLLOW_DONE;
	if (follower->state == HTTP_FOLLOW_DONE) {
		follower->flags |= HTTP_FOLLOW_CLOSE;
		return HTTP_FOLLOW_COMPLETE;
	}
	follower->state = HTTP_FOLLOW_IDLE;
	return HTTP_FOLLOW_CUT_OFF;
}

#endif /* WARMPATH_HTTP_ANSWER_H */
