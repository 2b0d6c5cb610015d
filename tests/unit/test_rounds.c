/* SPDX-License-Identifier: BSD-2-Clause */
/* The rounds of a segment that waits for a socket: bounded in number and in time, and none for who was not given any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <warmpath/rounds.h>

#define UNIT (1u << ROUNDS_UNIT_LOG2)
#define WRAP (256u * UNIT)

/* How many rounds a segment gets when it begins at that time and each takes as long. */
static unsigned int count_rounds(__u64 now, __u64 each)
{
	__u16 rounds = rounds_begin(now);
	unsigned int count = 0;

	while (rounds_take(&rounds, now += each))
		count++;
	return count;
}

static void rounds_are_bounded_in_number(void **unused)
{
	(void)unused;
	/* also where the clock has come round as often as it likes: the next pass may come much later */
	for (__u64 now = 1; now < 3ull * WRAP; now += 1237) {
		assert_int_equal(count_rounds(now, 1), ROUNDS_COUNT);
		assert_int_equal(count_rounds(now, WRAP), ROUNDS_COUNT);
	}
}

static void rounds_are_bounded_in_time(void **unused)
{
	(void)unused;
	for (__u64 now = 1; now < 3ull * WRAP; now += 1237) {
		/* whole units are compared: one more or less of them */
		for (unsigned int each = 2 * UNIT; each < 64 * UNIT; each *= 2)
			assert_in_range(count_rounds(now, each), (ROUNDS_TIME - 1) * UNIT / each,
					(ROUNDS_TIME + 1) * UNIT / each);
		assert_int_equal(count_rounds(now, (ROUNDS_TIME + 1) * UNIT), 0);
	}
}

static void nobody_else_has_rounds(void **unused)
{
	(void)unused;
	for (__u64 now = 0; now < WRAP; now += UNIT) {
		/* as it comes from a wire; and whatever its time */
		for (int time = 0; time < 256; time++) {
			__u16 rounds = time;

			assert_false(rounds_take(&rounds, now));
			assert_int_equal(rounds, time);
		}
	}
}

/* Another program writes the same value in each pass: that goes on for the time, and not for ever. */
static void a_value_that_stays_has_an_end(void **unused)
{
	(void)unused;
	for (unsigned int value = 0; value <= UINT16_MAX; value++) {
		unsigned int taken = 0, longest = 0;

		for (__u64 now = 0; now < 2ull * WRAP; now += UNIT) {
			__u16 rounds = value;

			taken = rounds_take(&rounds, now) ? taken + 1 : 0;
			if (taken > longest)
				longest = taken;
		}
		assert_in_range(longest, 0, ROUNDS_TIME + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_are_bounded_in_number),
		cmocka_unit_test(rounds_are_bounded_in_time),
		cmocka_unit_test(nobody_else_has_rounds),
		cmocka_unit_test(a_value_that_stays_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
