/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The datagrams that datagram-client and datagram-server exchange: a request with a conversation id at offset 8, and its
 * answer, which says what the server is called.
 *
 * Owns: their layout and the filler that makes a byte in a wrong place visible. May not know: sockets.
 */
#ifndef WARMPATH_TOOLS_DATAGRAM_H
#define WARMPATH_TOOLS_DATAGRAM_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DATAGRAM_REQUEST     0x57505251u /* "WPRQ" */
#define DATAGRAM_ANSWER	     0x57504157u /* "WPAW" */
#define DATAGRAM_ID_SIZE     16
#define DATAGRAM_SIZE_MAX    65000 /* with IPv6 and UDP headers still one datagram */
#define DATAGRAM_REPLICA_MAX 32

/* All numbers are big-endian. The id is padded with NULs. Filler follows up to the datagram's size. */
struct datagram_request {
	uint32_t magic;
	uint32_t sequence;
	char id[DATAGRAM_ID_SIZE];
	uint32_t prompt_tokens;
	uint32_t max_tokens;
	uint32_t answer_size; /* bytes the answer is to have */
	uint32_t reserved;
};
_Static_assert(sizeof(struct datagram_request) == 40, "wire format");
_Static_assert(offsetof(struct datagram_request, id) == 8, "wire format");

/* The id stands where it stood in the request. */
struct datagram_answer {
	uint32_t magic;
	uint32_t sequence;
	char id[DATAGRAM_ID_SIZE];
	uint32_t request_size;
	uint32_t request_intact;	    /* 1: the request's filler was as it should be */
	char replica[DATAGRAM_REPLICA_MAX]; /* NUL-terminated */
};
_Static_assert(sizeof(struct datagram_answer) == 64, "wire format");

/* Filler depends on the place and on the id, not on the sequence: every request of an id starts alike. */
static inline uint8_t datagram_filler(const char id[DATAGRAM_ID_SIZE], size_t place)
{
	return (uint8_t)(place * 31 + (place >> 8) * 7 + (uint8_t)id[place % DATAGRAM_ID_SIZE]);
}

static inline void datagram_fill(uint8_t *datagram, const char id[DATAGRAM_ID_SIZE], size_t header,
				 size_t size)
{
	for (size_t place = header; place < size; place++)
		datagram[place] = datagram_filler(id, place);
}

static inline bool datagram_filler_intact(const uint8_t *datagram, const char id[DATAGRAM_ID_SIZE],
					  size_t header, size_t size)
{
	for (size_t place = header; place < size; place++) {
		if (datagram[place] != datagram_filler(id, place))
			return false;
	}
	return true;
}

#endif /* WARMPATH_TOOLS_DATAGRAM_H */
