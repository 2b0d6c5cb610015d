/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int secret_file_read(const char *what, const char *path, __u8 secret[BLAKE2B_KEY_LENGTH_MAX],
		     size_t *length, struct error *error)
{
	__u8 read_bytes[BLAKE2B_KEY_LENGTH_MAX + 1];
	size_t filled = 0;
	ssize_t got;
	int err = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return error_set(error, -errno, "the %s file %s cannot be opened: %s", what, path,
				 strerror(errno));
	do {
		got = read(fd, read_bytes + filled, sizeof(read_bytes) - filled);
		if (got > 0)
			filled += got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0) {
		err = error_set(error, -errno, "the %s file %s cannot be read: %s", what, path,
				strerror(errno));
	} else if (filled < 1 || filled > BLAKE2B_KEY_LENGTH_MAX) {
		err = error_set(error, -EINVAL, "the %s file %s is %s; it may have 1 to %d bytes",
				what, path, filled < 1 ? "empty" : "too long",
				BLAKE2B_KEY_LENGTH_MAX);
	} else {
		memcpy(secret, read_bytes, filled);
		*length = filled;
	}
	explicit_bzero(read_bytes, sizeof(read_bytes));
	close(fd);
	return err;
}
