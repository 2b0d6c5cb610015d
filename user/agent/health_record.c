/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/health_record.h"

#include <stdio.h>

static void fail(struct health_record *record, const char *failure, time_t now)
{
	record->good = 0;
	record->failed_at = now;
	snprintf(record->failure, sizeof(record->failure), "%s", failure);
}

static enum health_verdict enter(struct health_record *record, enum health_state state, time_t now)
{
	enum health_state before = record->state;

	if (before == state)
		return HEALTH_UNCHANGED;
	record->state = state;
	record->since = now;
	record->refused = 0;
	return state == HEALTH_DOWN ? HEALTH_FELL : HEALTH_ROSE;
}

enum health_verdict health_take_check(struct health_record *record,
				      const struct config_health *settings, const char *failure,
				      bool alone, time_t now)
{
	if (failure) {
		/* Nobody has ever seen an unknown one well. */
		uint32_t fall =
			record->state == HEALTH_UNKNOWN && !record->trusted ? 1 : settings->fall;

		fail(record, failure, now);
		record->checks_failed++;
		record->failed++;
		return record->failed >= fall ? enter(record, HEALTH_DOWN, now) : HEALTH_UNCHANGED;
	}
	record->failed = 0;
	record->refused = 0;
	record->checks_good++;
	record->good++;
	if (record->state == HEALTH_DOWN && !alone && record->good < settings->rise)
		return HEALTH_UNCHANGED;
	return enter(record, HEALTH_UP, now);
}

enum health_verdict health_take_refusals(struct health_record *record,
					 const struct config_health *settings, uint32_t count,
					 time_t now)
{
	char text[HEALTH_TEXT_SIZE];

	if (!settings->passive_failures || !count)
		return HEALTH_UNCHANGED;
	record->refused =
		count > UINT32_MAX - record->refused ? UINT32_MAX : record->refused + count;
	if (record->state == HEALTH_DOWN || record->refused < settings->passive_failures)
		return HEALTH_UNCHANGED;
	snprintf(text, sizeof(text), "%u connections of users in a row refused or reset",
		 record->refused);
	fail(record, text, now);
	return enter(record, HEALTH_DOWN, now);
}

const char *health_state_name(enum health_state state)
{
	static const char *const names[] = {
		[HEALTH_UNKNOWN] = "unknown", [HEALTH_UP] = "up", [HEALTH_DOWN] = "down"};

	return names[state];
}
