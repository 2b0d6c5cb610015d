/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP requests in libuv's loop, by libcurl.
 *
 * Owns: connections, exchanges. May not know: chats, plans.
 */
#ifndef TRAFFIC_HTTP_CLIENT_H
#define TRAFFIC_HTTP_CLIENT_H

#include <curl/curl.h>
#include <stdbool.h>
#include <uv.h>

#include "../lib/bytes.h"

#define HTTP_HEADER_SIZE 64

struct http_result {
	int status;		  /* 0: no answer */
	const char *error;	  /* NULL, or what went wrong on the way */
	const struct bytes *body; /* as far as it came */
	const char *served_by;	  /* X-Served-By or X-Routed-To; "" */
	const char *route_reason; /* X-Route-Reason; "" */
};

struct http_client;

/* NULL if there is no memory. `fresh`: a new connection for each request. `broken_off`: takes the owner of a request that is broken off. */
struct http_client *http_client_new(uv_loop_t *loop, bool fresh, void (*broken_off)(void *owner));
/* Breaks off what is under way, closes connections; the memory goes when the loop has closed its handles. */
void http_client_close(struct http_client *client);

/*
 * POSTs `body` (copied) as JSON with the headers (taken over). `done` is called once, from the loop; the result lasts as long as the call.
 * 0 or a negative errno (then `done` is not called, and the headers are freed all the same).
 */
int http_client_post(struct http_client *client, const char *url, struct curl_slist *headers,
		     const struct bytes *body, long timeout_ms,
		     void (*done)(void *owner, const struct http_result *result), void *owner);

#endif /* TRAFFIC_HTTP_CLIENT_H */
