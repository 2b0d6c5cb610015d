/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of a service's sources of replicas: names, addresses and URLs that have to have a form, keys that do not go together.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "lib/address.h"
#include "lib/config.h"
#include "lib/config_check.h"
#include "lib/config_schema.h"

/* A name of DNS as a host, a service or a Kubernetes object has it: labels of letters, digits, - and _, 1 to 63 characters each. */
static bool is_dns_name(const char *name)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	while (*name) {
		size_t length = strspn(name, letters);

		if (length < 1 || length > 63)
			return false;
		name += length;
		if (*name != '\0' && *name++ != '.')
			return false;
	}
	return true;
}

/* The names of namespaces, services and ports: one label in small letters. */
static bool is_label(const char *name)
{
	size_t length = strlen(name);

	return length >= 1 && length <= 63 && name[0] != '-' && name[length - 1] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static bool is_port(const char *text)
{
	char *end;
	unsigned long port;

	if (*text < '0' || *text > '9')
		return false;
	port = strtoul(text, &end, 10);
	return *end == '\0' && port >= 1 && port <= 65535;
}

/* "10.0.0.53", "10.0.0.53:5353", "[fd00::53]", "[fd00::53]:5353" */
static bool is_server(const char *text)
{
	const char *end = text[0] == '[' ? strchr(text, ']') : strchr(text, ':');
	const char *rest = !end ? "" : text[0] == '[' ? end + 1 : end;
	size_t length = end ? (size_t)(end - text) : strlen(text);
	char host[INET6_ADDRSTRLEN];
	struct address address;

	if (text[0] == '[') {
		if (!end)
			return false;
		text++;
		length--;
	}
	if (length >= sizeof(host) || (*rest && (*rest != ':' || !is_port(rest + 1))))
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	return address_parse(host, &address, NULL, NULL) == 0;
}

/* "https://HOST", "https://HOST:PORT"; "http://" to this machine alone, as the token goes with it. */
static bool is_api_server(const char *url)
{
	static const char *const here[] = {"127.0.0.1", "[::1]"};
	const char *rest;
	size_t length = 0;
	unsigned int i;

	if (strncmp(url, "https://", 8) == 0) {
		rest = url + 8;
		if (*rest == '[')
			length = strspn(rest + 1, "0123456789abcdefABCDEF:.") + 1;
		else
			length = strcspn(rest, ":/");
		if (*rest == '[' && rest[length++] != ']')
			return false;
		if (length < 1 || (*rest != '[' && strspn(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
								"abcdefghijklmnopqrstuvwxyz"
								"0123456789-_.") != length))
			return false;
	} else if (strncmp(url, "http://", 7) == 0) {
		rest = url + 7;
		for (i = 0; i < 2 && !length; i++) {
			if (strncmp(rest, here[i], strlen(here[i])) == 0)
				length = strlen(here[i]);
		}
		if (!length)
			return false;
	} else {
		return false;
	}
	rest += length;
	return *rest == '\0' || (*rest == ':' && is_port(rest + 1));
}

struct place {
	struct check *check;
	const struct config_service *service;
	const struct config_discovery *source;
};

static void expect_form(const struct place *place, const char *key, const char *value, bool good)
{
	char path[64];
	const struct schema_key *row;

	if (good)
		return;
	strcpy(path, "services[].discovery[].");
	strncat(path, key, sizeof(path) - strlen(path) - 1);
	row = schema_find(path);
	PROBLEM(place->check, place->source->line,
		"service %s: discovery: %s is \"%.80s\"; allowed: %s%s%s", place->service->name,
		key, value, row->form, row->none_allowed ? ", or " : "",
		row->none_allowed ? schema_none_word(row) : "");
}

static void check_dns(const struct place *place)
{
	const struct config_service *service = place->service;
	const struct config_discovery *source = place->source;
	const char *records = schema_word(choices_dns_records, source->records);
	bool ipv4 = false, ipv6 = false;
	unsigned int i;

	expect_form(place, "name", source->name, is_dns_name(source->name));
	expect_form(place, "server", source->server,
		    !source->server[0] || is_server(source->server));
	if (source->records == DNS_RECORDS_SRV && source->port)
		PROBLEM(place->check, source->line,
			"service %s: discovery of %s: records: srv have the port themselves; state port: none",
			service->name, source->name);
	if (source->records != DNS_RECORDS_SRV && !source->port)
		PROBLEM(place->check, source->line,
			"service %s: discovery of %s: records: %s have no port; state the replicas' port",
			service->name, source->name, records);
	if (source->records == DNS_RECORDS_SRV)
		return;
	for (i = 0; i < service->addresses.count; i++) {
		if (address_is_ipv4(&service->addresses.item[i].address))
			ipv4 = true;
		else
			ipv6 = true;
	}
	if ((ipv4 && source->records == DNS_RECORDS_AAAA) ||
	    (ipv6 && source->records == DNS_RECORDS_A))
		PROBLEM(place->check, source->line,
			"service %s: discovery of %s: records: %s give replicas an %s address alone, but the "
			"service has a public %s one; use records: srv, or take that public address away",
			service->name, source->name, records,
			source->records == DNS_RECORDS_A ? "IPv4" : "IPv6",
			source->records == DNS_RECORDS_A ? "IPv6" : "IPv4");
}

static void check_kubernetes(const struct place *place)
{
	const struct config_discovery *source = place->source;

	expect_form(place, "api_server", source->api_server,
		    !source->api_server[0] || is_api_server(source->api_server));
	expect_form(place, "namespace", source->namespace,
		    !source->namespace[0] || is_label(source->namespace));
	expect_form(place, "service", source->service, is_label(source->service));
	expect_form(place, "port_name", source->port_name,
		    !source->port_name[0] || is_label(source->port_name));
	if (!source->namespace[0] && !source->token_file[0])
		PROBLEM(place->check, source->line,
			"service %s: discovery of %s: namespace: in-cluster is read from the file beside the "
			"token, but token_file is none; state the namespace",
			place->service->name, source->service);
}

void config_check_discovery(struct check *check, const struct config_service *service)
{
	struct place place = {.check = check, .service = service};
	unsigned int i;

	for (i = 0; i < service->discovery_count; i++) {
		place.source = &service->discovery[i];
		if (place.source->from == DISCOVERY_DNS)
			check_dns(&place);
		else
			check_kubernetes(&place);
	}
}
