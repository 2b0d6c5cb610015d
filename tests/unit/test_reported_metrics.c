/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What servers say about their load, as texts that they really give, cut at every byte, and as texts that none should give.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/reported_metrics.h"

static const char vllm[] =
	"# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n"
	"# TYPE process_start_time_seconds gauge\n"
	"process_start_time_seconds 1.76449000025e+09\n"
	"# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
	"# TYPE vllm:num_requests_running gauge\n"
	"vllm:num_requests_running{engine=\"0\",model_name=\"meta-llama/Llama-3.1-8B\"} 3.0\n"
	"vllm:num_requests_running{engine=\"1\",model_name=\"meta-llama/Llama-3.1-8B\"} 4.0\n"
	"# TYPE vllm:num_requests_waiting gauge\n"
	"vllm:num_requests_waiting{engine=\"0\",model_name=\"a } in a name\"} 2.0\n"
	"vllm:num_requests_waiting_by_reason{engine=\"0\",reason=\"capacity\"} 900.0\n"
	"vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n"
	"vllm:kv_cache_usage_perc{engine=\"1\"} 0.5\n";

static const char sglang[] = "sglang:num_running_reqs{model_name=\"m\"} 5.0\n"
			     "sglang:num_used_tokens{model_name=\"m\"} 123859.0\n"
			     "sglang:token_usage{model_name=\"m\"} 0.28\r\n"
			     "sglang:num_queue_reqs{model_name=\"m\"} 6.0";

static const char llama[] = "# TYPE llamacpp:requests_processing gauge\n"
			    "llamacpp:requests_processing 2\n"
			    "llamacpp:requests_deferred 9\n";

static struct reported_metrics read_in_pieces(const char *text, size_t length,
					      enum load_source source, size_t first)
{
	struct reported_reader *reader = malloc(sizeof(*reader));
	struct reported_metrics found;

	reported_begin(reader, source);
	assert_true(reported_take(reader, text, first));
	assert_true(reported_take(reader, text + first, length - first));
	found = *reported_end(reader);
	free(reader);
	return found;
}

static struct reported_metrics read_text(const char *text, enum load_source source)
{
	return read_in_pieces(text, strlen(text), source, 0);
}

static void vllm_is_read_wherever_it_is_cut(void **state)
{
	(void)state;
	for (size_t cut = 0; cut < sizeof(vllm); cut++) {
		struct reported_metrics found =
			read_in_pieces(vllm, sizeof(vllm) - 1, LOAD_FROM_VLLM,
				       cut < sizeof(vllm) - 1 ? cut : sizeof(vllm) - 1);

		assert_true(found.complete);
		assert_true(found.running == 7);
		assert_true(found.waiting == 2);
		assert_true(found.cache_usage == 0.5);
		assert_int_not_equal(found.process, 0);
	}
}

static void sglang_is_read(void **state)
{
	struct reported_metrics found = read_text(sglang, LOAD_FROM_SGLANG);

	(void)state;
	assert_true(found.complete);
	assert_true(found.running == 5);
	assert_true(found.waiting == 6);
	assert_true(found.cache_usage > 0.27 && found.cache_usage < 0.29);
	assert_int_equal(found.process, 0);
}

static void llama_is_read(void **state)
{
	struct reported_metrics found = read_text(llama, LOAD_FROM_LLAMA);

	(void)state;
	assert_true(found.complete);
	assert_true(found.running == 2);
	assert_true(found.waiting == 9);
	assert_true(found.cache_usage < 0);
}

static void another_servers_metrics_say_nothing(void **state)
{
	(void)state;
	assert_false(read_text(llama, LOAD_FROM_VLLM).complete);
	assert_false(read_text(vllm, LOAD_FROM_SGLANG).complete);
	assert_false(read_text("", LOAD_FROM_LLAMA).complete);
}

static void another_start_is_another_process(void **state)
{
	__u32 first =
		read_text("process_start_time_seconds 1764490000.25\n", LOAD_FROM_VLLM).process;

	(void)state;
	assert_int_not_equal(first, 0);
	assert_int_equal(
		read_text("process_start_time_seconds 1764490000.25", LOAD_FROM_VLLM).process,
		first);
	assert_int_not_equal(
		read_text("process_start_time_seconds 1764490000.26\n", LOAD_FROM_VLLM).process,
		first);
}

static void odd_numbers_do_not_count(void **state)
{
	static const char *const odd[] = {
		"NaN", "+Inf", "-1", "", "many", "{", "1e999", "-",
	};
	char text[200];

	(void)state;
	for (unsigned int i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		snprintf(text, sizeof(text),
			 "llamacpp:requests_processing %s\nllamacpp:requests_deferred 1\n", odd[i]);
		assert_false(read_text(text, LOAD_FROM_LLAMA).complete);
	}
	assert_true(read_text("llamacpp:requests_processing 1e300\nllamacpp:requests_deferred 0\n",
			      LOAD_FROM_LLAMA)
			    .running <= 1e9);
	assert_false(read_text("llamacpp:requests_processing{ 3\nllamacpp:requests_deferred 1\n",
			       LOAD_FROM_LLAMA)
			     .complete);
	assert_false(read_text("llamacpp:requests_processing3\nllamacpp:requests_deferred 1\n",
			       LOAD_FROM_LLAMA)
			     .complete);
}

static void long_lines_and_texts_are_bounded(void **state)
{
	struct reported_reader *reader = malloc(sizeof(*reader));
	char block[8192];
	size_t total = 0;

	(void)state;
	memset(block, 'x', sizeof(block));
	reported_begin(reader, LOAD_FROM_LLAMA);
	assert_true(reported_take(reader, llama, strlen(llama)));
	while (reported_take(reader, block, sizeof(block)))
		total += sizeof(block);
	assert_in_range(total, REPORTED_TEXT_MAX - 3 * sizeof(block), REPORTED_TEXT_MAX);
	assert_true(reported_end(reader)->complete);
	free(reader);
}

static void noise_is_survived(void **state)
{
	struct reported_reader *reader = malloc(sizeof(*reader));
	char noise[4096];

	(void)state;
	srand(7);
	for (int round = 0; round < 200; round++) {
		memcpy(noise, vllm, sizeof(vllm));
		for (size_t i = sizeof(vllm); i < sizeof(noise); i++)
			noise[i] = (char)rand();
		for (int i = 0; i < 40; i++)
			noise[(size_t)rand() % sizeof(noise)] = (char)rand();
		reported_begin(reader, LOAD_FROM_VLLM);
		reported_take(reader, noise, sizeof(noise));
		assert_true(reported_end(reader)->running >= 0);
	}
	free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vllm_is_read_wherever_it_is_cut),
		cmocka_unit_test(sglang_is_read),
		cmocka_unit_test(llama_is_read),
		cmocka_unit_test(another_servers_metrics_say_nothing),
		cmocka_unit_test(another_start_is_another_process),
		cmocka_unit_test(odd_numbers_do_not_count),
		cmocka_unit_test(long_lines_and_texts_are_bounded),
		cmocka_unit_test(noise_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
