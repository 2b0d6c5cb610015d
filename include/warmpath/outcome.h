/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every way a packet can end, as one append-only list, and the counters that go with it.
 *
 * Owns: the names, their numbers, the sentence that explains each. May not know: how a packet is parsed.
 *
 * The map `counters` is a per-CPU array with one entry of struct counters: one named 64-bit field for each
 * outcome, so that a plain `bpftool map dump` shows names. Each packet that a program sees increments exactly
 * one *outcome*; *notes* (second list) count things that happened on the way and come on top.
 *
 * X(name, verdict, "sentence"): verdict is what becomes of the packet: FORWARD (rewritten, sent on), PASS (handed to
 * the kernel untouched, or fully rewritten where the sentence says so), ANSWER (turned into a reply), DROP.
 */
#ifndef WARMPATH_OUTCOME_H
#define WARMPATH_OUTCOME_H

#include "connection_outcome.h"
#include "portable.h"

#define WARMPATH_OUTCOMES(X)                                                                       \
	X(not_ours, PASS, "neither to a service nor from a replica: left to the kernel untouched") \
	X(forwarded, FORWARD, "client to replica: rewritten and sent to the next hop")             \
	X(forwarded_by_stack, PASS, "client to replica: rewritten, next hop left to the kernel")   \
	X(returned, FORWARD, "replica to client: public address restored and sent on")             \
	X(returned_by_stack, PASS,                                                                 \
	  "replica to client: public address restored, next hop left to the kernel")               \
	X(delivered_locally, PASS, "client to a replica on this machine: rewritten and handed up") \
	X(icmp_forwarded, FORWARD, "ICMP error about a flow: translated and sent to the replica")  \
	X(icmp_returned, FORWARD, "ICMP error about a flow: translated and sent to the client")    \
	X(icmp_by_stack, PASS, "ICMP error about a flow: translated, next hop left to the kernel") \
	X(answered_too_big, ANSWER,                                                                \
	  "larger than the MTU towards the replica: sender told so (ICMP)")                        \
	X(answered_time_exceeded, ANSWER,                                                          \
	  "TTL or hop limit used up at the router: sender told so (ICMP)")                         \
	X(passed_to_stack, PASS,                                                                   \
	  "from a replica, but only the kernel can go on with it (too big, TTL): untouched")       \
	X(drop_truncated, DROP, "shorter than its own headers say")                                \
	X(drop_header_malformed, DROP, "a header field contradicts itself (lengths, versions)")    \
	X(drop_header_unsupported, DROP,                                                           \
	  "for a service, but with headers not handled (too many, source routing, ESP)")           \
	X(drop_source_invalid, DROP,                                                               \
	  "for a service, from an address that no reply can go to (multicast, loopback, none)")    \
	X(drop_id_outside_packet, DROP, "the datagram ends before the configured id does")         \
	X(drop_id_invalid, DROP, "the id has a character outside letters, digits . _ : -")         \
	X(drop_no_replica, DROP, "no replica is active in the service")                            \
	X(drop_no_service_address, DROP,                                                           \
	  "a reply of a replica whose public address is not known any more")                       \
	X(drop_no_flow, DROP, "part of a TCP connection that no replica can be found for")         \
	X(drop_fragment_unknown, DROP, "a fragment whose first fragment was not seen")             \
	X(drop_fragment_table_full, DROP, "the first fragment could not be remembered")            \
	X(drop_flow_table_full, DROP, "the flow could not be remembered")                          \
	X(drop_port_exhausted, DROP, "no free source port towards the replica for this client")    \
	X(drop_icmp_unrelated, DROP, "ICMP error to a service about no flow of ours")              \
	X(drop_no_route, DROP, "no route to the next hop, or forwarding is off")                   \
	X(drop_hop_limit, DROP,                                                                    \
	  "TTL or hop limit used up at the router, and many senders were told so in this second")  \
	X(drop_rewrite_failed, DROP, "the kernel refused to rewrite the packet")                   \
	X(drop_internal, DROP,                                                                     \
	  "a map or table of ours was missing: a fault of the program or of its agent")            \
	WARMPATH_CONNECTION_OUTCOMES(X)

#define WARMPATH_NOTES(X)                                                                  \
	X(note_flow_created, "a flow was written")                                         \
	X(note_flow_adopted,                                                               \
	  "a TCP flow was taken up in mid-stream (its entry had been evicted or lost)")    \
	X(note_flow_closed, "a TCP flow ended by FIN or RST")                              \
	X(note_port_translated,                                                            \
	  "a flow got another source port, as its own was taken towards that replica")     \
	X(note_return_restored,                                                            \
	  "the return entry of a flow had been evicted and was written again")             \
	X(note_batch_mixed,                                                                \
	  "datagrams with different ids in one uncut batch: all went where the first did") \
	X(note_keyless, "a request without an id: routed by its content or by load")       \
	X(note_decision_contended,                                                         \
	  "a decision was made again, as another CPU had changed the loads meanwhile")     \
	X(note_request_superseded,                                                         \
	  "a request came again while it was open: its former charge was given back")      \
	X(note_request_completed, "a request was answered and its charge given back")      \
	X(note_request_failed,                                                             \
	  "a request ended without a full answer and its charge was given back")           \
	X(note_request_timed_out,                                                          \
	  "a request was not answered in time and its charge was given back")              \
	X(note_request_untracked,                                                          \
	  "a request could not be remembered: it was routed without being charged")        \
	X(note_placement_written, "a placement was written after a successful answer")     \
	X(note_load_repaired,                                                              \
	  "a charge without a request (evicted from the table) was found and taken back")  \
	X(note_event_dropped, "an event found the ring buffer `events` full")              \
	WARMPATH_CONNECTION_NOTES(X)

enum packet_outcome {
#define X(name, verdict, sentence) OUTCOME_##name,
	WARMPATH_OUTCOMES(X)
#undef X
		OUTCOME_COUNT,
};

enum packet_note {
	NOTE_BEFORE_FIRST = OUTCOME_COUNT - 1,
#define X(name, sentence) NOTE_##name,
	WARMPATH_NOTES(X)
#undef X
		COUNTER_COUNT,
};

/* The value of map `counters`; field order is that of the two enums above. */
struct counters {
#define X(name, verdict, sentence) __u64 name;
	WARMPATH_OUTCOMES(X)
#undef X
#define X(name, sentence) __u64 name;
	WARMPATH_NOTES(X)
#undef X
};

_Static_assert(sizeof(struct counters) == COUNTER_COUNT * sizeof(__u64),
	       "one 64-bit field for each counter");

#endif /* WARMPATH_OUTCOME_H */
