/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known about the health of one replica, and how results of checks change it.
 *
 * Owns: the counting of good and failed checks, the words. May not know: how a check is made, what becomes of the replica.
 */
#ifndef WARMPATH_AGENT_HEALTH_RECORD_H
#define WARMPATH_AGENT_HEALTH_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "lib/config.h"

enum health_state {
	HEALTH_UNKNOWN = 0, /* no check has come to an end yet */
	HEALTH_UP,
	HEALTH_DOWN,
};

#define HEALTH_TEXT_SIZE 120

struct health_record {
	enum health_state state;
	bool trusted;	 /* while unknown: it was up before, so one failed check says nothing yet */
	uint32_t good;	 /* checks in a row */
	uint32_t failed; /* checks in a row */
	uint32_t refused; /* connections of users in a row, without a good check between */
	time_t since;	  /* of the state; 0: not known */
	time_t failed_at; /* 0: never */
	char failure[HEALTH_TEXT_SIZE]; /* the last one, in words */
	uint64_t checks_good;
	uint64_t checks_failed;
	uint32_t milliseconds; /* that the last check took */
};

enum health_verdict {
	HEALTH_UNCHANGED = 0,
	HEALTH_FELL, /* it is down now */
	HEALTH_ROSE, /* it is up now, and was not before */
};

/*
 * A check has come to an end. failure: NULL if it was good, else what was wrong, in words. alone: no other replica of the service is active,
 * so that the first good check counts.
 */
enum health_verdict health_take_check(struct health_record *record,
				      const struct config_health *settings, const char *failure,
				      bool alone, time_t now);

/* The data path has seen so many connections of users refused or reset by the replica. */
enum health_verdict health_take_refusals(struct health_record *record,
					 const struct config_health *settings, uint32_t count,
					 time_t now);

const char *health_state_name(enum health_state state);

#endif /* WARMPATH_AGENT_HEALTH_RECORD_H */
