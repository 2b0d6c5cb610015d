/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A growing run of bytes.
 *
 * Owns: its memory. May not know: what the bytes mean. Running out of memory ends the program: tools have no better answer.
 */
#ifndef TOOLS_BYTES_H
#define TOOLS_BYTES_H

#include <stddef.h>

struct bytes {
	char *data; /* always followed by a NUL once anything was added */
	size_t length, capacity;
};

void bytes_add(struct bytes *bytes, const void *data, size_t length);
void bytes_text(struct bytes *bytes, const char *text);
void bytes_print(struct bytes *bytes, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Room for `length` more bytes; the caller writes them and adds to bytes->length itself. */
char *bytes_room(struct bytes *bytes, size_t length);
void bytes_clear(struct bytes *bytes); /* keeps the memory */
void bytes_free(struct bytes *bytes);

#endif /* TOOLS_BYTES_H */
