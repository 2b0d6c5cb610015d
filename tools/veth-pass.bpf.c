// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the far end of a veth in the lab: lets everything pass. With a program there, a veth takes frames that XDP at its near end sends
 * back or redirects to it. (GRO at the far end is enough for redirected frames; those sent back then wait for the next one.)
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("xdp")
int veth_pass(struct xdp_md *context)
{
	return XDP_PASS;
}
