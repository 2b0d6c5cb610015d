/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The secret that the routers and replicas of a cluster share, as it lies in a file, and the keys made of it.
 *
 * Owns: reading and checking the file, deriving keys. May not know: what is signed with them (cookie.h, mark.h).
 */
#ifndef WARMPATH_USER_CLUSTER_SECRET_H
#define WARMPATH_USER_CLUSTER_SECRET_H

#include <stddef.h>
#include <warmpath/handoff_keys.h>

#include "lib/config.h"
#include "lib/error.h"

#define CLUSTER_SECRET_LENGTH_MIN 16

/*
 * Derives the keys of a secret of CLUSTER_SECRET_LENGTH_MIN to 64 bytes into generation `index` (0 .. HANDOFF_KEYS_MAX - 1): each of their words is
 * BLAKE2b-64, keyed with the secret, of a label of its own.
 */
void cluster_keys_derive(const __u8 *secret, size_t length, struct handoff_keys *keys,
			 unsigned int index);

/*
 * Reads the files that the configuration names and derives handoff->keys; none named: keys->count is 0. 0, or a negative errno with a
 * sentence.
 */
int cluster_secrets_load(struct config_handoff *handoff, struct error *error);

#define CLUSTER_FINGERPRINT_SIZE 17

/*
 * Writes 16 hexadecimal digits that tell secrets apart and say nothing about them (BLAKE2b-64, keyed with the secret, of a label of its
 * own): to be compared by people. 0, or a negative errno with a sentence.
 */
int cluster_secret_fingerprint(const char *path, char fingerprint[CLUSTER_FINGERPRINT_SIZE],
			       struct error *error);

#endif /* WARMPATH_USER_CLUSTER_SECRET_H */
