/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of measurements, and the statistics made of them. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../tools/lib/records.h"
#include "../../tools/lib/statistics.h"

struct collected {
	struct record records[8];
	int count;
};

static void collect(const struct record *record, void *context)
{
	struct collected *collected = context;

	collected->records[collected->count++] = *record;
}

static char path[64];

static FILE *create(void)
{
	snprintf(path, sizeof(path), "/tmp/warmpath-records.XXXXXX");
	return fdopen(mkstemp(path), "w");
}

static void test_rows_come_back_as_written(void **state)
{
	struct record records[3] = {
		{.run_id = "r-1",
		 .policy = "bounded:epsilon=0.5,load_metric=tokens",
		 .conversation_id = "s1-c001",
		 .heavy = true,
		 .turn = 2,
		 .t_start_s = 1.25,
		 .t_end_s = 3.5,
		 .status = 200,
		 .replica = "llm-0",
		 .route_reason = "home-long",
		 .latency_ms = 2250,
		 .est_prompt_tokens = 77,
		 .has_timings = true,
		 .cache_n = 60,
		 .prompt_n = 17,
		 .prompt_ms = 9.5,
		 .predicted_n = 32,
		 .predicted_ms = 80.25},
		{.run_id = "r-1",
		 .conversation_id = "s1-c002",
		 .turn = 1,
		 .error = "said \"no\", twice\nand again"},
		{.run_id = "",
		 .conversation_id = "x",
		 .turn = 3,
		 .status = 503,
		 .error = "status 503"},
	};
	struct collected collected = {0};
	char error[TOOLS_ERROR_SIZE];
	FILE *file = create();

	(void)state;
	assert_int_equal(records_write_header(file), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(records_write(file, &records[i]), 0);
	fclose(file);
	assert_int_equal(records_read(path, collect, &collected, error), 0);
	unlink(path);
	assert_int_equal(collected.count, 3);
	assert_string_equal(collected.records[0].policy, records[0].policy);
	assert_string_equal(collected.records[0].route_reason, "home-long");
	assert_int_equal(collected.records[0].cache_n, 60);
	assert_true(collected.records[0].predicted_ms == 80.25);
	assert_true(collected.records[0].heavy);
	assert_false(collected.records[1].has_timings);
	assert_string_equal(collected.records[1].error, "said \"no\", twice and again");
	assert_int_equal(collected.records[2].status, 503);
	assert_string_equal(collected.records[2].error, "status 503");
}

static void refuse(const char *row, const char *named)
{
	struct collected collected = {0};
	char error[TOOLS_ERROR_SIZE] = "";
	FILE *file = create();

	records_write_header(file);
	fprintf(file, "r,p,c,0,1,0,1,200,llm-0,home,1000,10,5,5,1,2,3,\n%s\n", row);
	fclose(file);
	assert_true(records_read(path, collect, &collected, error) < 0);
	unlink(path);
	assert_int_equal(collected.count, 1);
	if (!strstr(error, "line 3") || !strstr(error, named))
		fail_msg("\"%s\" does not name line 3 and \"%s\"", error, named);
}

static void test_malformed_rows_are_named(void **state)
{
	struct collected collected = {0};
	char error[TOOLS_ERROR_SIZE];
	FILE *file;

	(void)state;
	refuse("r,p,c", "3 columns");
	refuse("r,p,c,2,1,0,1,200,l,h,1000,10,5,5,1,2,3,", "heavy");
	refuse("r,p,c,0,-1,0,1,200,l,h,1000,10,5,5,1,2,3,", "turn");
	refuse("r,p,c,0,1,x,1,200,l,h,1000,10,5,5,1,2,3,", "t_start_s");
	refuse("r,p,c,0,1,0,1,200,l,h,,10,5,5,1,2,3,", "latency_ms");
	refuse("r,p,c,0,1,0,1,200,l,h,1000,10,5,,1,2,3,", "prompt_n");
	refuse("r,p,c,0,1,0,1,200,l,h,1000,10,5,5,1,2,3,,", "19 columns");
	refuse("r,p,\"c,0,1", "columns");
	file = create();
	fputs("a,b,c\n1,2,3\n", file);
	fclose(file);
	assert_int_equal(records_read(path, collect, &collected, error), -EINVAL);
	assert_non_null(strstr(error, "header"));
	unlink(path);
	assert_int_equal(records_read(path, collect, &collected, error), -ENOENT);
	assert_non_null(strstr(error, path));
}

static void test_a_row_cut_off_at_the_end_is_left_out(void **state)
{
	struct collected collected = {0};
	char error[TOOLS_ERROR_SIZE];
	FILE *file = create();

	(void)state;
	records_write_header(file);
	fputs("r,p,c,0,1,0,1,200,llm-0,home,1000,10,5,5,1,2,3,\nr,p,c,0,2,0,1,2", file);
	fclose(file);
	assert_int_equal(records_read(path, collect, &collected, error), 0);
	assert_int_equal(collected.count, 1);
	unlink(path);
}

static void test_a_full_disk_is_told(void **state)
{
	struct record record = {.run_id = "r"};
	FILE *file = fopen("/dev/full", "w");

	(void)state;
	assert_int_equal(records_write(file, &record), -ENOSPC);
	fclose(file);
}

static void assert_close(double value, double expected, double within)
{
	if (!(fabs(value - expected) <= within))
		fail_msg("%g is not %g", value, expected);
}

static void test_statistics(void **state)
{
	/* mean 5, sample standard deviation sqrt(32/7); t(7) = 2.365 */
	const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
	const double others[] = {1, 2, 4, 3, 5, 6, 5, NAN};
	double sorted[] = {40, 10, 30, 20};
	struct mean mean = mean_of(values, 8);

	(void)state;
	assert_close(mean.mean, 5, 1e-12);
	assert_close(mean.half_width, 2.365 * sqrt(32.0 / 7 / 8), 1e-9);
	mean = mean_of_differences(values, others, 8);
	assert_int_equal(mean.count, 7);
	assert_close(mean.mean, (1 + 2 + 0 + 1 + 0 - 1 + 2) / 7.0, 1e-12);
	assert_true(isnan(mean_of(values, 1).half_width));
	assert_true(isnan(mean_of(values, 0).mean));
	assert_close(student_t_95(1), 12.706, 0);
	assert_close(student_t_95(40), 2.0211, 2e-4);
	assert_close(student_t_95(100), 1.9840, 2e-4);
	sort_numbers(sorted, 4);
	assert_close(percentile(sorted, 4, 0.5), 25, 1e-12);
	assert_close(percentile(sorted, 4, 0), 10, 0);
	assert_close(percentile(sorted, 4, 1), 40, 0);
	assert_close(percentile(sorted, 4, 0.95), 38.5, 1e-9);
	assert_true(isnan(percentile(sorted, 0, 0.5)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_come_back_as_written),
		cmocka_unit_test(test_malformed_rows_are_named),
		cmocka_unit_test(test_a_row_cut_off_at_the_end_is_left_out),
		cmocka_unit_test(test_a_full_disk_is_told),
		cmocka_unit_test(test_statistics),
	};

	return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
