// SPDX-License-Identifier: GPL-2.0-only
/* The decision without a packet around it, called by `warmpath decide --engine kernel`, tests and benchmarks (include/warmpath/calls.h). */
#include "lib/requests.h"

#include <warmpath/calls.h>

/* The id as a call brings it; not pinned. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct id_block);
} call_ids SEC(".maps");

static __always_inline int call_request(struct decide_call *call)
{
	__u32 first = 0, length = call->id_length;
	struct id_block *id = bpf_map_lookup_elem(&call_ids, &first);
	const struct ring_header *ring = ring_current(call->service);
	struct decide_state *state = decide_state_get();
	int err;

	if (!id || !ring || !state)
		return -ENOENT;
	for (int i = 0; i < ID_LENGTH_MAX / 8; i++)
		id->word[i] = call->id[i];
	state->request.id_hash = ring_hash_id(ring, id, length, &state->request.id_hash_low);
	state->request.prompt_tokens = call->prompt_tokens;
	state->request.max_tokens = call->max_tokens;
	state->request.anonymous = 0;
	state->nanoseconds = bpf_ktime_get_coarse_ns();
	err = request_open(call->service, ring, id, length);
	if (!err)
		call->decision = state->decision;
	return err;
}

SEC("xdp")
int warmpath_decide(struct xdp_md *context)
{
	struct decide_call *call = (void *)(long)context->data;
	void *end = (void *)(long)context->data_end;
	struct open_request_key *key = request_key_space();

	if ((void *)(call + 1) > end || !key)
		return XDP_ABORTED;
	key->flow.client.word[2] = call->request >> 32;
	key->flow.client.word[3] = call->request;
	if (call->operation == DECIDE_REQUEST)
		call->result = call_request(call);
	else if (call->operation == DECIDE_FINISH)
		call->result = request_close(0, REPLICA_NONE, call->status, false) ? 0 : -ENOENT;
	else
		call->result = -EINVAL;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
