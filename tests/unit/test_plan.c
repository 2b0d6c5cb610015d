/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans: deterministic, of the right shape; profiles and traces read strictly; the two kinds of dialogue agree. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../tools/lib/dialogue.h"
#include "../../tools/lib/plan.h"
#include "../../tools/lib/trace.h"

static const char *write_file(const char *text)
{
	static char path[64];
	int file;

	snprintf(path, sizeof(path), "/tmp/warmpath-plan.XXXXXX");
	file = mkstemp(path);
	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
	close(file);
	return path;
}

static void test_shipped_profiles(void **state)
{
	struct profile quick, standard;
	char error[TOOLS_ERROR_SIZE];

	(void)state;
	assert_int_equal(profile_read("tools/profiles/quick.json", &quick, error), 0);
	assert_int_equal(profile_read("tools/profiles/standard.json", &standard, error), 0);
	assert_int_equal(quick.conversations, 6);
	assert_int_equal(quick.turns_max, 3);
	assert_int_equal(quick.max_context_tokens, 3500);
	assert_int_equal(standard.conversations, 50);
	assert_true(standard.heavy_fraction == 0.3);
	assert_true(standard.think_max_s == 20);
	assert_int_equal(standard.heavy_document_words, 1000);
	assert_true(standard.request_timeout_s == 1200);
}

static void test_plan_is_a_function_of_its_arguments(void **state)
{
	struct profile profile;
	struct plan_conversation one, again, other;
	struct plan_turn turn, turn_again;
	char error[TOOLS_ERROR_SIZE];

	(void)state;
	profile_read("tools/profiles/standard.json", &profile, error);
	plan_conversation(&profile, 1, 7, &one);
	plan_conversation(&profile, 2, 7, &other);
	plan_conversation(&profile, 1, 7, &again);
	assert_memory_equal(&one.turns, &again.turns, sizeof(one.turns));
	assert_true(one.start_s == again.start_s);
	assert_true(one.start_s != other.start_s);
	assert_string_equal(one.id, "s1-c007");
	plan_turn(&profile, 1, 7, 3, &turn);
	plan_turn(&profile, 1, 7, 3, &turn_again);
	assert_true(turn.seed == turn_again.seed && turn.think_s == turn_again.think_s);
	/* written down once: a change of the generator would make runs incomparable unnoticed */
	assert_int_equal(one.turns, 11);
	assert_int_equal(turn.words, 16);
}

/* The published generator planned 772, 774 and 770 turns for seeds 1, 2 and 42: 750 expected, 22 the standard deviation. */
static void test_turns_of_the_standard_profile(void **state)
{
	static const uint64_t seeds[] = {1, 2, 42};
	struct profile profile;
	char error[TOOLS_ERROR_SIZE];

	(void)state;
	profile_read("tools/profiles/standard.json", &profile, error);
	for (int i = 0; i < 3; i++) {
		uint32_t turns = 0;

		for (uint32_t index = 0; index < 50; index++) {
			struct plan_conversation conversation;

			plan_conversation(&profile, seeds[i], index, &conversation);
			assert_in_range(conversation.turns, 10, 20);
			assert_int_equal(conversation.heavy, index < 15);
			assert_true(conversation.start_s >= 0 && conversation.start_s < 12);
			turns += conversation.turns;
		}
		assert_in_range(turns, 750 - 3 * 22, 750 + 3 * 22);
	}
}

static void test_distributions(void **state)
{
	struct profile profile;
	uint32_t turns[21] = {0}, words[MESSAGE_WORDS_MAX + 1] = {0}, capped = 0;
	double think = 0, start = 0;
	char error[TOOLS_ERROR_SIZE];

	(void)state;
	profile_read("tools/profiles/standard.json", &profile, error);
	profile.heavy_fraction = 0;
	for (uint64_t i = 0; i < 22000; i++) {
		struct plan_conversation conversation;
		struct plan_turn turn;

		plan_conversation(&profile, 1, (uint32_t)i, &conversation);
		plan_turn(&profile, 1, (uint32_t)i, 1, &turn);
		turns[conversation.turns]++;
		words[turn.words]++;
		start += conversation.start_s;
		think += turn.think_s;
		capped += turn.think_s == 20;
	}
	for (int i = 10; i <= 20; i++) /* 2,000 each, standard deviation 43 */
		assert_in_range(turns[i], 2000 - 170, 2000 + 170);
	for (int i = MESSAGE_WORDS_MIN; i <= MESSAGE_WORDS_MAX; i++) /* 880 each, 29 */
		assert_in_range(words[i], 880 - 120, 880 + 120);
	assert_true(fabs(start / 22000 - 6) < 0.1);
	/* exponential of mean 6 capped at 20: mean 6 (1 - e^(-20/6)), a share of e^(-20/6) at the cap */
	assert_true(fabs(think / 22000 - 6 * (1 - exp(-20.0 / 6))) < 0.15);
	assert_true(fabs(capped / 22000.0 - exp(-20.0 / 6)) < 0.006);
}

static void refuse_profile(const char *text, const char *named, const char *allowed)
{
	struct profile profile;
	char error[TOOLS_ERROR_SIZE] = "";
	const char *path = write_file(text);

	assert_true(profile_read(path, &profile, error) < 0);
	unlink(path);
	if (!strstr(error, named) || !strstr(error, allowed))
		fail_msg("\"%s\" does not name \"%s\" and \"%s\"", error, named, allowed);
}

static void test_malformed_profiles(void **state)
{
	static const char rest[] =
		"\"heavy_fraction\":0.3,\"turns_min\":1,\"arrival_window_s\":1,\"think_mean_s\":1,\"think_max_s\":1,"
		"\"heavy_document_words\":1,\"system_prompt_words\":1,\"max_tokens\":1,\"max_context_tokens\":100,\"request_timeout_s\":1";
	struct profile profile;
	char text[1024], error[TOOLS_ERROR_SIZE];

	(void)state;
	assert_int_equal(profile_read("/nowhere/p.json", &profile, error), -ENOENT);
	assert_non_null(strstr(error, "/nowhere/p.json"));
	refuse_profile("{", "JSON", "line");
	refuse_profile("[1]", "JSON", "object");
	refuse_profile("{}", "\"conversations\"", "missing");
	snprintf(text, sizeof(text), "{%s,\"turns_max\":3}", rest);
	refuse_profile(text, "\"conversations\"", "missing");
	snprintf(text, sizeof(text), "{%s,\"turns_max\":3,\"conversations\":0}", rest);
	refuse_profile(text, "\"conversations\"", "from 1 to");
	snprintf(text, sizeof(text), "{%s,\"turns_max\":3,\"conversations\":2.5}", rest);
	refuse_profile(text, "\"conversations\"", "whole number");
	snprintf(text, sizeof(text), "{%s,\"turns_max\":\"3\",\"conversations\":2}", rest);
	refuse_profile(text, "\"turns_max\"", "whole number");
	snprintf(text, sizeof(text), "{%s,\"turns_max\":3,\"conversations\":2,\"colour\":1}", rest);
	refuse_profile(text, "\"colour\"", "unknown");
	snprintf(text, sizeof(text), "{%s,\"turns_max\":3,\"turns_max\":4,\"conversations\":2}",
		 rest);
	refuse_profile(text, "JSON", "turns_max");
	snprintf(text, sizeof(text), "{%s,\"turns_max\":0.5,\"conversations\":2}", rest);
	refuse_profile(text, "\"turns_max\"", "from 1 to");
}

static void test_turns_min_above_turns_max(void **state)
{
	(void)state;
	refuse_profile(
		"{\"conversations\":1,\"heavy_fraction\":0.3,\"turns_min\":5,\"turns_max\":4,\"arrival_window_s\":1,"
		"\"think_mean_s\":1,\"think_max_s\":1,\"heavy_document_words\":1,\"system_prompt_words\":1,"
		"\"max_tokens\":1,\"max_context_tokens\":100,\"request_timeout_s\":1}",
		"turns_min (5)", "turns_max (4)");
}

/* Both kinds of dialogue, through answered and unanswered turns: equal bytes, and the body has as many. */
static void test_dialogues_agree(void **state)
{
	struct dialogue real, simulated;
	struct bytes body = {0};
	char content[400];

	(void)state;
	assert_int_equal(dialogue_start(&real, false), 0);
	assert_int_equal(dialogue_start(&simulated, true), 0);
	dialogue_say(&real, ROLE_SYSTEM, 11, 60);
	dialogue_say(&simulated, ROLE_SYSTEM, 11, 60);
	for (uint32_t turn = 0; turn < 6; turn++) {
		struct span whole;
		uint32_t prompt;

		dialogue_say(&real, ROLE_USER, 100 + turn, 20 + turn);
		dialogue_say(&simulated, ROLE_USER, 100 + turn, 20 + turn);
		bytes_clear(&body);
		dialogue_body(&real, 32, turn % 2, &body);
		assert_int_equal(dialogue_body_bytes(&real, 32, turn % 2), body.length);
		assert_int_equal(dialogue_body_bytes(&simulated, 32, turn % 2), body.length);
		assert_int_equal(dialogue_estimate(&real, 32, turn % 2), body.length / 4);
		assert_int_equal(dialogue_prompt(&simulated, 900 + turn, 32, &whole, &prompt), 0);
		assert_int_equal(whole.length, prompt + 32);
		if (turn == 2) {
			dialogue_unanswered(&real);
			dialogue_unanswered(&simulated);
			continue;
		}
		/* turn 4: the answer is shorter than it might have been */
		content[words_spell(900 + turn, turn == 4 ? 10 : 32, content)] = '\0';
		dialogue_answered(&real, content);
		dialogue_answered_tokens(&simulated, turn == 4 ? 10 : 32);
	}
	bytes_free(&body);
	dialogue_end(&real);
	dialogue_end(&simulated);
}

/* What the simulation takes for the prompt is what a replica reads out of the body. */
static void test_prompt_of_a_chat(void **state)
{
	struct dialogue dialogue;
	struct span whole;
	uint32_t prompt, at = 0;

	(void)state;
	dialogue_start(&dialogue, true);
	dialogue_say(&dialogue, ROLE_SYSTEM, 11, 2);
	dialogue_say(&dialogue, ROLE_USER, 12, 1);
	dialogue_prompt(&dialogue, 13, 1, &whole, &prompt);
	dialogue_answered_tokens(&dialogue, 1);
	dialogue_say(&dialogue, ROLE_USER, 14, 1);
	dialogue_prompt(&dialogue, 15, 0, &whole, &prompt);
	{
		const uint32_t expected[] = {
			TOKEN_BEGIN,	   TOKEN_MESSAGE_START, TOKEN_SYSTEM,
			TOKEN_NEWLINE,	   word_token(11, 0),	word_token(11, 1),
			TOKEN_MESSAGE_END, TOKEN_NEWLINE,	TOKEN_MESSAGE_START,
			TOKEN_USER,	   TOKEN_NEWLINE,	word_token(12, 0),
			TOKEN_MESSAGE_END, TOKEN_NEWLINE,	TOKEN_MESSAGE_START,
			TOKEN_ASSISTANT,   TOKEN_NEWLINE,	word_token(13, 0),
			TOKEN_MESSAGE_END, TOKEN_NEWLINE,	TOKEN_MESSAGE_START,
			TOKEN_USER,	   TOKEN_NEWLINE,	word_token(14, 0),
			TOKEN_MESSAGE_END, TOKEN_NEWLINE,	TOKEN_MESSAGE_START,
			TOKEN_ASSISTANT,   TOKEN_NEWLINE};

		assert_int_equal(prompt, sizeof(expected) / sizeof(expected[0]));
		for (; at < prompt; at++)
			assert_int_equal(text_token(whole.text, at), expected[at]);
	}
	dialogue_end(&dialogue);
}

/* --- traces --------------------------------------------------------------------------------------------------- */

static const struct trace_options unscaled = {.time_scale = 1, .size_scale = 1};

static void test_trace_excerpt(void **state)
{
	struct trace trace;
	struct trace_options options = {
		.time_scale = 0.5, .size_scale = 0.1, .context_tokens = 4096};
	char error[TOOLS_ERROR_SIZE];
	uint32_t follow_ups = 0;

	(void)state;
	assert_int_equal(trace_read("tests/data/mooncake-conversation-excerpt.jsonl", &unscaled,
				    &trace, error),
			 0);
	assert_int_equal(trace.count, 150);
	assert_int_equal(trace.requests[0].words, 6758);
	assert_int_equal(trace.requests[0].answer_tokens, 500);
	for (uint32_t i = 0; i < trace.count; i++)
		follow_ups += trace.requests[i].turn > 0;
	assert_int_equal(trace.conversations + follow_ups, 150);
	assert_true(follow_ups > 0);
	trace_free(&trace);
	assert_int_equal(trace_read("tests/data/mooncake-conversation-excerpt.jsonl", &options,
				    &trace, error),
			 0);
	assert_int_equal(trace.count + trace.left_out, 150);
	assert_true(trace.left_out > 0);
	assert_int_equal(trace.block_words, 51);
	assert_in_range(trace.requests[0].words, 660, 680);
	trace_free(&trace);
}

/* A conversation of two turns, one that only shares the first block, and one that goes on from the second turn. */
static void test_conversations_of_a_trace(void **state)
{
	const char *path = write_file(
		"{\"timestamp\":0,\"input_length\":1100,\"output_length\":10,\"hash_ids\":[1,2,3]}\n"
		"{\"timestamp\":1000,\"input_length\":1100,\"output_length\":10,\"hash_ids\":[1,4,5]}\n"
		"\n"
		"{\"timestamp\":2000,\"input_length\":1600,\"output_length\":10,\"hash_ids\":[1,2,6,7]}\n"
		"{\"timestamp\":2000,\"input_length\":2100,\"output_length\":0,\"hash_ids\":[1,2,6,8,9]}\n");
	struct trace trace;
	char error[TOOLS_ERROR_SIZE];
	const struct trace_request *r;
	struct text *texts[4];

	(void)state;
	assert_int_equal(trace_read(path, &unscaled, &trace, error), 0);
	unlink(path);
	r = trace.requests;
	assert_int_equal(trace.conversations, 2);
	assert_int_equal(r[0].conversation, 0);
	assert_int_equal(r[1].conversation, 1);
	assert_int_equal(r[2].conversation, 0);
	assert_int_equal(r[2].turn, 1);
	assert_int_equal(r[3].conversation, 0);
	assert_int_equal(r[3].turn, 2);
	assert_true(r[2].at_s == 2);
	assert_int_equal(r[3].answer_tokens, 1);
	for (int i = 0; i < 4; i++) {
		struct dialogue dialogue;

		dialogue_start(&dialogue, true);
		dialogue_say_blocks(&dialogue, trace.seeds + r[i].first_block, r[i].block_count,
				    trace.block_words, r[i].words);
		texts[i] = text_hold(dialogue.text);
		dialogue_end(&dialogue);
	}
#define COMMON(a, b)                                                \
	span_common((struct span){texts[a], text_length(texts[a])}, \
		    (struct span){texts[b], text_length(texts[b])})
	/* 4 tokens of the template; the partial last block is the start of the next turn's */
	assert_int_equal(COMMON(0, 2), 4 + 1100);
	assert_int_equal(COMMON(2, 3), 4 + 1600);
	assert_in_range(COMMON(0, 1), 4 + 512, 4 + 514);
	for (int i = 0; i < 4; i++)
		text_release(texts[i]);
	trace_free(&trace);
}

static void refuse_trace(const char *text, const char *where, const char *what)
{
	struct trace trace;
	char error[TOOLS_ERROR_SIZE] = "";
	const char *path = write_file(text);

	assert_true(trace_read(path, &unscaled, &trace, error) < 0);
	unlink(path);
	if (!strstr(error, where) || !strstr(error, what))
		fail_msg("\"%s\" does not name \"%s\" and \"%s\"", error, where, what);
}

static void test_malformed_traces(void **state)
{
#define GOOD "{\"timestamp\":5,\"input_length\":3,\"output_length\":1,\"hash_ids\":[1]}\n"
	(void)state;
	refuse_trace("", "no request", "");
	refuse_trace(GOOD "{\"timestamp\":", "line 2", "JSON");
	refuse_trace(GOOD "[7]\n", "line 2", "JSON object");
	refuse_trace(GOOD
		     "{\"timestamp\":-1,\"input_length\":3,\"output_length\":1,\"hash_ids\":[1]}\n",
		     "line 2", "timestamp");
	refuse_trace(GOOD
		     "{\"timestamp\":4,\"input_length\":3,\"output_length\":1,\"hash_ids\":[1]}\n",
		     "line 2", "earlier");
	refuse_trace(GOOD
		     "{\"timestamp\":6,\"input_length\":0,\"output_length\":1,\"hash_ids\":[]}\n",
		     "line 2", "input_length");
	refuse_trace(
		GOOD
		"{\"timestamp\":6,\"input_length\":3,\"output_length\":\"x\",\"hash_ids\":[1]}\n",
		"line 2", "output_length");
	refuse_trace(
		GOOD
		"{\"timestamp\":6,\"input_length\":513,\"output_length\":1,\"hash_ids\":[1]}\n",
		"line 2", "hash_ids");
	refuse_trace(
		GOOD
		"{\"timestamp\":6,\"input_length\":3,\"output_length\":1,\"hash_ids\":[\"x\"]}\n",
		"line 2", "hash_ids");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shipped_profiles),
		cmocka_unit_test(test_plan_is_a_function_of_its_arguments),
		cmocka_unit_test(test_turns_of_the_standard_profile),
		cmocka_unit_test(test_distributions),
		cmocka_unit_test(test_malformed_profiles),
		cmocka_unit_test(test_turns_min_above_turns_max),
		cmocka_unit_test(test_dialogues_agree),
		cmocka_unit_test(test_prompt_of_a_chat),
		cmocka_unit_test(test_trace_excerpt),
		cmocka_unit_test(test_conversations_of_a_trace),
		cmocka_unit_test(test_malformed_traces),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
