// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * EndpointSlices as the stand-in for an API server (api_server.c) writes them.
 *
 * Owns: the shape of the objects, recorded from a real server. May not know: who is told of them.
 */
#ifndef WARMPATH_TESTS_API_OBJECTS_H
#define WARMPATH_TESTS_API_OBJECTS_H

#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Events that are of no slice: with the version, and with a code. */
#define BOOKMARK_FORMAT                                                                                 \
	"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"EndpointSlice\",\"apiVersion\":"                 \
	"\"discovery.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"%d\",\"creationTimestamp\":null}," \
	"\"addressType\":\"\",\"endpoints\":null,\"ports\":null}}\n"
#define ERROR_FORMAT                                                                                     \
	"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"     \
	"\"status\":\"Failure\",\"message\":\"too old resource version: 1 (2)\",\"reason\":\"Expired\"," \
	"\"code\":%d}}\n"

/* The object with its kind, and its version where the placeholder is; freed by the caller. */
static char *with_version(const char *object, int number, bool beta)
{
	const char *at = strstr(object, "@VERSION@");
	char *text;

	if (asprintf(&text,
		     "{\"kind\":\"EndpointSlice\",\"apiVersion\":\"discovery.k8s.io/%s\",%.*s%d%s",
		     beta ? "v1beta1" : "v1", (int)(at - object), object, number,
		     at + strlen("@VERSION@")) < 0)
		err(1, "no memory");
	return text;
}

/* POD=ADDRESS[,UID][,terminating|,unready]; a POD "-" has no targetRef */
static void add_endpoint(FILE *out, char *word, bool first)
{
	char *pod = strsep(&word, "="), *address = strsep(&word, ","), *part;
	const char *uid = pod;
	bool terminating = false, ready = true;

	while ((part = strsep(&word, ","))) {
		if (strcmp(part, "terminating") == 0)
			terminating = true, ready = false;
		else if (strcmp(part, "unready") == 0)
			ready = false;
		else
			uid = part;
	}
	fprintf(out,
		"%s{\"addresses\":[\"%s\"],\"conditions\":{\"ready\":%s,\"serving\":%s,\"terminating\":%s}",
		first ? "" : ",", address, ready ? "true" : "false", ready ? "true" : "false",
		terminating ? "true" : "false");
	if (strcmp(pod, "-") != 0)
		fprintf(out,
			",\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"%s\"}",
			pod, uid);
	fprintf(out, ",\"nodeName\":\"node-1\",\"zone\":\"here\"}");
}

/* Everything of the object but what with_version() adds; `words` are the endpoints. */
static void write_slice(FILE *out, const char *name, int version, const char *family,
			const char *port_name, const char *port, char *words)
{
	bool first = true;
	char *word;

	fprintf(out,
		"\"metadata\":{\"name\":\"%s\",\"generateName\":\"llm-\",\"namespace\":\"default\","
		"\"uid\":\"5f1c6c5e-7d1f-4c0e-9c56-%012d\",\"resourceVersion\":\"@VERSION@\",\"generation\":1,"
		"\"labels\":{\"endpointslice.kubernetes.io/managed-by\":\"endpointslice-controller.k8s.io\","
		"\"kubernetes.io/service-name\":\"llm\"}},\"addressType\":\"%s\",\"endpoints\":[",
		name, version, family);
	while ((word = strsep(&words, " "))) {
		if (!*word)
			continue;
		add_endpoint(out, word, first);
		first = false;
	}
	fprintf(out,
		"],\"ports\":[{\"name\":\"metrics\",\"port\":9100,\"protocol\":\"TCP\"},"
		"{\"name\":\"%s\",\"port\":%s,\"protocol\":\"TCP\"}]}",
		port_name, port);
}

#endif /* WARMPATH_TESTS_API_OBJECTS_H */
