/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one way out: counts how the packet ended and says so to the kernel.
 *
 * Owns: the verdict that belongs to an outcome. May not know: why a packet ended so.
 */
#ifndef WARMPATH_BPF_EXIT_H
#define WARMPATH_BPF_EXIT_H

#include "counters.h"
#include "packet.h"

enum verdict_class {
	VERDICT_PASS,
	VERDICT_DROP,
	VERDICT_FORWARD, /* as the helper that sent the packet said: scratch->verdict */
	VERDICT_ANSWER,	 /* the same */
};

static const volatile __u8 outcome_verdicts[OUTCOME_COUNT] = {
#define X(name, verdict, sentence) [OUTCOME_##name] = VERDICT_##verdict,
	WARMPATH_OUTCOMES(X)
#undef X
};

static __always_inline int leave(const struct scratch *scratch, __u32 outcome)
{
	__u8 verdict;

	WARMPATH_BARRIER(outcome);
	if (outcome >= OUTCOME_COUNT)
		outcome = OUTCOME_drop_internal;
	count(outcome);
	verdict = outcome_verdicts[outcome];
	if (verdict == VERDICT_PASS)
		return CONTEXT_PASS;
	if (verdict == VERDICT_DROP)
		return CONTEXT_DROP;
	return scratch->verdict;
}

#endif /* WARMPATH_BPF_EXIT_H */
