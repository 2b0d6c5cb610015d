// SPDX-License-Identifier: GPL-2.0-only
/* The router at the earliest point a packet can be met: in the driver. For interfaces that have native (or generic) XDP. */
#include "lib/context_xdp.h"
#include "lib/router.h"

SEC("xdp.frags")
int warmpath_router_xdp(struct xdp_md *context)
{
	struct scratch *scratch = scratch_get();

	if (!scratch)
		return XDP_PASS;
	return leave(scratch, router_handle(context, scratch));
}

char LICENSE[] SEC("license") = "GPL";
