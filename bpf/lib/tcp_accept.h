/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections of which nothing is kept yet: the handshake, and whatever else comes before the first byte of a request (docs/handoff.md,
 * section 2).
 *
 * Owns: SYN-ACKs, the check of cookies on the packet in hand, answers that need no entry. May not know: entries, requests, replicas.
 */
#ifndef WARMPATH_BPF_TCP_ACCEPT_H
#define WARMPATH_BPF_TCP_ACCEPT_H

#include <warmpath/cookie.h>

#include "connection_maps.h"
#include "tcp_segment.h"

#define NANOSECONDS_PER_MILLISECOND 1000000

/* How long a stranger is not answered, in nanoseconds: TCP has repeated a lost segment several times by then. */
#define STRANGER_PATIENCE 2000000000ULL
/* And how long it is remembered. */
#define STRANGER_MEMORY 60000000000ULL

/* The clock of timestamps in SYN-ACKs, and of the time until the first segment. */
static __always_inline __u32 tcp_clock_milliseconds(__u64 now)
{
	return now / NANOSECONDS_PER_MILLISECOND;
}

static __always_inline void tcp_cookie_subject(struct cookie_subject *subject,
					       const struct packet *packet, __u32 client_sequence)
{
	address_copy(&subject->client, &packet->source);
	address_copy(&subject->service, &packet->destination);
	subject->client_port = packet->source_port;
	subject->service_port = packet->destination_port;
	subject->client_sequence = client_sequence;
}

/*
 * Judges `cookie` for the packet in hand, were `client_sequence` the client's initial number. Returns an enum cookie_verdict, with the
 * packed options in the bits from 8 on.
 * A global function: verified once.
 */
__noinline int tcp_cookie_check(__u32 client_sequence, __u32 cookie)
{
	struct scratch *scratch = scratch_get();
	const struct handoff_keys *keys = handoff_keys_get();
	struct cookie_subject subject;
	enum cookie_verdict verdict;
	__u32 slot, count;
	__u8 options = 0;

	if (!scratch || !keys)
		return COOKIE_BAD;
	tcp_cookie_subject(&subject, &scratch->packet, client_sequence);
	slot = cookie_slot(bpf_ktime_get_tai_ns());
	count = keys->count;
	for (__u32 i = 0; i < HANDOFF_KEYS_MAX; i++) {
		if (i >= count)
			break;
		verdict = cookie_check(&keys->cookie[i], &subject, cookie, slot, &options);
		if (verdict != COOKIE_BAD)
			return verdict | (__u32)options << 8;
	}
	return COOKIE_BAD;
}

/* The options of a SYN-ACK: each only if the client offered it. Always 20 bytes, with padding in the places of those it did not. */
static __always_inline void tcp_write_offer(struct tcp_space *space, __u16 segment_size, __u64 now)
{
	const struct tcp_options *offered = &space->options.found;
	__u8 *options = space->writing.header + TCP_HEADER_LENGTH;

	for (int i = 0; i < 20; i++)
		options[i] = TCP_OPTION_NOTHING;
	options[0] = TCP_OPTION_SEGMENT_SIZE;
	options[1] = 4;
	tcp_put16(options + 2, segment_size);
	if (offered->sack_permitted) {
		options[4] = TCP_OPTION_SACK_PERMITTED;
		options[5] = 2;
	}
	if (offered->timestamps) {
		options[6] = TCP_OPTION_TIMESTAMPS;
		options[7] = 10;
		tcp_put32(options + 8, tcp_clock_milliseconds(now));
		tcp_put32(options + 12, offered->timestamp_value);
	}
	if (offered->scale != TCP_SCALE_NONE) {
		options[17] = TCP_OPTION_SCALE;
		options[18] = 3;
		options[19] = HANDOFF_WINDOW_SCALE;
	}
	space->writing.header_length = TCP_HEADER_LENGTH + 20;
}

/*
 * Answers the SYN in hand. Nothing is kept.
 * A global function: verified once.
 */
__noinline int tcp_accept(struct packet_context *context, __u32 service)
{
	const struct http_service *settings = http_service_get(service);
	const struct handoff_keys *keys = handoff_keys_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct cookie_subject subject;
	__u64 now = bpf_ktime_get_tai_ns();
	bool ecn, ipv6;
	__u8 flags;

	if (!context || !settings || !keys || !space || !scratch || keys->count == 0)
		return OUTCOME_drop_internal;
	if (tcp_read_options(context))
		return OUTCOME_drop_header_malformed;
	flags = space->segment.flags;
	ipv6 = scratch->packet.family == AF_INET6;
	/* RFC 3168, 6.1.1. An offer of AccECN has these bits as well and takes this answer as one to the older offer. */
	ecn = (flags & TCP_FLAG_ECE) && (flags & TCP_FLAG_CWR);
	space->writing.back = 1;
	space->writing.length = 0;
	space->writing.flags = TCP_FLAG_SYN | TCP_FLAG_ACK | (ecn ? TCP_FLAG_ECE : 0);
	space->writing.window = TCP_OUR_WINDOW;
	space->writing.acknowledgement = space->segment.sequence + 1;
	tcp_cookie_subject(&subject, &scratch->packet, space->segment.sequence);
	space->writing.sequence = cookie_make(&keys->cookie[0], &subject, cookie_slot(now),
					      tcp_options_pack(&space->options.found, ecn, ipv6));
	tcp_write_offer(space, ipv6 ? settings->segment_size_ipv6 : settings->segment_size_ipv4,
			now);
	return tcp_answer(context, scratch, OUTCOME_answered_handshake);
}

/* An ACK, or FIN and ACK, to the packet in hand, which may carry a FIN. */
static __always_inline __u32 tcp_acknowledge(struct packet_context *context,
					     struct scratch *scratch, struct tcp_space *space,
					     __u32 acknowledgement, __u8 flags, __u32 outcome)
{
	tcp_read_options(context);
	tcp_write_start(space, true, TCP_FLAG_ACK | flags);
	space->writing.sequence = space->segment.acknowledgement;
	space->writing.acknowledgement = acknowledgement;
	return tcp_answer(context, scratch, outcome);
}

/*
 * A segment of a connection that nothing is known about. A host would answer with a reset; here it may just have overtaken the segment that
 * makes the connection known, so it is dropped, and only a repetition after seconds is answered.
 * A global function: verified once.
 */
__noinline int tcp_stranger(struct packet_context *context)
{
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct stranger fresh = {.seen_nanoseconds = bpf_ktime_get_coarse_ns()};
	const struct stranger *stranger;
	__u64 age;

	if (!context || !space || !scratch)
		return OUTCOME_drop_internal;
	stranger = bpf_map_lookup_elem(&strangers, &scratch->flow_key);
	age = stranger ? fresh.seen_nanoseconds - stranger->seen_nanoseconds : 0;
	if (age > STRANGER_PATIENCE && age < STRANGER_MEMORY) {
		bpf_map_delete_elem(&strangers, &scratch->flow_key);
		return tcp_reset(context, scratch, space, OUTCOME_reset_unknown_connection);
	}
	if (!stranger || age >= STRANGER_MEMORY)
		bpf_map_update_elem(&strangers, &scratch->flow_key, &fresh, BPF_ANY);
	return OUTCOME_drop_connection_unknown;
}

/*
 * A segment without payload, of a connection that there is no entry for.
 * A global function: verified once.
 */
__noinline int tcp_before_request(struct packet_context *context)
{
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	__u32 sequence, cookie, verdict;

	if (!context || !space || !scratch)
		return OUTCOME_drop_internal;
	if (space->segment.flags & TCP_FLAG_RST)
		return OUTCOME_absorbed_reset;
	sequence = space->segment.sequence;
	cookie = space->segment.acknowledgement - 1;
	verdict = tcp_cookie_check(sequence - 1, cookie) & 0xff;
	if (space->segment.flags & TCP_FLAG_FIN) {
		if (verdict != COOKIE_BAD)
			return tcp_acknowledge(context, scratch, space, sequence + 1, TCP_FLAG_FIN,
					       OUTCOME_answered_close);
	} else {
		if (verdict == COOKIE_GOOD)
			return OUTCOME_absorbed_handshake;
		if (verdict == COOKIE_BAD) {
			/* a keep-alive probe stands one before the next byte (RFC 9293, 3.8.4) */
			verdict = tcp_cookie_check(sequence, cookie) & 0xff;
			if (verdict == COOKIE_GOOD)
				return tcp_acknowledge(context, scratch, space, sequence + 1, 0,
						       OUTCOME_answered_probe);
		}
		/* the last one of a connection that we have closed with the client */
		if (verdict == COOKIE_BAD &&
		    (tcp_cookie_check(sequence - 2, cookie - 1) & 0xff) != COOKIE_BAD)
			return OUTCOME_absorbed_handshake;
	}
	if (verdict == COOKIE_EXPIRED)
		return tcp_reset(context, scratch, space, OUTCOME_reset_cookie_expired);
	return tcp_stranger(context);
}

#endif /* WARMPATH_BPF_TCP_ACCEPT_H */
