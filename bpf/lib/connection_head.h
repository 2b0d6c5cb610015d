/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The head of a request: in the packet in hand, or in pieces (docs/handoff.md, section 9).
 *
 * Owns: the memory a head is read in, the map held_heads, sending what is held. May not know: what is decided about the request.
 */
#ifndef WARMPATH_BPF_CONNECTION_HEAD_H
#define WARMPATH_BPF_CONNECTION_HEAD_H

#include <warmpath/http_request.h>

#include "connection_field.h"
#include "connection_maps.h"
#include "connection_send.h"
#include "tcp_segment.h"

#define HEAD_ATTEMPTS 8 /* from 2 KiB to 16 bytes */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct http_head);
} http_heads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct held_head);
} held_spaces SEC(".maps");

static __always_inline struct http_head *http_head_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&http_heads, &first);
}

/* Bytes of the payload in hand that are read or held at most. */
static __always_inline __u32 head_piece_length(const struct tcp_segment *segment)
{
	return segment->length < HTTP_HEAD_SIZE ? segment->length : HTTP_HEAD_SIZE;
}

/*
 * Reads the head of a request that begins in the packet in hand, or (held) in held_heads. last: nothing more will come. Returns an enum
 * http_verdict or a negative errno; what was read is in the per-CPU struct http_head.
 * A global function: verified once.
 */
__noinline int head_read(struct packet_context *context, __u32 service, __u32 held, __u32 last)
{
	const struct http_service *settings = http_service_get(service);
	const struct service *service_settings = service_get(service);
	struct http_head *head = http_head_get();
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	const struct held_head *bytes;
	__u32 length;
	int err;

	if (!context || !settings || !service_settings || !head || !space || !scratch)
		return -ENOENT;
	if (held) {
		bytes = held_head_get(&scratch->flow_key);
		if (!bytes)
			return -ENOENT;
		length = bytes->length;
		if (length > HTTP_HEAD_SIZE)
			length = HTTP_HEAD_SIZE;
		WARMPATH_BARRIER(length);
		if (length > HTTP_HEAD_SIZE)
			return -EINVAL;
		err = bpf_probe_read_kernel(head->bytes, length, bytes->bytes);
	} else {
		length = head_piece_length(&space->segment);
		WARMPATH_BARRIER(length);
		if (!warmpath_size_within(&length, HTTP_HEAD_SIZE))
			return -EINVAL;
		err = context_load(context, scratch->packet.payload_offset, head->bytes, length);
	}
	if (err)
		return err;
	if (connection_is_opaque(service_settings))
		return field_read(head, length, last, service_settings);
	return http_request_read(head, length, last, &settings->settings);
}

/* --- holding ------------------------------------------------------------------------------------------------ */

/*
 * Puts the payload in hand behind what is held of the request, or holds it as its beginning (first). 0 or a negative errno.
 * A global function: verified once.
 */
__noinline int head_hold(struct packet_context *context, __u32 first)
{
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	struct held_head *held;
	__u32 zero = 0, length, offset = 0;
	int err;

	if (!context || !space || !scratch)
		return -ENOENT;
	if (first)
		held = bpf_map_lookup_elem(&held_spaces, &zero);
	else
		held = held_head_get(&scratch->flow_key);
	if (!held)
		return -ENOENT;
	length = head_piece_length(&space->segment);
	if (first)
		held->sequence = space->segment.sequence;
	else
		offset = held->length;
	WARMPATH_BARRIER(offset);
	WARMPATH_BARRIER(length);
	if (offset > HELD_LENGTH_MAX - HTTP_HEAD_SIZE ||
	    !warmpath_size_within(&length, HTTP_HEAD_SIZE))
		return -ENOSPC;
	err = context_load(context, scratch->packet.payload_offset, held->bytes + offset, length);
	if (err)
		return err;
	held->length = offset + length;
	if (!first)
		return 0;
	return bpf_map_update_elem(&held_heads, &scratch->flow_key, held, BPF_ANY);
}

/* --- sending what is held ----------------------------------------------------------------------------------- */

/*
 * Makes the packet in hand the segment of the held head that starts at `sequence`. back: the packet is an acknowledgement of the owner, and
 * goes back to it; else one of the client. limit: bytes of payload that fit. The numbers of the segment are in tcp_space.writing,
 * but for its length and flags.
 * Returns 0 or a negative errno; the packet has then to be dropped.
 * A global function: verified once.
 */
__noinline int head_write(struct packet_context *context, __u32 sequence, __u32 limit)
{
	struct tcp_space *space = tcp_space_get();
	struct scratch *scratch = scratch_get();
	const struct held_head *held;
	struct flow_key key;
	__u32 offset, length, total;
	int err;

	if (!context || !space || !scratch)
		return -ENOENT;
	key = scratch->flow_key;
	held = held_head_get(&key);
	if (!held)
		return -ENOENT;
	total = held->length;
	offset = sequence - held->sequence;
	if (offset >= total || total > HELD_LENGTH_MAX)
		return -EINVAL;
	length = total - offset;
	if (limit > HELD_CHUNK)
		limit = HELD_CHUNK;
	if (length > limit)
		length = limit;
	space->writing.sequence = sequence;
	err = -ENOSPC;
	/* a packet may not have the room: then less of it at a time */
	for (int i = 0; i < HEAD_ATTEMPTS && err == -ENOSPC; i++) {
		space->writing.length = length;
		space->writing.flags = TCP_FLAG_ACK | TCP_FLAG_PSH;
		if (offset + length == total && !space->writing.back)
			space->writing.flags |= space->segment.flags & TCP_FLAG_FIN;
		err = tcp_write_begin(context);
		if (err == -ENOSPC)
			length = (length + 1) / 2;
	}
	if (err)
		return err;
	WARMPATH_BARRIER(offset);
	WARMPATH_BARRIER(length);
	if (offset > HELD_LENGTH_MAX || !warmpath_size_within(&length, HELD_CHUNK))
		return -EINVAL;
	err = context_store(context, scratch->packet.payload_offset, (void *)held->bytes + offset,
			    length);
	return err ? err : tcp_write_end(context);
}

/* Payload bytes that fit into a segment to a replica. */
static __always_inline __u32 head_limit(__u32 service, const struct tcp_space *space, bool ipv6)
{
	const struct http_service *settings = http_service_get(service);
	__u32 size;

	if (!settings)
		return 536;
	size = ipv6 ? settings->segment_size_ipv6 : settings->segment_size_ipv4;
	return size - (space->options.found.timestamps ? 12 : 0);
}

/*
 * Makes the client's segment in hand the one of the held head that the owner waits for. kind: enum connection_mark. 0 or a negative
 * errno; the packet has then to be dropped.
 */
static __always_inline int head_replace(struct packet_context *context, struct scratch *scratch,
					struct tcp_space *space, struct connection *entry,
					__u32 kind)
{
	struct tcp_segment *segment = &space->segment;
	__u32 sequence = entry->start_sequence;
	int err;

	if (kind == CONNECTION_UNMARKED)
		sequence = entry->replica_acknowledged;
	entry->held_sent = sequence;
	tcp_read_options(context);
	tcp_write_start(space, false, TCP_FLAG_ACK);
	space->writing.acknowledgement = segment->acknowledgement;
	space->writing.window = segment->window;
	err = head_write(context, sequence,
			 head_limit(entry->service, space, scratch->packet.family == AF_INET6));
	/* what is in hand now is another segment */
	return err ? err : tcp_read(context, &scratch->packet, segment);
}

#endif /* WARMPATH_BPF_CONNECTION_HEAD_H */
