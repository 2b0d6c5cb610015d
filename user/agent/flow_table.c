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

bool connection_is_live(const struct connection *connection, __u64 now_nanoseconds)
{
	if (!(connection->flags & CONNECTION_OWNED) || connection->state == CONNECTION_CLOSED)
		return false;
	return connection->seen_nanoseconds + FLOW_TCP_LIFE_SECONDS * nanoseconds > now_nanoseconds;
}

/* --- walking over a table ------------------------------------------------------------------------------------ */

/* Whether an entry is live, and of which replica slot. */
typedef bool (*look_at)(const void *value, __u64 now, __u32 *replica);

static bool look_at_flow(const void *value, __u64 now, __u32 *replica)
{
	const struct flow *flow = value;

	*replica = flow->replica;
	return flow_is_live(flow, now);
}

static bool look_at_connection(const void *value, __u64 now, __u32 *replica)
{
	const struct connection *connection = value;

	*replica = connection->replica;
	return connection_is_live(connection, now);
}

static bool look_at_bound_flow(const void *value, __u64 now, __u32 *replica)
{
	const struct flow *flow = value;

	return look_at_flow(value, now, replica) && flow->state != FLOW_DATAGRAMS;
}

static bool look_at_bound_connection(const void *value, __u64 now, __u32 *replica)
{
	const struct connection *connection = value;

	return look_at_connection(value, now, replica) &&
	       (connection->state == CONNECTION_HANDING ||
		connection->state == CONNECTION_SERVED) &&
	       (connection->pinned || (connection->flags & CONNECTION_CHARGED));
}

struct walk {
	int map;
	size_t value_size;
	look_at look;
	__u32 *counts;
};

static void count(const struct walk *walk, const char *values, __u32 got, __u64 now)
{
	__u32 replica;

	for (__u32 i = 0; i < got; i++) {
		if (walk->look(values + i * walk->value_size, now, &replica) &&
		    replica < REPLICAS_MAX)
			walk->counts[replica]++;
	}
}

/* Room for so many entries: keys first. NULL without memory. */
static char *make_room(const struct walk *walk, __u32 room)
{
	return calloc(room, sizeof(struct flow_key) + walk->value_size);
}

static int count_all(const struct walk *walk)
{
	__u64 now = monotonic_now();
	__u32 room = BATCH, got, in_batch = 0, out_batch = 0;
	char *keys = make_room(walk, room), *values;
	bool first = true;
	int result = 0;

	while (keys && !result) {
		values = keys + room * sizeof(struct flow_key);
		got = room;
		result = bpf_map_lookup_batch(walk->map, first ? NULL : &in_batch, &out_batch, keys,
					      values, &got, NULL);
		if (result && errno == ENOSPC && room < BATCH_LARGEST) {
			free(keys);
			room *= 4;
			keys = make_room(walk, room);
			result = 0;
			continue;
		}
		if (result && errno != ENOENT) {
			result = -errno;
			break;
		}
		count(walk, values, got, now);
		in_batch = out_batch;
		first = false;
	}
	if (!keys)
		return -ENOMEM;
	free(keys);
	return result < 0 && result != -ENOENT ? result : 0;
}

static int count_both(int flows, look_at look_at_flows, int connections,
		      look_at look_at_connections, __u32 counts[REPLICAS_MAX])
{
	struct walk over_flows = {
		.map = flows,
		.value_size = sizeof(struct flow),
		.look = look_at_flows,
		.counts = counts,
	};
	struct walk over_connections = {
		.map = connections,
		.value_size = sizeof(struct connection),
		.look = look_at_connections,
		.counts = counts,
	};
	int result;

	memset(counts, 0, REPLICAS_MAX * sizeof(counts[0]));
	result = count_all(&over_flows);
	return result ? result : count_all(&over_connections);
}

int flow_table_count(int flows, int connections, __u32 counts[REPLICAS_MAX])
{
	return count_both(flows, look_at_flow, connections, look_at_connection, counts);
}

int flow_table_count_bound(int flows, int connections, __u32 counts[REPLICAS_MAX])
{
	return count_both(flows, look_at_bound_flow, connections, look_at_bound_connection, counts);
}
