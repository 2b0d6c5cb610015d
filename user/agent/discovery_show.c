/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is said of discovery: as JSON, and as warnings.
 */
#include "agent/discovery_parts.h"

#include <string.h>

static double age_seconds(const struct discovery_source *source)
{
	return (uv_hrtime() - source->confirmed) / 1000000 / 1000.0;
}

static json_t *source_json(const struct discovery_source *source)
{
	unsigned int terminating = 0, i;
	json_t *object;

	for (i = 0; i < source->member_count; i++)
		terminating += source->members[i].terminating;
	object = json_pack("{s:s, s:s, s:i, s:i, s:I}", "source", source->title, "state",
			   source->problem.text[0] ? "failing"
			   : source->known	   ? "good"
						   : "waiting",
			   "members", (int)source->member_count, "terminating", (int)terminating,
			   "failures", (json_int_t)source->failures);
	/* Absent until it has answered for the first time. */
	if (source->known)
		json_object_set_new(object, "age_seconds", json_real(age_seconds(source)));
	if (source->problem.text[0])
		json_object_set_new(object, "problem", json_string(source->problem.text));
	if (source->note.text[0])
		json_object_set_new(object, "note", json_string(source->note.text));
	return object;
}

json_t *discovery_sources_json(const struct discovery *discovery, const char *service)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; discovery && i < discovery->source_count; i++) {
		if (strcmp(discovery->sources[i]->service, service) == 0)
			json_array_append_new(list, source_json(discovery->sources[i]));
	}
	return list;
}

json_t *discovery_notes_json(const struct discovery *discovery, const char *service)
{
	const struct found_service *found =
		discovery ? discovery_find_service(discovery, service) : NULL;
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; found && i < found->note_count; i++)
		json_array_append_new(list, json_string(found->notes[i]));
	if (found && found->notes_left_out)
		json_array_append_new(list, json_sprintf("and %u more", found->notes_left_out));
	if (found && found->problem.text[0])
		json_array_append_new(list, json_string(found->problem.text));
	return list;
}

void discovery_check(const struct discovery *discovery,
		     void (*warn)(void *context, const char *sentence), void *context)
{
	struct error sentence;
	unsigned int i, j;

	for (i = 0; discovery && i < discovery->source_count; i++) {
		const struct discovery_source *source = discovery->sources[i];

		if (source->problem.text[0]) {
			error_set(&sentence, 0, "service %s: %s: %s", source->service,
				  source->title, source->problem.text);
			warn(context, sentence.text);
		}
		if (source->note.text[0]) {
			error_set(&sentence, 0, "service %s: %s: %s", source->service,
				  source->title, source->note.text);
			warn(context, sentence.text);
		}
	}
	for (i = 0; discovery && i < discovery->service_count; i++) {
		const struct found_service *service = &discovery->services[i];

		if (service->problem.text[0]) {
			error_set(
				&sentence, 0,
				"service %s: what was found cannot be applied, the replicas stay: %s",
				service->name, service->problem.text);
			warn(context, sentence.text);
		}
		for (j = 0; j < service->note_count; j++) {
			error_set(&sentence, 0, "service %s: discovery: %s", service->name,
				  service->notes[j]);
			warn(context, sentence.text);
		}
	}
}

void discovery_each(const struct discovery *discovery,
		    void (*take)(void *context, const struct discovery_figures *figures),
		    void *context)
{
	unsigned int i, j;

	for (i = 0; discovery && i < discovery->source_count; i++) {
		const struct discovery_source *source = discovery->sources[i];
		struct discovery_figures figures = {
			.service = source->service,
			.source = source->title,
			.failing = source->problem.text[0] != '\0',
			.known = source->known,
			.age_seconds = age_seconds(source),
			.members = source->member_count,
			.failures = source->failures,
		};

		for (j = 0; j < i; j++)
			figures.number += !strcmp(discovery->sources[j]->service, source->service);
		take(context, &figures);
	}
}
