/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every kind of packet through every program that may meet it: verdict, the whole packet that comes out, every counter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "expect.h"
#include "fixture.h"
#include "group.h"

struct one_test {
	const struct fixture_kind *kind;
	enum program program;
	char name[128];
};

static void test_kind(void **state)
{
	const struct one_test *test = *state;

	expect_forget();
	expect_kind(test->kind, test->program);
}

/* One test for each kind and each program that may meet it. */
static size_t list_tests(struct CMUnitTest *tests, struct one_test *all)
{
	size_t count = 0;

	for (size_t table = 0; fixture_tables[table]; table++) {
		for (size_t i = 0; i < fixture_tables[table]->count; i++) {
			const struct fixture_kind *kind = &fixture_tables[table]->kinds[i];

			for (enum program program = PROGRAM_XDP; program <= PROGRAM_TC; program++) {
				struct one_test *test = &all[count];

				if (program == PROGRAM_XDP ? kind->only_tc : kind->only_xdp)
					continue;
				test->kind = kind;
				test->program = program;
				snprintf(test->name, sizeof(test->name), "%s: %s",
					 world_program_name(program), kind->name);
				tests[count].name = test->name;
				tests[count].test_func = test_kind;
				tests[count].initial_state = test;
				count++;
			}
		}
	}
	return count;
}

#define TESTS_MAX 1024

int main(void)
{
	static struct CMUnitTest tests[TESTS_MAX];
	static struct one_test all[TESTS_MAX];

	group_begin();
	return _cmocka_run_group_tests("router", tests, list_tests(tests, all), group_load_services,
				       group_unload);
}
