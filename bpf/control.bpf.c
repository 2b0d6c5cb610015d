// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the agent changes in loads and requests, under the lock that the data path takes, so that user space never reads, changes and
 * writes back what a packet may change at the same time (include/warmpath/calls.h).
 */
#include "lib/requests.h"

#include <warmpath/calls.h>

static __always_inline int control_loads(struct control_call *call)
{
	__u32 service = call->service, replica = call->replica;
	struct service_load *sums = bpf_map_lookup_elem(&service_loads, &service);
	struct replica_load *load = bpf_map_lookup_elem(&replica_loads, &replica);
	enum control_operation operation = call->operation;
	__s64 requests = call->requests, tokens = call->tokens;
	struct replica_load copy;
	__u64 decisions;

	if (!sums || !load)
		return -ENOENT;
	decide_lock(sums);
	if (operation == CONTROL_ENTER || operation == CONTROL_LEAVE) {
		decide_set_member(sums, load, operation == CONTROL_ENTER);
	} else if (operation == CONTROL_MARK) {
		load->mark = sums->decisions;
		load->marked_requests = 0;
		load->marked_tokens = 0;
	} else if (operation == CONTROL_REPAIR) {
		decide_repair(sums, load, requests, tokens);
	}
	decisions = sums->decisions;
	copy.counted = load->counted;
	copy.requests = load->requests;
	copy.tokens = load->tokens;
	copy.decisions = load->decisions;
	copy.releases = load->releases;
	copy.mark = load->mark;
	copy.marked_requests = load->marked_requests;
	copy.marked_tokens = load->marked_tokens;
	decide_unlock(sums);
	if (operation == CONTROL_REPAIR && !call->foreign)
		count(NOTE_note_load_repaired);
	call->service_decisions = decisions;
	call->replica_load = copy;
	return 0;
}

static __always_inline int control_close(struct control_call *call)
{
	struct open_request_key *key = request_key_space();

	if (!key)
		return -ENOENT;
	*key = call->key;
	return request_close(call->number, REPLICA_NONE, call->status, false) ? 0 : -ENOENT;
}

static __always_inline int control_forget(struct control_call *call)
{
	struct open_request_key *key = request_key_space();

	if (!key)
		return -ENOENT;
	*key = call->key;
	return request_forget() ? 0 : -ENOENT;
}

SEC("xdp")
int warmpath_control(struct xdp_md *context)
{
	struct control_call *call = (void *)(long)context->data;
	void *end = (void *)(long)context->data_end;

	if ((void *)(call + 1) > end)
		return XDP_ABORTED;
	switch (call->operation) {
	case CONTROL_ENTER:
	case CONTROL_LEAVE:
	case CONTROL_MARK:
	case CONTROL_READ:
	case CONTROL_REPAIR:
		call->result = control_loads(call);
		break;
	case CONTROL_CLOSE:
		call->result = control_close(call);
		break;
	case CONTROL_FORGET:
		call->result = control_forget(call);
		break;
	default:
		call->result = -EINVAL;
	}
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
