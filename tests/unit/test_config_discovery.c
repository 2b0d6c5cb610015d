/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of the configuration file that say where replicas are discovered: what goes together, what a source may be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "../common/config_example.h"

static void sources_that_are_refused(void **state)
{
	static const struct changed_example cases[] = {
		{"name: _http._tcp.llm.example.org", "name: _http._tcp..example.org", 1,
		 "service chat: discovery: name is \"_http._tcp..example.org\"; allowed: a full DNS name"},
		{"server: none ", "server: dns.example.org ", 1,
		 "service chat: discovery: server is \"dns.example.org\"; allowed: ADDRESS or ADDRESS:PORT"},
		{"server: none ", "server: 10.0.0.53:0 ", 1,
		 "discovery: server is \"10.0.0.53:0\""},
		{"server: none ", "server: \"[fd00::53\" ", 1,
		 "discovery: server is \"[fd00::53\""},
		{"records: srv", "records: a", 1,
		 "discovery of _http._tcp.llm.example.org: records: a have no port; state the replicas' port"},
		{"records: srv", "records: aaaa", 1,
		 "records: aaaa give replicas an IPv6 address alone, but the service has a public IPv4 one"},
		{"port: none ", "port: 8001 ", 1,
		 "records: srv have the port themselves; state port: none"},
		{"records: srv\n", "records: srv\n        namespace: default\n", 1,
		 "services[0].discovery[0].namespace is only allowed with from: kubernetes"},
		{"api_server: in-cluster ", "api_server: http://example.org ", 1,
		 "service chat-http: discovery: api_server is \"http://example.org\"; allowed: https://HOST"},
		{"api_server: in-cluster ", "api_server: http://127.0.0.1.example.org ", 1,
		 "discovery: api_server is \"http://127.0.0.1.example.org\""},
		{"api_server: in-cluster ", "api_server: https://user@example.org ", 1,
		 "discovery: api_server is \"https://user@example.org\""},
		{"api_server: in-cluster ", "api_server: \"https://[fd00::1]:66000\" ", 1,
		 "discovery: api_server is \"https://[fd00::1]:66000\""},
		{"namespace: in-cluster ", "namespace: Default ", 1,
		 "discovery: namespace is \"Default\"; allowed: the name of a namespace, or in-cluster"},
		{"service: llm ", "service: llm/x ", 1,
		 "discovery: service is \"llm/x\"; allowed: the name of a Kubernetes service"},
		{"port_name: http ", "port_name: -http ", 1, "discovery: port_name is \"-http\""},
		{"token_file: /var/run/secrets/kubernetes.io/serviceaccount/token",
		 "token_file: none", 1,
		 "discovery of llm: namespace: in-cluster is read from the file beside the token, but "
		 "token_file is none"},
	};

	(void)state;
	expect_complaints(cases, sizeof(cases) / sizeof(cases[0]));
}

static void sources_that_are_fine(void **state)
{
	static const char *const servers[][2] = {
		{"server: none ", "server: 10.0.0.53:5353 "},
		{"server: none ", "server: \"[fd00::53]\" "},
		{"server: none ", "server: \"[fd00::53]:53\" "},
		{"api_server: in-cluster ", "api_server: https://example.org "},
		{"api_server: in-cluster ", "api_server: \"https://[fd00::1]:6443\" "},
		{"api_server: in-cluster ", "api_server: http://127.0.0.1:8001 "},
		{"api_server: in-cluster ", "api_server: \"http://[::1]\" "},
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		char *said = complaint_after(servers[i][0], servers[i][1], 1);

		assert_string_equal(said, "");
		free(said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sources_that_are_refused),
		cmocka_unit_test(sources_that_are_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
