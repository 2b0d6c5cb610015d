/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What holds for every packet whatsoever, also for those that nobody has thought of.
 *
 * Owns: these rules. May not know: the tables of packets, what a particular packet is expected to become.
 *
 *	- exactly one outcome is counted, and the verdict is its own;
 *	- what is left to the kernel as not ours is as it came;
 *	- what is translated is as long as it was; only addresses, ports, hop limit, checksums (and those of a quoted packet), link
 *	  addresses differ, and every sum is as right or wrong as it was;
 *	- the hop limit falls by one if the packet is sent, and stays if the kernel goes on with it;
 *	- an answer is an ICMP error to the sender with right checksums, quoting the packet as it came.
 */
#ifndef WARMPATH_TESTS_INVARIANTS_H
#define WARMPATH_TESTS_INVARIANTS_H

#include "world.h"

/* What an outcome is, by warmpath/outcome.h. */
enum verdict { PASS, DROP, FORWARD, ANSWER };

enum verdict outcome_verdict(enum packet_outcome outcome);
const char *counter_name(int counter);

/* The one outcome that was counted; -1 if there is none, or more than one. */
int invariants_outcome(const struct run *run);

/* Has the program returned what belongs to the outcome? */
bool invariants_verdict_fits(const struct run *run, enum program program,
			     enum packet_outcome outcome);

/* Checks them all. NULL if they hold; else a sentence that says which does not. *outcome: the one counted. */
const char *invariants_check(const uint8_t *in, int in_length, const struct run *run,
			     enum program program, enum packet_outcome *outcome);

#endif /* WARMPATH_TESTS_INVARIANTS_H */
