/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What bench-decide measures: one program for each step, each the one before plus that step. The id is made at random in each run,
 * out of `ids` different ones.
 */
#include "lib/requests.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct id_block);
} id_blocks SEC(".maps");

/* set by bench-decide between runs */
__u32 service = 0;
__u32 ids = 1000;
__u32 prompt_tokens = 300;

/* how often something was missing, or no replica found: must stay 0 */
__u64 failures = 0;

#define ID_LENGTH 16

static __always_inline int give_up(void)
{
	__sync_fetch_and_add(&failures, 1);
	return XDP_ABORTED;
}

/* Sixteen bytes, of which the last eight are the id's number, four bits each. */
static __always_inline struct id_block *make_id(void)
{
	__u32 first = 0;
	struct id_block *id = bpf_map_lookup_elem(&id_blocks, &first);
	__u64 number = (__u64)bpf_get_prandom_u32() * ids >> 32;

	if (!id)
		return NULL;
	number = (number | number << 16) & 0x0000ffff0000ffffULL;
	number = (number | number << 8) & 0x00ff00ff00ff00ffULL;
	number = (number | number << 4) & 0x0f0f0f0f0f0f0f0fULL;
	id->word[0] = 0x2d65636e65626e6fULL;
	id->word[1] = number + 0x6161616161616161ULL;
	return id;
}

SEC("xdp")
int bench_floor(struct xdp_md *context)
{
	return XDP_PASS;
}

/* What every measurement has in common: an id in hand, the ring's header. */
SEC("xdp")
int bench_id(struct xdp_md *context)
{
	const struct ring_header *ring = ring_current(service);
	struct id_block *id = make_id();

	if (!ring || !id)
		return give_up();
	WARMPATH_BARRIER(id);
	return XDP_PASS;
}

static __always_inline struct decide_state *ask(const struct ring_header *ring,
						const struct id_block *id)
{
	struct decide_state *state = decide_state_get();
	struct md5_digest hash = {};

	if (!state)
		return NULL;
	/* as for an id that was not seen lately */
	ring_hash_anew(ring, id, ID_LENGTH, &hash);
	state->request.id_hash = hash.high;
	state->request.id_hash_low = hash.low;
	state->request.prompt_tokens = prompt_tokens;
	state->request.max_tokens = 48;
	state->request.anonymous = 0;
	return state;
}

SEC("xdp")
int bench_hash(struct xdp_md *context)
{
	const struct ring_header *ring = ring_current(service);
	struct id_block *id = make_id();
	struct decide_state *state;

	if (!ring || !id)
		return give_up();
	state = ask(ring, id);
	if (!state)
		return give_up();
	WARMPATH_BARRIER(state);
	return XDP_PASS;
}

/* The loads stay as they are: what was charged is given back at once, under the same lock. */
static __always_inline int give_back(const struct decision *decision)
{
	__u32 service_index = service, replica = decision->replica;
	struct service_load *sums = bpf_map_lookup_elem(&service_loads, &service_index);
	struct replica_load *load = bpf_map_lookup_elem(&replica_loads, &replica);
	__u64 number = decision->number;
	__u32 tokens = decision->charge;

	if (!sums || !load)
		return -ENOENT;
	decide_lock(sums);
	decide_give_back(sums, load, number, 1, tokens);
	decide_unlock(sums);
	return 0;
}

/* Giving back alone, to be taken off from the next one: it is charged first, in the same section. */
SEC("xdp")
int bench_give_back(struct xdp_md *context)
{
	const struct ring_header *ring = ring_current(service);
	struct id_block *id = make_id();
	__u32 service_index = service, replica = service * 8;
	struct service_load *sums = bpf_map_lookup_elem(&service_loads, &service_index);
	struct replica_load *load = bpf_map_lookup_elem(&replica_loads, &replica);

	if (!ring || !id || !sums || !load)
		return give_up();
	decide_lock(sums);
	load->requests++;
	load->tokens += 300;
	sums->requests++;
	sums->tokens += 300;
	decide_give_back(sums, load, 1, 1, 300);
	decide_unlock(sums);
	return XDP_PASS;
}

/* The decision and its charge. */
SEC("xdp")
int bench_decide(struct xdp_md *context)
{
	const struct ring_header *ring = ring_current(service);
	struct id_block *id = make_id();
	struct decide_state *state;

	if (!ring || !id)
		return give_up();
	state = ask(ring, id);
	if (!state || request_decide(service, ring) || state->decision.number == 0 ||
	    give_back(&state->decision))
		return give_up();
	return XDP_PASS;
}

/* A whole request: decided, remembered, answered, its placement written. */
SEC("xdp")
int bench_request(struct xdp_md *context)
{
	const struct ring_header *ring = ring_current(service);
	struct open_request_key *key = request_key_space();
	struct id_block *id = make_id();
	struct decide_state *state;

	if (!ring || !id || !key)
		return give_up();
	state = ask(ring, id);
	if (!state)
		return give_up();
	key->id_hash = state->request.id_hash;
	if (request_open(service, ring, id, ID_LENGTH) || state->decision.number == 0 ||
	    !request_close(0, REPLICA_NONE, COMPLETION_SUCCESS, false))
		return give_up();
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
