/* SPDX-License-Identifier: BSD-2-Clause */
#include "arguments.h"

#include <math.h>
#include <stdlib.h>

double argument_number(struct argp_state *state, const char *option, const char *value, double low,
		       double high)
{
	char *end;
	double number = strtod(value, &end);

	if (end == value || *end || !(number >= low && number <= high))
		argp_error(state, "%s \"%s\": a number from %g to %g is allowed", option, value,
			   low, high);
	return number;
}

uint32_t argument_count(struct argp_state *state, const char *option, const char *value,
			uint32_t low, uint32_t high)
{
	char *end;
	double number = strtod(value, &end);

	if (end == value || *end || !(number >= low && number <= high) || number != floor(number))
		argp_error(state, "%s \"%s\": a whole number from %u to %u is allowed", option,
			   value, low, high);
	return (uint32_t)number;
}
