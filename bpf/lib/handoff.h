/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A marked segment at the replica: from mark to socket (docs/handoff.md, section 5).
 *
 * Owns: what becomes of a marked segment. May not know: routers' tables; where the listener is, which the entry file says by defining
 * handoff_listener_address() before it includes this.
 */
#ifndef WARMPATH_BPF_HANDOFF_H
#define WARMPATH_BPF_HANDOFF_H

#include <bpf/bpf_core_read.h>
#include <linux/errno.h>

#include <warmpath/mark.h>
#include <warmpath/rounds.h>

#include "handoff_maps.h"
#include "handoff_segment.h"
#include "handoff_socket.h"

static __always_inline void handoff_count(__u32 counter)
{
	__u32 first = 0;
	__u64 *fields = bpf_map_lookup_elem(&handoff_counters, &first);

	if (fields && counter < HANDOFF_COUNTER_COUNT)
		fields[counter]++;
}

static __always_inline int handoff_drop(__u32 counter)
{
	handoff_count(counter);
	return TC_ACT_SHOT;
}

/* Takes the mark off and leaves the segment to the stack. */
static __always_inline int handoff_pass(struct __sk_buff *skb,
					const struct handoff_segment *segment, __u32 counter)
{
	if (handoff_unmark(skb, segment))
		return handoff_drop(HANDOFF_drop_rewrite_failed);
	handoff_count(counter);
	return TC_ACT_UNSPEC;
}

static __always_inline bool handoff_mark_is_good(const struct handoff_segment *segment)
{
	const struct handoff_keys *keys = handoff_keys_get();

	if (!keys)
		return false;
	if (keys->count > 0 && mark_check(&keys->mark[0], &segment->subject, segment->mark,
					  segment->ipv6, segment->mac_low))
		return true;
	return keys->count > 1 && mark_check(&keys->mark[1], &segment->subject, segment->mark,
					     segment->ipv6, segment->mac_low);
}

/*
 * The segment's second way in: into the queue of the interface it came from, behind what was received with it, with the version that
 * says so. counter: what it is counted as.
 */
static __always_inline int handoff_again(struct __sk_buff *skb,
					 const struct handoff_segment *segment, __u32 counter)
{
	__u16 mark = segment->mark | MARK_VERSION_AGAIN << MARK_VERSION_SHIFT;

	if (handoff_set_mark(skb, segment, mark))
		return handoff_drop(HANDOFF_drop_rewrite_failed);
	handoff_count(counter);
	return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
}

/* A segment that may not make a socket. known: one that it fits exists. */
static __always_inline int handoff_follow(struct __sk_buff *skb,
					  const struct handoff_segment *segment, bool known,
					  bool forged)
{
	if (known)
		return handoff_pass(skb, segment, HANDOFF_followed);
	if (forged)
		return handoff_drop(HANDOFF_drop_mark_forged);
	if (mark_version(segment->mark) != MARK_VERSION_AGAIN)
		return handoff_again(skb, segment, HANDOFF_requeued);
	return handoff_drop(HANDOFF_drop_early);
}

/*
 * What a START has left of its rounds; whoever gets it from here has nothing of them. They are in its tc_index: the way through an
 * interface's queue leaves that alone, and nobody reads it of a packet that is delivered here. It is written where a segment comes in
 * for the first time, whatever was there, and is 0 in what comes from a wire.
 */
static __always_inline __u16 handoff_rounds_left(struct __sk_buff *skb)
{
	__u16 rounds = skb->tc_index;

	skb->tc_index = 0;
	return rounds;
}

/* The reset has gone before the segment, and the socket is still there. rounds: what the segment has left. */
static __always_inline int handoff_await(struct __sk_buff *skb,
					 const struct handoff_segment *segment,
					 const struct handoff_socket *stale, __u16 rounds)
{
	/* one without a lock has ignored the reset, and always will */
	if (!stale->has_lock || !rounds_take(&rounds, bpf_ktime_get_ns()))
		return handoff_drop(HANDOFF_drop_stale_remains);
	skb->tc_index = rounds;
	return handoff_again(skb, segment, HANDOFF_stale_awaited);
}

/* Resets the socket that is in the way, and sends the segment behind the reset. */
static __always_inline int handoff_replace(struct __sk_buff *skb,
					   const struct handoff_segment *segment,
					   const struct handoff_socket *stale)
{
	if (handoff_send_reset(skb, segment, stale->next))
		return handoff_drop(HANDOFF_drop_rewrite_failed);
	skb->tc_index = rounds_begin(bpf_ktime_get_ns());
	return handoff_again(skb, segment, HANDOFF_stale_reset);
}

/* Has the kernel make a connection of this segment. Takes the listener over: releases it in any case. */
static __always_inline int handoff_assign(struct __sk_buff *skb,
					  const struct handoff_segment *segment,
					  const struct tcp_options *options,
					  struct bpf_sock *listener)
{
	struct tcp_sock *socket;
	bool mptcp;
	int err;

	if (handoff_unmark(skb, segment)) {
		bpf_sk_release(listener);
		return handoff_drop(HANDOFF_drop_rewrite_failed);
	}
	socket = bpf_skc_to_tcp_sock(listener);
	if (!socket) {
		bpf_sk_release(listener);
		return handoff_drop(HANDOFF_drop_rewrite_failed);
	}
	mptcp = handoff_socket_is_mptcp(socket);
	err = handoff_make_connection(skb, segment, options, socket);
	bpf_sk_release(listener);
	if (!err)
		handoff_count(HANDOFF_handed_over);
	else if (err == -ENOMEM)
		handoff_count(HANDOFF_refused_memory);
	else
		handoff_count(mptcp ? HANDOFF_refused_mptcp : HANDOFF_refused_options);
	/* refused or not, the stack goes on: a listener answers such a segment with a reset, and the router knows */
	return TC_ACT_UNSPEC;
}

static __always_inline int handoff_to_listener(struct __sk_buff *skb,
					       const struct handoff_segment *segment)
{
	struct tcp_options_walk *options;
	struct bpf_sock_tuple tuple;
	struct bpf_sock *listener;
	__u32 size, first = 0;

	options = bpf_map_lookup_elem(&handoff_options, &first);
	if (!options || handoff_read_options(skb, segment, options))
		return handoff_drop(HANDOFF_drop_malformed);
	size = handoff_tuple(segment, &tuple);
	if (!handoff_listener_address(segment, &tuple))
		return handoff_pass(skb, segment, HANDOFF_no_listener);
	listener = handoff_look_up(skb, &tuple, size);
	if (!listener)
		return handoff_pass(skb, segment, HANDOFF_no_listener);
	if (listener->state != BPF_TCP_LISTEN) {
		/* the 4-tuple was just looked up: it can only be another CPU that was faster */
		bpf_sk_release(listener);
		return handoff_follow(skb, segment, false, false);
	}
	return handoff_assign(skb, segment, &options->found, listener);
}

/* One packet of the interface. */
static __always_inline int handoff_handle(struct __sk_buff *skb)
{
	struct handoff_segment segment = {};
	struct handoff_socket found = {};
	struct bpf_sock_tuple tuple;
	bool start, forged = false;
	struct bpf_sock *socket;
	__u32 size, version;
	__u16 rounds;
	int result;

	result = handoff_read(skb, &segment);
	if (result == -ENOENT)
		return TC_ACT_UNSPEC;
	if (result)
		return handoff_drop(HANDOFF_drop_malformed);

	version = mark_version(segment.mark);
	if (version != MARK_VERSION && version != MARK_VERSION_AGAIN)
		return handoff_pass(skb, &segment, HANDOFF_refused_version);
	start = mark_is_start(segment.mark);
	if (start && !handoff_mark_is_good(&segment)) {
		start = false;
		forged = true;
	}

	size = handoff_tuple(&segment, &tuple);
	socket = handoff_look_up(skb, &tuple, size);
	if (socket) {
		handoff_inspect(socket, &segment, &found);
		bpf_sk_release(socket);
	}
	if (!start)
		return handoff_follow(
			skb, &segment,
			found.kind == SOCKET_FITS_LATER || found.kind == SOCKET_FITS_FIRST, forged);
	rounds = handoff_rounds_left(skb);
	if (found.kind == SOCKET_FITS_FIRST)
		return handoff_pass(skb, &segment, HANDOFF_repeated);
	if (found.kind == SOCKET_NONE)
		return handoff_to_listener(skb, &segment);
	if (version == MARK_VERSION_AGAIN)
		return handoff_await(skb, &segment, &found, rounds);
	return handoff_replace(skb, &segment, &found);
}

#endif /* WARMPATH_BPF_HANDOFF_H */
