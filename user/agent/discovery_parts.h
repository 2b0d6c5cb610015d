/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of discovery share: its state.
 *
 * Owns: the structs. May not know: how a source is asked.
 */
#ifndef WARMPATH_AGENT_DISCOVERY_PARTS_H
#define WARMPATH_AGENT_DISCOVERY_PARTS_H

#include "agent/discovery.h"
#include "agent/discovery_source.h"

#define DISCOVERY_NOTES_MAX 16

/* What discovery makes of one service. */
struct found_service {
	char name[SERVICE_NAME_SIZE];
	bool changed; /* the routing has to be looked at */
	char *notes[DISCOVERY_NOTES_MAX];
	unsigned int note_count;
	unsigned int notes_left_out; /* more than are kept, or no memory */
	struct error problem;	     /* why the union could not be applied */
};

struct discovery {
	struct agent *agent;
	uv_timer_t *gather;
	uint64_t applied; /* uv_now() of the last change */
	struct transfers *transfers;
	struct discovery_source *sources[SERVICES_MAX * CONFIG_DISCOVERY_MAX];
	unsigned int source_count;
	struct found_service services[SERVICES_MAX]; /* those that have sources */
	unsigned int service_count;
};

/* What is known of the service of that name, or NULL if it has no sources. */
struct found_service *discovery_find_service(const struct discovery *discovery, const char *name);

#endif /* WARMPATH_AGENT_DISCOVERY_PARTS_H */
