/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Secrets as they lie in files.
 *
 * Owns: reading and checking such a file. May not know: what the secret is for.
 */
#ifndef WARMPATH_USER_SECRET_FILE_H
#define WARMPATH_USER_SECRET_FILE_H

#include <stddef.h>
#include <warmpath/blake2b.h>

#include "lib/error.h"

/*
 * Reads a secret of 1 to BLAKE2B_KEY_LENGTH_MAX bytes: the file's bytes as they are (a newline at the end is part of it). what: the
 * file's name in sentences, as in "the WHAT file".
 * 0 and *length; or a negative errno with one plain sentence in `error`.
 */
int secret_file_read(const char *what, const char *path, __u8 secret[BLAKE2B_KEY_LENGTH_MAX],
		     size_t *length, struct error *error);

#endif /* WARMPATH_USER_SECRET_FILE_H */
