/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packet that ring_lookup.bpf.c takes as its question and gives back as its answer.
 */
#ifndef WARMPATH_TESTS_RING_LOOKUP_H
#define WARMPATH_TESTS_RING_LOOKUP_H

#include <warmpath/layout.h>

#define LOOKUP_KEYS 32

enum lookup_status {
	LOOKUP_DONE = 1,
	LOOKUP_NO_RING = 2,
	LOOKUP_FAILED = 3, /* `error` says how */
};

struct lookup {
	/* question */
	__u32 service;
	__u32 id_length; /* 0: `hash` is the key */
	__u64 hash;	 /* also an answer */
	__u8 id[ID_LENGTH_MAX];
	/* answer */
	__u64 generation;
	enum lookup_status status;
	__s32 error;
	__u32 point;		/* the key's point */
	__u32 replica;		/* ring_home() */
	__u32 replica_of_point; /* ring_point() of `point` */
	__u32 reserved;
	__u32 homes
		[LOOKUP_KEYS]; /* of the keys hash + i * LOOKUP_STEP, looked up one after another */
};

#define LOOKUP_STEP 0x9e3779b97f4a7c15ULL

#endif /* WARMPATH_TESTS_RING_LOOKUP_H */
