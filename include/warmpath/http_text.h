/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Eight characters at a time: searching, comparing and converting text in 64-bit words.
 *
 * Owns: word loads, search for a class of characters, lower case, decimal numbers, elements of comma-separated lists, the
 * bounded loop of both worlds. May not know: what a request or an answer is.
 *
 * A *hit mask* has bit 7 of a byte set where that byte belongs to the class. The searches are exact for the lowest
 * hit; above it a borrow may set further bits, so only http_first() may be asked of them (the subtraction method of
 * H. Warren, Hacker's Delight, 6-1).
 */
#ifndef WARMPATH_HTTP_TEXT_H
#define WARMPATH_HTTP_TEXT_H

#include "portable.h"

#define HTTP_CRLF ('\r' | '\n' << 8) /* as the low half of a word */

#define HTTP_ONES  0x0101010101010101ull
#define HTTP_HIGHS 0x8080808080808080ull

/* Eight characters as a little-endian word, for comparisons with constants. */
#define HTTP_WORD(a, b, c, d, e, f, g, h)                                                        \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

/* Calls step(0 .. count - 1, context) until it returns non-zero. */
#ifdef __bpf__
#define http_loop(count, step, context) bpf_loop(count, step, context, 0)
#else
#define http_loop(count, step, context)                                           \
	do {                                                                      \
		for (__u32 http_loop_index = 0; http_loop_index < (__u32)(count); \
		     http_loop_index++)                                           \
			if (step(http_loop_index, context))                       \
				break;                                            \
	} while (0)
#endif

/* A callback of http_loop: a function of its own in BPF, and not every program that includes a header calls it. */
#define HTTP_STEP   static __attribute__((unused))
#define HTTP_UNUSED __attribute__((unused))

/*
 * A number of bytes for a helper that wants one of 1 .. most, a power of two; that it is one is the caller's business. Without a comparison, as
 * verifiers before 6.8 learn nothing from "is not 0", which is what compilers make of every way to ask.
 */
static __always_inline __u32 http_count(__u32 count, __u32 most)
{
	WARMPATH_BARRIER(count);
	count = ((count - 1) & (most - 1)) + 1;
	WARMPATH_BARRIER(count);
	return count;
}

/*
 * An element of a constant table of `size` characters, a power of two. The barrier keeps the mask the last operation: the verifier of 6.1
 * knows nothing of a sum that was masked in parts.
 */
static __always_inline __u8 http_element(const __u8 *table, __u32 size, __u32 index)
{
	WARMPATH_BARRIER(index);
	return table[index & (size - 1)];
}

static __always_inline __u64 http_word(const __u8 *at)
{
	__u64 word;

#ifdef __bpf__
	/* One load: the verifier lets map values be read at any alignment where the machine can, and memcpy would
	 * become eight loads. */
	word = *(const __u64 *)at;
#else
	memcpy(&word, at, sizeof(word));
#endif
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* Bytes below `limit` (1 .. 0x80). */
static __always_inline __u64 http_below(__u64 word, __u8 limit)
{
	return (word - HTTP_ONES * limit) & ~word & HTTP_HIGHS;
}

static __always_inline __u64 http_equal(__u64 word, __u8 character)
{
	return http_below(word ^ (HTTP_ONES * character), 1);
}

/* Bytes that end a header's name or must not be in one: the colon, blanks, control characters, DEL, not ASCII. */
static __always_inline __u64 http_name_end(__u64 word)
{
	__u64 not_printable = (((word & ~HTTP_HIGHS) + HTTP_ONES) | word) & HTTP_HIGHS;

	return http_below(word, 0x21) | http_equal(word, ':') | not_printable;
}

/* Index of the lowest hit, 0 .. 7; 8: none. */
static __always_inline __u32 http_first(__u64 hits)
{
	hits >>= 7;
	return (((hits & -hits) - 1) & HTTP_ONES) * HTTP_ONES >> 56;
}

/*
 * Mask of the first `count` characters of a word: 1 .. 8, more counts as 8. Without a branch, as each would double the paths that the
 * verifier walks.
 */
static __always_inline __u64 http_mask(__u32 count)
{
	__s32 beyond = (__s32)count - 8, negative = beyond >> 31;

	WARMPATH_BARRIER(negative);
	return ~0ull >> (-(beyond & negative) * 8);
}

/* Searches 32 bytes. Returns the index of the first hit, 32 for none. */
#define HTTP_SEARCH 32

/*
 * A number of which the verifier has to know nothing: so it walks on once from behind a search, and not once for each word that the hit may
 * be in. unknown: any number that was loaded.
 */
static __always_inline __u32 http_forget(__u32 number, __u32 unknown)
{
	number += unknown;
	WARMPATH_BARRIER(number);
	return number - unknown;
}

static __always_inline __u32 http_search_below(const __u8 *at, __u8 limit)
{
	__u64 first = http_word(at), hits = http_below(first, limit);
	__u32 before = 0;

	if (!hits) {
		before = 8;
		hits = http_below(http_word(at + 8), limit);
	}
	if (!hits) {
		before = 16;
		hits = http_below(http_word(at + 16), limit);
	}
	if (!hits) {
		before = 24;
		hits = http_below(http_word(at + 24), limit);
	}
	return http_forget(before + http_first(hits), first);
}

static __always_inline __u32 http_search_name_end(const __u8 *at)
{
	__u64 first = http_word(at), hits = http_name_end(first);
	__u32 before = 0;

	if (!hits) {
		before = 8;
		hits = http_name_end(http_word(at + 8));
	}
	if (!hits) {
		before = 16;
		hits = http_name_end(http_word(at + 16));
	}
	if (!hits) {
		before = 24;
		hits = http_name_end(http_word(at + 24));
	}
	return http_forget(before + http_first(hits), first);
}

/* Bytes from `low` to `high` in a word without bit 7s; exact for all eight. */
static __always_inline __u64 http_between(__u64 word, __u8 low, __u8 high)
{
	return (word + HTTP_ONES * (0x80 - low)) & ~(word + HTTP_ONES * (0x7f - high)) & HTTP_HIGHS;
}

/* Letters of ASCII to lower case, nothing else changed. */
static __always_inline __u64 http_lower(__u64 word)
{
	__u64 upper = http_between(word & ~HTTP_HIGHS, 'A', 'Z') & ~word;

	return word | upper >> 2;
}

static __always_inline __u8 http_lower_byte(__u8 character)
{
	return character >= 'A' && character <= 'Z' ? character | 0x20 : character;
}

static __always_inline bool http_is_blank(__u8 character)
{
	return character == ' ' || character == '\t';
}

/* Bit 7 of each byte that is no character of a conversation id (semantics.md section 2). */
static __always_inline __u64 http_not_id(__u64 word)
{
	__u64 seven = word & ~HTTP_HIGHS;
	__u64 good = http_between(seven, '0', ':') | http_between(seven, '-', '.') |
		     http_between(seven, '_', '_') |
		     http_between(seven | HTTP_ONES * 0x20, 'a', 'z');

	return (~good | word) & HTTP_HIGHS;
}

/* --- numbers ---------------------------------------------------------------------------------------------- */

#define HTTP_DECIMAL_DIGITS_MAX 18
#define HTTP_NOT_A_NUMBER	(~0ull)

/* Eight digits, the first character being the highest. */
static __always_inline __u64 http_eight_digits(__u64 word)
{
	word = (word & HTTP_ONES * 0x0f) * (10 * 0x100 + 1) >> 8;
	word = (word & 0x00ff00ff00ff00ffull) * (100 * 0x10000 + 1) >> 16;
	return (word & 0x0000ffff0000ffffull) * (10000 * 0x100000000ull + 1) >> 32;
}

static __always_inline bool http_all_digits(__u64 word)
{
	return http_between(word & ~HTTP_HIGHS, '0', '9') == HTTP_HIGHS && !(word & HTTP_HIGHS);
}

/*
 * `length` digits, 1 .. 18 (more would be no length of a body), from `at`, of which 24 bytes can be read. Returns the number, or
 * HTTP_NOT_A_NUMBER. The first group is filled up with leading zeros, the others are full.
 */
static __always_inline __u64 http_decimal(const __u8 *at, __u32 length)
{
	__u32 lead = ((length - 1) & 7) + 1;
	__u64 word = http_word(at), number;

	if (length - 1 >= HTTP_DECIMAL_DIGITS_MAX)
		return HTTP_NOT_A_NUMBER;
	if (lead < 8)
		word = word << (64 - lead * 8) | (HTTP_ONES * '0' >> (lead * 8));
	if (!http_all_digits(word))
		return HTTP_NOT_A_NUMBER;
	number = http_eight_digits(word);
	if (length > 8) {
		word = http_word(at + lead);
		if (!http_all_digits(word))
			return HTTP_NOT_A_NUMBER;
		number = number * 100000000 + http_eight_digits(word);
	}
	if (length > 16) {
		word = http_word(at + lead + 8);
		if (!http_all_digits(word))
			return HTTP_NOT_A_NUMBER;
		number = number * 100000000 + http_eight_digits(word);
	}
	return number;
}

/* 0 .. 15, or more than that for what is no hexadecimal digit. */
static __always_inline __u32 http_hexadecimal_digit(__u8 character)
{
	__u32 digit = (__u32)character - '0', letter = (__u32)(character | 0x20) - 'a';

	return digit <= 9 ? digit : letter <= 5 ? letter + 10 : 16;
}

/* Bit 7 of each byte that is no hexadecimal digit; exact. */
static __always_inline __u64 http_not_hexadecimal(__u64 word)
{
	__u64 seven = word & ~HTTP_HIGHS;
	__u64 digits =
		http_between(seven, '0', '9') | http_between(seven | HTTP_ONES * 0x20, 'a', 'f');

	return (~digits | word) & HTTP_HIGHS;
}

/* The number that the first `count` characters (1 .. 8) of a word are, all of them hexadecimal digits. */
static __always_inline __u64 http_hexadecimal(__u64 word, __u32 count)
{
	__u64 four = (word & HTTP_ONES * 0x0f) + (word >> 6 & HTTP_ONES) * 9;

	four <<= 64 - count * 8;
	four = (four << 4 | four >> 8) & 0x00ff00ff00ff00ffull;
	four = (four << 8 | four >> 16) & 0x0000ffff0000ffffull;
	return (four << 16 | four >> 32) & 0xffffffff;
}

/* --- lists ------------------------------------------------------------------------------------------------ */

/* Elements of the comma-separated lists `Connection` and `Transfer-Encoding` that matter. */
enum http_token {
	HTTP_TOKEN_CLOSE = 0,
	HTTP_TOKEN_KEEP_ALIVE = 1,
	HTTP_TOKEN_UPGRADE = 2,
	HTTP_TOKEN_CHUNKED = 3,
	HTTP_TOKEN_OTHER = 4, /* an element, but none of these */
	HTTP_TOKEN_NONE = 5,  /* no element has ended with this character, or it was empty */
};

#define HTTP_TOKEN_SIZE 16

static const __u8 http_tokens[4 * HTTP_TOKEN_SIZE] __attribute__((unused)) =
	"close\0\0\0\0\0\0\0\0\0\0\0"
	"keep-alive\0\0\0\0\0\0"
	"upgrade\0\0\0\0\0\0\0\0\0"
	"chunked\0\0\0\0\0\0\0\0";

static __always_inline __u8 http_token_element(__u32 token, __u32 position)
{
	return http_element(http_tokens, sizeof(http_tokens), token * HTTP_TOKEN_SIZE + position);
}

#define HTTP_TOKEN_ENDED 0x80 /* a blank followed: only a comma may come */

/*
 * Takes one character of a list; ',' ends an element, and so must be given once more after the last character. `token` and
 * `position` are the caller's memory, both zero at the start of an element. Returns the element that this character ended.
 */
static __always_inline enum http_token http_list_character(__u8 character, __u8 *token,
							   __u8 *position)
{
	__u32 at = *position & 0x7f, ended = *token;
	bool complete;

	if (character == ',') {
		complete = ended < HTTP_TOKEN_OTHER && http_token_element(ended, at) == 0;
		*token = 0;
		*position = 0;
		return !at ? HTTP_TOKEN_NONE : complete ? ended : HTTP_TOKEN_OTHER;
	}
	if (http_is_blank(character)) {
		if (at)
			*position = at | HTTP_TOKEN_ENDED;
		return HTTP_TOKEN_NONE;
	}
	character = http_lower_byte(character);
	if (!at)
		*token = character == 'k'   ? HTTP_TOKEN_KEEP_ALIVE
			 : character == 'u' ? HTTP_TOKEN_UPGRADE
			 : character == 'c' ? HTTP_TOKEN_CLOSE
					    : HTTP_TOKEN_OTHER;
	else if (at == 1 && *token == HTTP_TOKEN_CLOSE && character == 'h')
		*token = HTTP_TOKEN_CHUNKED;
	/* The tables are filled up with NUL, which therefore must not match. */
	if (!character || at >= HTTP_TOKEN_SIZE - 1 || (*position & HTTP_TOKEN_ENDED) ||
	    *token == HTTP_TOKEN_OTHER || http_token_element(*token, at) != character)
		*token = HTTP_TOKEN_OTHER;
	*position = at < HTTP_TOKEN_SIZE - 1 ? at + 1 : at;
	return HTTP_TOKEN_NONE;
}

#endif /* WARMPATH_HTTP_TEXT_H */
