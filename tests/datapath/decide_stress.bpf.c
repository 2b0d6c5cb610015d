// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests and answers at random, each run one of them, through the lines that the router runs. Each decision is held against the cap
 * that it reports.
 */
#include "lib/requests.h"

#include "../tests/datapath/decide_stress.h"

#define SERVICE 3 /* DECIDE_WORLD_SERVICE */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stress_settings);
} stress_settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stress_result);
} stress_results SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STRESS_CPUS_MAX *STRESS_LOG_LENGTH);
	__type(key, __u32);
	__type(value, struct stress_entry);
} stress_log SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct id_block);
} stress_ids SEC(".maps");

static __always_inline bool keeps(const struct decision *decision, __u32 epsilon, bool requests)
{
	__u64 cap = (1000000ULL + epsilon) * (decision->sum + decision->cost); /* x N x 10^6 */
	__u64 parts = 1000000ULL * decision->replica_count;

	if (decision->load == 0)
		return true;
	if (requests)
		cap = (cap + parts - 1) / parts * parts;
	return ((__u64)decision->load + decision->cost) * parts <= cap;
}

static __always_inline void judge(const struct decide_state *state, struct stress_result *result)
{
	const struct decision *decision = &state->decision;
	const struct policy_settings *settings = &state->settings;
	bool requests = decision->metric == LOAD_REQUESTS;
	__u32 epsilon = settings->epsilon_millionths;

	result->decided++;
	if (decision->flags & DECISION_CONTENDED)
		result->contended++;
	switch (decision->reason) {
	case REASON_fallback_least_loaded:
		result->fallbacks++;
		return;
	case REASON_home_long:
	case REASON_sticky_long:
		result->long_sticky++;
		epsilon = settings->long_epsilon_millionths;
		break;
	case REASON_home:
	case REASON_sticky:
	case REASON_overflow:
		break;
	default:
		return;
	}
	if (settings->policy >= POLICY_BOUNDED && !keeps(decision, epsilon, requests))
		result->violations++;
}

static __always_inline void write_log(const struct decision *decision, __u32 cpu, __u64 number)
{
	__u32 index = cpu * STRESS_LOG_LENGTH + number;
	struct stress_entry *entry;

	if (cpu >= STRESS_CPUS_MAX || number >= STRESS_LOG_LENGTH)
		return;
	entry = bpf_map_lookup_elem(&stress_log, &index);
	if (!entry)
		return;
	entry->number = decision->number;
	entry->sum = decision->sum;
	entry->replica = decision->replica;
	entry->reason = decision->reason;
	entry->load = decision->load;
	entry->cost = decision->cost;
	entry->charge = decision->charge;
	entry->replica_count = decision->replica_count;
}

SEC("xdp")
int decide_stress(struct xdp_md *context)
{
	__u32 first = 0, cpu = bpf_get_smp_processor_id();
	__u32 dice = bpf_get_prandom_u32(), more = bpf_get_prandom_u32();
	struct stress_settings *settings = bpf_map_lookup_elem(&stress_settings, &first);
	struct stress_result *result = bpf_map_lookup_elem(&stress_results, &first);
	struct id_block *id = bpf_map_lookup_elem(&stress_ids, &first);
	struct open_request_key *key = request_key_space();
	struct decide_state *state = decide_state_get();
	const struct ring_header *ring = ring_current(SERVICE);

	if (!settings || !result || !id || !key || !state || !ring || !settings->keys ||
	    !settings->ids)
		return XDP_ABORTED;
	key->flow.client.word[2] = settings->shared_keys ? 0 : cpu;
	/* logged: never the same twice, so that nothing is given back */
	key->flow.client.word[3] = settings->logged ? result->decided : more % settings->keys;
	if (dice % 100 < settings->finish_percent) {
		result->finished +=
			request_close(0, REPLICA_NONE, COMPLETION_SUCCESS, settings->keep);
		return XDP_PASS;
	}
	state->request.id_hash = ((dice >> 8) % settings->ids + 1) * 0x9e3779b97f4a7c15ULL;
	state->request.id_hash_low = 0;
	state->request.prompt_tokens = 10 + (more >> 16) % 1500;
	state->request.max_tokens = 20 + (dice >> 16) % 200;
	state->request.anonymous = 0;
	state->nanoseconds = bpf_ktime_get_coarse_ns();
	if (request_open(SERVICE, ring, id, 0)) {
		result->errors++;
		return XDP_ABORTED;
	}
	if (state->decision.number == 0) {
		result->nowhere++;
		return XDP_PASS;
	}
	if (settings->logged)
		write_log(&state->decision, cpu, result->decided);
	judge(state, result);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
