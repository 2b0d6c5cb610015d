/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that are handed over, with their packets changed at random: whole exchanges of a client and its replicas go through the
 * router's programs and what they forward through the replica's, and copies of every frame, changed, go in between. Nobody says what becomes of a
 * changed one; what has to hold for all is checked here, and that loads add up.
 *
 *	test_exchanges [SEED [PACKETS]]		another run; a failure prints its seed
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <warmpath/handoff_counters.h>
#include <warmpath/outcome.h>

#include "decode.h"
#include "dialogue.h"
#include "expect.h"
#include "fixture.h"
#include "group.h"
#include "handoff.skel.h"
#include "invariants.h"
#include "mutate.h"

#define EXCHANGES_BETWEEN_AUDITS 200

static long packets = 40000, sent;
static long long ends[OUTCOME_COUNT], handoff_ends[HANDOFF_COUNTER_COUNT];
static struct handoff_bpf *handoff;
static enum program program;
static uint64_t exchange_seed;

/* --- what always holds, at the router -------------------------------------------------------------------------- */

static void wrong(const uint8_t *in, int in_length, const uint8_t *out, int out_length,
		  const char *where, const char *what)
{
	packet_print_difference(in, in_length, out, out_length);
	fail_msg("seed %llu, %s: %s", (unsigned long long)exchange_seed, where, what);
}

/* Sent on as it was: everything but what a translation and a mark change is the same. */
static const char *check_same_content(const uint8_t *in, const struct decoded *before,
				      const uint8_t *out, const struct decoded *after, int length)
{
	static uint8_t allowed[PACKET_SIZE_MAX];
	int ip = before->network, tcp = before->transport;

	memset(allowed, 0, length);
	memset(allowed, 1, 12);
	memset(allowed + before->source_at, 1, 2 * before->address_size);
	if (before->family == AF_INET)
		memset(allowed + ip + 4, 1,
		       8); /* identification, fragment bits, hop limit, checksum */
	else
		memset(allowed + ip + 1, 1, 3); /* flow label */
	if (before->family == AF_INET)
		allowed[ip + 9] = 0; /* the protocol is among those */
	else
		allowed[ip + 7] = 1;
	memset(allowed + tcp, 1, 4);	  /* ports */
	memset(allowed + tcp + 13, 1, 7); /* URG flag, window, checksum, urgent pointer */
	for (int i = 0; i < length; i++)
		if (in[i] != out[i] && !allowed[i])
			return "sent on, but other bytes changed as well";
	if ((in[tcp + 13] ^ out[tcp + 13]) & ~URG)
		return "a flag changed";
	if (decode_network_sum(in, before) != decode_network_sum(out, after) ||
	    (before->checksum_at &&
	     decode_transport_sum(in, before) != decode_transport_sum(out, after)))
		return "a checksum was adjusted wrongly";
	return NULL;
}

static const char *check_connection(const uint8_t *in, int length, const struct run *run,
				    enum packet_outcome outcome, enum link link)
{
	struct decoded before = decode_frame(in, length);
	struct decoded after = decode_frame(run->bytes, run->length);
	int tail = before.end - before.transport - 20;
	bool same;

	if (!before.valid)
		return "handled, but not a packet with all its headers";
	if (!after.valid || after.protocol != IPPROTO_TCP || after.end > run->length)
		return "what came out is not TCP";
	same = run->length == length && before.end == after.end &&
	       before.transport == after.transport && tail >= 0 &&
	       !memcmp(in + before.transport + 20, run->bytes + after.transport + 20, tail);
	if (outcome_verdict(outcome) == FORWARD && same)
		return check_same_content(in, &before, run->bytes, &after, length);
	if (!decode_network_sum_is_right(run->bytes, &after) ||
	    decode_transport_sum(run->bytes, &after) != 0xffff)
		return "a checksum is wrong";
	if (outcome_verdict(outcome) == ANSWER && link == LINK_CLIENTS &&
	    memcmp(run->bytes + after.source_at + after.address_size, in + before.source_at,
		   after.address_size))
		return "the answer goes to somebody else";
	return NULL;
}

/* An ICMP error about held bytes that had taken the packet's place quotes those. */
static const char *check_icmp_answer(const uint8_t *in, int length, const struct run *run)
{
	struct decoded before = decode_frame(in, length);
	struct decoded after = decode_frame(run->bytes, run->length);
	struct decoded quoted;

	if (!before.valid || !after.valid || after.protocol == IPPROTO_TCP)
		return "what came out is no ICMP error";
	quoted = decode_ip(run->bytes, after.transport + 8, after.end);
	if (!decode_network_sum_is_right(run->bytes, &after) ||
	    decode_transport_sum(run->bytes, &after) != 0xffff)
		return "a checksum of the answer is wrong";
	if (memcmp(run->bytes + after.source_at + after.address_size, in + before.source_at,
		   before.address_size) ||
	    memcmp(run->bytes + quoted.source_at, in + before.source_at, 2 * before.address_size))
		return "the answer is about somebody else";
	return NULL;
}

/* Those that are about any packet, and those about connections by address and datagrams, have rules of their own. */
static bool is_of_connections(enum packet_outcome outcome)
{
	return outcome >= OUTCOME_answered_handshake || outcome == OUTCOME_forwarded ||
	       outcome == OUTCOME_forwarded_by_stack || outcome == OUTCOME_returned ||
	       outcome == OUTCOME_returned_by_stack;
}

static void run_changed(const uint8_t *bytes, int length, enum link link)
{
	enum packet_outcome outcome = OUTCOME_not_ours;
	const char *what;
	struct run run;
	int counted;

	if (world_run(program, link, bytes, length, 0, &run)) {
		/* some kernels make no skb of so little */
		assert_true(program != PROGRAM_XDP && length < 54);
		return;
	}
	sent++;
	counted = invariants_outcome(&run);
	if (counted < 0) {
		wrong(bytes, length, run.bytes, run.length, world_program_name(program),
		      "not exactly one outcome was counted");
		return;
	}
	outcome = counted;
	ends[outcome]++;
	if (!is_of_connections(outcome) || decode_frame(bytes, length).later_fragment) {
		what = invariants_check(bytes, length, &run, program, &outcome);
		if (what && outcome_verdict(outcome) == ANSWER)
			what = check_icmp_answer(bytes, length, &run);
	} else if (!invariants_verdict_fits(&run, program, outcome)) {
		what = "the verdict is not the outcome's";
	} else {
		what = outcome_verdict(outcome) == DROP
			       ? NULL
			       : check_connection(bytes, length, &run, outcome, link);
	}
	if (what)
		wrong(bytes, length, run.bytes, run.length, counter_name(outcome), what);
}

/* --- and at the replica ---------------------------------------------------------------------------------------- */

static void read_handoff_counters(int64_t *sums, int sign)
{
	int cpus = libbpf_num_possible_cpus();
	struct handoff_counters *values = calloc(cpus, sizeof(*values));
	uint32_t first = 0;

	assert_non_null(values);
	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(handoff->maps.handoff_counters), &first, values),
		0);
	for (int cpu = 0; cpu < cpus; cpu++)
		for (int i = 0; i < HANDOFF_COUNTER_COUNT; i++)
			sums[i] += sign * (int64_t)((uint64_t *)&values[cpu])[i];
	free(values);
}

/* The mark is taken off or changed, nothing else. */
static const char *check_at_replica(const uint8_t *in, int length, const uint8_t *out,
				    int out_length, int verdict, int counted)
{
	struct decoded before = decode_frame(in, length), after = decode_frame(out, out_length);

	if (verdict != TC_ACT_UNSPEC && verdict != TC_ACT_SHOT && verdict != TC_ACT_REDIRECT)
		return "a verdict that it does not have";
	if (counted > 1)
		return "more than one thing was counted";
	if (verdict == TC_ACT_SHOT)
		return counted ? NULL : "dropped, and not counted";
	if (length != out_length)
		return "longer or shorter than it was";
	if (!counted)
		return memcmp(in, out, length) ? "not marked, but changed" : NULL;
	/* lengths that contradict themselves are the stack's to find, which comes after: then only headers may differ */
	if (!before.valid)
		return memcmp(in, out, 12) ||
				       (length > 94 && memcmp(in + 94, out + 94, length - 94))
			       ? "bytes changed that are no headers"
			       : NULL;
	return check_same_content(in, &before, out, &after, length);
}

static void run_at_replica(const uint8_t *bytes, int length)
{
	static uint8_t out[PACKET_SIZE_MAX];
	struct __sk_buff context = {.ifindex = world_interface(LINK_SERVERS)};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = bytes, .data_size_in = length,
		    .data_out = out, .data_size_out = sizeof(out), .ctx_in = &context,
		    .ctx_size_in = sizeof(context));
	int64_t counters[HANDOFF_COUNTER_COUNT] = {};
	const char *what;
	int counted = 0;

	read_handoff_counters(counters, -1);
	if (bpf_prog_test_run_opts(bpf_program__fd(handoff->progs.warmpath_handoff_tc), &options)) {
		assert_true(length < 54);
		return;
	}
	sent++;
	read_handoff_counters(counters, 1);
	for (int i = 0; i < HANDOFF_COUNTER_COUNT; i++) {
		counted += counters[i];
		handoff_ends[i] += counters[i];
	}
	assert_int_equal(counters[HANDOFF_drop_rewrite_failed], 0);
	what = check_at_replica(bytes, length, out, options.data_size_out, (int)options.retval,
				counted);
	if (what)
		wrong(bytes, length, out, options.data_size_out, "at the replica", what);
}

/* --- exchanges --------------------------------------------------------------------------------------------------- */

/* Behind each step: copies of its frame, changed; and what was forwarded reaches the replica, as it is and changed. */
static void disturb(const struct segment *segment)
{
	static uint8_t valid[PACKET_SIZE_MAX], forwarded[PACKET_SIZE_MAX], bytes[PACKET_SIZE_MAX];
	int length, out_length, changed;
	enum link link;

	memcpy(valid, dialogue_frame(&length, &link), sizeof(valid));
	out_length = 0;
	dialogue_output(&out_length);
	memcpy(forwarded, dialogue_output(&out_length), out_length);
	sent++;
	ends[segment->outcome]++;
	if (segment->outcome == OUTCOME_forwarded && out_length <= MUTATE_LONGEST) {
		run_at_replica(forwarded, out_length);
		if (segment->urgent && mutate_below(2)) {
			memcpy(bytes, forwarded, out_length);
			changed = mutate_frame(bytes, out_length);
			run_at_replica(bytes, changed);
		}
	}
	for (int i = mutate_below(4); i > 0 && length <= MUTATE_LONGEST; i--) {
		memcpy(bytes, valid, length);
		changed = mutate_below(16) ? mutate_frame(bytes, length) : length;
		run_changed(bytes, changed, link);
	}
}

static const char *const requests[] = {
	"GET / HTTP/1.1\r\nHost: a\r\nx-conversation-id: conv1\r\n\r\n",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-Conversation-ID: conv2\r\n"
	"x-prompt-tokens: 900\r\nContent-Length: 5\r\n\r\nhello",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\nno id at all",
	"POST / HTTP/1.1\r\nHost: a\r\nx-conversation-id: conv3\r\nTransfer-Encoding: chunked\r\n\r\n"
	"5\r\nhello\r\n0\r\n\r\n",
	"HEAD / HTTP/1.1\r\nHost: a\r\nx-conversation-id: conv4\r\n\r\n",
	"GET /1 HTTP/1.1\r\nHost: a\r\nx-conversation-id: conv5\r\n\r\n"
	"GET /2 HTTP/1.1\r\nHost: a\r\nx-conversation-id: conv6\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nx-conversation-id: not valid\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nx-conversation-id: conv7\r\nExpect: 100-continue\r\n"
	"Content-Length: 3\r\n\r\nabc",
	"GET / HTTP/1.0\r\nx-conversation-id: conv8\r\nConnection: keep-alive\r\n\r\n",
	"\x16\x03\x01\x02",
	"x",
};

static const char *const answers[] = {
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
	"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nmuch is to come",
	"no HTTP at all",
};

#define SOME(list) list[mutate_below(sizeof(list) / sizeof(list[0]))]

/* Whole, or in up to three pieces. Returns the last segment that was forwarded, or the last one. */
static struct segment send_request(struct dialogue *dialogue, const char *text)
{
	int pieces = mutate_below(3) ? 1 : 2 + mutate_below(2);
	size_t length = strlen(text), from = 0;
	struct segment found = {}, segment;
	char piece[512];

	for (int i = 1; i <= pieces && from < length; i++) {
		size_t to = i == pieces ? length : from + 1 + mutate_below(length - from);

		snprintf(piece, sizeof(piece), "%.*s", (int)(to - from), text + from);
		segment = dialogue_send(dialogue, ACK | PSH, piece);
		disturb(&segment);
		if (i == 1 || segment.outcome == OUTCOME_forwarded)
			found = segment;
		from = to;
	}
	return found;
}

static void send_answer(struct dialogue *dialogue, const struct world_replica *replica)
{
	const char *text = SOME(answers);
	size_t length = strlen(text), cut = mutate_below(2) ? length : 1 + mutate_below(length);
	struct segment segment;
	char piece[512];

	if (!mutate_below(12)) {
		segment = dialogue_reply(dialogue, replica, dialogue->service_next,
					 dialogue->client_next, RST, NULL);
		disturb(&segment);
		return;
	}
	if (!mutate_below(12)) {
		/* of an older socket: it knows nothing of the request */
		segment = dialogue_reply(dialogue, replica, dialogue->service_next,
					 dialogue->client_next - 2000, ACK, NULL);
		disturb(&segment);
	}
	segment = dialogue_answer(dialogue, replica, NULL);
	disturb(&segment);
	snprintf(piece, sizeof(piece), "%.*s", (int)cut, text);
	segment = dialogue_answer(dialogue, replica, piece);
	disturb(&segment);
	if (cut < length) {
		segment = dialogue_answer(dialogue, replica, text + cut);
		disturb(&segment);
	}
	segment = dialogue_send(dialogue, ACK, NULL);
	disturb(&segment);
}

static void end_exchange(struct dialogue *dialogue, const struct world_replica *replica)
{
	struct segment segment;

	switch (mutate_below(4)) {
	case 0:
		segment = dialogue_send(dialogue, RST, NULL);
		disturb(&segment);
		break;
	case 1:
		segment = dialogue_send(dialogue, FIN | ACK, NULL);
		disturb(&segment);
		if (!replica)
			break;
		segment = dialogue_reply(dialogue, replica, dialogue->service_next,
					 dialogue->client_next, FIN | ACK, NULL);
		disturb(&segment);
		segment = dialogue_send(dialogue, ACK, NULL);
		disturb(&segment);
		break;
	default:
		break; /* it stays open */
	}
}

static void exchange(void)
{
	struct dialogue dialogue =
		dialogue_new(program, mutate_below(2), 20000 + mutate_below(400));
	const struct world_replica *replica = NULL, *now;
	uint8_t options[20] = {2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7};
	static const int lengths[] = {0, 4, 6, 16, 20};
	struct segment segment;
	int length = SOME(lengths);

	exchange_seed = mutate_seed;
	/* another connection than the last one on these ports */
	dialogue.client_next += mutate_below(1u << 31);
	segment = dialogue_syn(&dialogue, options, length, mutate_below(4) ? 0 : ECE | CWR);
	disturb(&segment);
	dialogue.timestamps = length >= 16;
	segment = dialogue_send(&dialogue, ACK, NULL);
	disturb(&segment);
	for (int i = mutate_below(4); i > 0; i--) {
		segment = send_request(&dialogue, SOME(requests));
		now = segment.sent ? dialogue_replica_of(&segment) : NULL;
		if (now)
			replica = now;
		if (replica && mutate_below(8))
			send_answer(&dialogue, replica);
	}
	end_exchange(&dialogue, replica);
}

/* --- the books ----------------------------------------------------------------------------------------------------- */

/* The service's load is that of its replicas, and theirs is that of the open requests. */
static void audit(void)
{
	static struct replica_load expected[REPLICAS_MAX];
	const struct world_replica *replica = dialogue_services[DIALOGUE_API].replicas;
	struct open_request_key key, *last = NULL;
	uint32_t service = DIALOGUE_API, slot;
	struct open_request request;
	struct service_load sums;
	struct replica_load load;
	uint64_t requests_sum = 0, tokens_sum = 0;

	memset(expected, 0, sizeof(expected));
	for (; !bpf_map_get_next_key(world_map("requests"), last, &key); last = &key) {
		assert_int_equal(bpf_map_lookup_elem(world_map("requests"), &key, &request), 0);
		if (!request.number)
			continue;
		expected[request.replica].requests += request.request_charge;
		expected[request.replica].tokens += request.charge;
	}
	for (; replica->name; replica++) {
		slot = dialogue_slot_of(replica);
		assert_int_equal(bpf_map_lookup_elem(world_map("replica_loads"), &slot, &load), 0);
		if (load.requests != expected[slot].requests ||
		    load.tokens != expected[slot].tokens)
			fail_msg(
				"seed %llu: %s has a load of %u requests and %llu tokens, its open "
				"requests are %u and %llu",
				(unsigned long long)exchange_seed, replica->name, load.requests,
				(unsigned long long)load.tokens, expected[slot].requests,
				(unsigned long long)expected[slot].tokens);
		requests_sum += load.requests;
		tokens_sum += load.tokens;
	}
	assert_int_equal(bpf_map_lookup_elem(world_map("service_loads"), &service, &sums), 0);
	assert_int_equal(sums.requests, requests_sum);
	assert_int_equal(sums.tokens, tokens_sum);
}

static void test_exchanges(void **state)
{
	static const enum packet_outcome reached[] = {
		OUTCOME_forwarded,
		OUTCOME_returned,
		OUTCOME_answered_handshake,
		OUTCOME_answered_piece,
		OUTCOME_answered_bad_request,
		OUTCOME_answered_after_error,
		OUTCOME_answered_unavailable,
		OUTCOME_absorbed_handshake,
		OUTCOME_drop_connection_unknown,
		OUTCOME_drop_stale_answer,
	};

	(void)state;
	for (long exchanges = 1; sent < packets; exchanges++) {
		program = mutate_below(2) ? PROGRAM_XDP : PROGRAM_TC;
		exchange();
		if (exchanges % EXCHANGES_BETWEEN_AUDITS == 0) {
			audit();
			if (!mutate_below(4))
				expect_forget();
		}
	}
	audit();
	printf("# %ld packets\n", sent);
	for (int i = 0; i < OUTCOME_COUNT; i++)
		if (ends[i])
			printf("# %-28s %lld\n", counter_name(i), ends[i]);
	for (int i = 0; i < HANDOFF_COUNTER_COUNT; i++)
		printf("# at the replica: %-14s %lld\n",
		       (const char *const[]){
#define X(name, sentence) #name,
			       WARMPATH_HANDOFF_COUNTERS(X)
#undef X
		       }[i],
		       handoff_ends[i]);
	/* a run that hardly ever reaches the data path would prove nothing */
	for (size_t i = 0; i < sizeof(reached) / sizeof(reached[0]); i++)
		if (ends[reached[i]] < packets / 20000)
			fail_msg("%s: %lld only", counter_name(reached[i]), ends[reached[i]]);
	/* the kernel makes no socket of a test run's packet: it is asked, and that is what is counted */
	assert_true(handoff_ends[HANDOFF_handed_over] + handoff_ends[HANDOFF_refused_options] >
		    packets / 1000);
	assert_true(handoff_ends[HANDOFF_drop_mark_forged] > packets / 20000);
}

/* --- set-up ---------------------------------------------------------------------------------------------------------- */

/* On the ports of the replicas, for any address: nothing is ever accepted, but the replica's program finds them. */
static int listen_on(uint16_t port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int listener = socket(AF_INET6, SOCK_STREAM, 0);

	return listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
			       listen(listener, 16)
		       ? -1
		       : 0;
}

static int load_handoff(void)
{
	struct bpf_map *map;

	handoff = handoff_bpf__open();
	if (!handoff)
		return -1;
	bpf_object__for_each_map(map, handoff->obj)
	{
		bpf_map__set_pin_path(map, NULL);
		if (strcmp(bpf_map__name(map), "handoff_keys") == 0 &&
		    bpf_map__reuse_fd(map, world_map("handoff_keys")))
			return -1;
	}
	return handoff_bpf__load(handoff);
}

static int load(void **state)
{
	(void)state;
	if (world_load(false) || dialogue_configure() || load_handoff())
		return -1;
	for (const struct world_replica *replica = dialogue_services[DIALOGUE_API].replicas;
	     replica->name; replica++)
		if (listen_on(replica->port))
			return -1;
	return 0;
}

static int unload(void **state)
{
	(void)state;
	handoff_bpf__destroy(handoff);
	world_unload();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_exchanges)};

	group_begin();
	if (!world_kernel_has("bpf_sk_assign_tcp_reqsk")) {
		printf("1..1\nok 1 # SKIP this kernel has no bpf_sk_assign_tcp_reqsk (6.9)\n");
		return 0;
	}
	if (getenv("WARMPATH_PACKETS"))
		packets = strtol(getenv("WARMPATH_PACKETS"), NULL, 0);
	if (argc > 1)
		mutate_seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		packets = strtol(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, load, unload);
}
