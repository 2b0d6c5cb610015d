/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of health.h share: health.c (who is watched, questions), health_schedule.c (when a check is made),
 * health_verdict.c (what becomes of results and refusals).
 */
#ifndef WARMPATH_AGENT_HEALTH_PARTS_H
#define WARMPATH_AGENT_HEALTH_PARTS_H

#include <warmpath/contact.h>

#include "agent/agent.h"
#include "agent/health.h"
#include "agent/health_check.h"
#include "agent/transfers.h"

#define HEALTH_CHECKS_MAX	  512 /* at once */
#define HEALTH_APPLY_MILLISECONDS 20  /* verdicts that come together change the rings once */

/* What is to become of a replica. */
struct health_outcome {
	bool down;
	bool up;
	__u32 process; /* 0: nothing new */
};

struct health_watched {
	bool watched;
	char name[REPLICA_NAME_SIZE];
	__u32 service;
	struct address address;
	__be16 port;
	struct health_record record;
	struct health_check *under_way;
	uint64_t begun;	    /* the last check, in the loop's time */
	uint64_t due;	    /* in the loop's time */
	uint64_t try_again; /* without checks: when it is put back; 0: never */
	unsigned int late;
	bool says_process; /* checks say which process answers: nobody else is to be asked */
	struct replica_contact contact; /* as it was when it was last looked at */
	struct health_outcome pending;	/* to be applied */
	struct health_outcome taken;	/* being applied */
};

struct health_slot_check {
	struct health *health;
	struct health_check *check;
	__u32 slot;
};

struct health {
	struct agent *agent;
	struct transfers *transfers;
	uv_timer_t checks;
	uv_timer_t apply;
	unsigned int open_handles;
	struct health_slot_check pool[HEALTH_CHECKS_MAX];
	unsigned int seed;
	bool short_of_memory; /* a check could not be begun for want of it; said once */
	uint64_t no_sooner;   /* in the loop's time: when that is tried again */
	struct health_watched replicas[REPLICAS_MAX];
};

/* The settings of the replica's service; NULL: it is not configured any more. */
const struct config_health *health_settings(const struct health *health, __u32 slot);
bool health_is_checked(const struct config_health *settings);

/* --- health_schedule.c */

/* Sets the timer to what is due next. While as many checks run as may, the end of one does this. */
void health_schedule(struct health *health);

/* --- health_verdict.c */

void health_take_verdict(struct health *health, __u32 slot, enum health_verdict verdict);

/* Puts a replica back that nothing else would put back. */
void health_try_again(struct health *health, __u32 slot);

/* What the data path has counted of the replica so far. */
void health_read_contact(const struct health *health, __u32 slot, struct replica_contact *contact);

/* The timer `apply`. */
void health_on_apply(uv_timer_t *timer);

#endif /* WARMPATH_AGENT_HEALTH_PARTS_H */
