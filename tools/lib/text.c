/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

/* Template opening, system prompt, template between, first message. */
#define LEAD_PIECES 4

/* Seeds of pieces that are not words have this in their upper half and the role in the lower one. */
#define SEED_OPENING 0xffffffff00000000ull
#define SEED_BETWEEN 0xfffffffe00000000ull
#define SEED_KIND    0xffffffff00000000ull

static const char consonants[] = "bcdfghjklmnpqrstvwxyz";
static const char vowels[] = "aeiou";

struct piece {
	uint64_t seed;
	uint32_t start; /* its first token's place in the text */
};

struct text {
	uint32_t references;
	uint32_t length;
	uint32_t piece_count, piece_capacity;
	uint32_t token_capacity;
	struct text_lead lead;
	struct piece *pieces; /* planned */
	uint32_t *tokens;     /* read */
};

struct text *text_new(void)
{
	struct text *text = calloc(1, sizeof(*text));

	if (text)
		text->references = 1;
	return text;
}

struct text *text_hold(struct text *text)
{
	text->references++;
	return text;
}

void text_release(struct text *text)
{
	if (!text || --text->references)
		return;
	free(text->pieces);
	free(text->tokens);
	free(text);
}

uint32_t text_length(const struct text *text)
{
	return text->length;
}

uint32_t word_token(uint64_t seed, uint32_t index)
{
	/* multiply and shift instead of a division: this is the hot line of spelling */
	uint64_t mixed = random_mix(seed + (index + 1ull) * 0x9e3779b97f4a7c15ull);

	return (uint32_t)(((mixed >> 32) * VOCABULARY_SIZE) >> 32);
}

static uint32_t piece_token(uint64_t seed, uint32_t index)
{
	static const uint32_t opening[] = {TOKEN_BEGIN, TOKEN_MESSAGE_START, 0, TOKEN_NEWLINE};
	static const uint32_t between[] = {TOKEN_MESSAGE_END, TOKEN_NEWLINE, TOKEN_MESSAGE_START, 0,
					   TOKEN_NEWLINE};
	uint32_t role = TOKEN_SYSTEM + (uint32_t)seed;

	if ((seed & SEED_KIND) == SEED_OPENING)
		return opening[index] ? opening[index] : role;
	if ((seed & SEED_KIND) == SEED_BETWEEN)
		return between[index] ? between[index] : role;
	return word_token(seed, index);
}

static void set_lead(struct text *text)
{
	const struct piece *last = &text->pieces[LEAD_PIECES - 1];
	struct text_lead *lead = &text->lead;

	for (uint32_t i = 0; i + 1 < LEAD_PIECES; i++)
		lead->start =
			random_seed(lead->start, text->pieces[i].seed, text->pieces[i + 1].start);
	lead->branch = last->seed;
	lead->length = last->start;
	lead->token = piece_token(last->seed, 0);
}

static int append_piece(struct text *text, uint64_t seed, uint32_t count)
{
	if (!count)
		return 0;
	if (text->piece_count == text->piece_capacity) {
		uint32_t capacity =
			text->piece_capacity ? text->piece_capacity + text->piece_capacity / 2 : 8;
		struct piece *pieces = realloc(text->pieces, capacity * sizeof(*pieces));

		if (!pieces)
			return -ENOMEM;
		text->pieces = pieces;
		text->piece_capacity = capacity;
	}
	text->pieces[text->piece_count++] = (struct piece){.seed = seed, .start = text->length};
	text->length += count;
	if (text->piece_count == LEAD_PIECES)
		set_lead(text);
	return 0;
}

struct text_lead text_lead(const struct text *text)
{
	return text->lead;
}

int text_append_words(struct text *text, uint64_t seed, uint32_t count)
{
	/* keep clear of the template's seeds */
	if ((seed & SEED_KIND) >= SEED_BETWEEN)
		seed &= ~(1ull << 63);
	return append_piece(text, seed, count);
}

int text_append_opening(struct text *text, enum text_role role)
{
	return append_piece(text, SEED_OPENING | role, TEMPLATE_OPENING_TOKENS);
}

int text_append_between(struct text *text, enum text_role role)
{
	return append_piece(text, SEED_BETWEEN | role, TEMPLATE_BETWEEN_TOKENS);
}

int text_append_token(struct text *text, uint32_t token)
{
	if (text->length == text->token_capacity) {
		uint32_t capacity = text->token_capacity ? text->token_capacity * 2 : 512;
		uint32_t *tokens = realloc(text->tokens, capacity * sizeof(*tokens));

		if (!tokens)
			return -ENOMEM;
		text->tokens = tokens;
		text->token_capacity = capacity;
	}
	text->tokens[text->length++] = token;
	return 0;
}

static uint32_t piece_end(const struct text *text, uint32_t piece)
{
	return piece + 1 < text->piece_count ? text->pieces[piece + 1].start : text->length;
}

struct text *text_copy(struct span span)
{
	struct text *copy = text_new();

	for (uint32_t piece = 0; copy && piece < span.text->piece_count; piece++) {
		uint32_t start = span.text->pieces[piece].start, end = piece_end(span.text, piece);

		if (start >= span.length)
			break;
		if (end > span.length)
			end = span.length;
		if (append_piece(copy, span.text->pieces[piece].seed, end - start)) {
			text_release(copy);
			return NULL;
		}
	}
	return copy;
}

uint32_t text_token(const struct text *text, uint32_t index)
{
	uint32_t low = 0, high = text->piece_count;

	if (text->tokens)
		return text->tokens[index];
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (text->pieces[middle].start <= index)
			low = middle;
		else
			high = middle;
	}
	return piece_token(text->pieces[low].seed, index - text->pieces[low].start);
}

static uint32_t common_tokens(const uint32_t *a, const uint32_t *b, uint32_t limit)
{
	uint32_t common = 0;

	while (common < limit && a[common] == b[common])
		common++;
	return common;
}

static uint32_t common_pieces(const struct text *a, const struct text *b, uint32_t limit)
{
	uint32_t common = 0, piece_a = 0, piece_b = 0;

	while (common < limit) {
		uint32_t end_a = piece_end(a, piece_a), end_b = piece_end(b, piece_b);
		const struct piece *from_a = &a->pieces[piece_a], *from_b = &b->pieces[piece_b];

		if (from_a->seed == from_b->seed && from_a->start == from_b->start) {
			common = end_a < end_b ? end_a : end_b;
		} else if (piece_token(from_a->seed, common - from_a->start) ==
			   piece_token(from_b->seed, common - from_b->start)) {
			common++;
		} else {
			return common;
		}
		piece_a += common == end_a;
		piece_b += common == end_b;
	}
	return limit;
}

uint32_t span_common(struct span a, struct span b)
{
	uint32_t limit = a.length < b.length ? a.length : b.length;

	if (a.text == b.text || !limit)
		return limit;
	if (a.text->tokens && b.text->tokens)
		return common_tokens(a.text->tokens, b.text->tokens, limit);
	return common_pieces(a.text, b.text, limit);
}

uint32_t span_common_by_lead(struct span a, const struct text_lead *lead_a, struct span b,
			     const struct text_lead *lead_b)
{
	uint32_t common = lead_a->length;

	/* part behind the same start, and at its next token already */
	if (!common || lead_a->start != lead_b->start || lead_a->branch == lead_b->branch ||
	    lead_a->token == lead_b->token)
		return span_common(a, b);
	if (common > a.length)
		common = a.length;
	return common < b.length ? common : b.length;
}

void word_spell(uint32_t token, char letters[WORD_LENGTH])
{
	letters[0] = consonants[token / (5 * 21)];
	letters[1] = vowels[token / 21 % 5];
	letters[2] = consonants[token % 21];
}

uint32_t word_read(const char *letters, size_t length)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	if (length == WORD_LENGTH && letters[0] && letters[1] && letters[2]) {
		const char *first = strchr(consonants, letters[0]);
		const char *second = strchr(vowels, letters[1]);
		const char *third = strchr(consonants, letters[2]);

		if (first && second && third)
			return (uint32_t)((first - consonants) * 5 + (second - vowels)) * 21 +
			       (uint32_t)(third - consonants);
	}
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)letters[i]) * 16777619u;
	return hash | 0x80000000u;
}

size_t words_spell(uint64_t seed, uint32_t count, char *out)
{
	char *at = out;

	if ((seed & SEED_KIND) >= SEED_BETWEEN)
		seed &= ~(1ull << 63);
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			*at++ = ' ';
		word_spell(word_token(seed, i), at);
		at += WORD_LENGTH;
	}
	return (size_t)(at - out);
}
