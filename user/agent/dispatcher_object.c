/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/dispatcher_object.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libxdp_dispatcher.skel.h"

#define DIRECTORY_VARIABLE "LIBXDP_OBJECT_PATH"
#define FILE_NAME	   "xdp-dispatcher.o"

static bool used;

/* Writes beside `path` first: a program of another process may be reading what an earlier agent wrote. */
static int write_file(const char *path, const void *bytes, size_t length)
{
	char fresh[PATH_MAX + 8];
	ssize_t written;
	int descriptor;
	int result;

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	descriptor = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (descriptor < 0)
		return -errno;
	written = write(descriptor, bytes, length);
	result = written < 0 ? -errno : (size_t)written < length ? -ENOSPC : 0;
	if (close(descriptor) && !result)
		result = -errno;
	if (!result && rename(fresh, path))
		result = -errno;
	if (result)
		unlink(fresh);
	return result;
}

int dispatcher_object_use(const char *directory, struct error *error)
{
	char path[PATH_MAX];
	const void *bytes;
	size_t length;
	int result;

	if (used)
		return error_set(error, -EALREADY, "warmpath's dispatcher is in use");
	if (getenv(DIRECTORY_VARIABLE))
		return error_set(error, -EPERM, "%s names libxdp's dispatcher: %s",
				 DIRECTORY_VARIABLE, getenv(DIRECTORY_VARIABLE));
	if (snprintf(path, sizeof(path), "%s/%s", directory, FILE_NAME) >= (int)sizeof(path))
		return error_set(error, -ENAMETOOLONG, "%s is too long a name", directory);
	/* made here, too: the control socket comes after what is attached */
	if (mkdir(directory, 0755) && errno != EEXIST)
		return error_set(error, -errno, "%s cannot be made: %s", directory,
				 strerror(errno));
	bytes = libxdp_dispatcher_bpf__elf_bytes(&length);
	result = write_file(path, bytes, length);
	if (!result && setenv(DIRECTORY_VARIABLE, directory, 1))
		result = -errno;
	if (result)
		return error_set(error, result, "%s cannot be written: %s", path,
				 strerror(-result));
	used = true;
	return 0;
}

void dispatcher_object_drop(void)
{
	if (used)
		unsetenv(DIRECTORY_VARIABLE);
	used = false;
}
