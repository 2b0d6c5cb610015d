/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libcurl's transfers in the agent's event loop.
 *
 * Owns: sockets and time-outs of the transfers, telling who began one that it has ended. May not know: what is transferred.
 */
#ifndef WARMPATH_AGENT_TRANSFERS_H
#define WARMPATH_AGENT_TRANSFERS_H

#include <curl/curl.h>
#include <uv.h>

#include "lib/error.h"

struct transfers;

/* Called once for each transfer that has ended by itself; it is out of `transfers` by then, and may be cleaned up or begun anew. */
typedef void (*transfer_ended)(void *context, CURL *easy, CURLcode result);

/* 0, or a negative errno with a sentence. */
int transfers_open(uv_loop_t *loop, struct transfers **transfers, struct error *error);

/* All must have been ended or cancelled. May be given NULL; the loop then has to run to free the rest. */
void transfers_close(struct transfers *transfers);

/*
 * A new handle, set up as every transfer of the agent has to be: HTTP/1.1 in our name, no proxy, nothing that would hold the event loop up.
 * The caller frees it with curl_easy_cleanup(). NULL: no memory.
 */
CURL *transfers_handle(void);

/*
 * Begins one. `easy` is of transfers_handle() and belongs to the caller, who sets the rest but for CURLOPT_PRIVATE, and must not free it before it has ended or been
 * cancelled. 0, or a negative errno.
 */
int transfers_begin(struct transfers *transfers, CURL *easy, transfer_ended ended, void *context);

/* Ends one that is under way, without a call. */
void transfers_cancel(struct transfers *transfers, CURL *easy);

#endif /* WARMPATH_AGENT_TRANSFERS_H */
