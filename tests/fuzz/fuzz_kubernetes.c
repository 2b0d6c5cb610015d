// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fuzzes what is read of the Kubernetes API. Input: one byte (bit 0: a list, else a watch; bit 1: a named port; the rest: the length of
 * the pieces that the stream comes in), then the list, or the watch's stream.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kubernetes_slices.h"
#include "agent/line_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct stream {
	struct kubernetes_slices *slices;
	const char *port_name;
};

static void check(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "it does not hold that %s\n", what);
		__builtin_trap();
	}
}

static bool take_line(void *context, const char *line, size_t length)
{
	struct stream *stream = context;
	enum kubernetes_event event;
	struct error error;
	unsigned int before = stream->slices->endpoint_count;

	check(!memchr(line, '\n', length), "a line has no newline in it");
	if (kubernetes_slices_event(stream->slices, stream->port_name, line, length, &event,
				    &error)) {
		check(stream->slices->endpoint_count == before,
		      "what cannot be read changes nothing");
		return false;
	}
	return true;
}

/* What the rest of the agent relies upon. */
static void check_members(const struct kubernetes_slices *slices)
{
	static const struct config_discovery settings = {.weight_thousandths = 1000};
	struct discovered_member *members = calloc(slices->endpoint_count + 1, sizeof(*members));
	struct error note;
	unsigned int count, i, j, endpoints = 0;

	check(slices->count <= KUBERNETES_SLICES_MAX, "the slices are bounded");
	check(slices->endpoint_count <= KUBERNETES_ENDPOINTS_MAX, "the endpoints are bounded");
	for (i = 0; i < slices->count; i++) {
		endpoints += slices->slice[i].endpoint_count;
		for (j = 0; j < i; j++)
			check(strcmp(slices->slice[i].name, slices->slice[j].name) != 0,
			      "a slice is there once");
	}
	check(endpoints == slices->endpoint_count, "the endpoints are counted");
	count = kubernetes_slices_members(slices, &settings, members, slices->endpoint_count,
					  &note);
	check(count <= slices->endpoint_count, "a member is an endpoint");
	for (i = 0; i < count; i++) {
		check(config_name_valid(members[i].replica.name, REPLICA_NAME_SIZE),
		      "a member has a replica's name");
		check(members[i].replica.port > 0, "a member has a port");
		check(i == 0 || strcmp(members[i - 1].replica.name, members[i].replica.name) <= 0,
		      "members are sorted");
	}
	free(members);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kubernetes_slices slices;
	static char next[KUBERNETES_CONTINUE_SIZE];
	struct line_reader reader = {.most = 65536};
	struct stream stream = {.slices = &slices};
	struct error error;
	char message[256];
	size_t piece;

	if (size < 1)
		return 0;
	stream.port_name = data[0] & 2 ? "http" : "";
	piece = data[0] >> 2 ? data[0] >> 2 : size;
	kubernetes_slices_clear(&slices);
	if (data[0] & 1) {
		kubernetes_slices_list(&slices, stream.port_name, (const char *)data + 1, size - 1,
				       next, &error);
		check(memchr(next, '\0', sizeof(next)), "the token to continue ends");
		kubernetes_status_message((const char *)data + 1, size - 1, message);
	} else {
		for (size_t at = 1; at < size; at += piece) {
			if (line_reader_take(&reader, (const char *)data + at,
					     size - at < piece ? size - at : piece, take_line,
					     &stream))
				break;
		}
	}
	check_members(&slices);
	kubernetes_slices_clear(&slices);
	line_reader_free(&reader);
	return 0;
}
