/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The types of the tables that user space creates (a ring's, a service's placements) as BTF: `bpftool map dump` then prints field
 * names instead of bytes.
 *
 * Owns: the description of those structs of layout.h. May not know: maps.
 */
#ifndef WARMPATH_USER_TABLE_TYPES_H
#define WARMPATH_USER_TABLE_TYPES_H

struct btf;

/*
 * The types __u32, __u64, ring_header, ring_point, ring_bucket, ring_member, placement, loaded into the kernel. Free with btf__free().
 * NULL if that is not possible; maps do without.
 */
struct btf *table_types_load(void);

#endif /* WARMPATH_USER_TABLE_TYPES_H */
