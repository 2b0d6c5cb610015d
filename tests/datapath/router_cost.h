/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What router_cost.bpf.c can be told between runs. */
#ifndef WARMPATH_TESTS_ROUTER_COST_H
#define WARMPATH_TESTS_ROUTER_COST_H

enum router_cost_vary {
	VARY_NOTHING,
	VARY_AT_RANDOM, /* four bytes, as a number in network order */
	VARY_IN_TURN,	/* the same, one after the other */
	VARY_ID,	/* eight bytes, letters; at random */
};

enum router_cost_forget {
	FORGET_NOTHING,
	FORGET_FLOW,	    /* the next packet opens it again */
	FORGET_CONNECTION,  /* the next packet is a first request again */
	RESTORE_CONNECTION, /* it becomes what it was before the packet (struct kept) */
};

#endif /* WARMPATH_TESTS_ROUTER_COST_H */
