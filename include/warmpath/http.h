/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is read out of HTTP/1.x messages on the wire: the values that the parsers fill and others keep.
 *
 * Owns: struct http_settings (which headers carry the id), struct http_request (a request head as read),
 * struct http_follower (where an answer stands; part of a flow entry), and small questions about them.
 * May not know: how bytes are read (http_request.h, http_answer.h), packets, maps.
 */
#ifndef WARMPATH_HTTP_H
#define WARMPATH_HTTP_H

#include "portable.h"

/* --- settings ------------------------------------------------------------------------------------------- */

#define HTTP_ID_NAMES_MAX  4
#define HTTP_ID_LENGTH_MAX 128 /* semantics.md section 2; ID_LENGTH_MAX of layout.h */
#define HTTP_NAME_MAX	   64  /* characters of a header's name */
#define HTTP_NAME_WORDS	   (HTTP_NAME_MAX / 8)
#define HTTP_KEY_BYTES_MAX 1024

/* A header's name in lower case, as little-endian words of eight characters, the rest zero. */
struct http_name {
	__u64 word[HTTP_NAME_WORDS];
};

/* Filled by the functions of http_settings.h. */
struct http_settings {
	__u32 name_count;		     /* 0 .. HTTP_ID_NAMES_MAX */
	__u32 first_letters;		     /* bit (c & 31) for each first character of interest */
	__u8 name_length[HTTP_ID_NAMES_MAX]; /* 1 .. HTTP_NAME_MAX */
	__u32 key_bytes; /* of the body, for the fallback key: 0 .. HTTP_KEY_BYTES_MAX */
	struct http_name name[HTTP_ID_NAMES_MAX]; /* most preferred first */
};
_Static_assert(sizeof(struct http_settings) == 16 + 4 * 64, "layout");

/* --- request -------------------------------------------------------------------------------------------- */

/*
 * How much of a request is looked at: 4 KiB. Heads of programs are 150 to 900 bytes; those of browsers behind a
 * single sign-on (cookies, a bearer token of 1 to 2 KiB) stay below 4 KiB, and the servers' own limits start there
 * (nginx: 1 KiB, then 8 KiB; Node: 16 KiB). More would only lengthen the worst case of one packet.
 */
#define HTTP_HEAD_SIZE 4096

enum http_verdict {
	/* A request so far, but its head has not ended. */
	HTTP_HEAD_MORE = 0,
	/* The head has ended: everything in struct http_request is final. */
	HTTP_HEAD_COMPLETE = 1,
	/* Not ended, and no more bytes will be looked at: decide by what is there. */
	HTTP_HEAD_TOO_LONG = 2,
	/* No HTTP/1.x request (RFC 9112, 3): answer 400. */
	HTTP_HEAD_MALFORMED = 3,
};

enum http_method {
	HTTP_METHOD_OTHER = 0, /* any other token */
	HTTP_METHOD_GET = 1,
	HTTP_METHOD_HEAD = 2,
	HTTP_METHOD_POST = 3,
	HTTP_METHOD_PUT = 4,
	HTTP_METHOD_CONNECT = 5,
};

enum http_id {
	HTTP_ID_NONE = 0,    /* absent or empty: keyless */
	HTTP_ID_FOUND = 1,   /* valid by semantics.md section 2 */
	HTTP_ID_INVALID = 2, /* answer 400 */
};

/* http_request.flags */
#define HTTP_HAS_LENGTH	       0x0001 /* content_length holds a valid Content-Length */
#define HTTP_CHUNKED	       0x0002 /* Transfer-Encoding: chunked */
#define HTTP_CLOSE	       0x0004 /* Connection: close */
#define HTTP_KEEP_ALIVE	       0x0008 /* Connection: keep-alive */
#define HTTP_UPGRADE	       0x0010 /* an Upgrade header, or Connection: upgrade */
#define HTTP_EXPECT_CONTINUE   0x0020 /* Expect: 100-continue */
#define HTTP_HAS_PROMPT_TOKENS 0x0040
#define HTTP_HAS_MAX_TOKENS    0x0080
#define HTTP_PIPELINED	       0x0100 /* bytes beyond this request's body are there already */

/*
 * http_request.doubts: why where this request ends cannot be relied upon, because two parsers may read it
 * differently. With any of them set the connection stays on its replica for good: all bytes go to one server in
 * order, whatever that server makes of them.
 */
/* Content-Length invalid, over 18 digits, a list, or two that differ (RFC 9112, 6.3). */
#define HTTP_DOUBT_LENGTH 0x0001
/* Transfer-Encoding other than one "chunked", or in HTTP/1.0 (RFC 9112, 6.1). */
#define HTTP_DOUBT_CODING 0x0002
/* Content-Length and Transfer-Encoding (RFC 9112, 6.1). */
#define HTTP_DOUBT_BOTH 0x0004
/* A line ended by LF alone, taken as a line's end all the same (RFC 9112, 2.2). */
#define HTTP_DOUBT_BARE_LF 0x0008
/* CR without LF (RFC 9112, 2.2). */
#define HTTP_DOUBT_BARE_CR 0x0010
/* NUL or another control character, tab excepted, in a value (RFC 9110, 5.5). */
#define HTTP_DOUBT_CONTROL 0x0020
/* A continued line (RFC 9112, 5.2), or a blank before the first header (2.2). */
#define HTTP_DOUBT_FOLDED 0x0040
/* A header without a name or colon, a blank before the colon, or not ASCII (RFC 9112, 5.1). */
#define HTTP_DOUBT_NAME 0x0080
/* Expect with something else than 100-continue (RFC 9110, 10.1.1). */
#define HTTP_DOUBT_EXPECT 0x0100
/* The end of the head was not seen (HTTP_HEAD_TOO_LONG). */
#define HTTP_DOUBT_UNFINISHED 0x0200

/* A request head. Offsets count from the first byte of the buffer. */
struct http_request {
	__u64 content_length; /* 0 without HTTP_HAS_LENGTH */
	__u32 body_present;   /* bytes in the buffer after the head */
	__u32 prompt_tokens;  /* x-prompt-tokens, with HTTP_HAS_PROMPT_TOKENS */
	__u32 max_tokens;     /* x-max-tokens, with HTTP_HAS_MAX_TOKENS */
	__u16 head_length; /* with the closing empty line, and empty lines in front; 0: not seen */
	__u16 id_offset;   /* of the id, blanks trimmed */
	__u16 id_length;   /* 1 .. HTTP_ID_LENGTH_MAX with HTTP_ID_FOUND */
	__u16 flags;
	__u16 doubts;
	__u16 key_offset; /* of the fallback key: data of the body, never a chunk's length */
	__u16 key_length; /* bytes of it in the buffer, at most settings' key_bytes */
	/* Bytes that are to come before the fallback key is whole. A turn that is decided with fewer may get another
	 * home than the next, so a keyless request is worth waiting for them (unless it expects 100-continue). */
	__u16 key_missing;
	__u8 method;	    /* enum http_method */
	__u8 minor_version; /* 0 or 1; later ones count as 1 */
	__u8 id;	    /* enum http_id */
	__u8 id_name;	    /* which name of the settings it came from */
	__u32 reserved;
};
_Static_assert(sizeof(struct http_request) == 48, "layout");

/* May the connection be used again after this request (RFC 9112, 9.3), as far as the client is concerned? */
static __always_inline bool http_request_keeps_alive(const struct http_request *request)
{
	if (request->flags & HTTP_CLOSE)
		return false;
	return request->minor_version >= 1 || (request->flags & HTTP_KEEP_ALIVE);
}

/* --- answers, followed --------------------------------------------------------------------------------- */

/* http_follower.flags: first what the request says about its answer, then what was seen of the answer itself. */
#define HTTP_FOLLOW_HEAD	  0x0001 /* request: method HEAD, no body will come */
#define HTTP_FOLLOW_CONNECT	  0x0002 /* request: method CONNECT */
#define HTTP_FOLLOW_UPGRADE	  0x0004 /* request: asks for an upgrade */
#define HTTP_FOLLOW_REQUEST_CLOSE 0x0008 /* request: the last one on this connection */
#define HTTP_FOLLOW_REQUEST	  0x000f
#define HTTP_FOLLOW_VERSION_0	  0x0010 /* the answer is HTTP/1.0 */
#define HTTP_FOLLOW_LENGTH	  0x0020 /* it has a Content-Length */
#define HTTP_FOLLOW_CODING	  0x0040 /* it has a Transfer-Encoding */
#define HTTP_FOLLOW_CHUNKED	  0x0080 /* its last transfer coding is chunked */
#define HTTP_FOLLOW_CLOSE	  0x0100 /* Connection: close, or its end is that of the connection */
#define HTTP_FOLLOW_KEEP_ALIVE	  0x0200 /* Connection: keep-alive */
#define HTTP_FOLLOW_EXCESS	  0x0400 /* bytes came that belong to no answer */

enum http_follow_state {
	HTTP_FOLLOW_IDLE = 0, /* nothing is expected */
	HTTP_FOLLOW_STATUS,
	HTTP_FOLLOW_REASON,
	HTTP_FOLLOW_LINE_START,
	HTTP_FOLLOW_NAME,	/* of a header that may still be one of interest */
	HTTP_FOLLOW_NAME_OTHER, /* of any other header */
	HTTP_FOLLOW_VALUE_OTHER,
	HTTP_FOLLOW_VALUE_LENGTH,
	HTTP_FOLLOW_VALUE_CODING,
	HTTP_FOLLOW_VALUE_CONNECTION,
	HTTP_FOLLOW_LINE_LF,
	HTTP_FOLLOW_HEAD_LF,
	HTTP_FOLLOW_COUNTED,	 /* a body with Content-Length */
	HTTP_FOLLOW_UNTIL_CLOSE, /* a body that ends with the connection */
	HTTP_FOLLOW_TUNNEL,	 /* not HTTP any more: upgraded, or CONNECT */
	HTTP_FOLLOW_CHUNK_SIZE,
	HTTP_FOLLOW_CHUNK_EXTENSION,
	HTTP_FOLLOW_CHUNK_SIZE_LF,
	HTTP_FOLLOW_CHUNK_DATA,
	HTTP_FOLLOW_CHUNK_CR,
	HTTP_FOLLOW_CHUNK_LF,
	HTTP_FOLLOW_TRAILER_START,
	HTTP_FOLLOW_TRAILER,
	HTTP_FOLLOW_TRAILER_LF,
	HTTP_FOLLOW_TRAILERS_LF,
	HTTP_FOLLOW_DONE, /* complete: status, bytes and http_follow_keeps_alive() are final */
	HTTP_FOLLOW_LOST, /* where the answer ends will not be known: the connection stays where it is */
};

/* Where an answer stands. Kept between segments, in the flow entry. All zero: nothing is expected. */
struct http_follower {
	__u64 remaining; /* bytes to come of the counted body or chunk; in the head: Content-Length */
	__u64 number;	 /* being read: a Content-Length, a chunk's length */
	__u64 bytes;	 /* gone by since the start, heads and interim answers included */
	__u32 next_sequence; /* TCP sequence number of the next byte to follow */
	__u16 status;	     /* of the last status line; below 100: none yet */
	__u16 flags;	     /* HTTP_FOLLOW_* */
	__u8 state;	     /* enum http_follow_state */
	__u8 position;	     /* within status line, name, token or number */
	__u8 header;	     /* bit for each name still possible; then whose value it is */
	__u8 token;	     /* element of a list being compared */
	__u32 reserved;
};
_Static_assert(sizeof(struct http_follower) == 40, "at most 48 in a flow entry");

enum http_follow_event {
	HTTP_FOLLOW_GOING_ON = 0, /* nothing to report */
	HTTP_FOLLOW_COMPLETE = 1, /* this segment completed the answer */
	HTTP_FOLLOW_GAVE_UP = 2,  /* this segment made it lost */
	HTTP_FOLLOW_CUT_OFF = 3,  /* the connection ended before the answer did */
};

/* In HTTP_FOLLOW_DONE: may the connection carry another request, or be moved for it (RFC 9112, 9.3)? */
static __always_inline bool http_follow_keeps_alive(const struct http_follower *follower)
{
	if (follower->flags & (HTTP_FOLLOW_REQUEST_CLOSE | HTTP_FOLLOW_CLOSE | HTTP_FOLLOW_EXCESS))
		return false;
	return !(follower->flags & HTTP_FOLLOW_VERSION_0) ||
	       (follower->flags & HTTP_FOLLOW_KEEP_ALIVE);
}

#endif /* WARMPATH_HTTP_H */
