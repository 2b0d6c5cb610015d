/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/flow_table.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH	      4096 /* flows read at once; grows if a bucket of the hash has more */
#define BATCH_LARGEST (1u << 20)

static const __u64 nanoseconds = 1000000000ULL;

bool flow_is_live(const struct flow *flow, __u64 now_nanoseconds)
{
	__u64 life =
		flow->state == FLOW_DATAGRAMS ? FLOW_DATAGRAM_LIFE_SECONDS : FLOW_TCP_LIFE_SECONDS;

	if (flow->state == FLOW_CLOSED)
		return false;
	return flow->return_checked_nanoseconds + life * nanoseconds > now_nanoseconds;
}

static __u64 monotonic_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * nanoseconds + time.tv_nsec;
}

static void count(const struct flow *read, __u32 got, __u64 now, __u32 counts[REPLICAS_MAX])
{
	__u32 i;

	for (i = 0; i < got; i++) {
		if (read[i].replica < REPLICAS_MAX && flow_is_live(&read[i], now))
			counts[read[i].replica]++;
	}
}

int flow_table_count(int flows, __u32 counts[REPLICAS_MAX])
{
	struct flow_key *keys = NULL;
	struct flow *read = NULL;
	__u64 now = monotonic_now();
	__u32 room = BATCH, got, in_batch = 0, out_batch = 0;
	bool first = true;
	int result = 0;

	memset(counts, 0, REPLICAS_MAX * sizeof(counts[0]));
	for (;;) {
		if (!keys) {
			keys = calloc(room, sizeof(*keys));
			read = calloc(room, sizeof(*read));
			if (!keys || !read) {
				result = -ENOMEM;
				break;
			}
		}
		got = room;
		result = bpf_map_lookup_batch(flows, first ? NULL : &in_batch, &out_batch, keys,
					      read, &got, NULL);
		if (result && errno == ENOSPC && room < BATCH_LARGEST) {
			free(keys);
			free(read);
			keys = NULL;
			read = NULL;
			room *= 4;
			continue;
		}
		if (result && errno != ENOENT) {
			result = -errno;
			break;
		}
		count(read, got, now, counts);
		in_batch = out_batch;
		first = false;
		if (result) {
			result = 0;
			break;
		}
	}
	free(keys);
	free(read);
	return result;
}
