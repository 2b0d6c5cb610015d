/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of the data path, summed over the CPUs, with their names and sentences (include/warmpath/outcome.h).
 *
 * Owns: reading and naming them. May not know: who asks; they are read from the pinned map also when no agent runs.
 */
#ifndef WARMPATH_USER_COUNTERS_H
#define WARMPATH_USER_COUNTERS_H

#include <jansson.h>
#include <warmpath/outcome.h>

#include "lib/error.h"

struct counter_description {
	const char *name;
	const char *
		verdict; /* "forward", "pass", "answer", "drop"; "note" for what is not an end of a packet */
	const char *sentence;
};

/* In the order of the fields of struct counters. */
extern const struct counter_description counter_descriptions[COUNTER_COUNT];

/* Sums the per-CPU map with descriptor `map`. 0 or a negative errno. */
int counters_read(int map, struct counters *counters);

/* The same from the map pinned below `pin_path`. 0 or a negative errno with a sentence. */
int counters_read_pinned(const char *pin_path, struct counters *counters, struct error *error);

/* The value at position `index` (0 to COUNTER_COUNT - 1). */
__u64 counters_value(const struct counters *counters, unsigned int index);

/* All of them as {"name": number, ...}; a new reference. */
json_t *counters_json(const struct counters *counters);

#endif /* WARMPATH_USER_COUNTERS_H */
