/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happened to marked segments at a replica, as one append-only list, and the counters that go with it.
 *
 * Owns: names, sentences, the value of the map `handoff_counters` (per-CPU array, one entry). May not know: how a mark is checked.
 *
 * Segments without a mark are not counted: they pass after one comparison.
 */
#ifndef WARMPATH_HANDOFF_COUNTERS_H
#define WARMPATH_HANDOFF_COUNTERS_H

#include "portable.h"

#define WARMPATH_HANDOFF_COUNTERS(X)                                                               \
	X(handed_over, "a connection was given to its listener")                                   \
	X(repeated, "a request's first segment whose connection exists already: passed on")        \
	X(followed, "a later segment whose connection exists: passed on")                          \
	X(stale_reset, "an older socket of the same addresses and ports was reset to make room")   \
	X(requeued, "a later segment that came before its connection: queued once more behind it") \
	X(drop_early,                                                                              \
	  "a later segment whose connection still did not exist: the client repeats it")           \
	X(drop_stale_remains,                                                                      \
	  "an older socket was still there after a reset: in use, or tcp_rfc1337 is not 0")        \
	X(drop_mark_forged,                                                                        \
	  "a mark that was not made with this cluster's secret, or for another place")             \
	X(drop_malformed, "a marked segment whose headers contradict themselves")                  \
	X(drop_rewrite_failed, "the kernel refused to change a marked segment")                    \
	X(no_listener, "no server listens where the request was sent: the kernel refuses it")      \
	X(refused_version,                                                                         \
	  "the router marks in another protocol version: refused until both run one version")      \
	X(refused_mptcp,                                                                           \
	  "the listener is an MPTCP socket, which the kernel hands nothing over to")               \
	X(refused_options, "sysctl has switched off TCP options that the router negotiated")       \
	X(refused_memory, "the kernel had no memory for the connection")                           \
	X(stale_awaited,                                                                           \
	  "an older socket was in use by its server when it was reset: the segment queued once more")

enum handoff_counter {
#define X(name, sentence) HANDOFF_##name,
	WARMPATH_HANDOFF_COUNTERS(X)
#undef X
		HANDOFF_COUNTER_COUNT,
};

struct handoff_counters {
#define X(name, sentence) __u64 name;
	WARMPATH_HANDOFF_COUNTERS(X)
#undef X
};
_Static_assert(sizeof(struct handoff_counters) == HANDOFF_COUNTER_COUNT * sizeof(__u64),
	       "one 64-bit field for each counter");

#endif /* WARMPATH_HANDOFF_COUNTERS_H */
