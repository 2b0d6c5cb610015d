// SPDX-License-Identifier: GPL-2.0-only
/*
 * The router with its packet put back afterwards: a test run that repeats does not do that, and the second round would meet the packet
 * as the first one left it. `restore_only` is what the putting back costs by itself, `do_nothing` what a test run costs.
 */
#include "lib/context_xdp.h"
#include "lib/router.h"

#define KEPT 192

struct kept {
	__u8 bytes[KEPT];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kept);
} kept_heads SEC(".maps");

static __always_inline struct kept *keep(struct xdp_md *context)
{
	__u32 first = 0;
	struct kept *kept = bpf_map_lookup_elem(&kept_heads, &first);

	if (!kept || bpf_xdp_load_bytes(context, 0, kept->bytes, KEPT))
		return NULL;
	return kept;
}

SEC("xdp.frags")
int do_nothing(struct xdp_md *context)
{
	return XDP_PASS;
}

SEC("xdp.frags")
int restore_only(struct xdp_md *context)
{
	struct kept *kept = keep(context);

	if (!kept || bpf_xdp_store_bytes(context, 0, kept->bytes, KEPT))
		return XDP_ABORTED;
	return XDP_PASS;
}

SEC("xdp.frags")
int router_restored(struct xdp_md *context)
{
	struct scratch *scratch = scratch_get();
	struct kept *kept = keep(context);
	int verdict;

	if (!scratch || !kept)
		return XDP_ABORTED;
	verdict = leave(scratch, router_handle(context, scratch));
	if (bpf_xdp_store_bytes(context, 0, kept->bytes, KEPT))
		return XDP_ABORTED;
	return verdict;
}

char LICENSE[] SEC("license") = "GPL";
