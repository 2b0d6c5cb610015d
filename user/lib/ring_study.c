/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ring_study.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/ring_compare.h"
#include "lib/ring_maps.h"

/* What is noted of each ring. */
enum quantity {
	MAX_MIN,
	MAX_MEAN,
	ADDED,
	REMOVED,
	BUILD,
	QUANTITIES,
};

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* `count` replicas, of which one more than the study has is of weight 1. */
static int build(const struct ring_study *study, __u32 vnodes, __u32 number, __u32 count,
		 struct ring *ring, struct error *error)
{
	const struct ring_settings settings = {.dialect = study->dialect, .vnodes = vnodes};
	struct ring_replica *replicas = calloc(count + 1, sizeof(*replicas));
	char(*names)[REPLICA_NAME_SIZE] = calloc(count + 1, sizeof(*names));
	int result;

	if (!replicas || !names) {
		free(replicas);
		free(names);
		return error_set(error, -ENOMEM, "not enough memory");
	}
	for (__u32 i = 0; i < count; i++) {
		/* the names are all that is random: the order by name is that of the weights */
		snprintf(names[i], sizeof(names[i]), "%04u-%u-%u", i, study->seed, number);
		replicas[i] = (struct ring_replica){
			.name = names[i],
			.slot = i,
			.weight_thousandths = i < study->replicas ? study->weights_thousandths[i]
								  : RING_WEIGHT_ONE,
		};
	}
	result = ring_build(ring, &settings, replicas, count, error);
	free(replicas);
	free(names);
	return result;
}

int ring_study_build(const struct ring_study *study, __u32 vnodes, __u32 number, struct ring *ring,
		     struct error *error)
{
	return build(study, vnodes, number, study->replicas, ring, error);
}

void ring_spread(const struct ring *ring, const __u32 *weights, double *max_mean, double *max_min)
{
	double shares[REPLICAS_MAX], total = 0, most = 0, least = 1e9;

	ring_shares(ring, shares);
	for (__u32 i = 0; i < ring->header.member_count; i++)
		total += weights[i];
	for (__u32 i = 0; i < ring->header.member_count; i++) {
		double of_due = shares[i] * total / weights[i];

		most = of_due > most ? of_due : most;
		least = of_due < least ? of_due : least;
	}
	*max_mean = most;
	*max_min = least > 0 ? most / least : 1e9;
}

/* Another ring of `count` replicas, compared with this one. */
static int compare(const struct ring_study *study, __u32 vnodes, __u32 number, __u32 count,
		   const struct ring *ring, double *moved, struct error *error)
{
	struct ring other;
	int result = build(study, vnodes, number, count, &other, error);

	if (result)
		return result;
	*moved = ring_moved_share(ring, &other);
	ring_free(&other);
	return 0;
}

static int study_ring(const struct ring_study *study, __u32 vnodes, __u32 number, bool moves,
		      double *noted[QUANTITIES], struct ring_study_row *row, struct error *error)
{
	double started = seconds();
	struct ring ring;
	int result = build(study, vnodes, number, study->replicas, &ring, error);

	if (result)
		return result;
	noted[BUILD][number] = seconds() - started;
	row->points = ring.header.point_count;
	row->bytes = 2 * ring_maps_bytes(&ring.header);
	ring_spread(&ring, study->weights_thousandths, &noted[MAX_MEAN][number],
		    &noted[MAX_MIN][number]);
	if (moves)
		result = compare(study, vnodes, number, study->replicas + 1, &ring,
				 &noted[ADDED][number], error);
	if (moves && !result)
		result = compare(study, vnodes, number, study->replicas - 1, &ring,
				 &noted[REMOVED][number], error);
	ring_free(&ring);
	return result;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Sorts the values. Between two of them, in proportion. */
static struct ring_quantiles quantiles(double *values, __u32 count)
{
	static const double wanted[] = {0.1, 0.5, 0.9};
	double found[3];

	qsort(values, count, sizeof(*values), by_value);
	for (int i = 0; i < 3; i++) {
		double place = wanted[i] * (count - 1);
		__u32 below = place;
		__u32 above = below + 1 < count ? below + 1 : below;

		found[i] = values[below] + (place - below) * (values[above] - values[below]);
	}
	return (struct ring_quantiles){found[0], found[1], found[2]};
}

static int run(const struct ring_study *study, __u32 vnodes, bool moves, struct ring_study_row *row,
	       struct error *error)
{
	double *values = calloc((size_t)study->rings * QUANTITIES, sizeof(*values));
	double *noted[QUANTITIES], total = 0;
	int result = 0;

	if (!values)
		return error_set(error, -ENOMEM, "not enough memory");
	for (int i = 0; i < QUANTITIES; i++)
		noted[i] = values + (size_t)i * study->rings;
	memset(row, 0, sizeof(*row));
	row->vnodes = vnodes;
	for (__u32 i = 0; i < study->replicas; i++)
		total += study->weights_thousandths[i];
	row->added_ideal = RING_WEIGHT_ONE / (total + RING_WEIGHT_ONE);
	row->removed_ideal = study->weights_thousandths[study->replicas - 1] / total;
	for (__u32 i = 0; i < study->rings && !result; i++)
		result = study_ring(study, vnodes, i, moves, noted, row, error);
	if (!result) {
		row->max_min = quantiles(noted[MAX_MIN], study->rings);
		row->max_mean = quantiles(noted[MAX_MEAN], study->rings);
		row->added = quantiles(noted[ADDED], study->rings);
		row->removed = quantiles(noted[REMOVED], study->rings);
		row->build = quantiles(noted[BUILD], study->rings);
	}
	free(values);
	return result;
}

int ring_study_run(const struct ring_study *study, __u32 vnodes, struct ring_study_row *row,
		   struct error *error)
{
	return run(study, vnodes, true, row, error);
}

/* The most virtual nodes with which a ring of these weights, and one more replica, has at most RING_POINTS_MAX points. */
static __u32 vnodes_most(const struct ring_study *study)
{
	double total = RING_WEIGHT_ONE;
	__u32 most;

	for (__u32 i = 0; i < study->replicas; i++)
		total += study->weights_thousandths[i];
	/* each replica's points are rounded, and are at least 1 */
	most = (RING_POINTS_MAX - study->replicas) / (total / RING_WEIGHT_ONE);
	return most > 0 ? most : 1;
}

/* Of large rings, which are alike, fewer: the search has to come to its end. */
static int search(const struct ring_study *study, __u32 vnodes, struct ring_study_row *row,
		  struct error *error)
{
	const __u64 points_most = 4u << 20, rings_least = 20;
	struct ring_study fewer = *study;
	__u64 rings = points_most / ((__u64)vnodes * study->replicas);

	if (rings < rings_least)
		rings = rings_least;
	if (rings < fewer.rings)
		fewer.rings = rings;
	return run(&fewer, vnodes, false, row, error);
}

int ring_study_recommend(const struct ring_study *study, double spread, struct ring_study_row *row,
			 struct error *error)
{
	__u32 most = vnodes_most(study), low = 0, high = 1;
	int result = search(study, high, row, error);

	while (!result && row->max_mean.p90 > spread && high < most) {
		low = high;
		high = high > most / 2 ? most : high * 2;
		result = search(study, high, row, error);
	}
	if (!result && row->max_mean.p90 > spread)
		return error_set(error, -ERANGE,
				 "no ring of %u points keeps a spread of %g: the best is %.4f with "
				 "%u virtual nodes",
				 RING_POINTS_MAX, spread, row->max_mean.p90, high);
	/* to a twentieth: closer than that, chance decides */
	while (!result && high - low > 1 + low / 20) {
		__u32 middle = low + (high - low) / 2;

		result = search(study, middle, row, error);
		if (!result && row->max_mean.p90 > spread)
			low = middle;
		else
			high = middle;
	}
	if (!result)
		result = run(study, high, true, row, error);
	return result;
}
