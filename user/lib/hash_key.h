/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The secret key of the ring's hash, as it lies in a file.
 *
 * Owns: how it is called in sentences. May not know: what is hashed with it.
 */
#ifndef WARMPATH_USER_HASH_KEY_H
#define WARMPATH_USER_HASH_KEY_H

#include <stddef.h>
#include <warmpath/blake2b.h>

#include "lib/error.h"

/*
 * Reads a key of 1 to BLAKE2B_KEY_LENGTH_MAX bytes: the file's bytes as they are (a newline at the end is part of the key).
 * 0 and *length; or a negative errno with one plain sentence in `error`.
 */
int hash_key_read(const char *path, __u8 key[BLAKE2B_KEY_LENGTH_MAX], size_t *length,
		  struct error *error);

#endif /* WARMPATH_USER_HASH_KEY_H */
