/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/kubernetes_slices.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kubernetes_json.h"
#include "lib/address.h"

/* --- the set --------------------------------------------------------------------------------------------------------- */

static void remove_at(struct kubernetes_slices *slices, unsigned int index)
{
	slices->endpoint_count -= slices->slice[index].endpoint_count;
	free(slices->slice[index].endpoints);
	slices->slice[index] = slices->slice[--slices->count];
	memset(&slices->slice[slices->count], 0, sizeof(slices->slice[0]));
}

void kubernetes_slices_clear(struct kubernetes_slices *slices)
{
	while (slices->count > 0)
		remove_at(slices, slices->count - 1);
	free(slices->slice);
	slices->slice = NULL;
	slices->room = 0;
	slices->version[0] = '\0';
}

static int find(const struct kubernetes_slices *slices, const char *name)
{
	unsigned int i;

	for (i = 0; i < slices->count; i++) {
		if (strcmp(slices->slice[i].name, name) == 0)
			return i;
	}
	return -ENOENT;
}

static int make_room(struct kubernetes_slices *slices)
{
	unsigned int room = slices->room ? slices->room * 2 : 4;
	struct kubernetes_slice *slice;

	if (slices->count < slices->room)
		return 0;
	slice = realloc(slices->slice, room * sizeof(*slice));
	if (!slice)
		return -ENOMEM;
	slices->slice = slice;
	slices->room = room;
	return 0;
}

/* Takes over what the slice holds. */
static int put(struct kubernetes_slices *slices, struct kubernetes_slice *slice,
	       struct error *error)
{
	int index = find(slices, slice->name);
	unsigned int endpoints = slices->endpoint_count + slice->endpoint_count;

	if (index >= 0)
		endpoints -= slices->slice[index].endpoint_count;
	if (index < 0 && slices->count == KUBERNETES_SLICES_MAX)
		return error_set(error, -E2BIG, "the service has more than %d EndpointSlices",
				 KUBERNETES_SLICES_MAX);
	if (endpoints > KUBERNETES_ENDPOINTS_MAX)
		return error_set(error, -E2BIG, "the service has more than %d endpoints",
				 KUBERNETES_ENDPOINTS_MAX);
	if (index < 0) {
		if (make_room(slices))
			return error_set(error, -ENOMEM, "not enough memory");
		index = slices->count++;
	} else {
		free(slices->slice[index].endpoints);
	}
	slices->slice[index] = *slice;
	memset(slice, 0, sizeof(*slice));
	slices->endpoint_count = endpoints;
	return 0;
}

/* --- lists and events -------------------------------------------------------------------------------------------------- */

static int add_item(struct kubernetes_slices *slices, const char *port_name, const json_t *object,
		    struct error *error)
{
	struct kubernetes_slice slice = {0};
	int result = kubernetes_read_slice(object, port_name, &slice, error);

	if (!result)
		result = put(slices, &slice, error);
	free(slice.endpoints);
	return result;
}

static json_t *parse(const char *text, size_t length, struct error *error)
{
	json_error_t problem;
	json_t *document = json_loadb(text, length, 0, &problem);

	if (!json_is_object(document)) {
		json_decref(document);
		error_set(error, -EINVAL, "the answer is not a JSON object");
		return NULL;
	}
	return document;
}

int kubernetes_slices_list(struct kubernetes_slices *slices, const char *port_name,
			   const char *text, size_t length, char next[KUBERNETES_CONTINUE_SIZE],
			   struct error *error)
{
	json_t *document = parse(text, length, error), *metadata, *items, *item;
	int result = 0;
	size_t i;

	next[0] = '\0';
	if (!document)
		return -EINVAL;
	metadata = json_object_get(document, "metadata");
	items = json_object_get(document, "items");
	/* An empty list may come as null. */
	if (!json_is_object(metadata) || (!json_is_array(items) && !json_is_null(items)))
		result = error_set(error, -EINVAL, "the answer is not a list of EndpointSlices");
	json_array_foreach(items, i, item)
	{
		if (result)
			break;
		result = add_item(slices, port_name, item, error);
	}
	if (!result &&
	    !kubernetes_text(metadata, "resourceVersion", slices->version, sizeof(slices->version)))
		result = error_set(error, -EINVAL, "the list has no usable resourceVersion");
	if (!result && json_object_get(metadata, "continue") &&
	    !kubernetes_text(metadata, "continue", next, KUBERNETES_CONTINUE_SIZE) &&
	    json_string_length(json_object_get(metadata, "continue")) > 0)
		result = error_set(error, -EINVAL,
				   "the list's token to continue is longer than %d bytes",
				   KUBERNETES_CONTINUE_SIZE - 1);
	json_decref(document);
	return result;
}

static int take_change(struct kubernetes_slices *slices, const char *port_name,
		       const json_t *object, bool gone, struct error *error)
{
	char name[DNS_NAME_SIZE];
	int index;

	if (!gone)
		return add_item(slices, port_name, object, error);
	if (!kubernetes_text(json_object_get(object, "metadata"), "name", name, sizeof(name)))
		return error_set(error, -EINVAL, "an EndpointSlice has no name");
	index = find(slices, name);
	if (index >= 0)
		remove_at(slices, index);
	return 0;
}

static void take_version(struct kubernetes_slices *slices, const json_t *object)
{
	char version[KUBERNETES_VERSION_SIZE];

	if (kubernetes_text(json_object_get(object, "metadata"), "resourceVersion", version,
			    sizeof(version)))
		memcpy(slices->version, version, sizeof(version));
}

static enum kubernetes_event read_refusal(const json_t *status, struct error *error)
{
	char message[256];

	if (json_integer_value(json_object_get(status, "code")) == 410)
		return KUBERNETES_EXPIRED;
	kubernetes_message(status, message);
	error_set(error, 0, "the watch has ended with an error: %s",
		  message[0] ? message : "no reason is given");
	return KUBERNETES_REFUSED;
}

int kubernetes_slices_event(struct kubernetes_slices *slices, const char *port_name,
			    const char *line, size_t length, enum kubernetes_event *event,
			    struct error *error)
{
	json_t *document = parse(line, length, error);
	const json_t *object = json_object_get(document, "object");
	const char *type = json_string_value(json_object_get(document, "type"));
	int result = 0;

	if (!document)
		return -EINVAL;
	*event = KUBERNETES_CHANGED;
	if (!type || !json_is_object(object)) {
		result = error_set(error, -EINVAL, "a line of the watch is not an event");
	} else if (strcmp(type, "ERROR") == 0) {
		*event = read_refusal(object, error);
	} else if (strcmp(type, "BOOKMARK") == 0) {
		*event = KUBERNETES_BOOKMARK;
		take_version(slices, object);
	} else if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0 ||
		   strcmp(type, "DELETED") == 0) {
		result =
			take_change(slices, port_name, object, strcmp(type, "DELETED") == 0, error);
		if (!result)
			take_version(slices, object);
	} else {
		result = error_set(error, -EINVAL, "an event of the watch has the type \"%.40s\"",
				   type);
	}
	json_decref(document);
	return result;
}

bool kubernetes_status_message(const char *text, size_t length, char message[256])
{
	struct error error;
	json_t *document = parse(text, length, &error);

	message[0] = '\0';
	if (document)
		kubernetes_message(document, message);
	json_decref(document);
	return message[0] != '\0';
}

/* --- members ----------------------------------------------------------------------------------------------------------- */

static int compare_members(const void *left, const void *right)
{
	const struct discovered_member *a = left, *b = right;
	int order = strcmp(a->replica.name, b->replica.name);

	if (!order)
		order = memcmp(&a->replica.addresses.item[0].address,
			       &b->replica.addresses.item[0].address, sizeof(struct address));
	return order ? order : a->terminating - b->terminating;
}

static void make_member(const struct kubernetes_slice *slice,
			const struct kubernetes_endpoint *endpoint,
			const struct config_discovery *settings, struct discovered_member *member)
{
	memset(member, 0, sizeof(*member));
	memcpy(member->replica.name, endpoint->name, sizeof(member->replica.name));
	member->replica.addresses.item[0].address = endpoint->address;
	member->replica.addresses.item[0].prefix_length = 128;
	member->replica.addresses.count = 1;
	member->replica.port = slice->port;
	member->replica.weight_thousandths = settings->weight_thousandths;
	member->life = endpoint->life;
	member->terminating = endpoint->terminating;
}

unsigned int kubernetes_slices_members(const struct kubernetes_slices *slices,
				       const struct config_discovery *settings,
				       struct discovered_member *members, unsigned int most,
				       struct error *note)
{
	unsigned int count = 0, i, j;

	note->text[0] = '\0';
	for (i = 0; i < slices->count; i++) {
		const struct kubernetes_slice *slice = &slices->slice[i];

		if (slice->note.text[0])
			*note = slice->note;
		if (slice->port == 0 && slice->endpoint_count > 0) {
			if (settings->port_name[0])
				error_set(
					note, 0,
					"EndpointSlice %s has no port named %s: its endpoints are left out",
					slice->name, settings->port_name);
			else
				error_set(
					note, 0,
					"EndpointSlice %s does not have exactly one port: name one with port_name",
					slice->name);
			continue;
		}
		for (j = 0; j < slice->endpoint_count; j++, count++) {
			if (count < most)
				make_member(slice, &slice->endpoints[j], settings, &members[count]);
		}
	}
	qsort(members, count < most ? count : most, sizeof(*members), compare_members);
	return count;
}
