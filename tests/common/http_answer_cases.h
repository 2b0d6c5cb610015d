/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers and where they end: valid, invalid and malicious ones. Used by the unit test, by the test that follows the same
 * answers in the kernel, and as the start of fuzzing.
 */
#ifndef WARMPATH_TEST_HTTP_ANSWER_CASES_H
#define WARMPATH_TEST_HTTP_ANSWER_CASES_H

#include <warmpath/http.h>

enum answer_end {
	END_OPEN,     /* more has to come; the connection's end would cut it off */
	END_COMPLETE, /* with the last byte */
	END_CLOSE,    /* with the connection */
	END_LOST,     /* at the last byte or before */
};

struct answer_case {
	const char *name;
	const char *bytes;
	size_t length;
	__u16 request; /* HTTP_FOLLOW_* of the request */
	enum answer_end end;
	__u16 status;
	bool last; /* the connection will not be used again */
};

#define TEXT(text) .bytes = text, .length = sizeof(text) - 1
#define COMPLETE   .end = END_COMPLETE
#define LOST	   .end = END_LOST
#define OK	   "HTTP/1.1 200 OK\r\n"
#define CHUNKED	   "Transfer-Encoding: chunked\r\n"
/* looks like anything but a body */
#define BODY	   "HTTP/1.1 500 No\r\n\r\n0\r\n\r\n5\r\n"
#define BODY_CHUNK "1b\r\n" BODY "\r\n"
#define TEN	   "abcdefghij"
#define HUNDRED	   TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct answer_case answer_cases[] = {
	/* --- usual servers */
	{.name = "nginx",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK
	      "Server: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 03:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 27\r\n"
	      "Last-Modified: Mon, 30 Nov 2026 02:00:00 GMT\r\nConnection: keep-alive\r\nETag: \"667-1b\"\r\nAccept-Ranges: bytes\r\n\r\n" BODY)},
	{.name = "server-sent events",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK
	      "Content-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\nAccess-Control-Allow-Origin: *\r\n\r\n"
	      "10\r\ndata: {\"n\": 1}\n\n\r\n11\r\ndata: {\"n\": 22}\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")},
	{.name = "Python, HTTP/1.0",
	 .end = END_CLOSE,
	 .status = 200,
	 .last = true,
	 TEXT("HTTP/1.0 200 OK\r\nServer: SimpleHTTP/0.6 Python/3.11.2\r\nContent-type: text/html\r\n\r\n" BODY)},
	{.name = "HTTP/1.0 with a length",
	 COMPLETE,
	 .status = 200,
	 .last = true,
	 TEXT("HTTP/1.0 200 OK\r\nContent-Length: 27\r\n\r\n" BODY)},
	{.name = "HTTP/1.0 kept alive",
	 COMPLETE,
	 .status = 200,
	 TEXT("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 27\r\n\r\n" BODY)},

	/* --- without a body */
	{.name = "Content-Length 0", COMPLETE, .status = 200, TEXT(OK "Content-Length: 0\r\n\r\n")},
	{.name = "204",
	 COMPLETE,
	 .status = 204,
	 TEXT("HTTP/1.1 204 No Content\r\nServer: a\r\n\r\n")},
	{.name = "304 with a length",
	 COMPLETE,
	 .status = 304,
	 TEXT("HTTP/1.1 304 Not Modified\r\nContent-Length: 27\r\n\r\n")},
	{.name = "HEAD",
	 COMPLETE,
	 .status = 200,
	 .request = HTTP_FOLLOW_HEAD,
	 TEXT(OK "Content-Length: 1234567\r\n\r\n")},
	{.name = "HEAD, chunked",
	 COMPLETE,
	 .status = 200,
	 .request = HTTP_FOLLOW_HEAD,
	 TEXT(OK CHUNKED "\r\n")},
	{.name = "HEAD without a length",
	 COMPLETE,
	 .status = 404,
	 .request = HTTP_FOLLOW_HEAD,
	 TEXT("HTTP/1.1 404 Not Found\r\n\r\n")},
	{.name = "no reason", COMPLETE, .status = 204, TEXT("HTTP/1.1 204 \r\n\r\n")},
	{.name = "not even a blank after the status",
	 COMPLETE,
	 .status = 204,
	 TEXT("HTTP/1.1 204\r\n\r\n")},
	{.name = "status 999",
	 COMPLETE,
	 .status = 999,
	 TEXT("HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n")},
	{.name = "205 is counted like any other",
	 COMPLETE,
	 .status = 205,
	 TEXT("HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n")},

	/* --- interim answers */
	{.name = "100 and 200",
	 COMPLETE,
	 .status = 200,
	 TEXT("HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 2\r\n\r\nok")},
	{.name = "100 alone", .status = 100, TEXT("HTTP/1.1 100 Continue\r\n\r\n")},
	{.name = "103, 103 and 204",
	 COMPLETE,
	 .status = 204,
	 TEXT("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
	      "HTTP/1.1 103 Early Hints\r\n" CHUNKED "\r\nHTTP/1.1 204 No Content\r\n\r\n")},
	{.name = "an interim length does not count",
	 .end = END_CLOSE,
	 .status = 200,
	 .last = true,
	 TEXT("HTTP/1.1 102 Processing\r\nContent-Length: 5\r\n\r\n" OK "\r\n" BODY)},
	{.name = "101 after an upgrade",
	 .end = END_CLOSE,
	 .status = 101,
	 .request = HTTP_FOLLOW_UPGRADE,
	 .last = true,
	 TEXT("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n" BODY)},
	{.name = "upgrade declined",
	 COMPLETE,
	 .status = 200,
	 .request = HTTP_FOLLOW_UPGRADE,
	 TEXT(OK "Content-Length: 2\r\n\r\nok")},
	{.name = "101 unasked",
	 LOST,
	 .status = 101,
	 TEXT("HTTP/1.1 101 Switching Protocols\r\n\r\n")},
	{.name = "CONNECT",
	 .end = END_CLOSE,
	 .status = 200,
	 .request = HTTP_FOLLOW_CONNECT,
	 .last = true,
	 TEXT(OK "Content-Length: 2\r\n\r\n" BODY)},
	{.name = "CONNECT refused",
	 COMPLETE,
	 .status = 403,
	 .request = HTTP_FOLLOW_CONNECT,
	 TEXT("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")},

	{.name = "CONNECT, 300",
	 COMPLETE,
	 .status = 300,
	 .request = HTTP_FOLLOW_CONNECT,
	 TEXT("HTTP/1.1 300 Multiple Choices\r\nContent-Length: 2\r\n\r\nno")},
	{.name = "HTTP/1.9",
	 COMPLETE,
	 .status = 200,
	 TEXT("HTTP/1.9 200 OK\r\nContent-Length: 2\r\n\r\nok")},

	/* --- counted */
	{.name = "length",
	 COMPLETE,
	 .status = 201,
	 TEXT("HTTP/1.1 201 Created\r\ncontent-length:27\r\n\r\n" BODY)},
	{.name = "length, blanks around, zeros in front",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "CONTENT-LENGTH: \t 00000000000000000027 \t\r\n\r\n" BODY)},
	{.name = "length twice, equal",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "Content-Length: 27\r\nContent-Length: 027\r\n\r\n" BODY)},
	{.name = "length twice, different",
	 LOST,
	 .status = 200,
	 TEXT(OK "Content-Length: 27\r\nContent-Length: 2\r\n")},
	{.name = "body to come", .status = 200, TEXT(OK "Content-Length: 28\r\n\r\n" BODY)},
	{.name = "length of 18 digits",
	 .status = 200,
	 TEXT(OK "Content-Length: 999999999999999999\r\n\r\n" BODY)},
	{.name = "length of 19 digits",
	 LOST,
	 .status = 200,
	 TEXT(OK "Content-Length: 1000000000000000000")},
	{.name = "length empty", LOST, .status = 200, TEXT(OK "Content-Length: \r\n")},
	{.name = "length with a sign", LOST, .status = 200, TEXT(OK "Content-Length: +5")},
	{.name = "length as a list", LOST, .status = 200, TEXT(OK "Content-Length: 5,")},
	{.name = "length in two parts", LOST, .status = 200, TEXT(OK "Content-Length: 5 5")},
	{.name = "neither length nor chunks",
	 .end = END_CLOSE,
	 .status = 200,
	 .last = true,
	 TEXT(OK "Content-Type: a\r\n\r\n" BODY)},
	{.name = "headers that are near",
	 .end = END_CLOSE,
	 .status = 200,
	 .last = true,
	 TEXT(OK
	      "Content-Lengthy: 2\r\nContent-Lengt: 2\r\nXContent-Length: 2\r\nContent_Length: 2\r\nTransfer-Encodin: chunked\r\n"
	      "Connectio: keep-alive\r\nT: 1\r\nC: 2\r\n\r\nok")},

	/* --- the connection afterwards */
	{.name = "close",
	 COMPLETE,
	 .status = 200,
	 .last = true,
	 TEXT(OK "Connection: close\r\nContent-Length: 2\r\n\r\nok")},
	{.name = "close in a list",
	 COMPLETE,
	 .status = 200,
	 .last = true,
	 TEXT(OK "connection: foo,CLOSE , bar\r\nContent-Length: 2\r\n\r\nok")},
	{.name = "no close but near",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "Connection: closed, clos,, c lose, \"close\"\r\nContent-Length: 2\r\n\r\nok")},
	{.name = "HTTP/1.0, longer than keep-alive",
	 COMPLETE,
	 .status = 200,
	 .last = true,
	 TEXT("HTTP/1.0 200 OK\r\nConnection: keep-alivex\r\nContent-Length: 2\r\n\r\nok")},
	{.name = "HTTP/1.0, shorter than keep-alive",
	 COMPLETE,
	 .status = 200,
	 .last = true,
	 TEXT("HTTP/1.0 200 OK\r\nConnection: keep-aliv\r\nContent-Length: 2\r\n\r\nok")},
	{.name = "HTTP/1.0, keep-alive last of a list",
	 COMPLETE,
	 .status = 200,
	 TEXT("HTTP/1.0 200 OK\r\nConnection: foo, Keep-Alive\r\nContent-Length: 2\r\n\r\nok")},
	{.name = "longer than close",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "Connection: closex\r\nContent-Length: 2\r\n\r\nok")},
	{.name = "chunked is no element of Connection",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "Connection: chunked\r\nContent-Length: 2\r\n\r\nok")},
	{.name = "longer than chunked",
	 .end = END_CLOSE,
	 .status = 200,
	 .last = true,
	 TEXT(OK "Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n")},
	{.name = "client wants no more",
	 COMPLETE,
	 .status = 200,
	 .request = HTTP_FOLLOW_REQUEST_CLOSE,
	 .last = true,
	 TEXT(OK "Content-Length: 2\r\n\r\nok")},

	/* --- chunks */
	{.name = "no chunk but the last",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK CHUNKED "\r\n0\r\n\r\n")},
	{.name = "chunks",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK CHUNKED "\r\n" BODY_CHUNK "1\r\na\r\n" BODY_CHUNK "0\r\n\r\n")},
	{.name = "zeros in front, upper case",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "TRANSFER-ENCODING:CHUNKED\r\n\r\n0001B\r\n" BODY "\r\n0000\r\n\r\n")},
	{.name = "extensions",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK CHUNKED "\r\n1b;name=value;other=\"; 5\"\r\n" BODY
			 "\r\n1 ; a\r\nx\r\n1\t\r\ny\r\n0;" HUNDRED "\r\n\r\n")},
	{.name = "trailers",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK CHUNKED "\r\n" BODY_CHUNK "0\r\nDigest: abc\r\nContent-Length: 7\r\nX: " HUNDRED
			 "\r\n\r\n")},
	{.name = "gzip, chunked",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "Transfer-Encoding: gzip ,chunked\r\n\r\n0\r\n\r\n")},
	{.name = "on two lines",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
	{.name = "chunked, gzip",
	 .end = END_CLOSE,
	 .status = 200,
	 .last = true,
	 TEXT(OK "Transfer-Encoding: chunked, gzip\r\n\r\n" BODY)},
	{.name = "chunked counts before length",
	 COMPLETE,
	 .status = 200,
	 .last = true,
	 TEXT(OK "Content-Length: 2\r\n" CHUNKED "\r\n0\r\n\r\n")},
	{.name = "identity and length",
	 .end = END_CLOSE,
	 .status = 200,
	 .last = true,
	 TEXT(OK "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n" BODY)},
	{.name = "chunked in HTTP/1.0",
	 COMPLETE,
	 .status = 200,
	 .last = true,
	 TEXT("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" CHUNKED "\r\n0\r\n\r\n")},
	{.name = "chunk of 15 digits",
	 .status = 200,
	 TEXT(OK CHUNKED "\r\nfffffffffffffff\r\n" BODY)},
	{.name = "chunk of 16 digits",
	 LOST,
	 .status = 200,
	 TEXT(OK CHUNKED "\r\n1000000000000000")},
	{.name = "chunk without digits", LOST, .status = 200, TEXT(OK CHUNKED "\r\n\r")},
	{.name = "chunk with 0x", LOST, .status = 200, TEXT(OK CHUNKED "\r\n0x")},
	{.name = "chunk with a sign", LOST, .status = 200, TEXT(OK CHUNKED "\r\n-")},
	{.name = "chunk line with LF alone", LOST, .status = 200, TEXT(OK CHUNKED "\r\n1\n")},
	{.name = "chunk line with CR alone", LOST, .status = 200, TEXT(OK CHUNKED "\r\n1\r1")},
	{.name = "extension with LF", LOST, .status = 200, TEXT(OK CHUNKED "\r\n1;a\n")},
	{.name = "chunk too short", LOST, .status = 200, TEXT(OK CHUNKED "\r\n1\r\nab")},
	{.name = "chunk ends with LF alone", LOST, .status = 200, TEXT(OK CHUNKED "\r\n1\r\na\n")},
	{.name = "chunk ends with CR alone", LOST, .status = 200, TEXT(OK CHUNKED "\r\n1\r\na\rb")},
	{.name = "trailer with LF alone", LOST, .status = 200, TEXT(OK CHUNKED "\r\n0\r\n\n")},
	{.name = "trailer's CR alone", LOST, .status = 200, TEXT(OK CHUNKED "\r\n0\r\n\rX")},

	/* --- the head */
	{.name = "LF alone",
	 COMPLETE,
	 .status = 200,
	 TEXT("HTTP/1.1 200 OK\nContent-Length: 2\nX: y\n\nok")},
	{.name = "LF alone, chunked before length",
	 COMPLETE,
	 .status = 200,
	 .last = true,
	 TEXT("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 27\n\n" BODY_CHUNK
	      "0\r\n\r\n")},
	{.name = "LF alone, interim",
	 COMPLETE,
	 .status = 204,
	 TEXT("HTTP/1.1 100 \nContent-Length: 27\n\nHTTP/1.1 204 \n\n")},
	{.name = "LF after the status", COMPLETE, .status = 204, TEXT("HTTP/1.1 204\n\n")},
	{.name = "continued other header",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "X: a\r\n Content-Length: 5\r\n\tb\r\nContent-Length: 2\r\n\r\nok")},
	{.name = "continued length", LOST, .status = 200, TEXT(OK "Content-Length: 5\r\n ")},
	{.name = "continued coding", LOST, .status = 200, TEXT(OK "Transfer-Encoding:\r\n\t")},
	{.name = "continued status line", LOST, .status = 200, TEXT(OK " ")},
	{.name = "continued status line after an interim answer",
	 LOST,
	 .status = 200,
	 TEXT("HTTP/1.1 103 Hints\r\nX-Any: header\r\n\r\n" OK " ")},
	{.name = "long head",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "X-A: " HUNDRED HUNDRED "\r\nSet-Cookie: " HUNDRED HUNDRED HUNDRED "\r\nX-" HUNDRED
		 ": " HUNDRED "\r\nContent-Length: 27\r\n\r\n" BODY)},
	{.name = "tabs and high bytes in a value",
	 COMPLETE,
	 .status = 200,
	 TEXT(OK "X:\t\xff\x80\0\x01\t\r\nContent-Length: 0\r\n\r\n")},
	{.name = "CR alone in a value", LOST, .status = 200, TEXT(OK "X: a\rb")},
	{.name = "CR alone in a reason", LOST, .status = 200, TEXT("HTTP/1.1 200 O\rK")},
	{.name = "CR alone instead of a header", LOST, .status = 200, TEXT(OK "\rX")},
	{.name = "no colon", LOST, .status = 200, TEXT(OK "nonsense\r")},
	{.name = "no name", LOST, .status = 200, TEXT(OK ":")},
	{.name = "blank before the colon", LOST, .status = 200, TEXT(OK "Content-Length ")},
	{.name = "blank before another colon", LOST, .status = 200, TEXT(OK "X-Any ")},
	{.name = "name not ASCII", LOST, .status = 200, TEXT(OK "Content-Len\xc3")},
	{.name = "first character not ASCII", LOST, .status = 200, TEXT(OK "\xc3")},
	{.name = "NUL in a name", LOST, .status = 200, TEXT(OK "Content-Length\0")},

	/* --- no HTTP/1.x */
	{.name = "HTTP/0.9", LOST, TEXT("<")},
	{.name = "HTTP/2", LOST, TEXT("HTTP/2")},
	{.name = "empty line in front", LOST, TEXT("\r")},
	{.name = "HTTP/1.", LOST, TEXT("HTTP/1.x")},
	{.name = "HTTP/1.10", LOST, TEXT("HTTP/1.10")},
	{.name = "status with a letter", LOST, .status = 20, TEXT("HTTP/1.1 20O")},
	{.name = "status of two digits", LOST, .status = 20, TEXT("HTTP/1.1 20 ")},
	{.name = "status of four digits", LOST, .status = 200, TEXT("HTTP/1.1 2000")},
	{.name = "status below 100", LOST, .status = 99, TEXT("HTTP/1.1 099 ")},
	{.name = "two blanks", LOST, TEXT("HTTP/1.1  ")},
	{.name = "blank in front", LOST, TEXT(" ")},
};

#define ANSWER_CASE_COUNT (sizeof(answer_cases) / sizeof(answer_cases[0]))

#undef TEXT
#undef COMPLETE
#undef LOST
#undef OK
#undef CHUNKED
#undef BODY
#undef BODY_CHUNK
#undef TEN
#undef HUNDRED

#endif /* WARMPATH_TEST_HTTP_ANSWER_CASES_H */
