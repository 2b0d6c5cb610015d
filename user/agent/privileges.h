/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capabilities the agent keeps once it has started.
 *
 * Owns: the list and why each is on it. May not know: anything else.
 */
#ifndef WARMPATH_AGENT_PRIVILEGES_H
#define WARMPATH_AGENT_PRIVILEGES_H

#include <stdbool.h>

/*
 * Gives up all capabilities but those of the list, and CAP_SYS_ADMIN unless `opens_by_id`: the agent goes on opening programs and maps by
 * their ids, for which the kernel has no smaller one. Failing is logged: the agent then runs with what it has.
 */
void drop_privileges(bool opens_by_id);

#endif /* WARMPATH_AGENT_PRIVILEGES_H */
