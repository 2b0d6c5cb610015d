/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `warmpath ring show` and `warmpath ring plot` show: a ring, what each replica has of it, and what a change of the set would move.
 *
 * Owns: --diff, the numbers. May not know: how they are shown.
 */
#ifndef WARMPATH_CLI_RING_VIEW_H
#define WARMPATH_CLI_RING_VIEW_H

#include "cli/ring_set.h"

struct ring_view_options {
	struct ring_set_options set;
	char *diff;	    /* "+NAME", "+NAME=WEIGHT", "-NAME"; NULL: none */
	const char *output; /* for who draws */
};

/* To be children of a subcommand's parser, with a struct ring_view_options as their input. */
extern const struct argp ring_view_argp;

struct ring_view_replica {
	const char *name;  /* of the set */
	const char *state; /* before the change */
	double weight;
	__u32 points; /* before */
	double due;   /* its share by weight, before and after; 0: not on the ring */
	double due_after;
	double share;
	double share_after;
	double gained; /* keys that come to it, and that leave it */
	double lost;
};

struct ring_view {
	struct ring_set set; /* with what is added */
	/* Slots are the indices of `replicas`. */
	struct ring before;
	struct ring after; /* only with a change */
	struct ring whole; /* as if those draining or down were on the ring, too */
	struct ring_view_replica *replicas;
	size_t count;
	size_t resting;	     /* of them, those draining or down */
	const char *changed; /* the name of the replica that is added or removed; NULL: no change */
	bool added;
	double moved; /* share of all keys */
	double ideal; /* what is due to it by weight */
};

/* An exit code; anything but EXIT_DONE after the sentence has been said. */
int ring_view_make(struct ring_view *view, const struct ring_view_options *options);
void ring_view_free(struct ring_view *view);

/* "3 of 4 replicas, 100 virtual nodes each, 300 points"; one sentence on the change, or "". */
void ring_view_describe(const struct ring_view *view, char *text, size_t size);
void ring_view_describe_change(const struct ring_view *view, char *text, size_t size);

#endif /* WARMPATH_CLI_RING_VIEW_H */
