/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by decide_stress.bpf.c and its test. */
#ifndef WARMPATH_TESTS_DECIDE_STRESS_H
#define WARMPATH_TESTS_DECIDE_STRESS_H

#include <warmpath/decision.h>

#define STRESS_CPUS_MAX	  8
#define STRESS_LOG_LENGTH 16384 /* decisions logged of each CPU */

struct stress_settings {
	__u32 keys;	   /* requests open at once of each CPU, at most */
	__u32 shared_keys; /* 1: all CPUs open and close the same requests */
	__u32 ids;	   /* conversations */
	__u32 finish_percent;
	__u32 logged; /* 1: every decision goes into the log, until it is full */
	__u32 keep;   /* 1: entries of requests that end stay, for the next ones */
};

/* What a CPU has seen. */
struct stress_result {
	__u64 decided;
	__u64 nowhere; /* no replica */
	__u64 finished;
	__u64 contended; /* decisions made again */
	__u64 fallbacks;
	__u64 long_sticky;
	__u64 violations; /* of the cap that the decision reports */
	__u64 errors;
};

struct stress_entry {
	__u64 number;
	__u64 sum;
	__u32 replica;
	__u32 reason;
	__u32 load;
	__u32 cost;
	__u32 charge;
	__u32 replica_count;
};

#endif /* WARMPATH_TESTS_DECIDE_STRESS_H */
