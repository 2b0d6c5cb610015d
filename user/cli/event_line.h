/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of the agent (decisions, completions, refusals, changes of the set) as one line of text each.
 *
 * Owns: the words. May not know: where the events come from, which of them are wanted.
 */
#ifndef WARMPATH_CLI_EVENT_LINE_H
#define WARMPATH_CLI_EVENT_LINE_H

#include <jansson.h>
#include <stddef.h>

#include "cli/style.h"

#define EVENT_LINE_SIZE 512

/* "08:34:01" of local time of the event. */
void event_time(const json_t *event, char text[16]);

/* The line without time, newline and styles; how it should look. */
enum style event_line(const json_t *event, char text[EVENT_LINE_SIZE]);

/* What a conversation is called: its id, else the hash of it. */
const char *event_id(const json_t *event);

#endif /* WARMPATH_CLI_EVENT_LINE_H */
