/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How tests over the real programs begin and end.
 *
 * Owns: what such a test program does before its first test, and setups and teardowns of cmocka's that many have. May not know: any packet.
 */
#ifndef WARMPATH_TESTS_GROUP_H
#define WARMPATH_TESTS_GROUP_H

/*
 * Makes the links of world.h in a network of this process, and what packets are built from. Ends the process if that cannot be: as skipped
 * without root.
 */
void group_begin(void);

/* The programs of a router, without services. 0 or -1. */
int group_load(void **state);

/* The same with the fixture's services. */
int group_load_services(void **state);

/* 0 */
int group_unload(void **state);

#endif /* WARMPATH_TESTS_GROUP_H */
