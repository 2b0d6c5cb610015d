/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A replica enters or leaves the set that new requests are spread over.
 *
 * Owns: what is to be done at that moment besides the ring. May not know: why it enters or leaves.
 */
#ifndef WARMPATH_AGENT_MEMBERSHIP_H
#define WARMPATH_AGENT_MEMBERSHIP_H

#include <stdbool.h>
#include <warmpath/layout.h>

#include "agent/datapath.h"

/*
 * Called for each replica that enters, after the ring has begun to lead to it, and for each that leaves, before the ring ceases to:
 * so who is counted is on every ring that a decision may see (apply.c says when it is the other way round). A replica that changes its address leaves and enters. After a restart it is called again for what may have been said
 * already. 0, or a negative errno with a sentence.
 */
int membership_changed(const struct datapath *datapath, __u32 slot, const struct replica *replica,
		       bool entering, struct error *error);

#endif /* WARMPATH_AGENT_MEMBERSHIP_H */
