/* SPDX-License-Identifier: BSD-2-Clause */
#include "dialogue.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_names[] = {
	[ROLE_SYSTEM] = "system",
	[ROLE_USER] = "user",
	[ROLE_ASSISTANT] = "assistant",
	[ROLE_OTHER] = "other",
};

#define BODY_START   "{\"model\":\"" DIALOGUE_MODEL "\",\"messages\":["
#define MESSAGE_FORM "{\"role\":\"%s\",\"content\":\""
#define MESSAGE_END  "\"}"
#define BODY_FORM    "],\"max_tokens\":%u,\"stream\":%s}"

int dialogue_start(struct dialogue *dialogue, bool simulated)
{
	*dialogue = (struct dialogue){.simulated = simulated};
	if (!simulated)
		return 0;
	dialogue->text = text_new();
	return dialogue->text ? 0 : -ENOMEM;
}

static void drop_messages(struct dialogue *dialogue, uint32_t count)
{
	while (dialogue->message_count > count)
		free(dialogue->messages[--dialogue->message_count].spelt);
}

void dialogue_end(struct dialogue *dialogue)
{
	text_release(dialogue->text);
	if (!dialogue->simulated)
		drop_messages(dialogue, 0);
	free(dialogue->messages);
	*dialogue = (struct dialogue){0};
}

static size_t message_overhead(const struct dialogue *dialogue, enum text_role role)
{
	return (dialogue->message_count > 0) + sizeof("{\"role\":\"\",\"content\":\"") - 1 +
	       strlen(role_names[role]) + sizeof(MESSAGE_END) - 1;
}

static struct dialogue_message *add_message(struct dialogue *dialogue, enum text_role role)
{
	struct dialogue_message *message;

	dialogue->body_bytes += message_overhead(dialogue, role);
	if (dialogue->simulated) {
		dialogue->message_count++;
		return NULL;
	}
	if (dialogue->message_count == dialogue->message_capacity) {
		uint32_t capacity = dialogue->message_capacity ? dialogue->message_capacity * 2 : 8;

		message = realloc(dialogue->messages, capacity * sizeof(*message));
		if (!message)
			return NULL;
		dialogue->messages = message;
		dialogue->message_capacity = capacity;
	}
	message = &dialogue->messages[dialogue->message_count++];
	*message = (struct dialogue_message){.role = role};
	return message;
}

static void remember_before(struct dialogue *dialogue)
{
	dialogue->length_before = dialogue->text ? text_length(dialogue->text) : 0;
	dialogue->count_before = dialogue->message_count;
	dialogue->bytes_before = dialogue->body_bytes;
}

static int add_role(struct dialogue *dialogue, enum text_role role)
{
	return dialogue->message_count ? text_append_between(dialogue->text, role)
				       : text_append_opening(dialogue->text, role);
}

int dialogue_say(struct dialogue *dialogue, enum text_role role, uint64_t seed, uint32_t words)
{
	struct dialogue_message *message;

	if (role == ROLE_USER)
		remember_before(dialogue);
	if (dialogue->simulated &&
	    (add_role(dialogue, role) || text_append_words(dialogue->text, seed, words)))
		return -ENOMEM;
	message = add_message(dialogue, role);
	dialogue->body_bytes += words_bytes(words);
	if (dialogue->simulated)
		return 0;
	if (!message)
		return -ENOMEM;
	message->seed = seed;
	message->words = words;
	return 0;
}

int dialogue_say_blocks(struct dialogue *dialogue, const uint64_t *seeds, uint32_t blocks,
			uint32_t each, uint32_t words)
{
	uint32_t last = words - (blocks - 1) * each;
	struct dialogue_message *message;
	size_t at = 0;

	remember_before(dialogue);
	if (dialogue->simulated) {
		if (add_role(dialogue, ROLE_USER))
			return -ENOMEM;
		for (uint32_t i = 0; i < blocks; i++)
			if (text_append_words(dialogue->text, seeds[i],
					      i + 1 < blocks ? each : last))
				return -ENOMEM;
	}
	message = add_message(dialogue, ROLE_USER);
	dialogue->body_bytes += words_bytes(words);
	if (dialogue->simulated)
		return 0;
	if (!message)
		return -ENOMEM;
	message->spelt = malloc(words_bytes(words) + 2);
	if (!message->spelt)
		return -ENOMEM;
	for (uint32_t i = 0; i < blocks; i++) {
		at += words_spell(seeds[i], i + 1 < blocks ? each : last, message->spelt + at);
		message->spelt[at++] = ' ';
	}
	message->spelt[at - 1] = '\0';
	return 0;
}

/* Without the quotes around it. */
static char *escape(const char *content)
{
	json_t *string = json_string(content);
	char *text;

	if (!string) /* not UTF-8: a JSON body cannot carry it */
		string = json_string("");
	text = json_dumps(string, JSON_ENCODE_ANY);
	json_decref(string);
	if (!text)
		return NULL;
	memmove(text, text + 1, strlen(text));
	text[strlen(text) - 1] = '\0';
	return text;
}

int dialogue_answered(struct dialogue *dialogue, const char *content)
{
	char *spelt = escape(content);
	struct dialogue_message *message = spelt ? add_message(dialogue, ROLE_ASSISTANT) : NULL;

	if (!message) {
		free(spelt);
		return -ENOMEM;
	}
	message->spelt = spelt;
	dialogue->body_bytes += strlen(spelt);
	return 0;
}

/* A new text of the first `length` tokens: replicas may hold longer spans of the old one. */
static int cut_text(struct dialogue *dialogue, uint32_t length)
{
	struct text *text = text_copy((struct span){dialogue->text, length});

	if (!text)
		return -ENOMEM;
	text_release(dialogue->text);
	dialogue->text = text;
	return 0;
}

int dialogue_answered_tokens(struct dialogue *dialogue, uint32_t tokens)
{
	if (text_length(dialogue->text) != dialogue->prompt_length + tokens &&
	    cut_text(dialogue, dialogue->prompt_length + tokens))
		return -ENOMEM;
	add_message(dialogue, ROLE_ASSISTANT);
	dialogue->body_bytes += words_bytes(tokens);
	return 0;
}

int dialogue_unanswered(struct dialogue *dialogue)
{
	dialogue->body_bytes = dialogue->bytes_before;
	if (dialogue->simulated) {
		dialogue->message_count = dialogue->count_before;
		return cut_text(dialogue, dialogue->length_before);
	}
	drop_messages(dialogue, dialogue->count_before);
	return 0;
}

size_t dialogue_body_bytes(const struct dialogue *dialogue, uint32_t max_tokens, bool stream)
{
	return sizeof(BODY_START) - 1 + dialogue->body_bytes +
	       (size_t)snprintf(NULL, 0, BODY_FORM, max_tokens, stream ? "true" : "false");
}

uint32_t dialogue_estimate(const struct dialogue *dialogue, uint32_t max_tokens, bool stream)
{
	return (uint32_t)(dialogue_body_bytes(dialogue, max_tokens, stream) / BYTES_PER_TOKEN);
}

void dialogue_body(const struct dialogue *dialogue, uint32_t max_tokens, bool stream,
		   struct bytes *body)
{
	bytes_text(body, BODY_START);
	for (uint32_t i = 0; i < dialogue->message_count; i++) {
		const struct dialogue_message *message = &dialogue->messages[i];

		if (i)
			bytes_text(body, ",");
		bytes_print(body, MESSAGE_FORM, role_names[message->role]);
		if (message->spelt)
			bytes_text(body, message->spelt);
		else
			body->length += words_spell(message->seed, message->words,
						    bytes_room(body, words_bytes(message->words)));
		bytes_text(body, MESSAGE_END);
	}
	bytes_print(body, BODY_FORM, max_tokens, stream ? "true" : "false");
}

int dialogue_prompt(struct dialogue *dialogue, uint64_t seed, uint32_t answer, struct span *whole,
		    uint32_t *prompt_tokens)
{
	if (text_append_between(dialogue->text, ROLE_ASSISTANT))
		return -ENOMEM;
	*prompt_tokens = dialogue->prompt_length = text_length(dialogue->text);
	if (text_append_words(dialogue->text, seed, answer))
		return -ENOMEM;
	*whole = (struct span){dialogue->text, text_length(dialogue->text)};
	return 0;
}
