/* SPDX-License-Identifier: BSD-2-Clause */
/* See invariants.h. */
#include "invariants.h"

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "packets.h"

static const struct {
	const char *name;
	enum verdict verdict;
} counter_table[COUNTER_COUNT] = {
#define X(name, verdict, sentence) [OUTCOME_##name] = {#name, verdict},
	WARMPATH_OUTCOMES(X)
#undef X
#define X(name, sentence) [NOTE_##name] = {#name, PASS},
		WARMPATH_NOTES(X)
#undef X
};

static const int kernel_verdicts[PROGRAM_COUNT][4] = {
	[PROGRAM_XDP] = {XDP_PASS, XDP_DROP, XDP_REDIRECT, XDP_REDIRECT},
	[PROGRAM_TC] = {TC_ACT_UNSPEC, TC_ACT_SHOT, TC_ACT_REDIRECT, TC_ACT_REDIRECT},
	[PROGRAM_RETURN] = {TC_ACT_UNSPEC, TC_ACT_SHOT, TC_ACT_REDIRECT, TC_ACT_REDIRECT},
};

enum verdict outcome_verdict(enum packet_outcome outcome)
{
	return counter_table[outcome].verdict;
}

const char *counter_name(int counter)
{
	return counter >= 0 && counter < COUNTER_COUNT ? counter_table[counter].name : "(none)";
}

int invariants_outcome(const struct run *run)
{
	int found = -1;

	for (int i = 0; i < OUTCOME_COUNT; i++) {
		if (!run->counters[i])
			continue;
		if (found >= 0 || run->counters[i] != 1)
			return -1;
		found = i;
	}
	return found;
}

/* Marks bytes that may differ. */
static void allow(uint8_t *allowed, int from, int size)
{
	memset(allowed + from, 1, size);
}

static void allow_ip(uint8_t *allowed, const struct decoded *packet)
{
	allow(allowed, packet->source_at, 2 * packet->address_size);
	if (packet->family == AF_INET)
		allow(allowed, packet->network + 10, 2);
}

static void allow_transport(uint8_t *allowed, const struct decoded *packet)
{
	if (packet->later_fragment)
		return;
	if (packet->protocol == IPPROTO_UDP || packet->protocol == IPPROTO_TCP)
		allow(allowed, packet->transport, 4);
	if (packet->checksum_at)
		allow(allowed, packet->checksum_at, 2);
}

/* Sums have to be as they were. A UDP checksum of 0 is none, and stays so. */
static const char *compare_sums(const uint8_t *in, const struct decoded *before, const uint8_t *out,
				const struct decoded *after)
{
	if (decode_network_sum(in, before) != decode_network_sum(out, after))
		return "the IP header's checksum was adjusted wrongly";
	if (!before->checksum_at)
		return NULL;
	if (before->protocol == IPPROTO_UDP && !in[before->checksum_at] &&
	    !in[before->checksum_at + 1])
		return out[after->checksum_at] || out[after->checksum_at + 1]
			       ? "a UDP checksum came from nowhere"
			       : NULL;
	if (decode_transport_sum(in, before) != decode_transport_sum(out, after))
		return "the transport checksum was adjusted wrongly";
	return NULL;
}

static const char *check_translated(const uint8_t *in, int length, const struct run *run, bool sent)
{
	static uint8_t allowed[PACKET_SIZE_MAX + 256];
	struct decoded before = decode_frame(in, length), after, quoted = {};
	const uint8_t *out = run->bytes;
	const char *wrong;
	bool is_icmp;

	if (run->length != length)
		return "translated, but not as long as it was";
	if (!before.valid)
		return "translated, but not a packet with all its headers";
	memset(allowed, 0, length);
	allow_ip(allowed, &before);
	allow_transport(allowed, &before);
	if (sent) {
		allow(allowed, 0, 12);
		allow(allowed, before.network + (before.family == AF_INET ? 8 : 7), 1);
	}
	is_icmp = !before.later_fragment &&
		  (before.protocol == IPPROTO_ICMP || before.protocol == IPPROTO_ICMPV6);
	if (is_icmp) {
		quoted = decode_ip(in, before.transport + 8, before.end);
		if (!quoted.valid)
			return "translated, but nothing is quoted";
		allow_ip(allowed, &quoted);
		allow_transport(allowed, &quoted);
	}
	for (int i = 0; i < length; i++)
		if (in[i] != out[i] && !allowed[i])
			return "translated, but other bytes changed as well";
	after = decode_frame(out, length);
	if (after.hop_limit != before.hop_limit - sent)
		return "the hop limit is not what it ought to be";
	if (!memcmp(in + before.source_at, out + after.source_at, 2 * before.address_size) &&
	    !memcmp(in + before.transport, out + after.transport, 4))
		return "counted as translated, but was not";
	wrong = compare_sums(in, &before, out, &after);
	if (!wrong && is_icmp) {
		struct decoded quoted_after = decode_ip(out, after.transport + 8, after.end);

		wrong = compare_sums(in, &quoted, out, &quoted_after);
	}
	return wrong;
}

static const char *check_answer(const uint8_t *in, int length, const struct run *run)
{
	struct decoded before = decode_frame(in, length);
	struct decoded answer = decode_frame(run->bytes, run->length);
	const uint8_t *out = run->bytes;
	int quoted = answer.end - answer.transport - 8;
	int most = before.family == AF_INET ? 576 : 1280;

	if (!before.valid || !answer.valid || answer.end != run->length)
		return "the answer is not an IP packet as long as the frame";
	if (answer.protocol != (before.family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		return "the answer is not ICMP";
	if (!decode_network_sum_is_right(out, &answer) ||
	    decode_transport_sum(out, &answer) != 0xffff)
		return "a checksum of the answer is wrong";
	if (answer.end - answer.network > most)
		return "the answer is larger than an ICMP error may be";
	if (memcmp(out + answer.source_at, in + before.source_at + before.address_size,
		   before.address_size) ||
	    memcmp(out + answer.source_at + before.address_size, in + before.source_at,
		   before.address_size))
		return "the answer goes to somebody else";
	if (memcmp(out + answer.transport + 8, in + before.network, quoted))
		return "the answer quotes something else";
	if (memcmp(out, in + 6, 6) || memcmp(out + 6, in, 6))
		return "the answer goes to another link address";
	return NULL;
}

bool invariants_verdict_fits(const struct run *run, enum program program,
			     enum packet_outcome outcome)
{
	return run->verdict == kernel_verdicts[program][outcome_verdict(outcome)];
}

const char *invariants_check(const uint8_t *in, int in_length, const struct run *run,
			     enum program program, enum packet_outcome *outcome)
{
	int counted = invariants_outcome(run);
	enum verdict verdict;

	if (counted < 0)
		return "not exactly one outcome was counted";
	*outcome = counted;
	verdict = outcome_verdict(counted);
	if (!invariants_verdict_fits(run, program, counted))
		return "the verdict is not the outcome's";
	switch (counted) {
	case OUTCOME_not_ours:
	case OUTCOME_passed_to_stack:
		if (run->length != in_length || memcmp(run->bytes, in, in_length))
			return "not ours, but modified";
		return NULL;
	case OUTCOME_drop_internal:
	case OUTCOME_drop_rewrite_failed:
		return "an outcome that should never be";
	default:
		break;
	}
	if (verdict == DROP)
		return NULL;
	if (verdict == ANSWER)
		return check_answer(in, in_length, run);
	return check_translated(in, in_length, run, verdict == FORWARD);
}
