/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Errors that the router itself answers (docs/handoff.md, section 10), and what a client sends on after one.
 *
 * Owns: the texts, the segment they go out in, connections in state REFUSED. May not know: why a request was refused.
 */
#ifndef WARMPATH_BPF_CONNECTION_ERROR_H
#define WARMPATH_BPF_CONNECTION_ERROR_H

#include "connection_maps.h"
#include "connection_send.h"
#include "tcp_accept.h"

/* Whole answers; the first *_HEAD bytes are what a HEAD request gets. */
#define ERROR_400_HEAD                 \
	"HTTP/1.1 400 Bad Request\r\n" \
	"Content-Type: text/plain\r\n" \
	"Content-Length: 65\r\n"       \
	"Connection: close\r\n"        \
	"\r\n"
#define ERROR_400_BODY "warmpath: not a valid HTTP/1.x request or conversation id (400).\n"

#define ERROR_503_HEAD                         \
	"HTTP/1.1 503 Service Unavailable\r\n" \
	"Content-Type: text/plain\r\n"         \
	"Content-Length: 54\r\n"               \
	"Retry-After: 1\r\n"                   \
	"Connection: close\r\n"                \
	"\r\n"
#define ERROR_503_BODY "warmpath: no replica can take this request now (503).\n"

_Static_assert(sizeof(ERROR_400_BODY) - 1 == 65, "Content-Length");
_Static_assert(sizeof(ERROR_503_BODY) - 1 == 54, "Content-Length");

static const char error_400[] = ERROR_400_HEAD ERROR_400_BODY;
static const char error_503[] = ERROR_503_HEAD ERROR_503_BODY;

static __always_inline __u32 error_length(const struct connection *entry)
{
	bool no_body = entry->flags & CONNECTION_NO_BODY;

	if (entry->refusal == 400)
		return no_body ? sizeof(ERROR_400_HEAD) - 1 : sizeof(error_400) - 1;
	return no_body ? sizeof(ERROR_503_HEAD) - 1 : sizeof(error_503) - 1;
}

static __always_inline __u32 error_outcome(const struct connection *entry)
{
	return entry->refusal == 400 ? OUTCOME_answered_bad_request : OUTCOME_answered_unavailable;
}

/*
 * Makes the packet in hand the answer of a connection in state REFUSED, whose numbers and direction are in tcp_space.writing. 0 or a
 * negative errno; the packet has then to be dropped.
 * A global function: verified once.
 */
__noinline int error_write(struct packet_context *context, __u32 status, __u32 length)
{
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	int err;

	if (!context || !space || !scratch)
		return -ENOENT;
	space->writing.flags = TCP_FLAG_ACK | TCP_FLAG_PSH | TCP_FLAG_FIN;
	space->writing.length = length;
	err = tcp_write_begin(context);
	if (err)
		return err;
	WARMPATH_BARRIER(length);
	if (status == 400) {
		if (!warmpath_size_within(&length, sizeof(error_400) - 1))
			return -EINVAL;
		err = context_store(context, scratch->packet.payload_offset, (void *)error_400,
				    length);
	} else {
		if (!warmpath_size_within(&length, sizeof(error_503) - 1))
			return -EINVAL;
		err = context_store(context, scratch->packet.payload_offset, (void *)error_503,
				    length);
	}
	return err ? err : tcp_write_end(context);
}

/* Sends the answer (again) to the sender of the segment in hand. */
static __always_inline __u32 error_answer(struct packet_context *context, struct scratch *scratch,
					  struct tcp_space *space, const struct connection *entry)
{
	int err;

	tcp_read_options(context);
	tcp_write_start(space, true, 0);
	space->writing.sequence = entry->start_acknowledgement;
	space->writing.acknowledgement = entry->client_next;
	err = error_write(context, entry->refusal, error_length(entry));
	/* a packet that cannot become so long is still as it was: better the end of the connection than silence */
	if (err == -ENOSPC)
		return tcp_reset(context, scratch, space, OUTCOME_reset_no_room);
	if (err)
		return OUTCOME_drop_rewrite_failed;
	return tcp_send_back(context, scratch, error_outcome(entry));
}

/* The entry of a connection whose request (in hand) is answered with `status`. acknowledgement: of the request. */
static __always_inline void error_enter(struct connection *entry, __u16 status,
					__u32 acknowledgement)
{
	entry->state = CONNECTION_REFUSED;
	entry->refusal = status;
	connection_clear_flags(entry, CONNECTION_OWNED | CONNECTION_HELD);
	entry->start_acknowledgement = acknowledgement;
	entry->replica_next = acknowledgement + error_length(entry) + 1;
}

/*
 * A segment of a client that has been refused: what it still sends is acknowledged, so that it reads the answer rather than a reset.
 */
static __always_inline __u32 error_receive(struct packet_context *context, struct scratch *scratch,
					   struct tcp_space *space, struct connection *entry)
{
	const struct tcp_segment *segment = &space->segment;
	__u32 outcome;

	if (segment->end == segment->sequence) {
		/* a probe wants an answer, a plain acknowledgement none */
		if (segment->sequence == entry->client_next)
			return OUTCOME_absorbed_acknowledgement;
	} else if (segment->sequence == entry->client_next) {
		entry->client_next = segment->end;
		if (segment->flags & TCP_FLAG_FIN)
			connection_set_flags(entry, CONNECTION_FIN_FROM_CLIENT);
	} else if (tcp_before(segment->sequence, entry->client_next) &&
		   segment->acknowledgement == entry->start_acknowledgement) {
		return error_answer(context, scratch, space, entry);
	}
	tcp_read_options(context);
	tcp_write_start(space, true, TCP_FLAG_ACK);
	space->writing.sequence = entry->replica_next;
	space->writing.acknowledgement = entry->client_next;
	outcome = tcp_answer(context, scratch, OUTCOME_answered_after_error);
	return outcome;
}

#endif /* WARMPATH_BPF_CONNECTION_ERROR_H */
