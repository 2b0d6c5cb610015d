/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the router tells a client itself: its packet is too big for the way to the replica, or its hop limit is used up here.
 *
 * Owns: ICMP errors of our own, in place of the packet they are about. May not know: why the packet is too big.
 *
 * They come from the service's address, as that is where the client sent to, and quote the packet as it came. Of an error
 * nobody is told anything, nor of a later fragment (RFC 1122, section 3.2.2; RFC 4443, section 2.4): callers see to that.
 */
#ifndef WARMPATH_BPF_ANSWER_H
#define WARMPATH_BPF_ANSWER_H

#include "forward.h"
#include "packet.h"

#define ANSWER_HOP_LIMIT 64
#define ANSWER_TRAFFIC_CLASS \
	0xc0 /* internetwork control, as routers do (RFC 1812, section 4.3.2.5) */
#define ANSWER_QUOTE_IPV4    (576 - sizeof(struct iphdr) - sizeof(struct icmphdr)) /* RFC 1812 */
#define ANSWER_SUM_CHUNK     308 /* four make up the quote; a helper takes 512 at most */
#define ANSWER_SUM_CHUNKS    4
#define ANSWER_LINK_MAX	     (sizeof(struct ethhdr) + 2 * sizeof(struct vlan_hdr))
#define ANSWER_WORDS	     (sizeof(struct answer) / sizeof(__u64))
#define ICMP_UNREACHABLE     3
#define ICMP_FRAGMENTATION   4
#define ICMP_TIME_EXCEEDED   11
#define ICMPV6_TOO_BIG	     2
#define ICMPV6_TIME_EXCEEDED 3

_Static_assert(sizeof(((struct answer *)0)->quote) == ANSWER_SUM_CHUNKS * ANSWER_SUM_CHUNK,
	       "the sum covers the quote");

/* How many senders one CPU tells in a second that their hop limit was used up: such packets can be made at will (RFC 4443, 2.4 (f)). Of a size
 * that is too big they are always told: nothing else helps them. */
#define ANSWER_EXPIRED_PER_SECOND 1000
#define ANSWER_SECOND		  1000000000ULL

struct answer_budget {
	__u64 second;
	__u64 answers;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct answer_budget);
} answer_budgets SEC(".maps");

static __always_inline bool answer_is_within_budget(void)
{
	__u64 second = bpf_ktime_get_coarse_ns() / ANSWER_SECOND;
	__u32 first = 0;
	struct answer_budget *budget = bpf_map_lookup_elem(&answer_budgets, &first);

	if (!budget)
		return false;
	if (budget->second != second) {
		budget->second = second;
		budget->answers = 0;
	}
	return budget->answers++ < ANSWER_EXPIRED_PER_SECOND;
}

static __always_inline void answer_head_ipv4(struct answer *answer, const struct packet *packet,
					     __u32 quoted)
{
	struct iphdr *ip = &answer->ipv4;
	__u64 sum = 0;

	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = ANSWER_TRAFFIC_CLASS;
	ip->tot_len = bpf_htons(sizeof(*ip) + sizeof(struct icmphdr) + quoted);
	ip->ttl = ANSWER_HOP_LIMIT;
	ip->protocol = IPPROTO_ICMP;
	ip->saddr = packet->destination.word[3];
	ip->daddr = packet->source.word[3];
	for (int i = 0; i < 10; i++)
		sum += ((const __u16 *)ip)[i];
	ip->check = ~checksum_fold16(sum);
}

static __always_inline void answer_head_ipv6(struct answer *answer, const struct packet *packet,
					     __u32 quoted)
{
	struct ipv6hdr *ip = &answer->ipv6;

	*(__be32 *)ip = bpf_htonl(6u << 28 | ANSWER_TRAFFIC_CLASS << 20);
	ip->payload_len = bpf_htons(sizeof(struct icmp6hdr) + quoted);
	ip->nexthdr = IPPROTO_ICMPV6;
	ip->hop_limit = ANSWER_HOP_LIMIT;
	for (int i = 0; i < 4; i++) {
		ip->saddr.in6_u.u6_addr32[i] = packet->destination.word[i];
		ip->daddr.in6_u.u6_addr32[i] = packet->source.word[i];
	}
}

/* Sum of what stands in the pseudo header of the answer. IPv4 has none. */
static __always_inline __u64 answer_pseudo_sum(const struct packet *packet, __u32 quoted)
{
	__u64 sum = 0;

	if (packet->family == AF_INET)
		return 0;
	for (int i = 0; i < 4; i++)
		sum += (__u64)packet->source.word[i] + packet->destination.word[i];
	return sum + bpf_htonl(sizeof(struct icmp6hdr) + quoted) + bpf_htonl(IPPROTO_ICMPV6);
}

/* Type, code and the second word: the MTU, or nothing. Both families have their fields in the same places. */
static __always_inline void answer_icmp(struct answer *answer, const struct packet *packet,
					__u32 hop, __u32 mtu)
{
	bool ipv4 = packet->family == AF_INET;

	if (hop == HOP_TOO_BIG) {
		answer->icmp.type = ipv4 ? ICMP_UNREACHABLE : ICMPV6_TOO_BIG;
		answer->icmp.code = ipv4 ? ICMP_FRAGMENTATION : 0;
		answer->icmp.un.gateway = bpf_htonl(mtu);
	} else {
		answer->icmp.type = ipv4 ? ICMP_TIME_EXCEEDED : ICMPV6_TIME_EXCEEDED;
	}
}

/*
 * A transport checksum that was left to the sending device (PARTIAL) is still going to be written, by a device, or by nobody, as between
 * two machines in memory. The quoted packet stays where it is in the frame, and so does that field: it gets the one value that the
 * device would write as well, the value that makes it half of what the rest of the quoted packet lacks to zero. Nobody checks the
 * checksum of a quoted packet. `sum` is that of the quote; 0 or a negative errno.
 */
static __always_inline int answer_settle_checksum(struct answer *answer, __u32 transport,
						  __u32 field, __u64 *sum, __u16 *settled)
{
	__u16 before, value;
	__u64 rest;
	bool odd;

	WARMPATH_BARRIER(field);
	if (field > sizeof(answer->quote) - sizeof(before))
		return -EFAULT;
	before = *(__u16 *)(answer->quote + field);
	if (!warmpath_size_within(&transport, ANSWER_SUM_CHUNK))
		return -EFAULT;
	rest = *sum + (__u16)~before;
	/* without the network header: the device's sum begins behind it */
	rest += (__u16)~checksum_fold16(
		(__u32)bpf_csum_diff(NULL, 0, (__be32 *)answer->quote, transport, 0));
	value = ~checksum_fold16(rest);
	odd = value & 1;
	value = ((__u32)value + (odd ? 0xffff : 0)) / 2;
	if (!value)
		value = 0xffff;
	*sum += checksum_difference16(before, value);
	*settled = value;
	return 0;
}

/* What is known of a checksum that is left to the device. */
struct answer_checksum {
	bool partial;
	__u16 settled;
	__u32 field; /* offset in the quote */
};

/* Fills scratch->answer. Returns how many bytes of the packet it quotes, 0 if they cannot be read. */
static __always_inline __u32 answer_compose(struct packet_context *context, struct scratch *scratch,
					    __u32 hop, struct answer_checksum *checksum)
{
	const struct packet *packet = &scratch->packet;
	struct answer *answer = &scratch->answer;
	bool ipv4 = packet->family == AF_INET;
	__u32 quoted = packet->end - packet->network_offset;
	__u32 most = ipv4 ? ANSWER_QUOTE_IPV4 : sizeof(answer->quote);
	__u32 field;
	__u64 sum = 0;

	for (__u32 i = 0; i < ANSWER_WORDS; i++)
		((volatile __u64 *)answer)[i] = 0;
	if (quoted > most)
		quoted = most;
	if (!warmpath_size_within(&quoted, sizeof(answer->quote)))
		return 0;
	if (context_load(context, packet->network_offset, answer->quote, quoted))
		return 0;
	if (ipv4)
		answer_head_ipv4(answer, packet, quoted);
	else
		answer_head_ipv6(answer, packet, quoted);
	answer_icmp(answer, packet, hop, scratch->next_hop.mtu_result);

	for (int i = 0; i < ANSWER_SUM_CHUNKS; i++)
		sum += (__u32)bpf_csum_diff(NULL, 0,
					    (__be32 *)(answer->quote + i * ANSWER_SUM_CHUNK),
					    ANSWER_SUM_CHUNK, 0);
	if (packet->ports_known) {
		field = packet->transport_offset + (packet->protocol == IPPROTO_UDP
							    ? offsetof(struct udphdr, check)
							    : offsetof(struct tcphdr, check));
		checksum->field = field - packet->network_offset;
		checksum->partial = context_checksum_is_partial(context, field);
	}
	if (checksum->partial &&
	    answer_settle_checksum(answer, packet->transport_offset - packet->network_offset,
				   checksum->field, &sum, &checksum->settled))
		return 0;
	sum += answer_pseudo_sum(packet, quoted);
	sum += (__u32)bpf_csum_diff(NULL, 0, (__be32 *)&answer->icmp, sizeof(answer->icmp), 0);
	answer->icmp.checksum = ~checksum_fold16(sum);
	return quoted;
}

/*
 * Puts the headers before the packet, which so becomes the quote: there is always room before a packet, while behind a small one
 * there may be none. 0 or a negative errno.
 */
static __always_inline int answer_store(struct packet_context *context, struct scratch *scratch,
					__u32 quoted, struct answer_checksum *checksum)
{
	struct answer *answer = &scratch->answer;
	__u32 offset = scratch->packet.network_offset;
	bool ipv4 = scratch->packet.family == AF_INET;
	__u32 head = (ipv4 ? sizeof(answer->ipv4) : sizeof(answer->ipv6)) + sizeof(answer->icmp);
	__u8 link[ANSWER_LINK_MAX];
	int err;

	if (offset > sizeof(link))
		return -EFAULT;
	err = context_load(context, 0, link, sizeof(link));
	if (!err)
		err = context_open_front(context, head);
	if (!err && context_length(context) > offset + head + quoted)
		err = context_resize(context, offset + head + quoted);
	/* what is more than the link header is overwritten */
	if (!err)
		err = context_store(context, 0, link, sizeof(link));
	if (!err && ipv4)
		err = context_store(context, offset, &answer->ipv4,
				    sizeof(answer->ipv4) + sizeof(answer->icmp));
	else if (!err)
		err = context_store(context, offset, &answer->ipv6,
				    sizeof(answer->ipv6) + sizeof(answer->icmp));
	if (!err && checksum->partial)
		err = context_store(context, offset + head + checksum->field, &checksum->settled,
				    sizeof(checksum->settled));
	return err;
}

/*
 * Turns the packet in scratch into an answer to its sender: HOP_TOO_BIG or HOP_EXPIRED. Returns the outcome.
 * A global function: verified once.
 */
__noinline int answer_send(struct packet_context *context, __u32 hop)
{
	struct scratch *scratch = scratch_get();
	struct answer_checksum checksum = {};
	__u32 quoted;
	int result;

	if (!context || !scratch)
		return OUTCOME_drop_internal;
	if (hop == HOP_EXPIRED && !answer_is_within_budget())
		return OUTCOME_drop_hop_limit;
	quoted = answer_compose(context, scratch, hop, &checksum);
	if (!quoted)
		return OUTCOME_drop_internal;
	if (answer_store(context, scratch, quoted, &checksum))
		return OUTCOME_drop_rewrite_failed;
	/* through the queue, behind which the kernel finds the IP header anew: it still takes it for where it was before the front was opened */
	result = context_send_back(context, false);
	if (result < 0)
		return OUTCOME_drop_rewrite_failed;
	scratch->verdict = result;
	return hop == HOP_TOO_BIG ? OUTCOME_answered_too_big : OUTCOME_answered_time_exceeded;
}

#endif /* WARMPATH_BPF_ANSWER_H */
