/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counting what happens.
 *
 * Owns: the map `counters`. May not know: what is counted, and why.
 */
#ifndef WARMPATH_BPF_COUNTERS_H
#define WARMPATH_BPF_COUNTERS_H

#include "maps.h"

/* counter: OUTCOME_* or NOTE_* (include/warmpath/outcome.h). */
static __always_inline void count(__u32 counter)
{
	__u32 first = 0;
	__u64 *fields = bpf_map_lookup_elem(&counters, &first);

	if (fields && counter < COUNTER_COUNT)
		fields[counter]++;
}

#endif /* WARMPATH_BPF_COUNTERS_H */
