/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads are what is open, after evictions from the table of requests, timeouts, lost races and flapping replicas; and nothing that is
 * under way is ever taken for lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "agent/reconcile.h"
#include "decide_stress.h"
#include "decide_stress.skel.h"
#include "decide_world.h"
#include "agent/request_table.h"
#include "lib/calls.h"
#include "lib/policy.h"

#define REPLICAS      5
#define REQUESTS_ROOM 600

static struct decide_stress_bpf *skeleton;
static struct decide_world world;
static struct datapath datapath;
static struct routing routing;

static int setup(void **state)
{
	static const char *const unused[] = {"flows", "return_flows", "fragments", NULL};
	struct policy_settings policy = policy_published(POLICY_LLM_AWARE);

	(void)state;
	skeleton = decide_stress_bpf__open();
	if (!skeleton)
		return -1;
	decide_world_prepare(skeleton->obj, unused);
	bpf_map__set_max_entries(skeleton->maps.requests, REQUESTS_ROOM);
	if (decide_stress_bpf__load(skeleton) ||
	    decide_world_make(&world, skeleton->obj, &policy, REPLICAS, 100))
		return -1;
	datapath.requests = decide_world_map(&world, "requests");
	datapath.control_program = world.control_program;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	decide_world_unmake(&world);
	decide_stress_bpf__destroy(skeleton);
	return 0;
}

/* As the agent would have it; nothing in flight. */
static int begin(void **state)
{
	struct policy_settings policy = policy_published(POLICY_LLM_AWARE);

	(void)state;
	memset(&routing, 0, sizeof(routing));
	routing.services[DECIDE_WORLD_SERVICE].state = SERVICE_ACTIVE;
	routing.services[DECIDE_WORLD_SERVICE].request_timeout_milliseconds = 3600 * 1000;
	for (__u32 i = 0; i < REPLICAS; i++) {
		routing.replicas[DECIDE_WORLD_SLOT(i)].state = REPLICA_ACTIVE;
		routing.replicas[DECIDE_WORLD_SLOT(i)].service = DECIDE_WORLD_SERVICE;
	}
	return decide_world_set_policy(&world, &policy);
}

static struct foreign_load foreign[REPLICAS_MAX];

static struct reconcile_result run_pass(void)
{
	struct reconcile_result result;
	struct error error = {""};

	if (reconcile(&datapath, &routing, true, foreign, &result, &error))
		fail_msg("%s", error.text);
	return result;
}

struct open_loads {
	__u64 requests[REPLICAS];
	__u64 tokens[REPLICAS];
	__u64 count;
	__u64 ended; /* entries of requests that are not open any more */
};

static struct open_loads what_is_open(void)
{
	struct open_request_key key, *last = NULL;
	struct open_loads open = {0};
	struct open_request entry;

	while (!bpf_map_get_next_key(datapath.requests, last, &key)) {
		last = &key;
		if (bpf_map_lookup_elem(datapath.requests, &key, &entry))
			continue;
		if (!request_is_open(&entry)) {
			open.ended++;
			continue;
		}
		open.requests[entry.replica - DECIDE_WORLD_SLOT(0)] += entry.request_charge;
		open.tokens[entry.replica - DECIDE_WORLD_SLOT(0)] += entry.charge;
		open.count++;
	}
	return open;
}

/* exactly: loads are what is open; else at least that */
static void assert_loads(bool exactly)
{
	struct open_loads open = what_is_open();
	struct service_load sums = decide_world_sums(&world);
	__u64 requests = 0, tokens = 0;

	for (__u32 i = 0; i < REPLICAS; i++) {
		struct replica_load load = decide_world_load(&world, i);

		if (exactly) {
			assert_int_equal(load.requests, open.requests[i]);
			assert_int_equal(load.tokens, open.tokens[i]);
		}
		assert_true(load.requests >= open.requests[i]);
		assert_true(load.tokens >= open.tokens[i]);
		requests += load.counted ? load.requests : 0;
		tokens += load.counted ? load.tokens : 0;
	}
	assert_int_equal(sums.requests, requests);
	assert_int_equal(sums.tokens, tokens);
}

static void *work(void *argument)
{
	static __u8 packet[64];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = 20000);
	long *rounds = argument;

	for (long i = 0; i < *rounds; i++)
		bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.decide_stress), &options);
	return NULL;
}

static void traffic(const struct stress_settings *settings, long rounds, int passes)
{
	int cpus = libbpf_num_possible_cpus(), made = 0;
	pthread_t threads[STRESS_CPUS_MAX];
	__u32 first = 0;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(skeleton->maps.stress_settings), &first,
					     settings, BPF_ANY),
			 0);
	for (int i = 0; i < cpus && i < STRESS_CPUS_MAX; i++, made++) {
		pthread_attr_t attributes;
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(i, &set);
		pthread_attr_init(&attributes);
		pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
		if (pthread_create(&threads[made], &attributes, work, &rounds))
			made--;
		pthread_attr_destroy(&attributes);
	}
	for (int i = 0; i < passes; i++) {
		struct reconcile_result result = run_pass();

		if (result.repaired)
			printf("# in traffic: %u open, %lld requests, %lld tokens corrected\n",
			       result.open, result.requests, result.tokens);
		assert_true(result.requests <= 0 && result.tokens <= 0);
	}
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
}

static void nothing_is_corrected_where_nothing_is_wrong(void **unused)
{
	struct stress_settings settings = {.keys = 40, .ids = 30, .finish_percent = 45};
	struct reconcile_result result;

	(void)unused;
	traffic(&settings, 15, 20);
	assert_loads(true);
	result = run_pass();
	assert_int_equal(result.repaired, 0);
	assert_int_equal(result.open, what_is_open().count);
}

static void evicted_requests_are_found(void **unused)
{
	struct stress_settings settings = {.keys = 100000, .ids = 30, .finish_percent = 1};
	struct reconcile_result result;

	(void)unused;
	traffic(&settings, 1, 0);
	assert_true(decide_world_sums(&world).requests > what_is_open().count + 1000);
	result = run_pass();
	printf("# %lld requests, %lld tokens corrected\n", result.requests, result.tokens);
	assert_true(result.repaired >= REPLICAS - 1);
	assert_true(result.requests < -1000);
	assert_loads(true);
	assert_int_equal(run_pass().repaired, 0);
}

static void what_is_under_way_is_not_taken_for_lost(void **unused)
{
	struct stress_settings settings = {.keys = 2000, .ids = 30, .finish_percent = 30};

	(void)unused;
	traffic(&settings, 20, 30);
	/* evictions go on to the end, so there may be too much; never too little */
	assert_loads(false);
	run_pass();
	assert_loads(true);
}

/*
 * A processor that is stopped in mid-program may find its entry used for another request, so that a charge may be lost; it must not be
 * lost because two processors are at the same request.
 */
static void races_for_one_request_leave_nothing_behind(void **unused)
{
	struct stress_settings settings = {
		.keys = 3, .shared_keys = 1, .ids = 30, .finish_percent = 50};

	(void)unused;
	for (settings.keep = 0; settings.keep < 2; settings.keep++) {
		struct service_load before = decide_world_sums(&world), after;
		__u64 lost, decided;

		traffic(&settings, 20, 0);
		assert_loads(false);
		after = decide_world_sums(&world);
		lost = after.requests - what_is_open().count;
		decided = after.decisions - before.decisions;
		printf("# %llu of %llu charges lost\n", lost, decided);
		assert_true(lost * 10000 < decided);
		traffic(&settings, 10, 10);
		run_pass();
		assert_loads(true);
	}
}

static void entries_of_ended_requests_are_used_again_and_forgotten(void **unused)
{
	struct stress_settings settings = {.keys = 40, .ids = 30, .finish_percent = 60, .keep = 1};
	struct open_loads before, after;
	struct reconcile_result result;

	(void)unused;
	traffic(&settings, 15, 0);
	assert_loads(true);
	before = what_is_open();
	/* each key has its entry still */
	assert_int_equal(before.count + before.ended, 40 * libbpf_num_possible_cpus());
	assert_true(before.ended > 0);
	usleep(1100000);
	result = run_pass();
	assert_int_equal(result.repaired, 0);
	after = what_is_open();
	assert_int_equal(result.forgotten, before.ended);
	assert_int_equal(after.ended, 0);
	assert_int_equal(after.count, before.count);
	assert_loads(true);
}

static void too_little_is_added(void **unused)
{
	struct stress_settings settings = {.keys = 50, .ids = 30, .finish_percent = 10};
	struct reconcile_result result;
	struct error error;

	(void)unused;
	traffic(&settings, 1, 0);
	assert_int_equal(control_repair(world.control_program, DECIDE_WORLD_SERVICE,
					DECIDE_WORLD_SLOT(2), -3, -700, &error),
			 0);
	result = run_pass();
	assert_int_equal(result.repaired, 1);
	assert_int_equal(result.requests, 3);
	assert_int_equal(result.tokens, 700);
	assert_loads(true);
}

/* What others have sent to a replica counts as its load for as long as somebody says so, and is no fault. */
static void what_others_have_sent_stays(void **unused)
{
	__u32 slot = DECIDE_WORLD_SLOT(1);
	struct reconcile_result result;
	struct replica_load before, after;
	struct error error;

	(void)unused;
	run_pass();
	assert_int_equal(
		control_read(datapath.control_program, DECIDE_WORLD_SERVICE, slot, &before, &error),
		0);
	assert_int_equal(control_add_foreign(datapath.control_program, DECIDE_WORLD_SERVICE, slot,
					     7, 7000, &error),
			 0);
	foreign[slot] = (struct foreign_load){.requests = 7, .tokens = 7000};
	assert_int_equal(run_pass().repaired, 0);
	assert_int_equal(
		control_read(datapath.control_program, DECIDE_WORLD_SERVICE, slot, &after, &error),
		0);
	assert_int_equal(after.requests, before.requests + 7);
	assert_int_equal(after.tokens, before.tokens + 7000);
	/* an agent that knows nothing of it takes it off again */
	memset(foreign, 0, sizeof(foreign));
	result = run_pass();
	assert_int_equal(result.repaired, 1);
	assert_int_equal(result.requests, -7);
	assert_int_equal(
		control_read(datapath.control_program, DECIDE_WORLD_SERVICE, slot, &after, &error),
		0);
	assert_int_equal(after.requests, before.requests);
	assert_int_equal(after.tokens, before.tokens);
}

static void overdue_requests_are_ended(void **unused)
{
	struct stress_settings settings = {.keys = 50, .ids = 30, .finish_percent = 10};
	struct reconcile_result result;
	__u64 open;

	(void)unused;
	traffic(&settings, 1, 0);
	open = what_is_open().count;
	assert_true(open > 50);
	routing.services[DECIDE_WORLD_SERVICE].request_timeout_milliseconds = 60000;
	assert_int_equal(run_pass().timed_out, 0);
	routing.services[DECIDE_WORLD_SERVICE].request_timeout_milliseconds = 0;
	usleep(20000);
	result = run_pass();
	assert_int_equal(result.timed_out, open);
	assert_int_equal(result.repaired, 0);
	assert_int_equal(what_is_open().count, 0);
	assert_int_equal(decide_world_sums(&world).requests, 0);
	assert_int_equal(decide_world_sums(&world).tokens, 0);
}

static void requests_of_what_is_gone_are_ended(void **unused)
{
	struct stress_settings settings = {.keys = 50, .ids = 30, .finish_percent = 10};
	struct reconcile_result result;
	__u64 open, of_one;

	(void)unused;
	traffic(&settings, 1, 0);
	open = what_is_open().count;
	of_one = decide_world_load(&world, 1).requests;
	assert_true(of_one > 0);
	routing.replicas[DECIDE_WORLD_SLOT(1)].state = REPLICA_UNUSED;
	result = run_pass();
	assert_int_equal(result.abandoned, of_one);
	assert_int_equal(decide_world_load(&world, 1).requests, 0);
	assert_int_equal(decide_world_load(&world, 1).tokens, 0);
	routing.services[DECIDE_WORLD_SERVICE].state = SERVICE_UNUSED;
	assert_int_equal(run_pass().abandoned, open - of_one);
	assert_int_equal(decide_world_sums(&world).tokens, 0);
}

static void a_busy_replica_that_comes_back_is_as_busy_as_before(void **unused)
{
	struct stress_settings settings = {.keys = 50, .ids = 30, .finish_percent = 10};
	struct replica_load before, after;
	struct error error;

	(void)unused;
	traffic(&settings, 1, 0);
	before = decide_world_load(&world, 0);
	assert_true(before.requests > 0);
	for (int member = 0; member < 2; member++) {
		assert_int_equal(control_set_member(world.control_program, DECIDE_WORLD_SERVICE,
						    DECIDE_WORLD_SLOT(0), member, &error),
				 0);
		assert_int_equal(run_pass().repaired, 0);
		after = decide_world_load(&world, 0);
		assert_int_equal(after.requests, before.requests);
		assert_int_equal(after.tokens, before.tokens);
		assert_loads(true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_corrected_where_nothing_is_wrong, begin),
		cmocka_unit_test_setup(evicted_requests_are_found, begin),
		cmocka_unit_test_setup(what_is_under_way_is_not_taken_for_lost, begin),
		cmocka_unit_test_setup(races_for_one_request_leave_nothing_behind, begin),
		cmocka_unit_test_setup(entries_of_ended_requests_are_used_again_and_forgotten,
				       begin),
		cmocka_unit_test_setup(too_little_is_added, begin),
		cmocka_unit_test_setup(what_others_have_sent_stays, begin),
		cmocka_unit_test_setup(overdue_requests_are_ended, begin),
		cmocka_unit_test_setup(requests_of_what_is_gone_are_ended, begin),
		cmocka_unit_test_setup(a_busy_replica_that_comes_back_is_as_busy_as_before, begin),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
