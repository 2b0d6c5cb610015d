/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/kubernetes_json.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/text_hash.h"
#include "lib/address.h"

#define MESSAGE_LENGTH_MAX 200

bool kubernetes_text(const json_t *object, const char *name, char *text, size_t size)
{
	const json_t *value = json_object_get(object, name);
	size_t length = json_string_length(value);

	memset(text, 0, size);
	if (length == 0 || length >= size || strlen(json_string_value(value)) != length)
		return false;
	memcpy(text, json_string_value(value), length);
	return true;
}

void kubernetes_message(const json_t *status, char message[256])
{
	const char *said = json_string_value(json_object_get(status, "message"));
	size_t i;

	for (i = 0; said && said[i] && i < MESSAGE_LENGTH_MAX; i++)
		message[i] = isprint((unsigned char)said[i]) ? said[i] : ' ';
	message[i] = '\0';
}

static __u32 hash_uid(const char *uid)
{
	return uid ? text_hash_end(text_hash_add(TEXT_HASH_START, uid, strlen(uid))) : 0;
}

/* --- ports ------------------------------------------------------------------------------------------------------------- */

/* The port wanted: by its name, or the only one. A port without a number means all of them, which is none that could be used. */
static __u16 read_port(const json_t *object, const char *wanted)
{
	const json_t *ports = json_object_get(object, "ports"), *port;
	json_int_t number = 0;
	bool named = wanted && wanted[0];
	size_t i;

	if (!named && json_array_size(ports) != 1)
		return 0;
	json_array_foreach(ports, i, port)
	{
		const char *name = json_string_value(json_object_get(port, "name"));

		if (!named || strcmp(name ? name : "", wanted) == 0)
			number = json_integer_value(json_object_get(port, "port"));
	}
	return number >= 1 && number <= 65535 ? number : 0;
}

/* --- endpoints ----------------------------------------------------------------------------------------------------------- */

/* A condition that is absent or null is what `otherwise` says. */
static bool condition(const json_t *endpoint, const char *name, bool otherwise)
{
	const json_t *value = json_object_get(json_object_get(endpoint, "conditions"), name);

	return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static bool read_name(const json_t *endpoint, struct kubernetes_endpoint *into)
{
	const json_t *target = json_object_get(endpoint, "targetRef");
	const char *kind = json_string_value(json_object_get(target, "kind"));
	char text[INET6_ADDRSTRLEN], *letter;

	if (kind && strcmp(kind, "Pod") == 0) {
		into->life = hash_uid(json_string_value(json_object_get(target, "uid")));
		return kubernetes_text(target, "name", into->name, sizeof(into->name)) &&
		       config_name_valid(into->name, sizeof(into->name));
	}
	if (kubernetes_text(endpoint, "hostname", into->name, sizeof(into->name)))
		return config_name_valid(into->name, sizeof(into->name));
	/* An endpoint that somebody wrote by hand, without a pod. */
	address_format(&into->address, text);
	for (letter = text; *letter; letter++) {
		if (*letter == ':')
			*letter = '-';
	}
	memcpy(into->name, text, strlen(text) + 1);
	return true;
}

/* Whether the endpoint is one that counts. */
static bool read_endpoint(const json_t *endpoint, struct kubernetes_slice *slice,
			  struct kubernetes_endpoint *into)
{
	/* All addresses of an endpoint are the same for their users, who are to take the first. */
	const char *address =
		json_string_value(json_array_get(json_object_get(endpoint, "addresses"), 0));
	struct error error;

	memset(into, 0, sizeof(*into));
	into->terminating = condition(endpoint, "terminating", false);
	if (!into->terminating && !condition(endpoint, "ready", true))
		return false;
	if (!address || address_parse(address, &into->address, NULL, &error)) {
		error_set(&slice->note, 0,
			  "EndpointSlice %s has an endpoint without a usable address", slice->name);
		return false;
	}
	if (!read_name(endpoint, into)) {
		error_set(
			&slice->note, 0,
			"EndpointSlice %s has an endpoint at %s whose pod's name cannot be a replica's: "
			"more than %d characters",
			slice->name, address, REPLICA_NAME_SIZE - 1);
		return false;
	}
	return true;
}

/* --- slices -------------------------------------------------------------------------------------------------------------- */

int kubernetes_read_slice(const json_t *object, const char *port_name,
			  struct kubernetes_slice *slice, struct error *error)
{
	const json_t *endpoints = json_object_get(object, "endpoints"), *endpoint;
	const char *family = json_string_value(json_object_get(object, "addressType"));
	size_t i;

	if (!kubernetes_text(json_object_get(object, "metadata"), "name", slice->name,
			     sizeof(slice->name)))
		return error_set(error, -EINVAL, "an EndpointSlice has no name");
	if (json_array_size(endpoints) > KUBERNETES_ENDPOINTS_MAX)
		return error_set(error, -E2BIG, "EndpointSlice %s has more than %d endpoints",
				 slice->name, KUBERNETES_ENDPOINTS_MAX);
	slice->port = read_port(object, port_name);
	if (!family || (strcmp(family, "IPv4") != 0 && strcmp(family, "IPv6") != 0)) {
		error_set(&slice->note, 0,
			  "EndpointSlice %s is left out: its addresses are neither IPv4 nor IPv6",
			  slice->name);
		return 0;
	}
	slice->endpoints = calloc(json_array_size(endpoints) + 1, sizeof(*slice->endpoints));
	if (!slice->endpoints)
		return error_set(error, -ENOMEM, "not enough memory");
	json_array_foreach(endpoints, i, endpoint)
	{
		if (read_endpoint(endpoint, slice, &slice->endpoints[slice->endpoint_count]))
			slice->endpoint_count++;
	}
	return 0;
}
