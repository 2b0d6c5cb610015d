/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the groups of checks of `warmpath doctor` share.
 *
 * Owns: the form of a finding, what is known about the machine's part before the checks begin. May not know: what any check looks at.
 *
 * A group of checks is a file doctor_GROUP.c with one function, and a line in the table of doctor.c.
 */
#ifndef WARMPATH_CLI_DOCTOR_H
#define WARMPATH_CLI_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/config.h"
#include "lib/netlink.h"

enum finding_level {
	FINDING_OK,
	FINDING_WARNING, /* works, but something may go wrong, or could not be looked at */
	FINDING_PROBLEM, /* does not work so */
};

struct doctor {
	struct config *config;
	const json_t *status; /* what the running agent says; NULL: none answers */
	const char *no_answer; /* and why */
	struct netlink netlink;
	const char *expected_secret; /* fingerprint; NULL: not asked for */

	/* parts that this machine has */
	bool routes;	 /* role router */
	bool inline_;	 /* and the replicas are other machines */
	bool hands_over; /* routes TCP connections by what they carry */
	bool takes_over; /* connections are made here, for servers on this machine */

	json_t *findings;
	unsigned int problems, warnings;
};

/*
 * Notes a finding of the check named `check`. `remedy` says what to do about it (NULL with FINDING_OK); it may have one %s, which
 * stands for `subject`.
 */
void doctor_find(struct doctor *doctor, enum finding_level level, const char *check,
		 const char *remedy, const char *subject, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

/* The number in /proc/sys/PATH, -1 if it cannot be read. */
int doctor_sysctl(const char *path_format, ...) __attribute__((format(printf, 1, 2)));

/* The index of the interface, 0 if it is not there. */
int doctor_interface_index(const char *name);

/* The groups. */
void doctor_check_kernel(struct doctor *doctor);
void doctor_check_tcp(struct doctor *doctor);
void doctor_check_listeners(struct doctor *doctor);
void doctor_check_interfaces(struct doctor *doctor);
void doctor_check_forwarding(struct doctor *doctor);
void doctor_check_replicas(struct doctor *doctor);
void doctor_check_health(struct doctor *doctor);
void doctor_check_secret(struct doctor *doctor);
void doctor_check_counters(struct doctor *doctor);

#endif /* WARMPATH_CLI_DOCTOR_H */
