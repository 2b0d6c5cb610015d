/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capabilities the agent keeps once it has started.
 *
 * Owns: the list and why each is on it. May not know: anything else.
 */
#ifndef WARMPATH_AGENT_PRIVILEGES_H
#define WARMPATH_AGENT_PRIVILEGES_H

/* Gives up all capabilities but those of the list. Failing is logged: the agent then runs with what it has. */
void drop_privileges(void);

#endif /* WARMPATH_AGENT_PRIVILEGES_H */
