/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring buffer `events`: reading it, and passing on what clients of the control socket want to see.
 *
 * Owns: the reader, how an event becomes a message. May not know: sockets (control.h), how a decision is explained (lib/explanation.h).
 */
#ifndef WARMPATH_AGENT_EVENTS_H
#define WARMPATH_AGENT_EVENTS_H

#include <jansson.h>

#include "lib/error.h"
#include "lib/explanation.h"

struct agent;
struct events;
struct history_entry;

/* What a client wants to see. */
struct event_filter {
	int service;  /* index; -1: all */
	bool changes; /* changes of the set as well */
	bool by_id;
	__u64 id_hash;
};

/*
 * Starts reading in the agent's loop. 0, or a negative errno with a sentence. events_close() may be given NULL; the loop then
 * has to run to free the rest.
 */
int events_open(struct agent *agent, struct events **events, struct error *error);
void events_close(struct events *events);

/* Tells the data path how many decisions to trace. 0, or a negative errno with a sentence. */
int events_configure(const struct agent *agent, struct error *error);

/* All numbers of the decision, and "text", the same in words; NULL without memory. */
json_t *events_explanation(const struct agent *agent, __u32 service,
			   const struct explanation *explanation);

/*
 * The same of a decision that is remembered, with its time, how it ended and, if it moved the conversation, from where and why.
 */
json_t *events_entry(const struct agent *agent, const struct history_entry *entry);

#endif /* WARMPATH_AGENT_EVENTS_H */
