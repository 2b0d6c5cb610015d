/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a JSON file of named settings strictly: a missing, unknown or wrong key is named with what is allowed.
 *
 * Owns: that discipline for the tools' files (profiles, cost models). May not know: what the settings mean.
 */
#ifndef TOOLS_FIELDS_H
#define TOOLS_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

enum field_kind {
	FIELD_NUMBER, /* double */
	FIELD_COUNT,  /* uint32_t, whole */
};

struct field {
	const char *name; /* of the key */
	enum field_kind kind;
	size_t offset;	  /* in the struct that is filled */
	double low, high; /* both allowed */
};

#define TOOLS_ERROR_SIZE 512

/*
 * Fills `values` from the JSON object in the file `path`; every field must be there and nothing else, but for keys that begin with "_"
 * (comments). 0, or a negative errno with one plain sentence in `error`.
 */
int fields_read(const char *path, const struct field *fields, size_t count, void *values,
		char error[TOOLS_ERROR_SIZE]);

#endif /* TOOLS_FIELDS_H */
