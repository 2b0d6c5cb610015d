/* SPDX-License-Identifier: BSD-2-Clause */
/* See handed.h. */
#include "handed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"
#include "group.h"

enum program handed_program;
bool handed_ipv6;

/* A request whose conversation has its home at another replica than any of those. */
const char *handed_request_to_other(const struct world_replica *one,
				    const struct world_replica *other)
{
	static char text[4][256];
	static int turn;
	char id[32];

	for (int i = 0;; i++) {
		const struct world_replica *home;

		snprintf(id, sizeof(id), "other-%d", i);
		home = world_home(DIALOGUE_API, id);
		if (home == one || home == other)
			continue;
		turn = (turn + 1) % 4;
		snprintf(
			text[turn], sizeof(text[turn]),
			"POST /v1/chat HTTP/1.1\r\nX-Conversation-ID: %s\r\nContent-Length: 2\r\n\r\nhi",
			id);
		return text[turn];
	}
}

struct replica_contact handed_contact(const struct world_replica *replica)
{
	struct replica_contact contact;
	uint32_t slot = dialogue_slot_of(replica);

	assert_int_equal(bpf_map_lookup_elem(world_map("replica_contacts"), &slot, &contact), 0);
	return contact;
}

uint32_t handed_charge(const struct world_replica *replica)
{
	struct replica_load load;
	uint32_t slot = dialogue_slot_of(replica);

	assert_int_equal(bpf_map_lookup_elem(world_map("replica_loads"), &slot, &load), 0);
	return load.requests;
}

static int take(void *context, void *data, size_t size)
{
	struct handed_seen *seen = context;
	const struct event_header *header = data;

	if (header->kind == EVENT_DECISION) {
		seen->decisions++;
		memcpy(&seen->decision, data,
		       size < sizeof(seen->decision) ? size : sizeof(seen->decision));
	} else if (header->kind == EVENT_REFUSAL) {
		seen->refusals++;
		memcpy(&seen->refusal, data, sizeof(seen->refusal));
	} else if (header->kind == EVENT_MOVE) {
		seen->moves++;
		memcpy(&seen->move, data, sizeof(seen->move));
	}
	return 0;
}

struct handed_seen handed_read_events(void)
{
	struct handed_seen seen = {};
	struct ring_buffer *buffer = ring_buffer__new(world_map("events"), take, &seen, NULL);

	assert_non_null(buffer);
	ring_buffer__consume(buffer);
	ring_buffer__free(buffer);
	return seen;
}

struct dialogue handed_connect(uint16_t port)
{
	struct dialogue dialogue = dialogue_new(handed_program, handed_ipv6, port);

	dialogue_connect(&dialogue);
	return dialogue;
}

/* Sends the first request, which is handed over to its home; the home. */
const struct world_replica *handed_first(struct dialogue *dialogue, const char *request)
{
	struct segment segment = dialogue_send(dialogue, ACK | PSH, request);

	dialogue_expect(&segment, forwarded);
	assert_true(dialogue_is_start(dialogue, &segment));
	assert_string_equal(segment.payload, request);
	return dialogue_replica_of(&segment);
}

/* The owner acknowledges it and answers; the client acknowledges that. */
void handed_serve(struct dialogue *dialogue, const struct world_replica *owner, const char *answer)
{
	struct segment segment = dialogue_answer(dialogue, owner, NULL);

	dialogue_expect(&segment, returned);
	segment = dialogue_answer(dialogue, owner, answer);
	dialogue_expect(&segment, returned);
	assert_string_equal(segment.payload, answer);
	segment = dialogue_send(dialogue, ACK, NULL);
	dialogue_expect(&segment, forwarded);
	assert_ptr_equal(dialogue_replica_of(&segment), owner);
	assert_int_equal(segment.urgent, 0);
}

int handed_entries(const char *map)
{
	struct flow_key key, next;
	int descriptor = world_map(map), count = 0;
	bool first = true;

	while (!bpf_map_get_next_key(descriptor, first ? NULL : &key, &next)) {
		key = next;
		first = false;
		count++;
	}
	return count;
}

int handed_forget(void **unused)
{
	struct trace_settings settings = {.events_per_second = 1000000};
	uint32_t first = 0;

	(void)unused;
	expect_forget();
	dialogue_forget_contacts();
	dialogue_set_keys(0, 1);
	handed_read_events();
	return bpf_map_update_elem(world_map("trace_settings"), &first, &settings, 0);
}

static int load(void **unused)
{
	(void)unused;
	return world_load(false) || dialogue_configure();
}

static int unload(void **unused)
{
	(void)unused;
	world_unload();
	return 0;
}

int handed_run(const struct CMUnitTest *tests, size_t count)
{
	int failed = 0;
	char name[32];

	group_begin();
	for (handed_program = PROGRAM_XDP; handed_program <= PROGRAM_TC; handed_program++) {
		for (int family = 0; family < 2; family++) {
			handed_ipv6 = family;
			snprintf(name, sizeof(name), "%s, IPv%d",
				 world_program_name(handed_program), family ? 6 : 4);
			failed += _cmocka_run_group_tests(name, tests, count, load, unload);
		}
	}
	return failed;
}
