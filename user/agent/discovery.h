/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replicas that are found: the sources of all services, and the union of each service's sources on its way into the routing.
 *
 * Owns: which sources there are, what each said last and when, when the routing is changed. May not know: how a source is asked
 * (discovery_source.h), what becomes of a member (routing.h).
 */
#ifndef WARMPATH_AGENT_DISCOVERY_H
#define WARMPATH_AGENT_DISCOVERY_H

#include <jansson.h>
#include <stdbool.h>
#include <warmpath/layout.h>

#include "lib/error.h"

struct agent;
struct discovery;

/* Begins to ask the sources of the agent's configuration, on its event loop. 0, or a negative errno with a sentence. */
int discovery_open(struct agent *agent, struct discovery **discovery, struct error *error);

/* NULL is fine; the event loop has to run until what was open is closed. */
void discovery_close(struct discovery *discovery);

/*
 * After another configuration has become the agent's: sources that are the same go on, others end or begin; and what they have found
 * is brought into the routing once more. NULL is fine.
 */
void discovery_configure(struct discovery *discovery);

/* A service's sources as a list of objects (a new reference), and the sentences on what of their union cannot be used. */
json_t *discovery_sources_json(const struct discovery *discovery, const char *service);
json_t *discovery_notes_json(const struct discovery *discovery, const char *service);

/* One source in numbers. */
struct discovery_figures {
	const char *service;
	const char *source;
	unsigned int number; /* among the service's, from 0 */
	bool failing;
	bool known; /* it has answered, and the age counts */
	double age_seconds;
	unsigned int members;
	unsigned long long failures;
};
void discovery_each(const struct discovery *discovery,
		    void (*take)(void *context, const struct discovery_figures *figures),
		    void *context);

/* Calls `warn` for everything that is wrong at present. */
void discovery_check(const struct discovery *discovery,
		     void (*warn)(void *context, const char *sentence), void *context);

#endif /* WARMPATH_AGENT_DISCOVERY_H */
