/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The Internet checksum, adjusted for what changes rather than computed anew (RFC 1624, equation 3).
 *
 * Owns: sums and differences. May not know: where a checksum stands in a packet, nor how it is written there.
 *
 * A difference is the ones' complement sum of the new words minus the old ones, kept in 64 bits so that carries are folded
 * only once. Words are taken as they lie in the packet: the sum does not depend on the machine's byte order (RFC 1071, 2B).
 */
#ifndef WARMPATH_BPF_CHECKSUM_H
#define WARMPATH_BPF_CHECKSUM_H

#include <warmpath/layout.h>

/* What changes in a sum when a 32-bit word that starts at an even offset is replaced. */
static __always_inline __u64 checksum_difference32(__be32 before, __be32 after)
{
	return (__u64)(__u32)~before + after;
}

/* The same for 16 bits. */
static __always_inline __u64 checksum_difference16(__be16 before, __be16 after)
{
	return (__u64)(__u16)~before + after;
}

static __always_inline __u64 checksum_difference_address(const struct address *before,
							 const struct address *after)
{
	__u64 difference = 0;

	for (int i = 0; i < 4; i++)
		difference += checksum_difference32(before->word[i], after->word[i]);
	return difference;
}

/* To 32 bits, as the kernel's helpers take a difference. */
static __always_inline __u32 checksum_fold32(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	return sum;
}

static __always_inline __u16 checksum_fold16(__u64 sum)
{
	__u32 folded = checksum_fold32(sum);

	folded = (folded & 0xffff) + (folded >> 16);
	folded = (folded & 0xffff) + (folded >> 16);
	return folded;
}

/* A checksum field after what it covers has changed by `difference`. */
static __always_inline __sum16 checksum_adjust(__sum16 checksum, __u64 difference)
{
	return ~checksum_fold16((__u64)(__u16)~checksum + difference);
}

/*
 * The same for UDP, where 0 means "no checksum" and stays so, and a computed 0 is sent as 0xffff (RFC 768).
 */
static __always_inline __sum16 checksum_adjust_udp(__sum16 checksum, __u64 difference)
{
	__sum16 adjusted;

	if (checksum == 0)
		return 0;
	adjusted = checksum_adjust(checksum, difference);
	return adjusted ? adjusted : 0xffff;
}

#endif /* WARMPATH_BPF_CHECKSUM_H */
