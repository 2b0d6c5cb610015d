/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The types of a ring's tables as BTF, for the inner maps that the agent creates: `bpftool map dump` then prints field
 * names instead of bytes.
 *
 * Owns: the description of the ring structs of layout.h. May not know: maps.
 */
#ifndef WARMPATH_USER_RING_TYPES_H
#define WARMPATH_USER_RING_TYPES_H

struct btf;

/*
 * The types __u32, ring_header, ring_point, ring_bucket, ring_member, loaded into the kernel. Free with btf__free(). NULL if that
 * is not possible; maps do without.
 */
struct btf *ring_types_load(void);

#endif /* WARMPATH_USER_RING_TYPES_H */
