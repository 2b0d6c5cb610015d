/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The values of the maps of services that are routed by what their connections carry (docs/handoff.md): settings, connections, held
 * heads.
 *
 * Owns: structs, enums, limits. May not know: packets, libbpf. Part of the contract of layout.h, under its version.
 */
#ifndef WARMPATH_CONNECTION_H
#define WARMPATH_CONNECTION_H

#include "http.h"
#include "layout.h"

/* Array `http_services`, key: service index. Only of services with id_from = header, or offset over TCP. */
struct http_service {
	struct http_settings settings;
	__u16 segment_size_ipv4; /* offered in SYN-ACKs: what fits into every link towards clients and replicas */
	__u16 segment_size_ipv6;
	__u8 trust_token_headers; /* 1: x-prompt-tokens and x-max-tokens of clients count */
	__u8 reserved[3];
};
_Static_assert(sizeof(struct http_service) == sizeof(struct http_settings) + 8, "layout");

/* --- connections ------------------------------------------------------------------------------------------ */

enum connection_state {
	CONNECTION_HOLDING = 1, /* part of a request's head is held, nothing is decided about it */
	CONNECTION_HANDING = 2, /* decided, and the owner has not answered: segments are marked */
	CONNECTION_SERVED = 3,	/* the owner has acknowledged the request's first bytes */
	CONNECTION_REFUSED = 4, /* the router has answered with an error */
	CONNECTION_CLOSED = 5,	/* reset, or FIN from both sides; kept to recognise replays */
};

/* Why a connection stays with its owner. */
enum connection_pin {
	PIN_NONE = 0,
	PIN_PIPELINED = 1,   /* a request came before the last answer was complete */
	PIN_REQUEST_END = 2, /* where the request ends is not known */
	PIN_ANSWER_END = 3,  /* where the answer ends is not known */
	PIN_PROTOCOL = 4,    /* not HTTP: routed once, by its first bytes */
};

#define CONNECTION_END_KNOWN	    0x01 /* request_end is right */
#define CONNECTION_FIN_FROM_CLIENT  0x02
#define CONNECTION_FIN_FROM_REPLICA 0x04
#define CONNECTION_HELD		    0x08 /* held_heads has bytes that the owner has not acknowledged */
#define CONNECTION_OWNED	    0x10  /* there is an owner */
#define CONNECTION_TIMESTAMPS	    0x20  /* negotiated */
#define CONNECTION_NO_BODY	    0x40  /* the request was HEAD */
#define CONNECTION_RETURN_ENTRY	    0x80  /* replies find back by an entry of return_flows only */
#define CONNECTION_CHARGED	    0x100 /* its request is open: charged to the owner */

/* LRU hash `connections`, key: struct flow_key. Sequence numbers are in host byte order. */
struct connection {
	__u32 service;
	__u32 replica; /* the owner's slot, with CONNECTION_OWNED */
	__u32 incarnation;
	__u8 state;	 /* enum connection_state */
	__u8 pinned;	 /* enum connection_pin */
	__u8 options;	 /* tcp_options_pack() */
	__u8 round_trip; /* mark_round_trip_class() */

	/* which one it is */
	__u32 client_initial; /* the client's initial sequence number */
	__u32 cookie;	      /* the router's */

	__u32 start_sequence;	     /* of the first byte of the request that was decided last */
	__u32 start_acknowledgement; /* the acknowledgement on it */
	__u32 request_end;	     /* behind its last byte, with CONNECTION_END_KNOWN */
	__u32 client_next;	     /* behind the last byte (or FIN) seen from the client */
	__u32 replica_next;	     /* behind the last byte (or FIN) seen from the owner */
	__u32 replica_acknowledged;  /* the owner's highest acknowledgement */

	__u32 flags;		/* CONNECTION_* */
	__be16 translated_port; /* the client's port as replicas see it */
	__u16 refusal;		/* status of the router's own answer, with CONNECTION_REFUSED */
	__u32 timestamp_value;	/* of the client, on the segment that was decided last */
	__u32 timestamp_echo;
	__u16 client_window; /* on the same segment, as it stood there */
	__u16 reserved;
	__u32 held_sent;	   /* where the last segment of held bytes began that was sent */
	__u64 checked_nanoseconds; /* when the return entry was last known to be there (coarse clock) */
	__u64 seen_nanoseconds; /* when the client last sent something to the owner (the same) */
	struct http_follower answer;
};
_Static_assert(sizeof(struct connection) == 16 + 8 + 24 + 40 + 40, "layout");

/* --- held heads ------------------------------------------------------------------------------------------- */

#define HELD_LENGTH_MAX \
	(2 * HTTP_HEAD_SIZE) /* a head of the size that is looked at, and what came with its end */
#define HELD_CHUNK 2048	     /* sent in one segment at most */
#define HELD_SIZE \
	(HELD_LENGTH_MAX + HELD_CHUNK) /* so that a chunk lies inside wherever it starts */

/* LRU hash `held_heads`, key: struct flow_key: bytes of a request that the router has acknowledged in the owner's place. */
struct held_head {
	__u32 sequence; /* of the first byte */
	__u32 length;	/* bytes held */
	__u8 bytes[HELD_SIZE];
};

/* --- strangers -------------------------------------------------------------------------------------------- */

/*
 * LRU hash `strangers`, key: struct flow_key: who sent something of a connection that nothing is known about. It may be the second segment of
 * a first request, whose first was lost, so the answer (a reset) waits for a repetition.
 */
struct stranger {
	__u64 seen_nanoseconds; /* first, coarse clock */
};

#endif /* WARMPATH_CONNECTION_H */
