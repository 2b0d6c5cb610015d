/* SPDX-License-Identifier: BSD-2-Clause */
#include "statistics.h"

#include <math.h>
#include <stdlib.h>

double student_t_95(size_t degrees)
{
	/* two-sided 95 %, 1 to 30 degrees of freedom: any table */
	static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
				       2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
				       2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
				       2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
	double z = 1.959964, n = (double)degrees;

	if (degrees == 0)
		return NAN;
	if (degrees <= sizeof(table) / sizeof(table[0]))
		return table[degrees - 1];
	/* Cornish-Fisher, from z: right to four digits here */
	return z + (z * z * z + z) / (4 * n) +
	       (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

struct mean mean_of(const double *values, size_t count)
{
	struct mean result = {.mean = NAN, .half_width = NAN};
	double sum = 0, squares = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i])) {
			sum += values[i];
			result.count++;
		}
	if (!result.count)
		return result;
	result.mean = sum / (double)result.count;
	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i]))
			squares += (values[i] - result.mean) * (values[i] - result.mean);
	if (result.count > 1)
		result.half_width =
			student_t_95(result.count - 1) *
			sqrt(squares / (double)(result.count - 1) / (double)result.count);
	return result;
}

struct mean mean_of_differences(const double *values, const double *others, size_t count)
{
	double *differences = malloc((count ? count : 1) * sizeof(*differences));
	struct mean result = {.mean = NAN, .half_width = NAN};

	if (!differences)
		return result;
	for (size_t i = 0; i < count; i++)
		differences[i] = values[i] - others[i];
	result = mean_of(differences, count);
	free(differences);
	return result;
}

static int compare(const void *a, const void *b)
{
	const double *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

void sort_numbers(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
}

double percentile(const double *sorted, size_t count, double share)
{
	double place;
	size_t below;

	if (!count)
		return NAN;
	place = share * (double)(count - 1);
	below = (size_t)place;
	if (below + 1 >= count)
		return sorted[count - 1];
	return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}
