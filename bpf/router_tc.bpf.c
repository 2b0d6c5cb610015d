// SPDX-License-Identifier: GPL-2.0-only
/*
 * The router where packets are skbs already: virtual devices, checksums and segmentation left to the device, VLAN tags taken out. On
 * ingress both directions, as in XDP; on egress the replies of replicas that run on this machine.
 */
#include "lib/context_tc.h"
#include "lib/router.h"

SEC("tc")
int warmpath_router_tc(struct __sk_buff *context)
{
	struct scratch *scratch = scratch_get();

	if (!scratch)
		return TC_ACT_UNSPEC;
	return leave(scratch, router_handle(context, scratch));
}

SEC("tc")
int warmpath_return_tc(struct __sk_buff *context)
{
	struct scratch *scratch = scratch_get();

	if (!scratch)
		return TC_ACT_UNSPEC;
	return leave(scratch, router_handle_egress(context, scratch));
}

char LICENSE[] SEC("license") = "GPL";
