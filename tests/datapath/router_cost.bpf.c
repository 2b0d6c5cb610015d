// SPDX-License-Identifier: GPL-2.0-only
/*
 * The router with everything put back afterwards that a test run that repeats leaves changed: the packet, and where it is asked for the
 * flow or connection. `restore_only` is what the putting back costs by itself, `do_nothing` what a test run costs.
 */
#include "lib/context_xdp.h"
#include "lib/router.h"
#include "router_cost.h"

#define KEPT 192

struct kept {
	__u8 bytes[KEPT];
	__u32 length; /* of the frame */
	__u32 size;   /* of what is kept */
	struct connection connection;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kept);
} kept_heads SEC(".maps");

/* set between runs: what differs from packet to packet, and what is put back behind it (router_cost.h) */
__u32 vary = VARY_NOTHING;
__u32 vary_at = 0;    /* offset of the four (of an id: eight) bytes */
__u32 vary_count = 1; /* so many different ones */
__u32 forget = FORGET_NOTHING;
__u32 number = 0; /* of the next packet, with VARY_IN_TURN */

static __always_inline struct kept *kept_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&kept_heads, &first);
}

static __always_inline struct kept *keep(struct xdp_md *context)
{
	struct kept *kept = kept_get();
	__u32 size;

	if (!kept)
		return NULL;
	kept->length = bpf_xdp_get_buff_len(context);
	kept->size = kept->length < KEPT ? kept->length : KEPT;
	WARMPATH_BARRIER(kept);
	size = kept->size;
	if (!warmpath_size_within(&size, KEPT))
		return NULL;
	return bpf_xdp_load_bytes(context, 0, kept->bytes, size) ? NULL : kept;
}

/* An answer may be shorter or longer than what it answers. */
static __always_inline int restore(struct xdp_md *context, struct kept *kept)
{
	int grown = (int)bpf_xdp_get_buff_len(context) - (int)kept->length;
	__u32 size = kept->size;

	if (grown && bpf_xdp_adjust_tail(context, -grown))
		return -1;
	if (!warmpath_size_within(&size, KEPT))
		return -1;
	return bpf_xdp_store_bytes(context, 0, kept->bytes, size);
}

/* Makes another packet of the one in hand. Checksums stay as they are: a router adjusts them, and checks none. */
static __always_inline int change(struct xdp_md *context)
{
	__u64 letters;
	__u32 value;

	if (vary == VARY_NOTHING)
		return 0;
	value = vary == VARY_IN_TURN ? number++ % vary_count
				     : (__u64)bpf_get_prandom_u32() * vary_count >> 32;
	if (vary == VARY_ID) {
		letters = (value | (__u64)value << 16) & 0x0000ffff0000ffffULL;
		letters = (letters | letters << 8) & 0x00ff00ff00ff00ffULL;
		letters = (letters | letters << 4) & 0x0f0f0f0f0f0f0f0fULL;
		letters += 0x6161616161616161ULL;
		return bpf_xdp_store_bytes(context, vary_at, &letters, sizeof(letters));
	}
	value = bpf_htonl(value + 0x100);
	return bpf_xdp_store_bytes(context, vary_at, &value, sizeof(value));
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

	if (!kept || change(context) || restore(context, kept))
		return XDP_ABORTED;
	return XDP_PASS;
}

static __always_inline void put_back(struct scratch *scratch, struct kept *kept)
{
	struct connection *entry;

	if (forget == FORGET_FLOW) {
		bpf_map_delete_elem(&flows, &scratch->flow_key);
	} else if (forget == FORGET_CONNECTION) {
		bpf_map_delete_elem(&connections, &scratch->flow_key);
	} else if (forget == RESTORE_CONNECTION) {
		entry = connection_get(&scratch->flow_key);
		if (entry)
			__builtin_memcpy(entry, &kept->connection, sizeof(*entry));
	}
}

SEC("xdp.frags")
int router_restored(struct xdp_md *context)
{
	struct scratch *scratch = scratch_get();
	struct kept *kept = keep(context);
	int verdict;

	if (!scratch || !kept || change(context))
		return XDP_ABORTED;
	verdict = leave(scratch, router_handle(context, scratch));
	kept = kept_get();
	if (!kept)
		return XDP_ABORTED;
	put_back(scratch, kept);
	return restore(context, kept) ? XDP_ABORTED : verdict;
}

/* --- what an established flow is compared with ------------------------------------------------------------------------ */

/*
 * A plain NAT of TCP: one look-up of the flow, and everything else that is written comes from its entry, link addresses and interface
 * included. No checks but those the verifier asks for.
 */
struct nat_flow {
	struct address replica;
	__be16 port;
	__u8 link_addresses[12];
	__u32 interface;
};

/* where its flows are made to go */
struct address nat_replica = {};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 131072);
	__type(key, struct flow_key);
	__type(value, struct nat_flow);
} nat_flows SEC(".maps");

static __always_inline __u16 nat_fold(__u64 sum)
{
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static __always_inline __u64 nat_difference(__u64 sum, __u32 before, __u32 after)
{
	return sum + (__u32)~before + after;
}

enum nat_step {
	NAT_OPEN,  /* makes the flow's entry, and nothing else */
	NAT_PLAIN, /* all comes from the entry */
	NAT_ROUTED, /* link addresses and interface come from the kernel's own look-up of route and neighbour */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bpf_fib_lookup);
} nat_next_hops SEC(".maps");

/* The next hop of the packet in hand, to that replica; NULL: none. */
static __always_inline const struct bpf_fib_lookup *nat_route(struct xdp_md *context,
							      const struct flow_key *key,
							      const struct nat_flow *flow,
							      bool ipv6)
{
	__u32 first = 0;
	struct bpf_fib_lookup *hop = bpf_map_lookup_elem(&nat_next_hops, &first);

	if (!hop)
		return NULL;
	__builtin_memset(hop, 0, sizeof(*hop));
	hop->family = ipv6 ? AF_INET6 : AF_INET;
	hop->l4_protocol = IPPROTO_TCP;
	hop->ifindex = context->ingress_ifindex;
	hop->tot_len = 100;
	hop->sport = key->client_port;
	hop->dport = flow->port;
	if (ipv6) {
		__builtin_memcpy(hop->ipv6_src, &key->client, 16);
		__builtin_memcpy(hop->ipv6_dst, &flow->replica, 16);
	} else {
		hop->ipv4_src = key->client.word[3];
		hop->ipv4_dst = flow->replica.word[3];
	}
	return bpf_fib_lookup(context, hop, sizeof(*hop), 0) ? NULL : hop;
}

static __always_inline int nat_handle(struct xdp_md *context, enum nat_step step)
{
	const struct bpf_fib_lookup *hop = NULL;
	struct ethhdr *link = (void *)(long)context->data;
	void *end = (void *)(long)context->data_end;
	struct flow_key key = {.protocol = IPPROTO_TCP};
	bool make = step == NAT_OPEN;
	struct nat_flow fresh = {.port = bpf_htons(8443), .interface = 1, .replica = nat_replica};
	const struct nat_flow *flow;
	struct tcphdr *tcp;
	__u64 sum;

	if ((void *)(link + 1) > end)
		return XDP_PASS;
	if (link->h_proto == bpf_htons(0x86dd)) {
		struct ipv6hdr *ip = (void *)(link + 1);

		tcp = (void *)(ip + 1);
		if ((void *)(tcp + 1) > end || ip->nexthdr != IPPROTO_TCP || ip->hop_limit < 2)
			return XDP_PASS;
		__builtin_memcpy(&key.client, &ip->saddr, 32);
		key.client_port = tcp->source;
		key.service_port = tcp->dest;
		if (make)
			return bpf_map_update_elem(&nat_flows, &key, &fresh, BPF_ANY) ? XDP_ABORTED
										      : XDP_DROP;
		flow = bpf_map_lookup_elem(&nat_flows, &key);
		if (!flow)
			return XDP_PASS;
		if (step == NAT_ROUTED) {
			hop = nat_route(context, &key, flow, true);
			if (!hop)
				return XDP_PASS;
		}
		sum = (__u16)~tcp->check;
		for (int i = 0; i < 4; i++)
			sum = nat_difference(sum, key.service.word[i], flow->replica.word[i]);
		tcp->check = ~nat_fold(nat_difference(sum, tcp->dest, flow->port));
		tcp->dest = flow->port;
		__builtin_memcpy(&ip->daddr, &flow->replica, 16);
		ip->hop_limit--;
	} else if (link->h_proto == bpf_htons(0x0800)) {
		struct iphdr *ip = (void *)(link + 1);

		tcp = (void *)(ip + 1);
		if ((void *)(tcp + 1) > end || ip->ihl != 5 || ip->protocol != IPPROTO_TCP ||
		    ip->ttl < 2)
			return XDP_PASS;
		key.client.word[3] = ip->saddr;
		key.service.word[3] = ip->daddr;
		key.client_port = tcp->source;
		key.service_port = tcp->dest;
		if (make)
			return bpf_map_update_elem(&nat_flows, &key, &fresh, BPF_ANY) ? XDP_ABORTED
										      : XDP_DROP;
		flow = bpf_map_lookup_elem(&nat_flows, &key);
		if (!flow)
			return XDP_PASS;
		sum = nat_difference((__u16)~tcp->check, ip->daddr, flow->replica.word[3]);
		tcp->check = ~nat_fold(nat_difference(sum, tcp->dest, flow->port));
		tcp->dest = flow->port;
		sum = nat_difference((__u16)~ip->check, ip->daddr, flow->replica.word[3]);
		/* and a hop less */
		ip->check = ~nat_fold(sum + (__u16)~bpf_htons(0x0100));
		ip->daddr = flow->replica.word[3];
		ip->ttl--;
	} else {
		return XDP_PASS;
	}
	if (hop) {
		__builtin_memcpy(link->h_dest, hop->dmac, ETH_ALEN);
		__builtin_memcpy(link->h_source, hop->smac, ETH_ALEN);
		return bpf_redirect(hop->ifindex, 0);
	}
	__builtin_memcpy(link, flow->link_addresses, 12);
	return bpf_redirect(flow->interface, 0);
}

static __always_inline int nat_run(struct xdp_md *context, enum nat_step step)
{
	struct kept *kept = keep(context);
	int verdict;

	if (!kept || change(context))
		return XDP_ABORTED;
	verdict = nat_handle(context, step);
	kept = kept_get();
	if (!kept || restore(context, kept))
		return XDP_ABORTED;
	return verdict;
}

SEC("xdp.frags")
int nat_restored(struct xdp_md *context)
{
	return nat_run(context, NAT_PLAIN);
}

SEC("xdp.frags")
int nat_open(struct xdp_md *context)
{
	return nat_run(context, NAT_OPEN);
}

SEC("xdp.frags")
int nat_routed_restored(struct xdp_md *context)
{
	return nat_run(context, NAT_ROUTED);
}

char LICENSE[] SEC("license") = "GPL";
