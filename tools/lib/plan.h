/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is asked, and when: the traffic of an experiment, the same under every policy and in both worlds (real requests, simulation).
 *
 * Owns: profiles, plans made from (profile, seed, conversation), plans read from a trace. May not know: how requests are sent, or answered.
 *
 * A profile's plan is *closed loop*: a user's next message follows the answer to the last one by a think time. A trace's plan is *open
 * loop*: each request has its time, whatever became of the others.
 */
#ifndef TOOLS_PLAN_H
#define TOOLS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "fields.h"

#define PLAN_ID_SIZE 32

struct profile {
	uint32_t conversations;
	double heavy_fraction;
	uint32_t turns_min, turns_max;
	double arrival_window_s;
	double think_mean_s, think_max_s;
	uint32_t heavy_document_words, system_prompt_words;
	uint32_t max_tokens, max_context_tokens;
	double request_timeout_s;
};

/* 0, or a negative errno with one plain sentence in `error`. */
int profile_read(const char *path, struct profile *profile, char error[TOOLS_ERROR_SIZE]);

/* A user's message has between these many words, each as likely; a heavy conversation's first one has the document before them. */
#define MESSAGE_WORDS_MIN 12
#define MESSAGE_WORDS_MAX 36

struct plan_conversation {
	char id[PLAN_ID_SIZE]; /* s<seed>-c<index, at least 3 digits> */
	bool heavy;	       /* the first round(conversations x heavy_fraction) are */
	uint32_t turns;
	double start_s;
};

struct plan_turn {
	double think_s; /* after the last answer; 0 for the first turn */
	uint32_t words; /* of the user's message */
	uint64_t seed;	/* of the words */
};

/* Both are functions of their arguments alone. index < profile->conversations, turn < turns. */
void plan_conversation(const struct profile *profile, uint64_t seed, uint32_t index,
		       struct plan_conversation *conversation);
void plan_turn(const struct profile *profile, uint64_t seed, uint32_t index, uint32_t turn,
	       struct plan_turn *planned);
/* Seed of the words of the system prompt, common to all conversations of a seed. */
uint64_t plan_system_seed(uint64_t seed);

#endif /* TOOLS_PLAN_H */
