/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The id at a fixed offset of a connection's first bytes, whose protocol is not known beyond them (id.from: offset over TCP).
 *
 * Owns: which bytes are the id, where it ends, what stands for it where there is none. May not know: where the bytes came from, what is
 * decided by it.
 *
 * The id begins at the offset and ends in front of the first character that is none of an id's, at the latest with its field: so
 * it may be padded with NULs or blanks, and as well be part of a path (POST /c/chat-4711/v1/...: offset 8). No such character at the
 * offset: there is no id.
 */
#ifndef WARMPATH_BPF_CONNECTION_FIELD_H
#define WARMPATH_BPF_CONNECTION_FIELD_H

#include <warmpath/http_header.h>

#include "id.h"
#include "service.h"

/* Characters of an id from `offset` on, of at most `most` (1 to ID_LENGTH_MAX) bytes. */
static __always_inline __u32 field_id_length(const struct http_head *head, __u32 offset, __u32 most)
{
	__u64 low = 0,
	      high = 0; /* a bit for each byte that may be in an id; the low half is of the first 64 */
	__u32 length;

#pragma clang loop unroll(disable)
	for (int i = 0; i < ID_LENGTH_MAX / 8; i++) {
		__u64 allowed = id_bytes_allowed(http_word(http_at(head, offset + i * 8)));

		/* shift the next 8 bits in from above */
		low = low >> 8 | high << 56;
		high = high >> 8 | id_bits(allowed) << 56;
	}
	length = id_bits_below_first(~low);
	if (length == 64)
		length += id_bits_below_first(~high);
	return length < most ? length : most;
}

/* A big-endian number of tokens among the first `length` bytes: into *tokens, and `flag` into the request's flags. */
static __always_inline void field_tokens(struct http_head *head, __u32 length, __u16 offset,
					 __u16 flag, __u32 *tokens)
{
	if (offset == OFFSET_NONE || offset + sizeof(*tokens) > length)
		return;
	*tokens = bpf_ntohl((__u32)http_word(http_at(head, offset)));
	head->request.flags |= flag;
}

/* How many bytes have to be there for all fields to be known. */
static __always_inline __u32 field_end(const struct service *service)
{
	__u32 end = service->id_offset + service->id_length;
	__u32 prompt = service->prompt_tokens_offset + sizeof(__u32);
	__u32 most = service->max_tokens_offset + sizeof(__u32);

	if (service->prompt_tokens_offset != OFFSET_NONE && prompt > end)
		end = prompt;
	if (service->max_tokens_offset != OFFSET_NONE && most > end)
		end = most;
	return end;
}

/*
 * Reads the first `length` bytes of a connection, which lie in head->bytes, into head->request. last: no more will come. Returns
 * HTTP_HEAD_COMPLETE, or HTTP_HEAD_MORE.
 */
static __always_inline int field_read(struct http_head *head, __u32 length, bool last,
				      const struct service *service)
{
	struct http_request *request = &head->request;
	__u32 offset = service->id_offset, end = offset + service->id_length, there = 0, found = 0;

	__builtin_memset(request, 0, sizeof(*request));
	/* where this "request" ends is not known */
	request->doubts = HTTP_DOUBT_UNFINISHED;
	if (length > offset) {
		there = length < end ? length - offset : end - offset;
		found = field_id_length(head, offset, there);
	}
	if (!last && length < field_end(service) &&
	    (found == there || service->prompt_tokens_offset != OFFSET_NONE ||
	     service->max_tokens_offset != OFFSET_NONE))
		return HTTP_HEAD_MORE;
	request->id = found ? HTTP_ID_FOUND : HTTP_ID_NONE;
	request->id_offset = offset;
	request->id_length = found;
	request->body_present = length > end ? length - end : 0;
	request->key_offset = end;
	request->key_length =
		request->body_present < ID_LENGTH_MAX ? request->body_present : ID_LENGTH_MAX;
	field_tokens(head, length, service->prompt_tokens_offset, HTTP_HAS_PROMPT_TOKENS,
		     &request->prompt_tokens);
	field_tokens(head, length, service->max_tokens_offset, HTTP_HAS_MAX_TOKENS,
		     &request->max_tokens);
	return HTTP_HEAD_COMPLETE;
}

#endif /* WARMPATH_BPF_CONNECTION_FIELD_H */
