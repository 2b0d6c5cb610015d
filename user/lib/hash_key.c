/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/hash_key.h"

#include "lib/secret_file.h"

int hash_key_read(const char *path, __u8 key[BLAKE2B_KEY_LENGTH_MAX], size_t *length,
		  struct error *error)
{
	return secret_file_read("hash key", path, key, length, error);
}
