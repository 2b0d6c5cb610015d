/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events for a router without packets, as text: one JSON object each.
 *
 *	{"op":"replicas","names":["llm-0","llm-1"]}
 *	{"op":"request","req":7,"id":"conv1","prompt_tokens":860,"max_tokens":48}
 *	{"op":"finish","req":7,"status":200}
 *
 * Owns: reading them. May not know: where they come from, what an event does (engine.h).
 */
#ifndef WARMPATH_USER_DECIDE_EVENTS_H
#define WARMPATH_USER_DECIDE_EVENTS_H

#include <stddef.h>
#include <stdio.h>

#include "lib/engine.h"

/*
 * Takes the event in `line` (`length` bytes, not necessarily ended by a NUL); a request's decision is written to `output` as a line of
 * JSON. 0; or a negative errno with a sentence, and the event has changed nothing but perhaps the set of replicas.
 */
int decide_event_take(struct engine *engine, const char *line, size_t length, FILE *output,
		      struct error *error);

#endif /* WARMPATH_USER_DECIDE_EVENTS_H */
