/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that user space calls like functions (BPF_PROG_TEST_RUN): the argument is the packet, and comes back with the answer in it.
 *
 * Owns: the arguments. May not know: how they are carried out (bpf/decide.bpf.c, bpf/control.bpf.c).
 *
 * They are XDP programs, not SEC("syscall"): up to kernel 6.6 a program of that type may not take a bpf_spin_lock.
 */
#ifndef WARMPATH_CALLS_H
#define WARMPATH_CALLS_H

#include "decision.h"

/* --- warmpath_decide: the decision, without a packet around it ------------------------------------------------ */

enum decide_operation {
	DECIDE_REQUEST = 1, /* decide, charge, remember */
	DECIDE_FINISH = 2,  /* the answer has gone by */
};

struct decide_call {
	enum decide_operation operation;
	__s32 result;	 /* out: 0 or a negative errno */
	__u32 service;	 /* index */
	__u32 id_length; /* 1 to ID_LENGTH_MAX */
	__u64 request;	 /* number given by the caller; another one for each open request */
	__u32 prompt_tokens;
	__u32 max_tokens;
	enum completion_status status; /* DECIDE_FINISH */
	__u32 reserved;
	__u64 id[ID_LENGTH_MAX / 8]; /* zero behind the id */
	struct decision decision;    /* out */
};
_Static_assert(sizeof(struct decide_call) == 40 + 128 + 80, "layout");

/* --- warmpath_control: what the agent changes in loads and requests ------------------------------------------- */

enum control_operation {
	CONTROL_ENTER = 1,  /* the replica enters the set, with the load it has */
	CONTROL_LEAVE = 2,  /* it leaves the set; its load stays on record */
	CONTROL_CLOSE = 3,  /* gives a request's charge back, if it is still open */
	CONTROL_MARK = 4,   /* replica_load.mark = decisions so far; answers as CONTROL_READ */
	CONTROL_READ = 5,   /* answers with the load and the decisions of one moment */
	CONTROL_REPAIR = 6, /* adds what the load lacks, or takes off what is too much */
	CONTROL_FORGET = 7, /* takes a request's entry away, if that has ended */
};

struct control_call {
	enum control_operation operation;
	__s32 result;  /* out: 0; -ENOENT: no such service, replica or request */
	__u32 service; /* index */
	__u32 replica; /* slot */

	/* CONTROL_CLOSE, CONTROL_FORGET */
	struct open_request_key key;
	__u64 number; /* CONTROL_CLOSE: of the decision */
	enum completion_status status;

	/* CONTROL_REPAIR */
	__u32 foreign; /* 1: what is added is no lost charge, and is not counted as one */
	__s64 requests;
	__s64 tokens;

	/* out, of the others */
	__u64 service_decisions;
	struct replica_load replica_load;
};
_Static_assert(sizeof(struct control_call) == 16 + 48 + 16 + 16 + 8 + 56, "layout");

#endif /* WARMPATH_CALLS_H */
