/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/config_depth.h"

#include <yaml.h>

#define DOCUMENT_DEPTH_MAX 32 /* of any YAML, however wrong */

/*
 * Reads the file once for nothing but its depth. The library's time for a document rises with the square of it, so that a file of a few
 * hundred kilobytes could keep the agent from its work for minutes; here reading ends where it becomes too deep.
 */
bool config_is_too_deep(const char *text, size_t length, const char *name,
			struct config_problems *problems)
{
	unsigned int depth = 0;
	bool ended = false, deep = false;
	yaml_parser_t parser;

	if (!yaml_parser_initialize(&parser))
		return false; /* the caller meets the same want of memory */
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	while (!ended && !deep) {
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event))
			break; /* said where the document is read */
		switch (event.type) {
		case YAML_SEQUENCE_START_EVENT:
		case YAML_MAPPING_START_EVENT:
			deep = ++depth > DOCUMENT_DEPTH_MAX;
			break;
		case YAML_SEQUENCE_END_EVENT:
		case YAML_MAPPING_END_EVENT:
			depth--;
			break;
		case YAML_STREAM_END_EVENT:
			ended = true;
			break;
		default:
			break;
		}
		if (deep)
			config_problem(problems, name, (int)event.start_mark.line + 1,
				       "lists and mappings are nested more than %d deep here",
				       DOCUMENT_DEPTH_MAX);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return deep;
}
