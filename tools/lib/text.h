/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a conversation says, as tokens: a word is a token (docs/experiments.md, "what a token is").
 *
 * Owns: the vocabulary, texts, their common starts. May not know: replicas, requests, HTTP.
 *
 * A text is written once and then only grows; a prompt, or what a slot holds, is a span: the first N tokens of a text. So
 * the turns of one conversation share one text, and comparing them costs nothing.
 *
 * Two kinds. *Planned* texts are a list of pieces, each the output of a generator (seed, index) -> token: a few bytes a turn,
 * so that a million conversations fit in memory; the traffic program spells them out as words. *Read* texts hold the tokens
 * of words that came over the wire. A simulation uses the first kind only and a replica the second only.
 */
#ifndef TOOLS_TEXT_H
#define TOOLS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VOCABULARY_SIZE (21u * 5u * 21u) /* consonant, vowel, consonant */
#define WORD_LENGTH	3

/* Tokens that are no words: the chat template's. */
enum template_token {
	TOKEN_BEGIN = VOCABULARY_SIZE, /* of the text */
	TOKEN_MESSAGE_START,
	TOKEN_MESSAGE_END,
	TOKEN_NEWLINE,
	TOKEN_SYSTEM,
	TOKEN_USER,
	TOKEN_ASSISTANT,
	TOKEN_OTHER_ROLE,
};

/*
 * The template is ChatML behind a begin-of-text token: `BEGIN START role NEWLINE` opens the first message, `END NEWLINE START role NEWLINE`
 * ends one and opens the next; the prompt ends with the opening of the assistant's answer. So two chats that have nothing in
 * common still share 4 tokens, as measured on the real server.
 */
#define TEMPLATE_OPENING_TOKENS 4
#define TEMPLATE_BETWEEN_TOKENS 5

enum text_role {
	ROLE_SYSTEM,
	ROLE_USER,
	ROLE_ASSISTANT,
	ROLE_OTHER,
};

struct text;

/* The first `length` tokens of a text. Holds a reference where its owner says so. */
struct span {
	struct text *text;
	uint32_t length;
};

/* An empty text with one reference; NULL if there is no memory. */
struct text *text_new(void);
struct text *text_hold(struct text *text);
void text_release(struct text *text); /* NULL is fine */
uint32_t text_length(const struct text *text);

/* Append to a planned text. 0 or -ENOMEM. */
int text_append_words(struct text *text, uint64_t seed, uint32_t count);
int text_append_opening(struct text *text, enum text_role role);
int text_append_between(struct text *text, enum text_role role);
/* Append one token to a read text. 0 or -ENOMEM. A text is of one kind only. */
int text_append_token(struct text *text, uint32_t token);

/* A new planned text that begins with the span's tokens; NULL if there is no memory. */
struct text *text_copy(struct span span);

/* The token at `index`, which must be below the text's length. */
uint32_t text_token(const struct text *text, uint32_t index);

/* How many tokens the two have in common from the start. */
uint32_t span_common(struct span a, struct span b);

/*
 * How a planned text begins, for comparing one with many without looking at their tokens: in a chat that is the system prompt and the
 * first message. Of a read text, or one that has hardly begun, all zero.
 */
struct text_lead {
	uint64_t
		start; /* fingerprint of all pieces before the last one looked at: the system prompt */
	uint64_t branch; /* and of that one: the first message */
	uint32_t length; /* of the start, in tokens */
	uint32_t token;	 /* the one behind it */
};

struct text_lead text_lead(const struct text *text);

/*
 * span_common(), from the leads of the two texts where they say enough.
 */
uint32_t span_common_by_lead(struct span a, const struct text_lead *lead_a, struct span b,
			     const struct text_lead *lead_b);

/* Token `index` of the word generator `seed`. */
uint32_t word_token(uint64_t seed, uint32_t index);
/* Writes the WORD_LENGTH letters of a word's token (below VOCABULARY_SIZE). */
void word_spell(uint32_t token, char letters[WORD_LENGTH]);
/* The token of any word: the vocabulary's number, or a number above all others made of the letters. */
uint32_t word_read(const char *letters, size_t length);

/* Spells `count` words of generator `seed` with one blank between them: count * 4 - 1 bytes, no NUL. Returns that. */
size_t words_spell(uint64_t seed, uint32_t count, char *out);
static inline size_t words_bytes(uint32_t count)
{
	return count ? (size_t)count * (WORD_LENGTH + 1) - 1 : 0;
}

#endif /* TOOLS_TEXT_H */
