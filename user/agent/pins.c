/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <warmpath/layout.h>

#include "lib/log.h"

#define BPF_FILE_SYSTEM_ROOT "/sys/fs/bpf"

/* Whether the nearest directory that exists above or at `path` is on a BPF file system. */
static bool on_bpf_file_system(const char *path)
{
	char above[PATH_MAX];
	struct statfs status;
	char *slash;

	snprintf(above, sizeof(above), "%s", path);
	while (statfs(above, &status) < 0) {
		slash = strrchr(above, '/');
		if (!slash || slash == above)
			return false;
		*slash = '\0';
	}
	return (unsigned long)status.f_type == BPF_FS_MAGIC;
}

static int mount_bpf_file_system(const char *pin_path, struct error *error)
{
	size_t length = strlen(BPF_FILE_SYSTEM_ROOT);

	if (strncmp(pin_path, BPF_FILE_SYSTEM_ROOT "/", length + 1) != 0)
		return error_set(
			error, -EINVAL,
			"pin_path %s is not on a BPF file system: mount one there "
			"(mount -t bpf bpf DIRECTORY), or choose a directory below " BPF_FILE_SYSTEM_ROOT,
			pin_path);
	if (mount("bpf", BPF_FILE_SYSTEM_ROOT, "bpf", 0, "mode=0700"))
		return error_set(error, -errno,
				 "the BPF file system cannot be mounted on " BPF_FILE_SYSTEM_ROOT
				 ": %s",
				 strerror(errno));
	log_info("mounted the BPF file system on " BPF_FILE_SYSTEM_ROOT);
	return 0;
}

/* Makes a directory and those above it. */
static int make_directories(const char *path, struct error *error)
{
	char part[PATH_MAX];
	char *slash;

	snprintf(part, sizeof(part), "%s", path);
	for (slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0700) && errno != EEXIST)
			goto failed;
		*slash = '/';
	}
	if (mkdir(part, 0700) == 0 || errno == EEXIST)
		return 0;
failed:
	return error_set(error, -errno, "directory %s cannot be made: %s", part, strerror(errno));
}

void pins_name(struct pins *pins, const char *pin_path)
{
	pins->lock = -1;
	snprintf(pins->directory, sizeof(pins->directory), "%.2048s/" WARMPATH_LAYOUT_DIRECTORY,
		 pin_path);
	snprintf(pins->links_directory, sizeof(pins->links_directory), "%.3000s/links",
		 pins->directory);
	snprintf(pins->inner_directory, sizeof(pins->inner_directory), "%.3000s/inner",
		 pins->directory);
	snprintf(pins->programs_directory, sizeof(pins->programs_directory), "%.3000s/programs",
		 pins->directory);
}

/* "v" and a number: what the directory of a layout is called. */
static bool is_layout(const char *name)
{
	return name[0] == 'v' && name[1] != '\0' &&
	       strspn(name + 1, "0123456789") == strlen(name + 1);
}

int pins_find_other_layout(const char *pin_path, struct error *error)
{
	DIR *directory = opendir(pin_path);
	struct dirent *entry;
	int result = 0;

	while (directory && !result && (entry = readdir(directory))) {
		if (!is_layout(entry->d_name) ||
		    strcmp(entry->d_name, WARMPATH_LAYOUT_DIRECTORY) == 0)
			continue;
		result = error_set(
			error, -EINVAL,
			"below pin_path %s is a data path with map layout %s, and this build of "
			"warmpath has layout " WARMPATH_LAYOUT_DIRECTORY
			": run a build that has layout %s, or let that one's `warmpathd --detach -c FILE` "
			"take it away (its connections are forgotten)",
			pin_path, entry->d_name, entry->d_name);
	}
	if (directory)
		closedir(directory);
	return result;
}

int pins_open(struct pins *pins, const char *pin_path, struct error *error)
{
	int result;

	pins_name(pins, pin_path);
	if (!on_bpf_file_system(pin_path)) {
		result = mount_bpf_file_system(pin_path, error);
		if (result)
			return result;
	}
	result = pins_find_other_layout(pin_path, error);
	if (!result)
		result = make_directories(pins->links_directory, error);
	if (!result)
		result = make_directories(pins->inner_directory, error);
	if (!result)
		result = make_directories(pins->programs_directory, error);
	if (result)
		return result;

	/* A lock on the directory itself: there is none to be left over, and no other file to agree on. */
	pins->lock = open(pin_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pins->lock < 0)
		return error_set(error, -errno, "pin_path %s cannot be opened: %s", pin_path,
				 strerror(errno));
	if (flock(pins->lock, LOCK_EX | LOCK_NB)) {
		result = -errno;
		pins_close(pins);
		if (result == -EWOULDBLOCK)
			return error_set(error, -EBUSY,
					 "another warmpathd runs on pin_path %s; stop it first",
					 pin_path);
		return error_set(error, result, "pin_path %s cannot be locked: %s", pin_path,
				 strerror(-result));
	}
	return 0;
}

void pins_close(struct pins *pins)
{
	if (pins->lock >= 0)
		close(pins->lock);
	pins->lock = -1;
}

/* Unlinks everything in a directory (files only), then the directory. */
static int remove_directory(const char *path, struct error *error)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int result = 0;

	if (!directory)
		return errno == ENOENT ? 0
				       : error_set(error, -errno, "directory %s cannot be read: %s",
						   path, strerror(errno));
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		if (unlinkat(dirfd(directory), entry->d_name, 0) && errno != ENOENT)
			result = error_set(error, -errno, "pin %s/%s cannot be removed: %s", path,
					   entry->d_name, strerror(errno));
	}
	closedir(directory);
	if (!result && rmdir(path) && errno != ENOENT)
		result = error_set(error, -errno, "directory %s cannot be removed: %s", path,
				   strerror(errno));
	return result;
}

int pins_remove(struct pins *pins, const char *pin_path, struct error *error)
{
	int result = remove_directory(pins->links_directory, error);

	if (!result)
		result = remove_directory(pins->inner_directory, error);
	if (!result)
		result = remove_directory(pins->programs_directory, error);
	if (!result)
		result = remove_directory(pins->directory, error);
	/* Another layout's directory may still be there. */
	if (!result && rmdir(pin_path) && errno != ENOTEMPTY && errno != ENOENT)
		log_debug("pin_path %s stays: %s", pin_path, strerror(errno));
	return result;
}
