// SPDX-License-Identifier: GPL-2.0-only
/*
 * What `warmpath ring study` measures: a random key, and the same with its look-up on the ring. The difference is the look-up.
 * Run by BPF_PROG_TEST_RUN on maps of its own; attached nowhere.
 */
#include "lib/ring.h"

/* how often a look-up found nothing: must stay 0 */
__u64 failures = 0;

static __always_inline __u64 random_key(void)
{
	return (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
}

SEC("xdp")
int warmpath_study_key(struct xdp_md *context)
{
	__u64 key = random_key();

	WARMPATH_BARRIER(key);
	return XDP_PASS;
}

SEC("xdp")
int warmpath_study_home(struct xdp_md *context)
{
	const struct ring_header *ring = ring_current(0);
	__u64 key = random_key();
	__u32 point, replica;

	if (!ring || ring_look_up(ring, key, &point, &replica)) {
		__sync_fetch_and_add(&failures, 1);
		return XDP_ABORTED;
	}
	WARMPATH_BARRIER(point);
	WARMPATH_BARRIER(replica);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
