/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chat as its client holds it: every turn resends all of it.
 *
 * Owns: the messages so far, the request body, its size, the same as tokens. May not know: plans, sockets, replicas.
 *
 * One dialogue serves both worlds. For real requests it keeps the messages and spells the body; for the simulation it keeps the text
 * and only counts the body's bytes. Both counts are equal (a test holds them together), as the estimate of a
 * prompt's tokens that routers go by is made of it.
 */
#ifndef TOOLS_DIALOGUE_H
#define TOOLS_DIALOGUE_H

#include "bytes.h"
#include "text.h"

#define DIALOGUE_MODEL	"default" /* what the body asks for */
#define BYTES_PER_TOKEN 4

struct dialogue_message {
	enum text_role role;
	uint32_t words;
	uint64_t seed;
	char *spelt; /* an answer as it came, JSON-escaped; NULL: the words of the seed */
};

struct dialogue {
	bool simulated;
	struct text *text; /* simulated: owns a reference */
	struct dialogue_message *messages;
	uint32_t message_count, message_capacity;
	size_t body_bytes;	/* of the messages, without what is around them */
	uint32_t prompt_length; /* simulated: of the text, before the answer */
	/* as it was before the message that waits for its answer */
	uint32_t length_before, count_before;
	size_t bytes_before;
};

/* `simulated`: keep a text instead of messages. 0 or -ENOMEM. */
int dialogue_start(struct dialogue *dialogue, bool simulated);
void dialogue_end(struct dialogue *dialogue);

/*
 * A message of words. A user message that follows no unanswered one is a point to fall back to: dialogue_unanswered().
 * 0 or -ENOMEM.
 */
int dialogue_say(struct dialogue *dialogue, enum text_role role, uint64_t seed, uint32_t words);
/* A user message made of several runs of words (a trace's blocks); each but the last has `each` words. */
int dialogue_say_blocks(struct dialogue *dialogue, const uint64_t *seeds, uint32_t blocks,
			uint32_t each, uint32_t words);

/* The answer came: as text, or (simulated) as so many tokens of those that dialogue_prompt announced. */
int dialogue_answered(struct dialogue *dialogue, const char *content);
int dialogue_answered_tokens(struct dialogue *dialogue, uint32_t tokens);
/* It did not: the last user message is taken back. What replicas hold of the text stays theirs. */
int dialogue_unanswered(struct dialogue *dialogue);

/* Bytes of the request body, and a token for each four of them. */
size_t dialogue_body_bytes(const struct dialogue *dialogue, uint32_t max_tokens, bool stream);
uint32_t dialogue_estimate(const struct dialogue *dialogue, uint32_t max_tokens, bool stream);
/* Writes the body (of a dialogue that is not simulated). */
void dialogue_body(const struct dialogue *dialogue, uint32_t max_tokens, bool stream,
		   struct bytes *body);

/*
 * Simulated: the prompt with room for `answer` tokens of the answer, whose words are those of `seed`. *prompt_tokens is how much of the
 * span is prompt. No reference is taken.
 */
int dialogue_prompt(struct dialogue *dialogue, uint64_t seed, uint32_t answer, struct span *whole,
		    uint32_t *prompt_tokens);

#endif /* TOOLS_DIALOGUE_H */
