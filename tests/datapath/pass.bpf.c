// SPDX-License-Identifier: GPL-2.0-only
/* Passes everything. A veth has what a test run needs of a receive queue only while an XDP program is attached to it. */
#include <warmpath/portable.h>

SEC("xdp.frags")
int pass(struct xdp_md *context)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
