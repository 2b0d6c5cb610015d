/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace: the events from now on, one a line, until the client hangs up.
 */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/control.h"
#include "agent/events.h"
#include "lib/control.h"

/* An id is the same key only within a service, as services may have different hashes. */
static int read_filter(struct agent *agent, const json_t *message, struct event_filter *filter,
		       struct error *error)
{
	char id[ID_LENGTH_MAX + 1];
	const char *service, *wanted;
	int result = control_text(message, "service", false, &service, error);

	filter->service = -1;
	filter->by_id = false;
	filter->changes = false;
	if (!result)
		result = control_flag(message, "changes", &filter->changes, error);
	if (!result)
		result = control_text(message, "id", false, &wanted, error);
	if (result)
		return result;
	if (service || wanted) {
		filter->service = routing_find_service(&agent->routing, service, error);
		if (filter->service < 0)
			return filter->service;
	}
	if (!wanted)
		return 0;
	result = command_read_id(message, id, error);
	if (result)
		return result;
	filter->by_id = true;
	filter->id_hash = ring_hash(&agent->rings.ring[filter->service], id, strlen(id));
	return 0;
}

int command_trace(struct agent *agent, const json_t *message, json_t *answer, struct error *error)
{
	struct event_filter filter;
	int result = read_filter(agent, message, &filter, error);

	if (result)
		return result;
	control_follow(agent->control, &filter);
	json_object_set_new(answer, "decisions_per_second",
			    json_integer(agent->config->trace.decisions_per_second));
	return 0;
}
