/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Studies of rings against the published bands, and comparing two rings against asking them key by key.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/ring_compare.h"
#include "lib/ring_study.h"

#define REPLICAS 8

static const __u32 equal_weights[REPLICAS] = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};

static struct ring_study make_study(__u32 rings, __u32 seed)
{
	return (struct ring_study){
		.dialect = RING_LLM,
		.weights_thousandths = equal_weights,
		.replicas = REPLICAS,
		.rings = rings,
		.seed = seed,
	};
}

static void run(const struct ring_study *study, __u32 vnodes, struct ring_study_row *row)
{
	struct error error;

	assert_int_equal(ring_study_run(study, vnodes, row, &error), 0);
}

static void assert_near(double got, double published, double part)
{
	if (fabs(got - published) > published * part)
		fail_msg("%g is further than %g %% from the published %g", got, 100 * part,
			 published);
}

/* Arc shares of 8 replicas over 200 rings: docs/limits.md. With few points medians of 200 rings are themselves spread. */
static void test_published_bands(void **state)
{
	static const struct {
		__u32 vnodes;
		double max_min, part;
	} published[] = {
		{1, 26, 0.45},	   {3, 5.9, 0.25},     {10, 2.4, 0.1},	  {40, 1.58, 0.06},
		{100, 1.32, 0.04}, {150, 1.26, 0.03},  {160, 1.25, 0.03}, {256, 1.19, 0.02},
		{500, 1.13, 0.02}, {1000, 1.09, 0.02},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		/* large rings are alike, and fewer of them have the same median */
		const struct ring_study study = make_study(published[i].vnodes > 300 ? 40 : 200, 3);
		struct ring_study_row row;

		run(&study, published[i].vnodes, &row);
		assert_int_equal(row.points, REPLICAS * published[i].vnodes);
		assert_near(row.max_min.median, published[i].max_min, published[i].part);
		if (published[i].vnodes == 1) {
			assert_near(row.max_min.p90, 167, 0.6);
			assert_near(row.max_mean.median, 2.65, 0.1);
		}
		if (published[i].vnodes == 150) {
			assert_near(row.max_min.p90, 1.37, 0.05);
			assert_near(row.max_mean.median, 1.12, 0.02);
			assert_near(row.added.p10, 0.100, 0.05);
			assert_near(row.added.p90, 0.121, 0.05);
			assert_near(row.added_ideal, 1.0 / 9, 1e-9);
			assert_near(row.removed_ideal, 1.0 / 8, 1e-9);
		}
	}
}

/* The same seed says the same, another one something else. */
static void test_seed(void **state)
{
	struct ring_study study = make_study(5, 7);
	struct ring_study_row first, again, other;

	(void)state;
	run(&study, 20, &first);
	run(&study, 20, &again);
	study.seed = 8;
	run(&study, 20, &other);
	assert_true(first.max_min.median == again.max_min.median);
	assert_true(first.added.p90 == again.added.p90);
	assert_false(first.max_min.median == other.max_min.median);
}

static void test_quantiles_are_in_order(void **state)
{
	const struct ring_study study = make_study(50, 2);
	struct ring_study_row row;

	(void)state;
	run(&study, 10, &row);
	assert_true(row.max_min.p10 < row.max_min.median && row.max_min.median < row.max_min.p90);
	assert_true(row.max_mean.p10 >= 1 && row.max_mean.p90 <= REPLICAS);
	assert_true(row.removed.p10 > 0 && row.removed.p90 < 1);
}

/* What is recommended keeps the spread, and is not far above what does not. */
static void test_recommendation(void **state)
{
	const struct ring_study study = make_study(60, 4);
	struct ring_study_row row, half;
	struct error error;

	(void)state;
	assert_int_equal(ring_study_recommend(&study, 1.2, &row, &error), 0);
	assert_true(row.max_mean.p90 <= 1.2 && row.added.p90 > 0);
	run(&study, row.vnodes / 2, &half);
	assert_true(half.max_mean.p90 > 1.2);
}

static void test_recommendation_is_out_of_reach(void **state)
{
	static const __u32 heavy[] = {RING_WEIGHT_MAX, RING_WEIGHT_MAX};
	struct ring_study study = make_study(1, 1); /* one: its last ring has a million points */
	struct ring_study_row row;
	struct error error;

	(void)state;
	study.weights_thousandths = heavy;
	study.replicas = 2;
	assert_int_equal(ring_study_recommend(&study, 1.0000001, &row, &error), -ERANGE);
	assert_non_null(strstr(error.text, "keeps a spread of"));
}

/* --- comparing ---------------------------------------------------------------------------------------------------------- */

static void build(struct ring *ring, enum ring_dialect dialect, __u32 vnodes, __u32 first,
		  __u32 count)
{
	const struct ring_settings settings = {.dialect = dialect, .vnodes = vnodes};
	struct ring_replica replicas[16];
	char names[16][REPLICA_NAME_SIZE];
	struct error error;

	for (__u32 i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "llm-%u", first + i);
		replicas[i] = (struct ring_replica){
			.name = names[i], .slot = i, .weight_thousandths = RING_WEIGHT_ONE};
	}
	assert_int_equal(ring_build(ring, &settings, replicas, count, &error), 0);
}

struct spans {
	const struct ring *before, *after;
	__u64 next; /* where the next span has to begin */
	unsigned int count;
};

static const char *home(const struct ring *ring, __u64 key)
{
	__u32 member;

	assert_int_equal(ring_walk(ring, key, &member, 1), 1);
	return ring->names[member];
}

/* Both ends of a span are asked: a boundary that is off by one would show. */
static void check_span(void *context, __u64 first, __u64 last, __u32 before, __u32 after)
{
	struct spans *spans = context;

	assert_true(first == spans->next && first <= last);
	assert_string_equal(home(spans->before, first), spans->before->names[before]);
	assert_string_equal(home(spans->before, last), spans->before->names[before]);
	assert_string_equal(home(spans->after, first), spans->after->names[after]);
	assert_string_equal(home(spans->after, last), spans->after->names[after]);
	spans->next = last + 1;
	spans->count++;
}

static void test_spans_are_the_homes(void **state)
{
	static const enum ring_dialect dialects[] = {RING_LLM, RING_REPLICA_ROUTER};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ring before, after;
		struct spans spans = {&before, &after, 0, 0};

		build(&before, dialects[i], 37, 0, 4);
		build(&after, dialects[i], 37, 1, 5);
		ring_compare(&before, &after, check_span, &spans);
		assert_true(spans.next == 0); /* all the way round */
		assert_true(spans.count > 4 * 37);
		ring_free(&before);
		ring_free(&after);
	}
}

static void test_moved_share(void **state)
{
	struct ring three, four, others, empty;
	struct error error;
	double shares[4];

	(void)state;
	build(&three, RING_LLM, 100, 0, 3);
	build(&four, RING_LLM, 100, 0, 4);
	build(&others, RING_LLM, 100, 8, 3);
	assert_int_equal(ring_build(&empty, &(struct ring_settings){RING_LLM, 100, NULL, 0}, NULL,
				    0, &error),
			 0);
	/* all that moves goes to the fourth: its published share */
	ring_shares(&four, shares);
	assert_near(shares[3], 0.26678, 1e-4);
	assert_near(ring_moved_share(&three, &four), shares[3], 1e-9);
	assert_near(ring_moved_share(&four, &three), shares[3], 1e-9);
	assert_true(ring_moved_share(&three, &three) == 0);
	assert_true(ring_moved_share(&three, &others) == 1);
	assert_true(ring_moved_share(&three, &empty) == 1);
	assert_true(ring_moved_share(&empty, &empty) == 0);
	ring_free(&three);
	ring_free(&four);
	ring_free(&others);
	ring_free(&empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_bands),
		cmocka_unit_test(test_seed),
		cmocka_unit_test(test_quantiles_are_in_order),
		cmocka_unit_test(test_recommendation),
		cmocka_unit_test(test_recommendation_is_out_of_reach),
		cmocka_unit_test(test_spans_are_the_homes),
		cmocka_unit_test(test_moved_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
