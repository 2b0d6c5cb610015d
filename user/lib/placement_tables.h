/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of where conversations were served: one table a service, replaced as a whole.
 *
 * Owns: the inner maps of `placements`. May not know: what is written into them (bpf/lib/requests.h).
 */
#ifndef WARMPATH_USER_PLACEMENT_TABLES_H
#define WARMPATH_USER_PLACEMENT_TABLES_H

#include <warmpath/layout.h>

#include "lib/error.h"

/*
 * Puts an empty table in the place of the service's table, if it has one: from one packet to the next. placements: descriptor of
 * the outer map. max_entries: at least 1.
 * 0; or a negative errno with a sentence, and the service's table is as it was.
 */
int placement_table_replace(int placements, __u32 service, __u32 max_entries, struct error *error);

/* Takes the service's table away. 0, also if there is none; or a negative errno with a sentence. */
int placement_table_clear(int placements, __u32 service, struct error *error);

/* A descriptor of the service's table, to be closed by the caller; -ENOENT: it has none; or another negative errno. */
int placement_table_open(int placements, __u32 service);

/* How many entries the table has room for; 0: there is none. */
__u32 placement_table_size(int placements, __u32 service);

#endif /* WARMPATH_USER_PLACEMENT_TABLES_H */
