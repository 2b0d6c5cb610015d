/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How evenly a ring spreads keys, and what it costs: over many rings that differ in the names of their replicas only.
 *
 * Owns: random names, the statistics. May not know: how results are shown, the kernel (ring_measure.h).
 *
 * A ring's spread compares what each replica has with what its weight is worth. All shares are exact (arcs), not samples of keys.
 */
#ifndef WARMPATH_USER_RING_STUDY_H
#define WARMPATH_USER_RING_STUDY_H

#include "lib/ring.h"

#define RING_STUDY_RINGS_MAX 10000

struct ring_study {
	enum ring_dialect dialect;
	const __u32 *weights_thousandths; /* of each replica; borrowed */
	__u32 replicas;			  /* 1 to REPLICAS_MAX - 1 */
	__u32 rings;			  /* how many: 1 to RING_STUDY_RINGS_MAX */
	__u32 seed;			  /* the same seed gives the same rings */
};

/* Of all rings of a row. */
struct ring_quantiles {
	double p10;
	double median;
	double p90;
};

struct ring_study_row {
	__u32 vnodes;
	__u32 points;		       /* of one ring */
	struct ring_quantiles max_min; /* the fullest replica compared with the emptiest; 1: even */
	struct ring_quantiles max_mean; /* the fullest one compared with its due */
	struct ring_quantiles added;	/* share of keys moved by one more replica of weight 1 */
	struct ring_quantiles removed;	/* by one replica less, the last; with one replica 1 */
	double added_ideal;		/* what is due to it by weight */
	double removed_ideal;
	size_t bytes;		     /* of the kernel's tables, both generations */
	struct ring_quantiles build; /* seconds to build a ring in user space */
};

/* A row for a number of virtual nodes. 0, or a negative errno with a sentence. */
int ring_study_run(const struct ring_study *study, __u32 vnodes, struct ring_study_row *row,
		   struct error *error);

/* The study's ring of this number (0 to rings - 1). As ring_build(). */
int ring_study_build(const struct ring_study *study, __u32 vnodes, __u32 number, struct ring *ring,
		     struct error *error);

/*
 * The least number of virtual nodes with which nine rings in ten give the fullest replica at most `spread` times its due (> 1), and
 * its row. 0; -ERANGE if no ring of RING_POINTS_MAX points does, or another negative errno, with a sentence.
 */
int ring_study_recommend(const struct ring_study *study, double spread, struct ring_study_row *row,
			 struct error *error);

/* Largest share in relation to its weight, compared with the due and with the smallest. The members are those of the ring, by name. */
void ring_spread(const struct ring *ring, const __u32 *weights_thousandths_of_members,
		 double *max_mean, double *max_min);

#endif /* WARMPATH_USER_RING_STUDY_H */
