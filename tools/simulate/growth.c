/* SPDX-License-Identifier: BSD-2-Clause */
#include "growth.h"

#include <stdio.h>
#include <sys/resource.h>

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
}

int growth_show(struct simulation_settings *settings, struct profile *profile, uint32_t most,
		uint32_t each, struct error *error)
{
	static const uint32_t sizes[] = {1, 3, 10, 30, 100, 300, 1000};
	static struct simulation_result result;

	/* the same arrivals at each replica as in the profile with three */
	profile->arrival_window_s *= each * 3.0 / profile->conversations;
	printf("%8s %13s %10s %12s %9s %11s %11s %9s\n", "replicas", "conversations", "requests",
	       "events", "CPU s", "us/request", "simulated s", "peak MiB");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= most; i++) {
		double before = cpu_seconds(), took;
		struct rusage usage;
		int failed;

		settings->replicas = sizes[i];
		profile->conversations = sizes[i] * each;
		failed = simulation_run(settings, NULL, NULL, &result, error);
		if (failed)
			return failed;
		took = cpu_seconds() - before;
		getrusage(RUSAGE_SELF, &usage);
		printf("%8u %13u %10u %12llu %9.2f %11.2f %11.0f %9ld\n", sizes[i], sizes[i] * each,
		       result.requests, (unsigned long long)result.events, took,
		       took * 1e6 / result.requests, result.duration_s, usage.ru_maxrss / 1024);
		fflush(stdout);
	}
	return 0;
}
