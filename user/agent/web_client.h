/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single GETs of HTTP on the agent's event loop.
 *
 * Owns: the options of a transfer, how one that failed is put into words. May not know: the loop (transfers.h), what is asked for.
 */
#ifndef WARMPATH_AGENT_WEB_CLIENT_H
#define WARMPATH_AGENT_WEB_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/transfers.h"
#include "lib/error.h"

struct web_transfer;

/* How a transfer ended. */
struct web_result {
	unsigned int status; /* of HTTP; 0: there was none */
	bool complete;	     /* the whole answer has come, as the server has said where it ends */
	bool timed_out;	     /* total_milliseconds are over */
	uint64_t retry_milliseconds; /* of Retry-After; 0: the server does not say */
	struct error error; /* a sentence's end, such as "connection refused"; empty if complete */
};

struct web_request {
	const char *url;
	const char *ca_file;	  /* NULL: the system's certificate authorities */
	const char *bearer_token; /* NULL: none */
	uint64_t connect_milliseconds;
	uint64_t total_milliseconds;

	/* Called when the answer has begun, with its status; NULL: not wanted. It may not cancel the transfer. */
	void (*begun)(void *context, unsigned int status);

	/* Takes each line of the answer's head; NULL: not wanted. The same holds. */
	void (*header)(void *context, const char *line, size_t length);

	/*
	 * Takes the next bytes of the answer's body, with the status that came before them. False: no more is wanted, the transfer
	 * ends incomplete. It may not cancel the transfer.
	 */
	bool (*take)(void *context, unsigned int status, const char *bytes, size_t length);

	/* Called once at the end, from the event loop; the transfer is gone then. Not called if it is cancelled. */
	void (*done)(void *context, const struct web_result *result);
	void *context;
};

/*
 * Begins a GET; everything in the request is copied, but `transfers` has to last. 0 and the transfer, which is gone when it ends or is cancelled;
 * or a negative errno with a sentence.
 */
int web_client_get(struct transfers *transfers, const struct web_request *request,
		   struct web_transfer **transfer, struct error *error);

/* Ends a transfer without a word. NULL is fine. */
void web_transfer_cancel(struct web_transfer *transfer);

#endif /* WARMPATH_AGENT_WEB_CLIENT_H */
