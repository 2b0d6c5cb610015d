/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of checks share (config_check*.c): the file that is checked, and the list of what is wrong with it.
 *
 * Owns: nothing. May not know: YAML.
 */
#ifndef WARMPATH_USER_CONFIG_CHECK_H
#define WARMPATH_USER_CONFIG_CHECK_H

#include "lib/config.h"

struct check {
	struct config *config;
	const char *name; /* of the file */
	struct config_problems *problems;
};

#define PROBLEM(check, line, ...) \
	config_problem((check)->problems, (check)->name, line, __VA_ARGS__)

void config_check_discovery(struct check *check, const struct config_service *service);

#endif /* WARMPATH_USER_CONFIG_CHECK_H */
