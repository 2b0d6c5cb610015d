/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests of connections that are handed over share: a run over all programs and both families, requests and answers, a look at
 * what was charged and told.
 *
 * Owns: the run, the usual course of a connection. May not know: what a test is about.
 */
#ifndef WARMPATH_TESTS_HANDED_H
#define WARMPATH_TESTS_HANDED_H

#include <warmpath/contact.h>
#include <warmpath/decision.h>

#include "dialogue.h"

#define POST(id)                                                      \
	"POST /v1/chat HTTP/1.1\r\nHost: a\r\nx-conversation-id: " id \
	"\r\nContent-Length: 2\r\n\r\nhi"
#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* What the run is at. */
extern enum program handed_program;
extern bool handed_ipv6;

/* Runs the tests through the XDP and the tc router, in IPv4 and IPv6. Returns main()'s exit status. */
struct CMUnitTest;
int handed_run(const struct CMUnitTest *tests, size_t count);

/* A test's set-up: nothing is known, charged, refused or told. */
int handed_forget(void **unused);

/* A client that is connected. */
struct dialogue handed_connect(uint16_t port);

/* A request of a conversation whose home is neither of those replicas. Valid until the fourth call after this. */
const char *handed_request_to_other(const struct world_replica *one,
				    const struct world_replica *other);

/* Sends a request, which has to be handed over with the connection. Returns the replica. */
const struct world_replica *handed_first(struct dialogue *dialogue, const char *request);

/* The owner acknowledges the request and answers; the client acknowledges that. */
void handed_serve(struct dialogue *dialogue, const struct world_replica *owner, const char *answer);

struct replica_contact handed_contact(const struct world_replica *replica);

/* Requests that are charged to it. */
uint32_t handed_charge(const struct world_replica *replica);

/* Entries of a map whose keys are struct flow_key. */
int handed_entries(const char *map);

/* The events since the last call. */
struct handed_seen {
	int decisions;
	int refusals;
	int moves;
	struct event_decision decision; /* the last */
	struct event_refusal refusal;
	struct event_move move;
};
struct handed_seen handed_read_events(void);

#endif /* WARMPATH_TESTS_HANDED_H */
