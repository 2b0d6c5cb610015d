/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The open requests, read one by one.
 *
 * Owns: walking the map `requests`. May not know: what is done with them.
 */
#ifndef WARMPATH_AGENT_REQUEST_TABLE_H
#define WARMPATH_AGENT_REQUEST_TABLE_H

#include <stdbool.h>
#include <warmpath/layout.h>

#include "lib/error.h"

/* 0 to go on; anything else ends the walk. */
typedef int (*request_function)(void *context, const struct open_request_key *key,
				const struct open_request *request);

/* Is the request charged? False: it has ended, and only its entry is there (layout.h). */
static inline bool request_is_open(const struct open_request *request)
{
	return request->number != REQUEST_ENDED && request->number != REQUEST_CLAIMED;
}

/*
 * Gives each entry, those of ended ones as well, to `take`. One that comes or goes meanwhile may be missed. 0, or what `take` ended with, or a
 * negative errno with a sentence if the map cannot be read.
 */
int request_table_each(int requests, request_function take, void *context, struct error *error);

#endif /* WARMPATH_AGENT_REQUEST_TABLE_H */
