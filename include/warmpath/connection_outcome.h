/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ways a packet of a connection that is routed by its content can end, and notes on the way: the second part of the lists in
 * outcome.h, which says what the columns mean.
 *
 * Owns: the names and the sentence that explains each. May not know: how a connection is handled.
 */
#ifndef WARMPATH_CONNECTION_OUTCOME_H
#define WARMPATH_CONNECTION_OUTCOME_H

#define WARMPATH_CONNECTION_OUTCOMES(X)                                                               \
	X(answered_handshake, ANSWER,                                                                 \
	  "SYN to a service that is routed by content: accepted with a cookie, nothing kept")         \
	X(answered_probe, ANSWER, "keep-alive probe on a connection without a request: answered")     \
	X(answered_close, ANSWER, "FIN on a connection without a request: answered and closed")       \
	X(answered_piece, ANSWER, "part of a request's head: acknowledged and held")                  \
	X(answered_bad_request, ANSWER, "not a request, or its id is not valid: HTTP 400")            \
	X(answered_unavailable, ANSWER, "no replica could take the request: HTTP 503")                \
	X(answered_after_error, ANSWER, "what a client sent on after an HTTP error: acknowledged")    \
	X(reset_unknown_connection, ANSWER,                                                           \
	  "of a connection that nothing is known about, seconds after the first such segment: reset") \
	X(reset_cookie_expired, ANSWER, "first request minutes after the handshake: reset")           \
	X(reset_held_lost, ANSWER, "bytes held of a request were evicted: connection reset")          \
	X(reset_replica_gone, ANSWER, "the replica of a connection is forgotten: reset")              \
	X(reset_stale_socket, ANSWER,                                                                 \
	  "from a replica that a connection was moved away from: its socket reset")                   \
	X(absorbed_handshake, DROP, "last ACK of a handshake or close: nothing to keep of it")        \
	X(absorbed_reset, DROP, "RST of a connection that has no replica")                            \
	X(absorbed_acknowledgement, DROP, "ACK of what the router itself has sent")                   \
	X(drop_connection_unknown, DROP,                                                              \
	  "of a connection that nothing is known about, its cookie wrong or missing")                 \
	X(drop_cookie_replayed, DROP, "first segment of a connection that is over: a replay")         \
	X(drop_stale_answer, DROP, "of a socket at the replica that is older than its connection")    \
	X(held_sent, ANSWER, "held bytes of a request sent to its replica in an ACK's place")         \
	X(reset_unavailable, ANSWER,                                                                  \
	  "no replica could take a connection whose protocol is not known: reset")                    \
	X(reset_no_room, ANSWER,                                                                      \
	  "an HTTP error did not fit into the packet it was to be made of: connection reset")

#define WARMPATH_CONNECTION_NOTES(X)                                                         \
	X(note_connection_opened, "a connection proved its cookie with its first request")   \
	X(note_request_handed, "a request was sent to its replica with a new connection")    \
	X(note_request_stayed, "a request went to the replica the connection was at")        \
	X(note_connection_moved, "a request took its connection to another replica")         \
	X(note_connection_pinned, "a connection may not move any more")                      \
	X(note_start_repeated, "a request's first segment was sent again, still unanswered") \
	X(note_head_held, "the first piece of a request's head was held")                    \
	X(note_replica_refused, "a replica refused a connection handed to it")               \
	X(note_request_decided_again,                                                        \
	  "a request whose replica went away before it answered was decided once more")      \
	X(note_request_pinned,                                                               \
	  "a request stayed with its connection's replica, as the connection cannot move")

#endif /* WARMPATH_CONNECTION_OUTCOME_H */
