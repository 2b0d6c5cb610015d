/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All CPUs deciding at once: no decision exceeds the cap it reports, what it reports was so, and at the end the sums are those of the
 * parts and of the open requests.
 * alone: it wants every processor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "decide_stress.h"
#include "decide_stress.skel.h"
#include "decide_world.h"
#include "lib/calls.h"
#include "lib/policy.h"

#define REPLICAS 6

static struct decide_stress_bpf *skeleton;
static struct decide_world world;
static int cpu_count; /* that take part */

static int setup(void **state)
{
	static const char *const unused[] = {"flows", "return_flows", "fragments", NULL};
	struct policy_settings policy = policy_published(POLICY_LLM_AWARE);

	(void)state;
	cpu_count = libbpf_num_possible_cpus();
	if (cpu_count > STRESS_CPUS_MAX)
		cpu_count = STRESS_CPUS_MAX;
	skeleton = decide_stress_bpf__open();
	if (!skeleton)
		return -1;
	decide_world_prepare(skeleton->obj, unused);
	if (decide_stress_bpf__load(skeleton))
		return -1;
	return decide_world_make(&world, skeleton->obj, &policy, REPLICAS, 100);
}

static int teardown(void **state)
{
	(void)state;
	decide_world_unmake(&world);
	decide_stress_bpf__destroy(skeleton);
	return 0;
}

struct worker {
	pthread_t thread;
	int cpu;
	__u32 repeat;
	int err;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	static __u8 packet[64];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = worker->repeat);
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(worker->cpu, &cpus);
	/* a CPU that is not there or not ours does not take part */
	if (pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus))
		return NULL;
	worker->err =
		bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.decide_stress), &options);
	return NULL;
}

static struct stress_result run(const struct stress_settings *settings, __u32 repeat)
{
	struct worker workers[STRESS_CPUS_MAX] = {0};
	int results = bpf_map__fd(skeleton->maps.stress_results);
	struct stress_result *seen = calloc(libbpf_num_possible_cpus(), sizeof(*seen)), total = {0};
	__u32 first = 0;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(skeleton->maps.stress_settings), &first,
					     settings, BPF_ANY),
			 0);
	assert_int_equal(bpf_map_update_elem(results, &first, seen, BPF_ANY), 0);
	for (int i = 0; i < cpu_count; i++) {
		workers[i] = (struct worker){.cpu = i, .repeat = repeat};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < cpu_count; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].err, 0);
	}
	assert_int_equal(bpf_map_lookup_elem(results, &first, seen), 0);
	for (int i = 0; i < libbpf_num_possible_cpus(); i++) {
		total.decided += seen[i].decided;
		total.nowhere += seen[i].nowhere;
		total.finished += seen[i].finished;
		total.contended += seen[i].contended;
		total.fallbacks += seen[i].fallbacks;
		total.long_sticky += seen[i].long_sticky;
		total.violations += seen[i].violations;
		total.errors += seen[i].errors;
	}
	free(seen);
	printf("# %llu decisions, %llu made again, %llu long, %llu fallbacks, %llu finished\n",
	       total.decided, total.contended, total.long_sticky, total.fallbacks, total.finished);
	assert_int_equal(total.errors, 0);
	return total;
}

/* The parts by replica and the sums over the set, against the open requests in the map. */
static void assert_loads_are_the_open_requests(void)
{
	struct service_load sums = decide_world_sums(&world);
	__u64 requests[REPLICAS] = {0}, tokens[REPLICAS] = {0}, all_requests = 0, all_tokens = 0;
	int map = decide_world_map(&world, "requests");
	struct open_request_key key, *last = NULL;
	struct open_request entry;

	while (!bpf_map_get_next_key(map, last, &key)) {
		assert_int_equal(bpf_map_lookup_elem(map, &key, &entry), 0);
		assert_int_not_equal(entry.number, 0);
		requests[entry.replica - DECIDE_WORLD_SLOT(0)] += entry.request_charge;
		tokens[entry.replica - DECIDE_WORLD_SLOT(0)] += entry.charge;
		last = &key;
	}
	for (__u32 i = 0; i < REPLICAS; i++) {
		struct replica_load load = decide_world_load(&world, i);

		assert_int_equal(load.requests, requests[i]);
		assert_int_equal(load.tokens, tokens[i]);
		all_requests += load.counted ? load.requests : 0;
		all_tokens += load.counted ? load.tokens : 0;
	}
	assert_int_equal(sums.requests, all_requests);
	assert_int_equal(sums.tokens, all_tokens);
}

static int by_number(const void *a, const void *b)
{
	const struct stress_entry *left = a, *right = b;

	return left->number < right->number ? -1 : left->number > right->number;
}

/*
 * Without answers in between, the decisions in the order of their numbers tell all that happened: what each reports as sum and load must be the
 * charges before it, to the last token.
 */
static void what_a_decision_reports_was_so(void **unused)
{
	struct policy_settings policy = policy_published(POLICY_LLM_AWARE);
	struct stress_settings settings = {.keys = 1, .ids = 200, .logged = 1};
	size_t room = (size_t)cpu_count * STRESS_LOG_LENGTH, count = 0;
	struct stress_entry *log = calloc(room, sizeof(*log));
	__u64 load[REPLICAS] = {0}, sum = 0, first_number;
	struct stress_result result;

	(void)unused;
	policy.memory_max_entries = 1000;
	assert_int_equal(decide_world_set_policy(&world, &policy), 0);
	first_number = decide_world_sums(&world).decisions + 1;
	result = run(&settings, STRESS_LOG_LENGTH / 2);
	assert_int_equal(result.violations, 0);
	for (__u32 i = 0; i < room; i++) {
		assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.stress_log), &i,
						     &log[count]),
				 0);
		count += log[count].number >= first_number;
	}
	assert_int_equal(count, result.decided);
	qsort(log, count, sizeof(*log), by_number);
	for (size_t i = 0; i < count; i++) {
		__u32 replica = log[i].replica - DECIDE_WORLD_SLOT(0);

		assert_int_equal(log[i].number, first_number + i);
		assert_int_equal(log[i].sum, sum);
		assert_int_equal(log[i].load, load[replica]);
		assert_int_equal(log[i].replica_count, REPLICAS);
		load[replica] += log[i].charge;
		sum += log[i].charge;
	}
	free(log);
	assert_loads_are_the_open_requests();
}

static void stress(const struct policy_settings *policy, __u32 repeat)
{
	struct stress_settings settings = {.keys = 24, .ids = 40, .finish_percent = 40};
	struct stress_result result;

	assert_int_equal(decide_world_set_policy(&world, policy), 0);
	result = run(&settings, repeat);
	assert_true(result.decided > repeat / 2);
	assert_int_equal(result.violations, 0);
	assert_int_equal(result.nowhere, 0);
	if (policy->policy == POLICY_BOUNDED && policy->load_metric == LOAD_REQUESTS)
		assert_int_equal(result.fallbacks, 0);
	assert_loads_are_the_open_requests();
}

static void no_cap_is_exceeded_by_llm_aware(void **unused)
{
	struct policy_settings policy = policy_published(POLICY_LLM_AWARE);

	(void)unused;
	stress(&policy, 150000);
	policy.token_load = 0;
	stress(&policy, 150000);
}

static void no_cap_is_exceeded_by_bounded(void **unused)
{
	struct policy_settings policy = policy_published(POLICY_BOUNDED);

	(void)unused;
	stress(&policy, 150000);
	policy.epsilon_millionths = 1;
	stress(&policy, 150000);
	policy.load_metric = LOAD_TOKENS;
	stress(&policy, 150000);
}

static void sums_hold_under_policies_without_a_cap(void **unused)
{
	(void)unused;
	for (int name = POLICY_ROUND_ROBIN; name <= POLICY_CONSISTENT; name++) {
		struct policy_settings policy = policy_published(name);

		stress(&policy, 50000);
	}
}

static atomic_bool flapping;

static void *flap(void *argument)
{
	__u32 *flaps = argument;
	struct error error;

	while (flapping) {
		__u32 number = *flaps % (REPLICAS - 1);

		if (control_set_member(world.control_program, DECIDE_WORLD_SERVICE,
				       DECIDE_WORLD_SLOT(number), *flaps / (REPLICAS - 1) % 2,
				       &error))
			break;
		++*flaps;
	}
	return NULL;
}

static void replicas_that_come_and_go_keep_the_sums(void **unused)
{
	struct policy_settings policy = policy_published(POLICY_LLM_AWARE);
	struct stress_settings settings = {.keys = 24, .ids = 40, .finish_percent = 40};
	struct stress_result result;
	struct error error;
	pthread_t thread;
	__u32 flaps = 0;

	(void)unused;
	assert_int_equal(decide_world_set_policy(&world, &policy), 0);
	flapping = true;
	assert_int_equal(pthread_create(&thread, NULL, flap, &flaps), 0);
	result = run(&settings, 200000);
	flapping = false;
	pthread_join(thread, NULL);
	printf("# %u changes of the set\n", flaps);
	assert_true(flaps > 100);
	assert_int_equal(result.violations, 0);
	/* one is always in the set */
	assert_int_equal(result.nowhere, 0);
	assert_loads_are_the_open_requests();
	for (__u32 i = 0; i < REPLICAS; i++)
		assert_int_equal(control_set_member(world.control_program, DECIDE_WORLD_SERVICE,
						    DECIDE_WORLD_SLOT(i), true, &error),
				 0);
	assert_loads_are_the_open_requests();
	assert_int_equal(decide_world_sums(&world).replica_count, REPLICAS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_decision_reports_was_so),
		cmocka_unit_test(no_cap_is_exceeded_by_llm_aware),
		cmocka_unit_test(no_cap_is_exceeded_by_bounded),
		cmocka_unit_test(sums_hold_under_policies_without_a_cap),
		cmocka_unit_test(replicas_that_come_and_go_keep_the_sums),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
