// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fuzzes what is read of an answer of a DNS server. Input: one byte (which records are wanted), then the answer.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agent/dns_members.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "it does not hold that %s\n", what);
		__builtin_trap();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct config_discovery settings = {
		.name = "_http._tcp.llm.example.org", .port = 8001, .weight_thousandths = 1000};
	static struct discovered_member members[DNS_RECORDS_MOST];
	static struct dns_answer answer, address;
	static struct dns_targets targets;
	enum dns_records kind;
	struct error error, note;
	unsigned int count, i;

	if (size < 1)
		return 0;
	kind = DNS_RECORDS_A + data[0] % 3;
	if (dns_answer_read(data + 1, size - 1, kind, &answer, &error))
		return 0;
	check(answer.count <= DNS_RECORDS_MOST, "the records are bounded");
	if (kind == DNS_RECORDS_SRV) {
		dns_targets_take(&targets, &answer);
		check(targets.count <= answer.count, "a target is a record");
		memset(&address, 0, sizeof(address));
		address.count = 1;
		memset(&address.records[0].address, 0x20, sizeof(address.records[0].address));
		for (i = 0; i < targets.count; i++)
			dns_target_address(&targets.item[i], &address);
		count = dns_members_of_targets(&settings, &targets, members, &note);
		check(count <= targets.count, "a member is a target");
	} else {
		count = dns_members_of_addresses(&settings, &answer, members, &note);
		check(count <= answer.count, "a member is an address");
	}
	for (i = 0; i < count; i++) {
		check(config_name_valid(members[i].replica.name, REPLICA_NAME_SIZE),
		      "a member has a replica's name");
		check(members[i].replica.port > 0, "a member has a port");
		check(members[i].replica.addresses.count >= 1, "a member has an address");
	}
	return 0;
}
