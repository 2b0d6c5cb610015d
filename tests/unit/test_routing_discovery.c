/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The union of what the sources of a service have found: who becomes a replica, who stays, who goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/routing.h"
#include "lib/address.h"

#define MEMBERS_MAX (REPLICAS_MAX + 8)

struct fixture {
	struct config config;
	struct config_service service;
	struct config_replica configured[2];
	struct config_discovery source;
	struct routing routing;
	struct discovered_member members[MEMBERS_MAX];
	unsigned int count;
	char problems[16][256];
	unsigned int problem_count;
};

static int ask(void *context, bool in_use[REPLICAS_MAX])
{
	(void)context;
	memset(in_use, 1, REPLICAS_MAX);
	return 0;
}

static const struct slot_usage usage = {.ask = ask};

static void take_problem(void *context, const char *sentence)
{
	struct fixture *fixture = context;

	if (fixture->problem_count < 16)
		snprintf(fixture->problems[fixture->problem_count], 256, "%s", sentence);
	fixture->problem_count++;
}

static struct config_replica wanted(const char *name, const char *address)
{
	struct config_replica replica = {.port = 8001, .weight_thousandths = 1000};

	snprintf(replica.name, sizeof(replica.name), "%s", name);
	assert_int_equal(address_parse(address, &replica.addresses.item[0].address, NULL, NULL), 0);
	replica.addresses.item[0].prefix_length = 128;
	replica.addresses.count = 1;
	return replica;
}

static void merge(struct fixture *fixture, enum routing_merge merge)
{
	struct error error;

	if (routing_merge(&fixture->routing, &fixture->config, merge, &usage, &error))
		fail_msg("%s", error.text);
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct config_service *service = &fixture->service;

	assert_non_null(fixture);
	fixture->config.services = service;
	fixture->config.service_count = 1;
	strcpy(service->name, "chat");
	address_parse("10.9.9.9", &service->addresses.item[0].address, NULL, NULL);
	service->addresses.item[0].prefix_length = 128;
	service->addresses.count = 1;
	service->port = 8000;
	service->protocol = PROTOCOL_UDP;
	service->id_from = ID_FROM_OFFSET;
	service->replicas = fixture->configured;
	service->discovery = &fixture->source;
	service->discovery_count = 1;
	merge(fixture, MERGE_START);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static struct discovered_member *found(struct fixture *fixture, const char *name,
				       const char *address)
{
	struct discovered_member *member = &fixture->members[fixture->count++];

	memset(member, 0, sizeof(*member));
	member->replica = wanted(name, address);
	return member;
}

static void discover(struct fixture *fixture, bool complete)
{
	struct error error;

	fixture->problem_count = 0;
	if (routing_discover(&fixture->routing, 0, fixture->members, fixture->count, complete,
			     &usage, take_problem, fixture, &error))
		fail_msg("%s", error.text);
	fixture->count = 0;
}

static struct replica *replica_of(struct fixture *fixture, const char *name)
{
	int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		if (strcmp(fixture->routing.replicas[slot].name, name) == 0)
			return &fixture->routing.replicas[slot];
	}
	return NULL;
}

static void expect(struct fixture *fixture, const char *name, enum replica_state state,
		   __u32 incarnation, const char *address_text)
{
	const struct replica *replica = replica_of(fixture, name);

	if (!replica)
		fail_msg("there is no %s", name);
	assert_int_equal(replica->state, state);
	assert_int_equal(replica->incarnation, incarnation);
	assert_string_equal(replica->address_text, address_text);
}

/* --- coming, staying, going --------------------------------------------------------------------------------- */

static void members_come_stay_and_go(void **state)
{
	struct fixture *fixture = *state;
	struct routing before;

	found(fixture, "llm-1", "10.0.2.11");
	found(fixture, "llm-0", "10.0.2.10");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 1, "10.0.2.10:8001");
	expect(fixture, "llm-1", REPLICA_ACTIVE, 1, "10.0.2.11:8001");
	assert_int_equal(replica_of(fixture, "llm-1")->source, REPLICA_FROM_DISCOVERY);

	/* the same again, in another order, changes no byte */
	before = fixture->routing;
	found(fixture, "llm-0", "10.0.2.10");
	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	assert_memory_equal(&before, &fixture->routing, sizeof(before));

	found(fixture, "llm-1", "10.0.2.31");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_REMOVED, 1, "10.0.2.10:8001");
	expect(fixture, "llm-1", REPLICA_ACTIVE, 2, "10.0.2.31:8001");
	assert_int_equal(fixture->problem_count, 0);
}

static void nobody_goes_before_all_sources_have_spoken(void **state)
{
	struct fixture *fixture = *state;

	found(fixture, "llm-0", "10.0.2.10");
	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	merge(fixture, MERGE_START);
	found(fixture, "llm-2", "10.0.2.12");
	discover(fixture, false);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 1, "10.0.2.10:8001");
	expect(fixture, "llm-2", REPLICA_ACTIVE, 1, "10.0.2.12:8001");
	merge(fixture, MERGE_RELOAD);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 1, "10.0.2.10:8001");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_REMOVED, 1, "10.0.2.10:8001");

	/* without sources there is nobody to wait for */
	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	fixture->service.discovery_count = 0;
	merge(fixture, MERGE_START);
	assert_int_equal(replica_of(fixture, "llm-1")->state, REPLICA_REMOVED);
}

static void who_terminates_is_drained(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	found(fixture, "llm-0", "10.0.2.10");
	discover(fixture, true);
	found(fixture, "llm-0", "10.0.2.10")->terminating = true;
	found(fixture, "llm-7", "10.0.2.17")->terminating = true;
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_DRAINING, 1, "10.0.2.10:8001");
	assert_null(replica_of(fixture, "llm-7"));
	assert_int_equal(routing_undrain_replica(&fixture->routing, 0, "llm-0", &error), -EINVAL);
	assert_non_null(strstr(error.text, "as discovery says"));

	/* an agent that starts now finds it so in the maps, and does not take it for drained by command */
	merge(fixture, MERGE_START);
	expect(fixture, "llm-0", REPLICA_DRAINING, 1, "10.0.2.10:8001");

	/* the next pod of that name: at the same address it has nothing in its cache, either */
	found(fixture, "llm-0", "10.0.2.10");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 2, "10.0.2.10:8001");
}

static void what_an_operator_does_stays(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	found(fixture, "llm-0", "10.0.2.10");
	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	routing_drain_replica(&fixture->routing, 0, "llm-0", &error);
	routing_weigh_replica(&fixture->routing, 0, "llm-0", 500, &error);
	routing_remove_replica(&fixture->routing, 0, "llm-1", &error);
	found(fixture, "llm-0", "10.0.2.10")->terminating = true;
	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	found(fixture, "llm-0", "10.0.2.20");
	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_DRAINING, 2, "10.0.2.20:8001");
	assert_int_equal(replica_of(fixture, "llm-0")->weight_thousandths, 500);
	assert_int_equal(replica_of(fixture, "llm-1")->state, REPLICA_REMOVED);
	merge(fixture, MERGE_START);
	found(fixture, "llm-0", "10.0.2.20");
	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	assert_int_equal(replica_of(fixture, "llm-1")->state, REPLICA_REMOVED);

	/* until a reload, which leaves drained what is drained */
	merge(fixture, MERGE_RELOAD);
	found(fixture, "llm-0", "10.0.2.20");
	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_DRAINING, 2, "10.0.2.20:8001");
	assert_int_equal(replica_of(fixture, "llm-0")->weight_thousandths, 1000);
	expect(fixture, "llm-1", REPLICA_ACTIVE, 2, "10.0.2.11:8001");
}

static void a_removal_is_forgotten_with_who_was_removed(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	routing_remove_replica(&fixture->routing, 0, "llm-1", &error);
	discover(fixture, true);
	found(fixture, "llm-1", "10.0.2.41");
	discover(fixture, true);
	expect(fixture, "llm-1", REPLICA_ACTIVE, 2, "10.0.2.41:8001");
}

static void another_life_is_another_incarnation(void **state)
{
	struct fixture *fixture = *state;

	found(fixture, "llm-0", "10.0.2.10")->life = 77;
	discover(fixture, true);
	found(fixture, "llm-0", "10.0.2.10"); /* a source that does not know */
	discover(fixture, true);
	found(fixture, "llm-0", "10.0.2.10")->life = 77;
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 1, "10.0.2.10:8001");
	found(fixture, "llm-0", "10.0.2.10")->life = 78;
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 2, "10.0.2.10:8001");
	found(fixture, "llm-0", "10.0.2.50")->life = 79; /* one new life, not two */
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 3, "10.0.2.50:8001");
}

/* --- several members of one name or place ------------------------------------------------------------------ */

static void of_one_name_the_one_in_use_counts(void **state)
{
	struct fixture *fixture = *state;

	found(fixture, "llm-0", "10.0.2.10");
	discover(fixture, true);
	found(fixture, "llm-0", "10.0.2.60");
	found(fixture, "llm-0", "10.0.2.10");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 1, "10.0.2.10:8001");

	/* but one that terminates counts last */
	found(fixture, "llm-0", "10.0.2.10")->terminating = true;
	found(fixture, "llm-0", "10.0.2.60");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 2, "10.0.2.60:8001");
}

static void families_of_one_name_come_together(void **state)
{
	struct fixture *fixture = *state;

	address_parse("fd00:9::9", &fixture->service.addresses.item[1].address, NULL, NULL);
	fixture->service.addresses.item[1].prefix_length = 128;
	fixture->service.addresses.count = 2;
	found(fixture, "llm-0", "fd00:2::10");
	found(fixture, "llm-0", "10.0.2.10");
	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 1, "[fd00:2::10]:8001, 10.0.2.10:8001");
	assert_null(replica_of(fixture, "llm-1"));
	assert_int_equal(fixture->problem_count, 1);
	assert_string_equal(fixture->problems[0],
			    "replica llm-1 has no IPv6 address, but service chat has a public one");

	/* the slices of the two families come in another order: no cause for anything */
	found(fixture, "llm-0", "10.0.2.10");
	found(fixture, "llm-0", "fd00:2::10");
	discover(fixture, true);
	assert_int_equal(replica_of(fixture, "llm-0")->incarnation, 1);
}

static void one_family_is_told_to_end_before_the_other(void **state)
{
	struct fixture *fixture = *state;

	address_parse("fd00:9::9", &fixture->service.addresses.item[1].address, NULL, NULL);
	fixture->service.addresses.item[1].prefix_length = 128;
	fixture->service.addresses.count = 2;
	found(fixture, "llm-0", "10.0.2.10")->life = 5;
	found(fixture, "llm-0", "fd00:2::10")->life = 5;
	discover(fixture, true);
	found(fixture, "llm-0", "10.0.2.10")->life = 5;
	fixture->members[0].terminating = true;
	found(fixture, "llm-0", "fd00:2::10")->life = 5;
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_DRAINING, 1, "[fd00:2::10]:8001, 10.0.2.10:8001");

	/* but the end of another pod of the name says nothing of this one */
	found(fixture, "llm-0", "10.0.2.10")->life = 5;
	fixture->members[0].terminating = true;
	found(fixture, "llm-0", "10.0.2.20")->life = 6;
	found(fixture, "llm-0", "fd00:2::20")->life = 6;
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 2, "10.0.2.20:8001, [fd00:2::20]:8001");
}

static void others_count_before_what_is_found(void **state)
{
	struct fixture *fixture = *state;
	struct config_replica by_command = wanted("llm-5", "10.0.2.15");
	struct error error;

	fixture->configured[0] = wanted("llm-0", "10.0.2.10");
	fixture->service.replica_count = 1;
	merge(fixture, MERGE_RELOAD);
	routing_add_replica(&fixture->routing, 0, &by_command, &usage, &error);
	found(fixture, "llm-0", "10.0.2.70");
	found(fixture, "other", "10.0.2.10");
	found(fixture, "llm-5", "10.0.2.15");
	found(fixture, "circle", "10.9.9.9")->replica.port = 8000;
	found(fixture, "fine", "10.0.2.16");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 1, "10.0.2.10:8001");
	expect(fixture, "fine", REPLICA_ACTIVE, 1, "10.0.2.16:8001");
	assert_null(replica_of(fixture, "other"));
	assert_null(replica_of(fixture, "circle"));
	assert_int_equal(fixture->problem_count, 4);
	assert_non_null(strstr(fixture->problems[0], "circle is at a public address"));
	assert_string_equal(
		fixture->problems[1],
		"llm-0 is left out, as the configuration has a replica of that name already");
	assert_string_equal(
		fixture->problems[2],
		"llm-5 is left out, as the operator has a replica of that name already");
	assert_string_equal(fixture->problems[3],
			    "other is left out, as llm-0 has the same address and port");
}

static void a_found_replica_becomes_the_configurations(void **state)
{
	struct fixture *fixture = *state;

	found(fixture, "llm-0", "10.0.2.10");
	discover(fixture, true);
	found(fixture, "llm-0", "10.0.2.10")->terminating = true;
	discover(fixture, true);
	fixture->configured[0] = wanted("llm-0", "10.0.2.10");
	fixture->service.replica_count = 1;
	merge(fixture, MERGE_RELOAD);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 1, "10.0.2.10:8001");
	assert_int_equal(replica_of(fixture, "llm-0")->source, REPLICA_FROM_CONFIGURATION);
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 1, "10.0.2.10:8001");
}

static void two_replicas_exchange_their_addresses(void **state)
{
	struct fixture *fixture = *state;

	found(fixture, "llm-0", "10.0.2.10");
	found(fixture, "llm-1", "10.0.2.11");
	discover(fixture, true);
	found(fixture, "llm-0", "10.0.2.11");
	found(fixture, "llm-1", "10.0.2.10");
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 2, "10.0.2.11:8001");
	expect(fixture, "llm-1", REPLICA_ACTIVE, 2, "10.0.2.10:8001");
	assert_int_equal(fixture->problem_count, 0);

	/* at one place only one can be: who has been there, not who comes first */
	found(fixture, "before", "10.0.2.10");
	found(fixture, "llm-1", "10.0.2.10");
	discover(fixture, true);
	expect(fixture, "llm-1", REPLICA_ACTIVE, 2, "10.0.2.10:8001");
	assert_null(replica_of(fixture, "before"));
	assert_string_equal(fixture->problems[0],
			    "before is left out, as llm-1 has the same address and port");
}

static void who_finds_no_slot_is_left_out(void **state)
{
	struct fixture *fixture = *state;
	char name[32], address[32];
	unsigned int i, in_set = 0;

	for (i = 0; i < REPLICAS_MAX + 3; i++) {
		snprintf(name, sizeof(name), "llm-%04u", i);
		snprintf(address, sizeof(address), "10.1.%u.%u", i / 200, i % 200 + 1);
		found(fixture, name, address);
	}
	discover(fixture, true);
	for (i = 0; i < REPLICAS_MAX; i++)
		in_set += replica_in_set(&fixture->routing.replicas[i]);
	assert_int_equal(in_set, REPLICAS_MAX);
	assert_int_equal(fixture->problem_count, 3);
	assert_non_null(strstr(fixture->problems[0], "replica llm-1024 cannot be added"));
}

/* --- reasons to be held --------------------------------------------------------------------------------------- */

static void each_reason_is_taken_back_alone(void **state)
{
	struct replica replica = {.state = REPLICA_ACTIVE};

	(void)state;
	routing_hold(&replica, HELD_BY_HEALTH, true);
	assert_int_equal(replica.state, REPLICA_DOWN);
	routing_hold(&replica, HELD_BY_COMMAND, true);
	routing_hold(&replica, HELD_BY_DISCOVERY, true);
	assert_int_equal(replica.state, REPLICA_DRAINING);
	routing_hold(&replica, HELD_BY_COMMAND, false);
	assert_int_equal(replica.state, REPLICA_DRAINING);
	routing_hold(&replica, HELD_BY_DISCOVERY, false);
	assert_int_equal(replica.state, REPLICA_DOWN);
	routing_hold(&replica, HELD_BY_HEALTH, false);
	assert_int_equal(replica.state, REPLICA_ACTIVE);
}

static void who_is_half_known_stays_drained(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	address_parse("fd00:9::9", &fixture->service.addresses.item[1].address, NULL, NULL);
	fixture->service.addresses.item[1].prefix_length = 128;
	fixture->service.addresses.count = 2;
	found(fixture, "llm-0", "10.0.2.10")->life = 5;
	found(fixture, "llm-0", "fd00:2::10")->life = 5;
	discover(fixture, true);
	routing_drain_replica(&fixture->routing, 0, "llm-0", &error);

	/* another pod, of which one family is told first */
	found(fixture, "llm-0", "10.0.2.20")->life = 6;
	found(fixture, "llm-0", "fd00:2::10")->life = 5;
	fixture->members[1].terminating = true;
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_DRAINING, 1, "10.0.2.10:8001, [fd00:2::10]:8001");
	found(fixture, "llm-0", "10.0.2.20")->life = 6;
	found(fixture, "llm-0", "fd00:2::20")->life = 6;
	discover(fixture, true);
	expect(fixture, "llm-0", REPLICA_DRAINING, 2, "10.0.2.20:8001, [fd00:2::20]:8001");
	routing_undrain_replica(&fixture->routing, 0, "llm-0", &error);
	expect(fixture, "llm-0", REPLICA_ACTIVE, 2, "10.0.2.20:8001, [fd00:2::20]:8001");

	/* but not at a place that is another's now */
	found(fixture, "llm-0", "10.0.2.30")->life = 7;
	found(fixture, "llm-1", "10.0.2.20")->life = 8;
	found(fixture, "llm-1", "fd00:2::20")->life = 8;
	discover(fixture, true);
	assert_int_equal(replica_of(fixture, "llm-0")->state, REPLICA_REMOVED);
	expect(fixture, "llm-1", REPLICA_ACTIVE, 1, "10.0.2.20:8001, [fd00:2::20]:8001");
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(members_come_stay_and_go),
		TEST(nobody_goes_before_all_sources_have_spoken),
		TEST(who_terminates_is_drained),
		TEST(what_an_operator_does_stays),
		TEST(a_removal_is_forgotten_with_who_was_removed),
		TEST(another_life_is_another_incarnation),
		TEST(of_one_name_the_one_in_use_counts),
		TEST(families_of_one_name_come_together),
		TEST(one_family_is_told_to_end_before_the_other),
		TEST(who_is_half_known_stays_drained),
		TEST(others_count_before_what_is_found),
		TEST(a_found_replica_becomes_the_configurations),
		TEST(two_replicas_exchange_their_addresses),
		TEST(who_finds_no_slot_is_left_out),
		TEST(each_reason_is_taken_back_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
