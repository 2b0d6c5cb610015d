/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/cluster_secret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <warmpath/blake2b.h>

#include "lib/secret_file.h"

static __u64 derive_word(const __u8 *secret, size_t length, const char *label)
{
	return blake2b_64(label, strlen(label), secret, length);
}

void cluster_keys_derive(const __u8 *secret, size_t length, struct handoff_keys *keys,
			 unsigned int index)
{
	keys->cookie[index].word[0] = derive_word(secret, length, "warmpath cookie 0");
	keys->cookie[index].word[1] = derive_word(secret, length, "warmpath cookie 1");
	keys->mark[index].word[0] = derive_word(secret, length, "warmpath mark 0");
	keys->mark[index].word[1] = derive_word(secret, length, "warmpath mark 1");
}

static int read_secret(const char *path, __u8 secret[BLAKE2B_KEY_LENGTH_MAX], size_t *length,
		       struct error *error)
{
	int result = secret_file_read("secret", path, secret, length, error);

	if (!result && *length < CLUSTER_SECRET_LENGTH_MIN)
		result = error_set(
			error, -EINVAL,
			"the secret file %s has %zu bytes; it needs %d to %d, best from /dev/urandom",
			path, *length, CLUSTER_SECRET_LENGTH_MIN, BLAKE2B_KEY_LENGTH_MAX);
	return result;
}

static int load_secret(const char *path, struct handoff_keys *keys, unsigned int index,
		       struct error *error)
{
	__u8 secret[BLAKE2B_KEY_LENGTH_MAX];
	size_t length;
	int result = read_secret(path, secret, &length, error);

	if (!result) {
		cluster_keys_derive(secret, length, keys, index);
		keys->count = index + 1;
	} else if (result == -ENOENT) {
		error_set(
			error, result,
			"the secret file %s does not exist: copy it from another machine of the "
			"cluster, or make the first one: (umask 077; head -c 32 /dev/urandom >%s)",
			path, path);
	}
	explicit_bzero(secret, sizeof(secret));
	return result;
}

int cluster_secret_fingerprint(const char *path, char fingerprint[CLUSTER_FINGERPRINT_SIZE],
			       struct error *error)
{
	__u8 secret[BLAKE2B_KEY_LENGTH_MAX];
	size_t length;
	int result = read_secret(path, secret, &length, error);

	if (!result)
		snprintf(fingerprint, CLUSTER_FINGERPRINT_SIZE, "%016llx",
			 (unsigned long long)derive_word(secret, length, "warmpath fingerprint"));
	explicit_bzero(secret, sizeof(secret));
	return result;
}

int cluster_secrets_load(struct config_handoff *handoff, struct error *error)
{
	int result = 0;

	memset(&handoff->keys, 0, sizeof(handoff->keys));
	if (handoff->secret_file[0])
		result = load_secret(handoff->secret_file, &handoff->keys, 0, error);
	if (!result && handoff->second_secret_file[0])
		result = load_secret(handoff->second_secret_file, &handoff->keys, 1, error);
	return result;
}
