/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Means, intervals, percentiles.
 *
 * Owns: these. May not know: what is measured.
 */
#ifndef TOOLS_STATISTICS_H
#define TOOLS_STATISTICS_H

#include <stddef.h>

struct mean {
	double mean;
	double half_width; /* of the 95 % interval (Student's t); NAN with fewer than two values */
	size_t count;
};

/* NANs are left out. No value at all: mean NAN. */
struct mean mean_of(const double *values, size_t count);
/* Of the differences values[i] - others[i], where both are there. */
struct mean mean_of_differences(const double *values, const double *others, size_t count);

/* Two-sided 95 % quantile of Student's t with so many degrees of freedom (1 or more). */
double student_t_95(size_t degrees);

void sort_numbers(double *values, size_t count);
/* The share-th value (0 to 1) of a sorted array, interpolated between neighbours; NAN if there is none. */
double percentile(const double *sorted, size_t count, double share);

#endif /* TOOLS_STATISTICS_H */
