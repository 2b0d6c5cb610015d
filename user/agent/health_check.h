/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One check of one replica: a GET whose status is looked at, or a connection that is made and closed.
 *
 * Owns: the request, what of an answer says which process gave it, failures in words. May not know: when it is time for a check, what its
 * result means.
 */
#ifndef WARMPATH_AGENT_HEALTH_CHECK_H
#define WARMPATH_AGENT_HEALTH_CHECK_H

#include <stdint.h>

#include "agent/health_record.h"
#include "agent/transfers.h"
#include "lib/config.h"

struct health_check;

struct health_answer {
	const char *failure; /* in words; NULL: well */
	__u32 process;	     /* of the start that the answer states; 0: it states none */
	uint32_t milliseconds;
};

/*
 * `answer` is valid during the call. The check is free for the next one. Not called at all where this process itself was too late to say
 * anything about the replica: then `answer` is NULL.
 */
typedef void (*health_answered)(void *context, const struct health_answer *answer);

/* One that can be used again and again, once at a time. NULL: no memory. */
struct health_check *health_check_new(struct transfers *transfers, health_answered answered,
				      void *context);
void health_check_free(struct health_check *check); /* also under way; NULL is fine */

/* Begins one; port in network byte order. 0, or a negative errno. */
int health_check_begin(struct health_check *check, const struct config_health *settings,
		       const struct address *address, __be16 port);

/*
 * Takes a line of an answer's head, or of its metrics, that says when the process or the machine has started; other lines change nothing.
 * The result is the next `process`: begin with 0.
 */
__u32 health_process_of_header(const char *line, size_t length, __u32 process);

#endif /* WARMPATH_AGENT_HEALTH_CHECK_H */
