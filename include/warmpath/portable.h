/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What makes one header compile in both worlds: as BPF (vmlinux.h, clang -target bpf) and as userspace C.
 *
 * Owns: fixed-width types, always-inline, byte order. May not know: anything of warmpath itself.
 */
#ifndef WARMPATH_PORTABLE_H
#define WARMPATH_PORTABLE_H

#ifdef __bpf__

#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#else

#include <endian.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif
#ifndef __noinline
#define __noinline __attribute__((__noinline__))
#endif
#define bpf_htons(x)	   htobe16(x)
#define bpf_ntohs(x)	   be16toh(x)
#define bpf_htonl(x)	   htobe32(x)
#define bpf_ntohl(x)	   be32toh(x)
#define bpf_cpu_to_be64(x) htobe64(x)
#define bpf_be64_to_cpu(x) be64toh(x)

#endif /* __bpf__ */

/*
 * Hides a value's origin from the optimiser, so that clang 19 does not turn a branch-free selection back into
 * branches whose paths the verifier of 6.18 and later would walk one by one (docs/design.md, "verifier").
 */
#define WARMPATH_BARRIER(value) asm volatile("" : "+r"(value))

/*
 * Makes the compiler read memory again where it is used next, rather than keep what it read in copies on the stack, of
 * which BPF has 512 bytes. A local array counts only if its origin is hidden by WARMPATH_BARRIER.
 */
#define WARMPATH_READ_AGAIN() asm volatile("" : : : "memory")

/*
 * Is *size from 1 to max? Asked so that the verifier of 6.1 remembers both bounds: it does not conclude from a comparison with zero that a
 * size is at least 1, and the optimiser would make one unsigned comparison of the two.
 */
static __always_inline bool warmpath_size_within(__u32 *size, __u32 max)
{
	__u32 value = *size;

	WARMPATH_BARRIER(value);
	if ((__s32)value < 1)
		return false;
	WARMPATH_BARRIER(value);
	if (value > max)
		return false;
	*size = value;
	return true;
}

#endif /* WARMPATH_PORTABLE_H */
