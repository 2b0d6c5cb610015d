/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers on the command line: anything but a number in range ends the program with a sentence that names the option.
 *
 * Owns: that. May not know: the options.
 */
#ifndef TOOLS_ARGUMENTS_H
#define TOOLS_ARGUMENTS_H

#include <argp.h>
#include <stdint.h>

double argument_number(struct argp_state *state, const char *option, const char *value, double low,
		       double high);
uint32_t argument_count(struct argp_state *state, const char *option, const char *value,
			uint32_t low, uint32_t high);

#endif /* TOOLS_ARGUMENTS_H */
