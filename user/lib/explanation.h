/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a decision was made: its event run through the decision core once more, step by step, as text for people and as JSON.
 *
 * Owns: the steps and their words. May not know: where the event comes from (the ring buffer, `warmpath explain`, a test).
 *
 * The order of what is told is that of docs/policies.md, "Traces"; averages and caps are rounded to one decimal in the text.
 */
#ifndef WARMPATH_USER_EXPLANATION_H
#define WARMPATH_USER_EXPLANATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <warmpath/decision.h>

#include "lib/decide_core.h"
#include "lib/error.h"

/* Names for slots and services. */
struct explanation_names {
	/* The name of a slot, or NULL if it has none (any more). */
	const char *(*replica)(const void *context, __u32 slot);
	const char *service;
	const void *context;
};

/* The verdict on one replica that was tried. */
struct explanation_verdict {
	__u32 replica; /* slot */
	__u32 load;
	__u32 cost;
	double cap;	 /* with that cost, at epsilon */
	double long_cap; /* the same at long_epsilon, where long stickiness applied; else 0 */
	bool idle;
	bool fits_cap;
	bool accepted;
};

enum long_verdict {
	LONG_NOT_ASKED, /* not a matter of the policy */
	LONG_OFF,
	LONG_TOO_SHORT,
	LONG_NO_CACHE,
	LONG_APPLIED,
};

struct explanation {
	const struct event_decision *event; /* borrowed */
	bool agrees;			    /* the core, run again, decides the same */
	__u64 total;			    /* sum of the loads + cost on the preferred replica */
	double average;
	double cap;
	double long_cap; /* 0: none */
	bool cache_likely;
	enum long_verdict long_verdict;
	struct explanation_verdict tried[EVENT_REPLICAS_MAX + 1]; /* the preferred one first */
	__u32 tried_count;
};

/*
 * Makes the event of a decision that decide_run() has just made over `tables`, as the kernel makes it of its own. id_length may be 0.
 */
void explanation_make_event(struct event_decision *event, const struct decide_tables *tables,
			    const struct decide_state *state, const char *id, size_t id_length);

/* Checks that `size` bytes are a decision event as the kernel writes it. 0, or -EINVAL with a sentence. */
int event_check(const struct event_decision *event, size_t size, struct error *error);

/*
 * Checks that, and runs it. 0; or -EINVAL with a sentence.
 */
int explain_event(struct explanation *explanation, const struct event_decision *event, size_t size,
		  struct error *error);

/* Several lines, each closed by a newline; the first says what was decided, the others, indented, why. */
void explanation_print(FILE *to, const struct explanation *explanation,
		       const struct explanation_names *names);

/* One object with all numbers; NULL without memory. */
json_t *explanation_json(const struct explanation *explanation,
			 const struct explanation_names *names);

/* A completion in the same two ways; "success", "timed-out", ... */
const char *completion_status_text(enum completion_status status);
void completion_print(FILE *to, const struct event_completion *event, const char *service);
json_t *completion_json(const struct event_completion *event, const char *service);

/* A refusal. */
void refusal_print(FILE *to, const struct event_refusal *event, const char *service);
json_t *refusal_json(const struct event_refusal *event, const char *service);

#endif /* WARMPATH_USER_EXPLANATION_H */
