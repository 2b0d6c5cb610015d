/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the bytes of a DNS answer to replicas.
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

#include "agent/dns_members.h"
#include "lib/address.h"

/* --- an answer made by hand ------------------------------------------------------------------------------------------ */

struct message {
	unsigned char bytes[65536];
	size_t length;
	unsigned int answers;
};

static void put(struct message *message, const void *bytes, size_t length)
{
	memcpy(message->bytes + message->length, bytes, length);
	message->length += length;
}

static void put_number(struct message *message, unsigned long number, unsigned int size)
{
	while (size-- > 0) {
		unsigned char byte = number >> (8 * size);

		put(message, &byte, 1);
	}
}

static void put_name(struct message *message, const char *name)
{
	while (*name) {
		size_t length = strcspn(name, ".");

		put_number(message, length, 1);
		put(message, name, length);
		name += length + (name[length] == '.');
	}
	put_number(message, 0, 1);
}

static void begin(struct message *message, const char *question, unsigned int type)
{
	memset(message, 0, sizeof(*message));
	put_number(message, 0x1234, 2);
	put_number(message, 0x8180, 2);
	put_number(message, 1, 2);
	put_number(message, 0, 2);
	put_number(message, 0, 4);
	put_name(message, question);
	put_number(message, type, 2);
	put_number(message, 1, 2);
}

static void put_record(struct message *message, unsigned int type, unsigned long ttl,
		       const void *data, size_t length)
{
	put_number(message, 0xc00c, 2); /* the question's name */
	put_number(message, type, 2);
	put_number(message, 1, 2);
	put_number(message, ttl, 4);
	put_number(message, length, 2);
	put(message, data, length);
	message->answers++;
	message->bytes[6] = message->answers >> 8;
	message->bytes[7] = message->answers;
}

static void put_address(struct message *message, const char *text, unsigned long ttl)
{
	unsigned char bytes[16];
	bool ipv6 = strchr(text, ':');

	assert_int_equal(inet_pton(ipv6 ? AF_INET6 : AF_INET, text, bytes), 1);
	put_record(message, ipv6 ? 28 : 1, ttl, bytes, ipv6 ? 16 : 4);
}

static void put_service(struct message *message, unsigned int priority, unsigned int port,
			const char *target, unsigned long ttl)
{
	struct message data = {.length = 0};

	put_number(&data, priority, 2);
	put_number(&data, port % 7, 2); /* weights are of no meaning */
	put_number(&data, port, 2);
	put_name(&data, target);
	put_record(message, 33, ttl, data.bytes, data.length);
}

static struct dns_answer answer;
static struct message message;
static struct dns_targets targets;
static struct discovered_member members[DNS_RECORDS_MOST];
static struct error note;

static void read_answer(enum dns_records kind)
{
	struct error error;

	if (dns_answer_read(message.bytes, message.length, kind, &answer, &error))
		fail_msg("%s", error.text);
}

static void expect(unsigned int index, const char *name, const char *endpoint)
{
	const struct config_replica *replica = &members[index].replica;
	char text[ENDPOINT_TEXT_SIZE];

	assert_string_equal(replica->name, name);
	assert_string_equal(
		endpoint_format(&replica->addresses.item[0].address, htons(replica->port), text),
		endpoint);
}

/* --- addresses --------------------------------------------------------------------------------------------------------- */

static void each_address_is_a_replica(void **state)
{
	const struct config_discovery settings = {.port = 8001, .weight_thousandths = 700};

	(void)state;
	begin(&message, "llm.example.org", 1);
	put_address(&message, "10.0.2.11", 30);
	put_address(&message, "10.0.2.10", 20);
	put_address(&message, "224.0.0.1", 20);
	put_address(&message, "fd00:2::1", 5); /* not asked for */
	read_answer(DNS_RECORDS_A);
	assert_int_equal(answer.ttl_seconds, 20);
	assert_int_equal(dns_members_of_addresses(&settings, &answer, members, &note), 2);
	expect(0, "10.0.2.10", "10.0.2.10:8001");
	expect(1, "10.0.2.11", "10.0.2.11:8001");
	assert_int_equal(members[0].replica.weight_thousandths, 700);
	assert_string_equal(note.text, "224.0.0.1 is left out: it cannot be a replica's address");
	read_answer(DNS_RECORDS_AAAA);
	assert_int_equal(answer.ttl_seconds, 5);
	assert_int_equal(dns_members_of_addresses(&settings, &answer, members, &note), 1);
	expect(0, "fd00-2--1", "[fd00:2::1]:8001");
	assert_string_equal(note.text, "");
}

static void an_alias_limits_the_time_to_live(void **state)
{
	(void)state;
	begin(&message, "llm.example.org", 1);
	put_record(&message, 5, 7, "\4real\0", 6);
	put_address(&message, "10.0.2.11", 30);
	read_answer(DNS_RECORDS_A);
	assert_int_equal(answer.ttl_seconds, 7);
	assert_int_equal(answer.count, 1);

	/* RFC 2181, section 8: a time with the top bit set is none */
	begin(&message, "llm.example.org", 1);
	put_address(&message, "10.0.2.11", 0x80000005);
	read_answer(DNS_RECORDS_A);
	assert_int_equal(answer.ttl_seconds, 0);
}

/* --- services ------------------------------------------------------------------------------------------------------------ */

static void give_addresses(void)
{
	unsigned int i;
	char text[32];

	for (i = 0; i < targets.count; i++) {
		begin(&message, "x", 1);
		snprintf(text, sizeof(text), "10.0.2.%u", 100 + i);
		put_address(&message, text, 30);
		snprintf(text, sizeof(text), "10.0.2.%u", 10 + i);
		put_address(&message, text, 30);
		read_answer(DNS_RECORDS_A);
		dns_target_address(&targets.item[i], &answer);
	}
}

static void each_target_is_a_replica_called_below_the_name(void **state)
{
	const struct config_discovery settings = {.name = "_http._tcp.llm.Example.org.",
						  .weight_thousandths = 1000};

	(void)state;
	begin(&message, "_http._tcp.llm.example.org", 33);
	put_service(&message, 10, 8001, "llm-1.LLM.example.org", 30);
	put_service(&message, 10, 8001, "llm-0.llm.example.org", 31);
	put_service(&message, 10, 8001, "llm-0.llm.example.org", 31);
	put_service(&message, 10, 8002, "llm-0.llm.example.org", 31);
	put_service(&message, 10, 8003, "elsewhere.example.net", 31);
	put_service(&message, 20, 8004, "reserve.llm.example.org", 31);
	read_answer(DNS_RECORDS_SRV);
	assert_int_equal(answer.ttl_seconds, 30);
	dns_targets_take(&targets, &answer);
	assert_int_equal(targets.count, 4);
	give_addresses();
	assert_int_equal(dns_members_of_targets(&settings, &targets, members, &note), 3);
	expect(0, "elsewhere.example.net", "10.0.2.10:8003");
	expect(1, "llm-0", "10.0.2.11:8001");
	expect(2, "llm-1", "10.0.2.13:8001");
	assert_string_equal(
		note.text, "target llm-0.llm.example.org is left out with port 8002: a name is one "
			   "replica, at its lowest port");
}

static void a_target_without_address_is_left_out(void **state)
{
	const struct config_discovery settings = {.name = "llm.example.org"};

	(void)state;
	begin(&message, "llm.example.org", 33);
	put_service(&message, 0, 8001, "llm-0.llm.example.org", 30);
	read_answer(DNS_RECORDS_SRV);
	dns_targets_take(&targets, &answer);
	assert_int_equal(dns_members_of_targets(&settings, &targets, members, &note), 0);
	assert_string_equal(note.text,
			    "target llm-0.llm.example.org is left out: it has no address");

	/* a service that is decidedly not there: RFC 2782 */
	begin(&message, "llm.example.org", 33);
	put_service(&message, 0, 0, "", 30);
	read_answer(DNS_RECORDS_SRV);
	dns_targets_take(&targets, &answer);
	assert_int_equal(targets.count, 0);
}

static void both_families_are_one_replica(void **state)
{
	const struct config_discovery settings = {.name = "llm.example.org"};

	(void)state;
	begin(&message, "llm.example.org", 33);
	put_service(&message, 0, 8001, "llm-0.llm.example.org", 30);
	read_answer(DNS_RECORDS_SRV);
	dns_targets_take(&targets, &answer);
	begin(&message, "x", 28);
	put_address(&message, "fd00:2::10", 30);
	read_answer(DNS_RECORDS_AAAA);
	dns_target_address(&targets.item[0], &answer);
	give_addresses();
	assert_int_equal(dns_members_of_targets(&settings, &targets, members, &note), 1);
	assert_int_equal(members[0].replica.addresses.count, 2);
	expect(0, "llm-0", "10.0.2.10:8001");
}

/* --- what is no answer ----------------------------------------------------------------------------------------------- */

static void what_is_cut_short_is_refused(void **state)
{
	struct error error;
	size_t length;

	(void)state;
	begin(&message, "_http._tcp.llm.example.org", 33);
	put_service(&message, 10, 8001, "llm-1.llm.example.org", 30);
	put_service(&message, 10, 8002, "llm-2.llm.example.org", 30);
	for (length = 0; length < message.length; length++) {
		unsigned char *exact = malloc(length ? length : 1);

		memcpy(exact, message.bytes, length);
		if (!dns_answer_read(exact, length, DNS_RECORDS_SRV, &answer, &error))
			fail_msg("accepted at %zu bytes", length);
		free(exact);
	}
	begin(&message, "llm.example.org", 1);
	put_record(&message, 1, 30, "\12\0\2", 3);
	assert_int_equal(
		dns_answer_read(message.bytes, message.length, DNS_RECORDS_A, &answer, &error),
		-EINVAL);
	assert_string_equal(error.text, "the answer has an address of 3 bytes");
	begin(&message, "llm.example.org", 1);
	for (length = 0; length < DNS_RECORDS_MOST + 1; length++)
		put_address(&message, "10.0.2.10", 30);
	assert_int_equal(
		dns_answer_read(message.bytes, message.length, DNS_RECORDS_A, &answer, &error),
		-EINVAL);
	assert_string_equal(error.text, "the answer has more than 256 records");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_is_a_replica),
		cmocka_unit_test(an_alias_limits_the_time_to_live),
		cmocka_unit_test(each_target_is_a_replica_called_below_the_name),
		cmocka_unit_test(a_target_without_address_is_left_out),
		cmocka_unit_test(both_families_are_one_replica),
		cmocka_unit_test(what_is_cut_short_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
