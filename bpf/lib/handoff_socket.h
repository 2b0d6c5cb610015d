/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets of this host, as a marked segment sees them: the one it belongs to, one that is in the way, the listener.
 *
 * Owns: look-ups, what is read of kernel sockets, the kernel function that makes a connection. May not know: what is decided about the segment.
 */
#ifndef WARMPATH_BPF_HANDOFF_SOCKET_H
#define WARMPATH_BPF_HANDOFF_SOCKET_H

#include <linux/errno.h>

#include "handoff_segment.h"

/* How far a later segment may be behind the first byte of its connection's socket: more than a window. */
#define HANDOFF_REACH (1u << 24)

/* As the kernel declares it (bpf_tcp_req_attrs, Linux 6.9), for builds on older kernels. */
struct bpf_tcp_req_attrs___handoff {
	__u32 rcv_tsval;
	__u32 rcv_tsecr;
	__u16 mss;
	__u8 rcv_wscale;
	__u8 snd_wscale;
	__u8 ecn_ok;
	__u8 wscale_ok;
	__u8 sack_ok;
	__u8 tstamp_ok;
	__u8 usec_ts_ok;
	__u8 reserved[3];
};

extern int bpf_sk_assign_tcp_reqsk(struct __sk_buff *skb, struct sock *sk,
				   struct bpf_tcp_req_attrs___handoff *attrs, int attrs__sz) __ksym;

/* Not in every kernel's tcp_sock. */
struct tcp_sock___mptcp {
	bool is_mptcp;
} __attribute__((preserve_access_index));

enum handoff_socket_kind {
	SOCKET_NONE,	   /* none, or a listener only */
	SOCKET_FITS_FIRST, /* its connection began with exactly this byte */
	SOCKET_FITS_LATER, /* its connection began a little before */
	SOCKET_STALE,	   /* another one's: in the way of a new connection */
};

struct handoff_socket {
	enum handoff_socket_kind kind;
	__u32 next;    /* the sequence number it expects */
	bool has_lock; /* what it is sent may have to wait for its server */
};

/* The segment's addresses and ports. Returns the size that says the family. */
static __always_inline __u32 handoff_tuple(const struct handoff_segment *segment,
					   struct bpf_sock_tuple *tuple)
{
	const struct mark_subject *subject = &segment->subject;

	__builtin_memset(tuple, 0, sizeof(*tuple));
	if (segment->ipv6) {
		for (int i = 0; i < 4; i++) {
			tuple->ipv6.saddr[i] = subject->client.word[i];
			tuple->ipv6.daddr[i] = subject->replica.word[i];
		}
		tuple->ipv6.sport = subject->client_port;
		tuple->ipv6.dport = subject->replica_port;
		return sizeof(tuple->ipv6);
	}
	tuple->ipv4.saddr = subject->client.word[3];
	tuple->ipv4.daddr = subject->replica.word[3];
	tuple->ipv4.sport = subject->client_port;
	tuple->ipv4.dport = subject->replica_port;
	return sizeof(tuple->ipv4);
}

/* The socket that the stack would choose, listeners included. To be released. */
static __always_inline struct bpf_sock *handoff_look_up(struct __sk_buff *skb,
							struct bpf_sock_tuple *tuple, __u32 size)
{
	if (size == sizeof(tuple->ipv6))
		return bpf_skc_lookup_tcp(skb, tuple, sizeof(tuple->ipv6), BPF_F_CURRENT_NETNS, 0);
	return bpf_skc_lookup_tcp(skb, tuple, sizeof(tuple->ipv4), BPF_F_CURRENT_NETNS, 0);
}

static __always_inline void handoff_inspect_time_wait(struct bpf_sock *socket,
						      const struct mark_subject *subject,
						      struct handoff_socket *found)
{
	struct tcp_timewait_sock *waiting = bpf_skc_to_tcp_timewait_sock(socket);
	__u32 sent;

	if (!waiting)
		return;
	found->next = waiting->tw_sk.__tw_common.skc_tw_rcv_nxt;
	sent = waiting->tw_sk.__tw_common.skc_tw_snd_nxt;
	/* A very late copy of what this socket has answered already: the request must not be served twice. */
	if (found->next - subject->sequence - 1 < HANDOFF_REACH &&
	    sent - subject->acknowledgement < HANDOFF_REACH)
		found->kind = SOCKET_FITS_FIRST;
}

/* What is this socket to the segment? */
static __always_inline void handoff_inspect(struct bpf_sock *socket,
					    const struct handoff_segment *segment,
					    struct handoff_socket *found)
{
	const struct mark_subject *subject = &segment->subject;
	struct tcp_request_sock *request;
	struct tcp_sock *tcp;
	__u32 first;

	if (socket->state == BPF_TCP_LISTEN)
		return;
	found->kind = SOCKET_STALE;
	if (socket->state == BPF_TCP_TIME_WAIT) {
		handoff_inspect_time_wait(socket, subject, found);
		return;
	}
	if (socket->state == BPF_TCP_NEW_SYN_RECV) {
		request = bpf_skc_to_tcp_request_sock(socket);
		if (request)
			found->next = request->rcv_isn + 1;
		return;
	}
	tcp = bpf_skc_to_tcp_sock(socket);
	if (!tcp)
		return;
	found->next = tcp->rcv_nxt;
	found->has_lock = true;
	/* what it has received since began here (RFC 4898, tcpEStatsAppHCThruOctetsReceived) */
	first = tcp->rcv_nxt - (__u32)tcp->bytes_received;
	if (first == subject->sequence)
		found->kind = SOCKET_FITS_FIRST;
	else if (subject->sequence - first < HANDOFF_REACH &&
		 tcp->snd_una - subject->acknowledgement < HANDOFF_REACH)
		found->kind = SOCKET_FITS_LATER;
}

static __always_inline bool handoff_socket_is_mptcp(struct tcp_sock *socket)
{
	struct tcp_sock___mptcp *maybe = (void *)socket;

	return bpf_core_field_exists(maybe->is_mptcp) && BPF_CORE_READ(maybe, is_mptcp);
}

/*
 * A connection in the state that a handshake with the segment's options and numbers would have led to; the stack finds it with the segment. 0 or
 * a negative errno of the kernel function.
 */
static __always_inline int handoff_make_connection(struct __sk_buff *skb,
						   const struct handoff_segment *segment,
						   const struct tcp_options *options,
						   struct tcp_sock *listener)
{
	__u8 packed = mark_options(segment->mark), scale = tcp_packed_scale(packed);
	struct bpf_tcp_req_attrs___handoff attributes = {
		.mss = tcp_packed_segment_size(packed, segment->ipv6),
		.ecn_ok = packed & TCP_PACKED_ECN,
		.sack_ok = !!(packed & TCP_PACKED_SACK),
	};

	if (scale != TCP_SCALE_NONE) {
		attributes.wscale_ok = 1;
		attributes.snd_wscale = scale;
		attributes.rcv_wscale = HANDOFF_WINDOW_SCALE;
	}
	if (options->timestamps) {
		attributes.tstamp_ok = 1;
		attributes.rcv_tsval = options->timestamp_value;
		/*
		 * The new socket's clock stands at this number now: never below the last that the client has seen, and as much
		 * above it as a round trip takes, so that the kernel's first sample of it is right.
		 */
		attributes.rcv_tsecr = options->timestamp_echo + mark_round_trip(segment->mark);
	}
	return bpf_sk_assign_tcp_reqsk(skb, (struct sock *)listener, &attributes,
				       sizeof(attributes));
}

#endif /* WARMPATH_BPF_HANDOFF_SOCKET_H */
