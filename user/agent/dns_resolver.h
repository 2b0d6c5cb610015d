/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to DNS servers on the agent's event loop (c-ares on libuv).
 *
 * Owns: sockets, time limits, repetition, which server is asked, how a failure is put into words. May not know: what the records mean.
 */
#ifndef WARMPATH_AGENT_DNS_RESOLVER_H
#define WARMPATH_AGENT_DNS_RESOLVER_H

#include <uv.h>

#include "agent/dns_answer.h"

enum dns_outcome {
	DNS_ANSWERED,
	DNS_NOTHING, /* the server says that there is no such name, or that it has no such records */
	DNS_FAILED,  /* nobody can say at present */
};

/* `answer` only with DNS_ANSWERED, else a sentence's end in `error`. The resolver may not be closed from here. */
typedef void (*dns_taker)(void *context, enum dns_outcome outcome, const struct dns_answer *answer,
			  const struct error *error);

struct dns_resolver;

/*
 * `server`: "ADDRESS" or "ADDRESS:PORT", or empty: those of /etc/resolv.conf as it is now. 0, or a negative errno with a sentence's end.
 */
int dns_resolver_open(uv_loop_t *loop, const char *server, struct dns_resolver **resolver,
		      struct error *error);

/* What is asked is not answered any more. What is left is freed by the event loop. NULL is fine. */
void dns_resolver_close(struct dns_resolver *resolver);

/* Asks for the records of `name`; `take` is called exactly once, possibly before this returns. */
void dns_resolver_ask(struct dns_resolver *resolver, const char *name, enum dns_records kind,
		      dns_taker take, void *context);

#endif /* WARMPATH_AGENT_DNS_RESOLVER_H */
