/* SPDX-License-Identifier: BSD-2-Clause */
#include "bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *bytes_room(struct bytes *bytes, size_t length)
{
	size_t needed = bytes->length + length + 1;

	if (needed > bytes->capacity) {
		size_t capacity = bytes->capacity ? bytes->capacity : 256;
		char *data;

		while (capacity < needed)
			capacity *= 2;
		data = realloc(bytes->data, capacity);
		if (!data) {
			fputs("out of memory\n", stderr);
			abort();
		}
		bytes->data = data;
		bytes->capacity = capacity;
	}
	return bytes->data + bytes->length;
}

void bytes_add(struct bytes *bytes, const void *data, size_t length)
{
	memcpy(bytes_room(bytes, length), data, length);
	bytes->length += length;
	bytes->data[bytes->length] = '\0';
}

void bytes_text(struct bytes *bytes, const char *text)
{
	bytes_add(bytes, text, strlen(text));
}

void bytes_print(struct bytes *bytes, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(NULL, 0, format, list);
	va_end(list);
	if (length <= 0)
		return;
	bytes_room(bytes, (size_t)length);
	va_start(list, format);
	vsnprintf(bytes->data + bytes->length, (size_t)length + 1, format, list);
	va_end(list);
	bytes->length += (size_t)length;
}

void bytes_clear(struct bytes *bytes)
{
	bytes->length = 0;
	if (bytes->data)
		bytes->data[0] = '\0';
}

void bytes_free(struct bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct bytes){0};
}
