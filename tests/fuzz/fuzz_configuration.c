// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fuzzes what is read of a configuration file: whatever is in it, it is either taken whole and within the limits that the rest of the agent
 * relies upon, or refused with sentences that can be printed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "it does not hold that %s\n", what);
		__builtin_trap();
	}
}

static void check_service(const struct config_service *service)
{
	check(config_name_valid(service->name, sizeof(service->name)), "a service has a name");
	check(service->addresses.count >= 1 &&
		      service->addresses.count <= CONFIG_SERVICE_ADDRESSES_MAX,
	      "a service has addresses");
	check(service->port > 0, "a service has a port");
	check(service->replica_count <= REPLICAS_MAX, "the replicas are bounded");
	for (unsigned int i = 0; i < service->replica_count; i++) {
		const struct config_replica *replica = &service->replicas[i];

		check(config_name_valid(replica->name, sizeof(replica->name)),
		      "a replica has a name");
		check(replica->port > 0, "a replica has a port");
		check(replica->weight_thousandths > 0, "a replica has a weight");
		check(replica->addresses.count >= 1 &&
			      replica->addresses.count <= CONFIG_REPLICA_ADDRESSES_MAX,
		      "a replica has one address or two");
	}
}

static void check_config(const struct config *config)
{
	check(config->pin_path[0] == '/', "pin_path is absolute");
	check(config->control_socket[0] == '/', "control_socket is absolute");
	check(config->interface_count <= CONFIG_INTERFACES_MAX, "the interfaces are bounded");
	check(config->service_count <= SERVICES_MAX, "the services are bounded");
	for (unsigned int i = 0; i < config->service_count; i++)
		check_service(&config->services[i]);
}

static void check_sentences(const char *text)
{
	for (; *text; text++)
		check((unsigned char)*text >= ' ' || *text == '\n', "what is said can be printed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_problems problems = {0};
	struct config config;
	int result;

	/* a key file may be any file of this machine */
	if (memmem(data, size, "key_file", 8) && memmem(data, size, "/", 1) &&
	    !memmem(data, size, "key_file: none", 14))
		return 0;
	result = config_parse((const char *)data, size, "fuzz.yaml", &config, &problems);
	check((result == 0) == (problems.count == 0), "what is refused is refused with a reason");
	check((problems.text != NULL) == (problems.count > 0), "a reason is said");
	if (result == 0)
		check_config(&config);
	else
		check_sentences(problems.text);
	config_free(&config);
	config_problems_free(&problems);
	return 0;
}
