/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One source of replicas, between what asks it (discovery_dns.c, discovery_kubernetes.c) and what becomes of the answers
 * (discovery.c).
 *
 * Owns: what a kind of source must do, and may say. May not know: the routing.
 */
#ifndef WARMPATH_AGENT_DISCOVERY_SOURCE_H
#define WARMPATH_AGENT_DISCOVERY_SOURCE_H

#include <stdbool.h>
#include <uv.h>

#include "agent/routing.h"
#include "agent/transfers.h"
#include "lib/config.h"

struct discovery;

struct discovery_source {
	struct discovery *discovery;
	uv_loop_t *loop;
	struct transfers *transfers;
	struct config_discovery settings;
	char service[SERVICE_NAME_SIZE]; /* of the configuration */
	char title[2 * DNS_NAME_SIZE];	 /* "kubernetes default/llm" */

	const struct discovery_kind *kind;
	void *work; /* of the kind */

	/* What it said last. */
	bool known; /* it has said something */
	struct discovered_member *members;
	unsigned int member_count;
	uint64_t confirmed;   /* uv_hrtime(): when that was true for certain */
	struct error note;    /* what of it cannot be used, and why; empty: nothing */
	struct error problem; /* why it cannot be asked at present; empty: it can */
	unsigned long long failures;
};

struct discovery_kind {
	/* Begins to ask. 0, or a negative errno with a sentence. */
	int (*start)(struct discovery_source *source, struct error *error);
	/* Ends it; nothing is said afterwards, and what is left is freed by the event loop. */
	void (*stop)(struct discovery_source *source);
};

extern const struct discovery_kind discovery_dns;
extern const struct discovery_kind discovery_kubernetes;

/* --- what a kind says -------------------------------------------------------------------------------------------- */

/* This is the whole set now (copied; at most DISCOVERED_MAX); `note` may be NULL. A problem is over. */
void discovery_found(struct discovery_source *source, const struct discovered_member *members,
		     unsigned int count, const struct error *note);

/* The set is still the last one. A problem is over. */
void discovery_confirmed(struct discovery_source *source);

/* The source cannot be asked: the last set stays. The sentence says what is wrong and what to do. */
void discovery_failed(struct discovery_source *source, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* WARMPATH_AGENT_DISCOVERY_SOURCE_H */
