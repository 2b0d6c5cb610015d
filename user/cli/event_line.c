/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/event_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/client.h"

void event_time(const json_t *event, char text[16])
{
	time_t time = (time_t)json_number_value(json_object_get(event, "time"));
	struct tm parts;

	localtime_r(&time, &parts);
	strftime(text, 16, "%H:%M:%S", &parts);
}

const char *event_id(const json_t *event)
{
	const char *id = client_text(event, "id");

	return id[0] ? id : client_text(event, "hash");
}

static double real(const json_t *event, const char *name)
{
	return json_number_value(json_object_get(event, name));
}

static enum style decision_line(const json_t *event, char *text, size_t size)
{
	const json_t *placement = json_object_get(event, "placement");
	const char *from = client_text(event, "moved_from");
	char cached[48] = "";
	int used;

	if (json_is_object(placement))
		snprintf(cached, sizeof(cached), ", %lld cached on %.20s",
			 (long long)client_number(placement, "prompt_tokens"),
			 client_text(placement, "replica"));
	used = snprintf(text, size, "%s %s -> %s  %s, %lld+%lld tokens%s",
			client_text(event, "service"), event_id(event),
			client_text(event, "replica"), client_text(event, "reason"),
			(long long)client_number(event, "prompt_tokens"),
			(long long)client_number(event, "max_tokens"), cached);
	if (!from[0] || used < 0 || (size_t)used >= size)
		return STYLE_PLAIN;
	snprintf(text + used, size - used, "  MOVED from %s: %s", from,
		 client_text(event, "move_reason"));
	return STYLE_STRONG;
}

static enum style completion_line(const json_t *event, char *text, size_t size)
{
	const char *status = client_text(event, "status");

	snprintf(text, size, "%s %s    %s: %s after %.3f s", client_text(event, "service"),
		 event_id(event), client_text(event, "replica"), status, real(event, "seconds"));
	return strcmp(status, "success") == 0 ? STYLE_QUIET : STYLE_WRONG;
}

static enum style refusal_line(const json_t *event, char *text, size_t size)
{
	snprintf(text, size,
		 strcmp(client_text(event, "cause"), "aborted") == 0
			 ? "%s replica %s reset a connection before it had answered"
			 : "%s replica %s refused a connection (%lld in a row)",
		 client_text(event, "service"), client_text(event, "replica"),
		 (long long)client_number(event, "in_a_row"));
	return STYLE_WRONG;
}

static enum style change_line(const json_t *event, char *text, size_t size)
{
	const char *change = client_text(event, "change");
	int used = snprintf(text, size, "%s replica %s: %s", client_text(event, "service"),
			    client_text(event, "replica"), change);

	if (used > 0 && (size_t)used < size && strcmp(change, "weighted") == 0)
		used += snprintf(text + used, size - used, " %g", real(event, "weight"));
	if (used > 0 && (size_t)used < size && strcmp(change, "slow-start") == 0)
		used += snprintf(text + used, size - used, ", %.0f %% of its share",
				 100 * real(event, "slow_start"));
	if (used > 0 && (size_t)used < size)
		snprintf(text + used, size - used,
			 "; ring %lld has %lld, %.1f %% of conversations have another home",
			 (long long)client_number(event, "generation"),
			 (long long)client_number(event, "on_ring"), 100 * real(event, "moved"));
	return STYLE_CHANGE;
}

enum style event_line(const json_t *event, char text[EVENT_LINE_SIZE])
{
	const char *kind = client_text(event, "event");

	if (strcmp(kind, "decision") == 0)
		return decision_line(event, text, EVENT_LINE_SIZE);
	if (strcmp(kind, "completion") == 0)
		return completion_line(event, text, EVENT_LINE_SIZE);
	if (strcmp(kind, "refusal") == 0)
		return refusal_line(event, text, EVENT_LINE_SIZE);
	if (strcmp(kind, "change") == 0)
		return change_line(event, text, EVENT_LINE_SIZE);
	snprintf(text, EVENT_LINE_SIZE, "%lld events were missed: this reads too slowly",
		 (long long)client_number(event, "count"));
	return STYLE_WRONG;
}
