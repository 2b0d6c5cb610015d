/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The replica's side of a handoff, on a machine that has no router: attached to tc ingress of the interfaces that routers reach the replicas by.
 *
 * The server listens where the segment is addressed to. Needs Linux 6.9 (bpf_sk_assign_tcp_reqsk).
 */
#include <warmpath/portable.h>

#include "lib/handoff_segment.h"

/* The segment's own destination. */
static __always_inline bool handoff_listener_address(const struct handoff_segment *segment,
						     struct bpf_sock_tuple *tuple)
{
	return true;
}

#include "lib/handoff.h"

SEC("tc")
int warmpath_handoff_tc(struct __sk_buff *skb)
{
	return handoff_handle(skb);
}

char LICENSE[] SEC("license") = "GPL";
