/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which index a service has and which slot, state and incarnation a replica: through starts, reloads and commands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/routing.h"
#include "lib/address.h"

/* --- a configuration made by hand ------------------------------------------------------------------------ */

struct fixture {
	struct config config;
	struct config_service services[3];
	struct config_replica replicas[3][REPLICAS_MAX];
	struct routing routing;
	bool in_use[REPLICAS_MAX];
	int asked;
	int refusal; /* what asking for the slots in use returns */
};

static int ask(void *context, bool in_use[REPLICAS_MAX])
{
	struct fixture *fixture = context;

	fixture->asked++;
	memcpy(in_use, fixture->in_use, sizeof(fixture->in_use));
	return fixture->refusal;
}

static struct slot_usage usage_of(struct fixture *fixture)
{
	struct slot_usage usage = {.ask = ask, .context = fixture};

	return usage;
}

static struct config_replica replica_named(const char *name, const char *ipv4, __u16 port)
{
	struct config_replica replica = {.port = port, .weight_thousandths = 1000};

	snprintf(replica.name, sizeof(replica.name), "%s", name);
	assert_int_equal(address_parse(ipv4, &replica.addresses.item[0].address, NULL, NULL), 0);
	replica.addresses.item[0].prefix_length = 128;
	replica.addresses.count = 1;
	return replica;
}

static struct config_service *add_service(struct fixture *fixture, const char *name,
					  const char *public_address)
{
	struct config_service *service = &fixture->services[fixture->config.service_count];

	memset(service, 0, sizeof(*service));
	snprintf(service->name, sizeof(service->name), "%s", name);
	address_parse(public_address, &service->addresses.item[0].address, NULL, NULL);
	service->addresses.item[0].prefix_length = 128;
	service->addresses.count = 1;
	service->port = 8000;
	service->protocol = PROTOCOL_UDP;
	service->id_from = ID_FROM_OFFSET;
	service->replicas = fixture->replicas[fixture->config.service_count];
	fixture->config.service_count++;
	return service;
}

static void add_replica(struct config_service *service, const char *name, const char *ipv4)
{
	service->replicas[service->replica_count++] = replica_named(name, ipv4, 8001);
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct config_service *service;

	assert_non_null(fixture);
	fixture->config.services = fixture->services;
	service = add_service(fixture, "chat", "10.9.9.9");
	add_replica(service, "llm-0", "10.0.2.10");
	add_replica(service, "llm-1", "10.0.2.11");
	add_replica(service, "llm-2", "10.0.2.12");
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void merge(struct fixture *fixture, enum routing_merge merge)
{
	const struct slot_usage usage = usage_of(fixture);
	struct error error = {0};

	if (routing_merge(&fixture->routing, &fixture->config, merge, &usage, &error))
		fail_msg("%s", error.text);
}

/* The replica's slot, whatever its state. */
static int slot_of(const struct fixture *fixture, __u32 service, const char *name)
{
	int slot;

	for (slot = 0; slot < REPLICAS_MAX; slot++) {
		const struct replica *replica = &fixture->routing.replicas[slot];

		if (replica->state != REPLICA_UNUSED && replica->service == service &&
		    strcmp(replica->name, name) == 0)
			return slot;
	}
	fail_msg("%s has no slot", name);
	return -1;
}

static struct replica *replica_of(struct fixture *fixture, const char *name)
{
	return &fixture->routing.replicas[slot_of(fixture, 0, name)];
}

static int add_at_run_time(struct fixture *fixture, struct config_replica replica,
			   struct error *error)
{
	const struct slot_usage usage = usage_of(fixture);

	return routing_add_replica(&fixture->routing, 0, &replica, &usage, error);
}

/* --- start and reload ------------------------------------------------------------------------------------- */

static void a_first_start_fills_slots_in_order(void **state)
{
	struct fixture *fixture = *state;
	const struct replica *replica;

	merge(fixture, MERGE_START);
	replica = replica_of(fixture, "llm-1");
	assert_int_equal(slot_of(fixture, 0, "llm-1"), 1);
	assert_int_equal(replica->state, REPLICA_ACTIVE);
	assert_int_equal(replica->source, REPLICA_FROM_CONFIGURATION);
	assert_int_equal(replica->incarnation, 1);
	assert_int_equal(replica->weight_thousandths, 1000);
	assert_int_equal(replica->port, htons(8001));
	assert_string_equal(replica->address_text, "10.0.2.11:8001");
	assert_false(address_is_set(&replica->ipv6));
	assert_int_equal(fixture->routing.services[0].state, SERVICE_ACTIVE);
	assert_string_equal(fixture->routing.services[0].name, "chat");
}

static void a_second_start_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct routing before;

	merge(fixture, MERGE_START);
	before = fixture->routing;
	merge(fixture, MERGE_START);
	assert_memory_equal(&fixture->routing, &before, sizeof(before));
	merge(fixture, MERGE_RELOAD);
	assert_memory_equal(&fixture->routing, &before, sizeof(before));
}

static void runtime_changes_survive_a_restart_and_end_with_a_reload(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	merge(fixture, MERGE_START);
	assert_int_equal(routing_weigh_replica(&fixture->routing, 0, "llm-0", 2500, &error), 0);
	assert_int_equal(routing_drain_replica(&fixture->routing, 0, "llm-1", &error), 0);
	assert_int_equal(routing_remove_replica(&fixture->routing, 0, "llm-2", &error), 0);
	assert_int_equal(
		add_at_run_time(fixture, replica_named("llm-3", "10.0.2.13", 8001), &error), 3);

	merge(fixture, MERGE_START);
	assert_int_equal(replica_of(fixture, "llm-0")->weight_thousandths, 2500);
	assert_int_equal(replica_of(fixture, "llm-1")->state, REPLICA_DRAINING);
	assert_int_equal(replica_of(fixture, "llm-2")->state, REPLICA_REMOVED);
	assert_int_equal(replica_of(fixture, "llm-3")->state, REPLICA_ACTIVE);
	assert_int_equal(replica_of(fixture, "llm-3")->source, REPLICA_FROM_COMMAND);

	merge(fixture, MERGE_RELOAD);
	assert_int_equal(replica_of(fixture, "llm-0")->weight_thousandths, 1000);
	assert_int_equal(replica_of(fixture, "llm-1")->state, REPLICA_DRAINING);
	assert_int_equal(replica_of(fixture, "llm-2")->state, REPLICA_ACTIVE);
	assert_int_equal(replica_of(fixture, "llm-2")->incarnation, 2);
	assert_int_equal(slot_of(fixture, 0, "llm-2"), 2);
	assert_int_equal(replica_of(fixture, "llm-3")->state, REPLICA_REMOVED);
}

static void a_file_edited_between_two_starts_counts(void **state)
{
	struct fixture *fixture = *state;

	merge(fixture, MERGE_START);
	fixture->services[0].replicas[0].weight_thousandths = 500;
	fixture->services[0].replicas[2] = replica_named("llm-9", "10.0.2.19", 8001);
	merge(fixture, MERGE_START);
	assert_int_equal(replica_of(fixture, "llm-0")->weight_thousandths, 500);
	assert_int_equal(replica_of(fixture, "llm-2")->state, REPLICA_REMOVED);
	assert_int_equal(replica_of(fixture, "llm-9")->state, REPLICA_ACTIVE);
	assert_int_equal(slot_of(fixture, 0, "llm-9"), 3);
}

static void a_replica_by_command_becomes_the_files_when_the_file_has_it(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	merge(fixture, MERGE_START);
	add_at_run_time(fixture, replica_named("llm-3", "10.0.2.13", 8001), &error);
	add_replica(&fixture->services[0], "llm-3", "10.0.2.23");
	merge(fixture, MERGE_START);
	assert_int_equal(replica_of(fixture, "llm-3")->source, REPLICA_FROM_CONFIGURATION);
	assert_string_equal(replica_of(fixture, "llm-3")->address_text, "10.0.2.23:8001");
	assert_int_equal(replica_of(fixture, "llm-3")->incarnation, 2);
}

static void a_replica_by_command_goes_where_the_file_took_its_place(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	merge(fixture, MERGE_START);
	add_at_run_time(fixture, replica_named("llm-3", "10.0.2.13", 8001), &error);
	add_replica(&fixture->services[0], "llm-4", "10.0.2.13");
	merge(fixture, MERGE_START);
	assert_int_equal(replica_of(fixture, "llm-3")->state, REPLICA_REMOVED);
	assert_int_equal(replica_of(fixture, "llm-4")->state, REPLICA_ACTIVE);
}

static void another_address_is_another_life(void **state)
{
	struct fixture *fixture = *state;

	merge(fixture, MERGE_START);
	fixture->services[0].replicas[1] = replica_named("llm-1", "10.0.2.21", 8001);
	merge(fixture, MERGE_RELOAD);
	assert_int_equal(replica_of(fixture, "llm-1")->incarnation, 2);
	assert_int_equal(slot_of(fixture, 0, "llm-1"), 1);
	fixture->services[0].replicas[1].port = 8002;
	merge(fixture, MERGE_RELOAD);
	assert_int_equal(replica_of(fixture, "llm-1")->incarnation, 3);
	fixture->services[0].replicas[1].weight_thousandths = 7;
	merge(fixture, MERGE_RELOAD);
	assert_int_equal(replica_of(fixture, "llm-1")->incarnation, 3);
}

/* --- services --------------------------------------------------------------------------------------------- */

static void a_service_keeps_its_index(void **state)
{
	struct fixture *fixture = *state;
	struct config_service chat = fixture->services[0];

	add_replica(add_service(fixture, "other", "10.9.9.8"), "llm-0", "10.0.2.10");
	merge(fixture, MERGE_START);
	/* the order in the file is of no concern */
	fixture->services[0] = fixture->services[1];
	fixture->services[1] = chat;
	merge(fixture, MERGE_RELOAD);
	assert_string_equal(fixture->routing.services[0].name, "chat");
	assert_string_equal(fixture->routing.services[1].name, "other");
	assert_ptr_equal(fixture->routing.settings[0], &fixture->services[1]);

	fixture->config.service_count = 1; /* "chat" is gone */
	merge(fixture, MERGE_RELOAD);
	assert_int_equal(fixture->routing.services[0].state, SERVICE_UNUSED);
	assert_int_equal(fixture->routing.replicas[0].state, REPLICA_REMOVED);
	assert_null(fixture->routing.settings[0]);
	fixture->config.service_count = 2;
	merge(fixture, MERGE_RELOAD);
	assert_int_equal(fixture->routing.services[0].state, SERVICE_ACTIVE);
	assert_int_equal(replica_of(fixture, "llm-0")->incarnation, 2);
}

static void the_same_name_in_two_services_is_two_replicas(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	add_replica(add_service(fixture, "other", "10.9.9.8"), "llm-0", "10.0.2.10");
	merge(fixture, MERGE_START);
	assert_int_equal(slot_of(fixture, 0, "llm-0"), 0);
	assert_int_equal(slot_of(fixture, 1, "llm-0"), 3);
	assert_int_equal(routing_drain_replica(&fixture->routing, 1, "llm-0", &error), 0);
	assert_int_equal(fixture->routing.replicas[0].state, REPLICA_ACTIVE);
	assert_int_equal(fixture->routing.replicas[3].state, REPLICA_DRAINING);
}

static void a_service_is_found_by_name_or_if_it_is_the_only_one(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	merge(fixture, MERGE_START);
	assert_int_equal(routing_find_service(&fixture->routing, NULL, &error), 0);
	assert_int_equal(routing_find_service(&fixture->routing, "chat", &error), 0);
	assert_int_equal(routing_find_service(&fixture->routing, "cha", &error), -ENOENT);
	assert_string_equal(error.text, "there is no service cha");
	add_service(fixture, "other", "10.9.9.8");
	merge(fixture, MERGE_RELOAD);
	assert_int_equal(routing_find_service(&fixture->routing, NULL, &error), -EINVAL);
	assert_string_equal(error.text, "there are several services; name one with --service");
	fixture->config.service_count = 0;
	merge(fixture, MERGE_RELOAD);
	assert_int_equal(routing_find_service(&fixture->routing, NULL, &error), -ENOENT);
}

static void the_only_public_address_answers_for_the_service(void **state)
{
	struct fixture *fixture = *state;
	struct config_service *chat = &fixture->services[0];
	struct address first = chat->addresses.item[0].address;

	merge(fixture, MERGE_START);
	assert_true(address_equal(&fixture->routing.services[0].public_ipv4, &first));
	assert_false(address_is_set(&fixture->routing.services[0].public_ipv6));
	/* with two nobody knows which one a client used */
	address_parse("10.9.9.7", &chat->addresses.item[1].address, NULL, NULL);
	chat->addresses.item[1].prefix_length = 128;
	chat->addresses.count = 2;
	merge(fixture, MERGE_RELOAD);
	assert_false(address_is_set(&fixture->routing.services[0].public_ipv4));
	/* nor which one of a prefix */
	address_parse("fd00:9::", &chat->addresses.item[1].address, NULL, NULL);
	chat->addresses.item[1].prefix_length = 64;
	merge(fixture, MERGE_RELOAD);
	assert_true(address_equal(&fixture->routing.services[0].public_ipv4, &first));
	assert_false(address_is_set(&fixture->routing.services[0].public_ipv6));
}

/* --- slots ------------------------------------------------------------------------------------------------ */

/* Takes every slot: 3 in the file, the others by command. */
static void fill_all_slots(struct fixture *fixture)
{
	unsigned int i;

	merge(fixture, MERGE_START);
	for (i = 3; i < REPLICAS_MAX; i++) {
		char name[16], address[32];
		struct error error;

		snprintf(name, sizeof(name), "more-%u", i);
		snprintf(address, sizeof(address), "10.1.%u.%u", i / 256, i % 256);
		assert_int_equal(
			add_at_run_time(fixture, replica_named(name, address, 9000), &error), i);
	}
	assert_int_equal(fixture->asked, 0);
}

static void no_slot_is_left(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	fill_all_slots(fixture);
	assert_int_equal(add_at_run_time(fixture, replica_named("late", "10.2.0.1", 9000), &error),
			 -ENOSPC);
	assert_non_null(
		strstr(error.text, "replica late cannot be added: all 1024 slots are taken"));
	assert_int_equal(fixture->asked, 1);
}

static void a_removed_slot_is_reused_only_when_nothing_refers_to_it(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	fill_all_slots(fixture);
	routing_remove_replica(&fixture->routing, 0, "more-7", &error);
	routing_remove_replica(&fixture->routing, 0, "more-9", &error);
	fixture->in_use[7] = true;
	fixture->in_use[9] = true;
	assert_int_equal(add_at_run_time(fixture, replica_named("late", "10.2.0.1", 9000), &error),
			 -ENOSPC);
	fixture->in_use[9] = false;
	assert_int_equal(add_at_run_time(fixture, replica_named("late", "10.2.0.1", 9000), &error),
			 9);
	assert_string_equal(fixture->routing.replicas[9].name, "late");
	/* the slot's former user had incarnation 1: its placements must not mean this one */
	assert_int_equal(fixture->routing.replicas[9].incarnation, 2);
	assert_int_equal(fixture->routing.replicas[9].state, REPLICA_ACTIVE);
}

static void the_removed_replica_itself_gets_its_slot_back_also_while_busy(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	fill_all_slots(fixture);
	routing_remove_replica(&fixture->routing, 0, "more-7", &error);
	fixture->in_use[7] = true;
	assert_int_equal(
		add_at_run_time(fixture, replica_named("more-7", "10.2.0.1", 9000), &error), 7);
	assert_int_equal(fixture->routing.replicas[7].incarnation, 2);
	assert_int_equal(fixture->asked, 0);
}

static void a_slot_that_remembers_a_removal_is_the_last_to_be_reused(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	fill_all_slots(fixture);
	routing_remove_replica(&fixture->routing, 0, "llm-1", &error);
	routing_remove_replica(&fixture->routing, 0, "more-9", &error);
	assert_int_equal(add_at_run_time(fixture, replica_named("late", "10.2.0.1", 9000), &error),
			 9);
	assert_int_equal(add_at_run_time(fixture, replica_named("later", "10.2.0.2", 9000), &error),
			 1);
}

static void flows_that_cannot_be_read_keep_all_slots(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	fill_all_slots(fixture);
	routing_remove_replica(&fixture->routing, 0, "more-9", &error);
	fixture->refusal = -EPERM;
	assert_int_equal(add_at_run_time(fixture, replica_named("late", "10.2.0.1", 9000), &error),
			 -EPERM);
	assert_string_equal(error.text, "the flows cannot be read: Operation not permitted");
}

static void removed_replicas_are_forgotten_when_nothing_refers_to_them(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	merge(fixture, MERGE_START);
	add_at_run_time(fixture, replica_named("llm-3", "10.0.2.13", 8001), &error);
	routing_remove_replica(&fixture->routing, 0, "llm-1", &error); /* the file has it */
	routing_remove_replica(&fixture->routing, 0, "llm-3", &error);
	assert_true(replica_has_traffic(&fixture->routing.replicas[1]));
	fixture->in_use[1] = true;
	fixture->in_use[3] = true;
	assert_int_equal(routing_forget_removed(&fixture->routing, fixture->in_use), 0);
	memset(fixture->in_use, 0, sizeof(fixture->in_use));
	assert_int_equal(routing_forget_removed(&fixture->routing, fixture->in_use), 2);
	/* by command: the slot is free, but goes on counting lives */
	assert_int_equal(fixture->routing.replicas[3].state, REPLICA_UNUSED);
	assert_int_equal(fixture->routing.replicas[3].incarnation, 1);
	/* the file's: the slot remembers the removal, so that a restart does not undo it */
	assert_int_equal(fixture->routing.replicas[1].state, REPLICA_REMOVED);
	assert_false(replica_has_traffic(&fixture->routing.replicas[1]));
	merge(fixture, MERGE_START);
	assert_int_equal(replica_of(fixture, "llm-1")->state, REPLICA_REMOVED);
	assert_int_equal(routing_forget_removed(&fixture->routing, fixture->in_use), 0);
	merge(fixture, MERGE_RELOAD);
	assert_int_equal(replica_of(fixture, "llm-1")->state, REPLICA_ACTIVE);
	assert_int_equal(replica_of(fixture, "llm-1")->incarnation, 2);
}

/* --- commands --------------------------------------------------------------------------------------------- */

static void commands_that_make_no_sense_are_refused_by_name(void **state)
{
	struct fixture *fixture = *state;
	struct config_replica both = replica_named("llm-4", "10.0.2.14", 8001);
	struct error error;

	merge(fixture, MERGE_START);
	assert_int_equal(
		add_at_run_time(fixture, replica_named("llm-0", "10.0.2.20", 8001), &error),
		-EEXIST);
	assert_string_equal(error.text, "service chat has a replica llm-0 already");
	assert_int_equal(
		add_at_run_time(fixture, replica_named("llm-3", "10.0.2.10", 8001), &error),
		-EEXIST);
	assert_string_equal(error.text,
			    "replica llm-0 of service chat is at 10.0.2.10:8001 already");
	assert_int_equal(add_at_run_time(fixture, replica_named("llm-3", "fd00::1", 8001), &error),
			 -EINVAL);
	assert_string_equal(error.text,
			    "replica llm-3 has no IPv4 address, but service chat has a public one");
	assert_int_equal(add_at_run_time(fixture, replica_named("llm-3", "10.9.9.9", 8000), &error),
			 -EINVAL);
	assert_non_null(strstr(error.text, "llm-3 is at a public address of service chat"));
	assert_int_equal(routing_undrain_replica(&fixture->routing, 0, "llm-0", &error), -EINVAL);
	assert_string_equal(error.text, "replica llm-0 is not being drained");
	assert_int_equal(routing_drain_replica(&fixture->routing, 0, "llm-7", &error), -ENOENT);
	assert_string_equal(error.text, "there is no replica llm-7 in service chat");
	assert_int_equal(routing_weigh_replica(&fixture->routing, 0, "llm-7", 1, &error), -ENOENT);
	assert_int_equal(routing_remove_replica(&fixture->routing, 0, "llm-7", &error), -ENOENT);
	routing_remove_replica(&fixture->routing, 0, "llm-0", &error);
	assert_int_equal(routing_remove_replica(&fixture->routing, 0, "llm-0", &error), -ENOENT);

	/* the same port on another address, and another port on the same address, are other places */
	assert_true(add_at_run_time(fixture, replica_named("llm-3", "10.0.2.11", 8002), &error) >=
		    0);
	address_parse("fd00:2::14", &both.addresses.item[1].address, NULL, NULL);
	both.addresses.count = 2;
	assert_true(add_at_run_time(fixture, both, &error) >= 0);
	assert_string_equal(replica_of(fixture, "llm-4")->address_text,
			    "10.0.2.14:8001, [fd00:2::14]:8001");
}

static void drain_and_undrain(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	merge(fixture, MERGE_START);
	assert_int_equal(routing_drain_replica(&fixture->routing, 0, "llm-0", &error), 0);
	assert_int_equal(routing_drain_replica(&fixture->routing, 0, "llm-0", &error), 0);
	assert_int_equal(routing_undrain_replica(&fixture->routing, 0, "llm-0", &error), 0);
	assert_int_equal(replica_of(fixture, "llm-0")->state, REPLICA_ACTIVE);
	assert_int_equal(replica_of(fixture, "llm-0")->incarnation, 1);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_first_start_fills_slots_in_order),
		TEST(a_second_start_changes_nothing),
		TEST(runtime_changes_survive_a_restart_and_end_with_a_reload),
		TEST(a_file_edited_between_two_starts_counts),
		TEST(a_replica_by_command_becomes_the_files_when_the_file_has_it),
		TEST(a_replica_by_command_goes_where_the_file_took_its_place),
		TEST(another_address_is_another_life),
		TEST(a_service_keeps_its_index),
		TEST(the_same_name_in_two_services_is_two_replicas),
		TEST(a_service_is_found_by_name_or_if_it_is_the_only_one),
		TEST(the_only_public_address_answers_for_the_service),
		TEST(no_slot_is_left),
		TEST(a_removed_slot_is_reused_only_when_nothing_refers_to_it),
		TEST(the_removed_replica_itself_gets_its_slot_back_also_while_busy),
		TEST(a_slot_that_remembers_a_removal_is_the_last_to_be_reused),
		TEST(flows_that_cannot_be_read_keep_all_slots),
		TEST(removed_replicas_are_forgotten_when_nothing_refers_to_them),
		TEST(commands_that_make_no_sense_are_refused_by_name),
		TEST(drain_and_undrain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
