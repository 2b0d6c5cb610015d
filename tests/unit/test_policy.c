/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of a policy as text, and the table that remembers ages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/policy.h"
#include "lib/recency_table.h"

static void settings_are_set_by_either_name(void **unused)
{
	struct policy_settings settings = policy_published(POLICY_LLM_AWARE);
	struct error error;

	(void)unused;
	assert_int_equal(policy_set_pair(&settings, "epsilon=0.5", &error), 0);
	assert_int_equal(settings.epsilon_millionths, 500000);
	assert_int_equal(policy_set_pair(&settings, "epsilon=2", &error), 0);
	assert_int_equal(settings.epsilon_millionths, 2000000);
	assert_int_equal(policy_set(&settings, "memory_max", "77", &error), 0);
	assert_int_equal(settings.memory_max_entries, 77);
	assert_int_equal(policy_set(&settings, "memory_max_entries", "78", &error), 0);
	assert_int_equal(settings.memory_max_entries, 78);
	assert_int_equal(policy_set(&settings, "long_threshold", "300", &error), 0);
	assert_int_equal(settings.long_threshold_tokens, 300);
	assert_int_equal(policy_set(&settings, "token_load", "false", &error), 0);
	assert_int_equal(settings.token_load, 0);
	assert_int_equal(policy_set(&settings, "load_metric", "tokens", &error), 0);
	assert_int_equal(settings.load_metric, LOAD_TOKENS);
	assert_int_equal(policy_set(&settings, "name", "mod-n", &error), 0);
	assert_int_equal(settings.policy, POLICY_MOD_N);
}

static void assert_refused(const char *pair, const char *sentence)
{
	struct policy_settings settings = policy_published(POLICY_BOUNDED), before = settings;
	struct error error;

	assert_int_equal(policy_set_pair(&settings, pair, &error), -22);
	assert_string_equal(error.text, sentence);
	assert_memory_equal(&settings, &before, sizeof(settings));
}

static void wrong_settings_are_named_with_what_is_allowed(void **unused)
{
	(void)unused;
	assert_refused("epsilon=0",
		       "epsilon is \"0\"; allowed: a number from 0.000001 to 100 with at most 6 "
		       "digits after the point");
	assert_refused("epsilon=0.1234567",
		       "epsilon is \"0.1234567\"; allowed: a number from 0.000001 to 100 "
		       "with at most 6 digits after the point");
	assert_refused("load_metric=bytes",
		       "load_metric is \"bytes\"; allowed: one of requests, tokens");
	assert_refused("token_load=yes", "token_load is \"yes\"; allowed: true or false");
	assert_refused("memory_max=0",
		       "memory_max is \"0\"; allowed: a whole number from 1 to 16777216");
	assert_refused("epsilon", "\"epsilon\" is not a setting: write KEY=VALUE");
	assert_refused(
		"color=red",
		"there is no policy setting \"color\"; there are: name, epsilon, load_metric, token_load, "
		"long_stickiness, placement_memory, long_epsilon, long_threshold_tokens, "
		"memory_max_entries, default_max_tokens");
}

static void settings_that_do_not_go_together(void **unused)
{
	struct policy_settings settings = policy_published(POLICY_LLM_AWARE);
	struct error error;

	(void)unused;
	assert_int_equal(policy_check(&settings, &error), 0);
	settings.epsilon_millionths = 1500000;
	assert_int_equal(policy_check(&settings, &error), -22);
	assert_string_equal(
		error.text,
		"long_epsilon is 1, but must not be smaller than epsilon, which is 1.5");
}

static void every_setting_is_shown(void **unused)
{
	struct policy_settings settings = policy_published(POLICY_LLM_AWARE), copy = {0};
	char value[POLICY_VALUE_TEXT_SIZE];
	struct error error;
	const char *key;
	size_t count;

	(void)unused;
	for (count = 0; (key = policy_key(&settings, count, value)); count++)
		assert_int_equal(policy_set(&copy, key, value, &error), 0);
	assert_int_equal(count, 10);
	assert_memory_equal(&copy, &settings, sizeof(settings));
}

static void memory_goes_with_the_policy(void **unused)
{
	struct policy_settings from = policy_published(POLICY_LLM_AWARE), to = from;

	(void)unused;
	to.epsilon_millionths++;
	to.long_stickiness = 0;
	assert_false(policy_clears_memory(&from, &to));
	to.policy = POLICY_BOUNDED;
	assert_true(policy_clears_memory(&from, &to));
	to = from;
	to.memory_max_entries--;
	assert_true(policy_clears_memory(&from, &to));
}

static void put(struct recency_table *table, uint32_t key, uint64_t value)
{
	assert_int_equal(recency_table_put(table, &key, &value), 0);
}

static uint64_t get(struct recency_table *table, uint32_t key)
{
	uint64_t *value = recency_table_find(table, &key);

	return value ? *value : 0;
}

static bool is_even(const void *value, const void *context)
{
	(void)context;
	return *(const uint64_t *)value % 2 == 0;
}

static void the_entry_put_in_longest_ago_makes_room(void **unused)
{
	struct recency_table *table = recency_table_new(sizeof(uint32_t), sizeof(uint64_t), 3);
	uint32_t key = 4;

	(void)unused;
	put(table, 1, 11);
	put(table, 2, 12);
	put(table, 3, 13);
	assert_int_equal(get(table, 1), 11); /* looking does not count */
	put(table, 2, 22);		     /* putting does */
	put(table, 4, 14);
	assert_int_equal(get(table, 1), 0);
	put(table, 5, 15);
	assert_int_equal(get(table, 3), 0);
	assert_int_equal(get(table, 2), 22);
	assert_int_equal(recency_table_count(table), 3);
	recency_table_remove(table, &key);
	recency_table_remove(table, &key);
	put(table, 6, 17);
	assert_int_equal(get(table, 2), 22);
	recency_table_remove_all(table, is_even, NULL);
	assert_int_equal(get(table, 2), 0);
	assert_int_equal(get(table, 5), 15);
	assert_int_equal(recency_table_count(table), 2);
	recency_table_clear(table);
	assert_int_equal(recency_table_count(table), 0);
	assert_int_equal(get(table, 5), 0);
	recency_table_free(table);
}

static void a_table_without_limit_finds_all_it_holds(void **unused)
{
	struct recency_table *table = recency_table_new(sizeof(uint32_t), sizeof(uint64_t), 0);

	(void)unused;
	for (uint32_t key = 0; key < 50000; key++)
		put(table, key, key + 1);
	for (uint32_t key = 0; key < 50000; key += 2)
		recency_table_remove(table, &key);
	for (uint32_t key = 0; key < 50000; key++)
		assert_int_equal(get(table, key), key % 2 ? key + 1 : 0);
	recency_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_set_by_either_name),
		cmocka_unit_test(wrong_settings_are_named_with_what_is_allowed),
		cmocka_unit_test(settings_that_do_not_go_together),
		cmocka_unit_test(every_setting_is_shown),
		cmocka_unit_test(memory_goes_with_the_policy),
		cmocka_unit_test(the_entry_put_in_longest_ago_makes_room),
		cmocka_unit_test(a_table_without_limit_finds_all_it_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
