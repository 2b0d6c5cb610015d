/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What replicas do with the connections that are handed to them (docs/handoff.md, section 10): what the data path sees of a replica's
 * health, without asking it anything.
 *
 * Owns: the value of the map `replica_contacts`. May not know: what follows from it. Part of the contract of layout.h, under its
 * version. The event of a refusal is struct event_refusal in decision.h.
 */
#ifndef WARMPATH_CONTACT_H
#define WARMPATH_CONTACT_H

#include "layout.h"

/*
 * Array `replica_contacts`, key: replica slot. Written by the data path only, and never reset: a slot that gets another replica goes on
 * counting. Of services with id_from = header, or offset over TCP.
 */
struct replica_contact {
	__u64 handed;	/* requests sent to it with a new connection */
	__u64 answered; /* of them, those it has acknowledged: its server listens */
	__u64 refused; /* of them, those it has reset instead: no server listens, or nobody there takes connections over */
	__u64 repeated; /* first segments sent again by their clients as nothing had been answered: it is silent */
	__u64 aborted; /* connections it has reset with a request that it had acknowledged, but not answered in full */
	__u64 errors; /* answers in full with a status from 500 on */
	__u64 answered_nanoseconds; /* when it last acknowledged a new connection; coarse monotonic clock, 0: never */
	__u64 refused_nanoseconds; /* when it last refused one */
	__u64 told_nanoseconds;	   /* when the last event about it was written */
	__u32 refused_in_a_row;	   /* since it last acknowledged one */
	__u32 reserved;
};
_Static_assert(sizeof(struct replica_contact) == 80, "layout");

/*
 * For how long after a refusal no request is decided for the replica, as long as another one can take it: until the agent has
 * heard of it and said what is to be done.
 */
#define CONTACT_AVOIDED_NANOSECONDS 1000000000ULL

#endif /* WARMPATH_CONTACT_H */
