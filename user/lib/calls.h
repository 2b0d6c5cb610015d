/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calling the programs in the kernel that are called like functions (include/warmpath/calls.h).
 *
 * Owns: the call. May not know: how the programs were loaded.
 */
#ifndef WARMPATH_USER_CALLS_H
#define WARMPATH_USER_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <warmpath/calls.h>

#include "lib/error.h"

/*
 * Runs `program` once on the argument of `size` bytes, which is overwritten by what comes back. 0, or a negative errno if the
 * program could not be run at all; what it answers is in the argument.
 */
int call_program(int program, void *argument, size_t size);

/* Each: 0, or a negative errno with a sentence. program: descriptor of warmpath_control. */

/* The replica enters the service's set of candidates, or leaves it. */
int control_set_member(int program, __u32 service, __u32 replica, bool member, struct error *error);

/* Gives the charge of the request back if it is still open; *closed says whether that was so. */
int control_close_request(int program, const struct open_request_key *key, __u64 number,
			  enum completion_status status, bool *closed, struct error *error);

/* Takes the entry of a request away, if that has ended; *forgotten says whether that was so. */
int control_forget_request(int program, const struct open_request_key *key, bool *forgotten,
			   struct error *error);

/* Sets the replica's mark, and reads its load and the service's number of decisions, in one moment. */
int control_mark(int program, __u32 service, __u32 replica, struct replica_load *load,
		 __u64 *decisions, struct error *error);

/* The replica's load, all of one moment. */
int control_read(int program, __u32 service, __u32 replica, struct replica_load *load,
		 struct error *error);

/* Adds to the replica's load, or takes off where negative. */
int control_repair(int program, __u32 service, __u32 replica, __s64 requests, __s64 tokens,
		   struct error *error);

/* The same with what others than this router have sent to the replica: no load of ours is repaired. */
int control_add_foreign(int program, __u32 service, __u32 replica, __s64 requests, __s64 tokens,
			struct error *error);

#endif /* WARMPATH_USER_CALLS_H */
