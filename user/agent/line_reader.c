/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/line_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int append(struct line_reader *reader, const char *bytes, size_t length)
{
	size_t room = reader->room ? reader->room : 4096;
	char *text;

	if (length > reader->most - reader->length)
		return -EMSGSIZE;
	while (room < reader->length + length)
		room *= 2;
	if (room != reader->room) {
		text = realloc(reader->text, room);
		if (!text)
			return -ENOMEM;
		reader->text = text;
		reader->room = room;
	}
	memcpy(reader->text + reader->length, bytes, length);
	reader->length += length;
	return 0;
}

int line_reader_take(struct line_reader *reader, const char *bytes, size_t length,
		     bool (*take)(void *context, const char *line, size_t length), void *context)
{
	while (length > 0) {
		const char *newline = memchr(bytes, '\n', length);
		size_t part = newline ? (size_t)(newline - bytes) : length;
		int result = append(reader, bytes, part);

		if (result)
			return result;
		if (!newline)
			return 0;
		part++;
		bytes += part;
		length -= part;
		part = reader->length;
		reader->length = 0;
		if (part > 0 && !take(context, reader->text, part))
			return -ECANCELED;
	}
	return 0;
}

void line_reader_reset(struct line_reader *reader)
{
	reader->length = 0;
}

void line_reader_free(struct line_reader *reader)
{
	free(reader->text);
	reader->text = NULL;
	reader->length = 0;
	reader->room = 0;
}
