/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/attach_overrides.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/attach_xdp.h"
#include "lib/config_schema.h"
#include "lib/log.h"

#define PREFIX	 "mode_"
#define DETACHED "detached"

const char *attach_override_word(enum attach_mode mode)
{
	return mode == ATTACH_OVERRIDE_DETACHED ? DETACHED : schema_word(choices_attach_mode, mode);
}

static void path_of(const struct pins *pins, const char *interface, char path[PATH_MAX])
{
	char name[INTERFACE_PIN_NAME_SIZE];

	interface_pin_name(PREFIX, interface, name);
	snprintf(path, PATH_MAX, "%.3500s/%s", pins->links_directory, name);
}

bool attach_override_read(const struct pins *pins, const char *interface, enum attach_mode *mode)
{
	const struct schema_choice *choice;
	char path[PATH_MAX], word[32];
	ssize_t length;

	path_of(pins, interface, path);
	length = readlink(path, word, sizeof(word) - 1);
	if (length < 0)
		return false;
	word[length] = '\0';
	choice = schema_find_word(choices_attach_mode, word);
	if (!choice && strcmp(word, DETACHED) != 0)
		return false;
	*mode = choice ? (enum attach_mode)choice->value : ATTACH_OVERRIDE_DETACHED;
	return true;
}

void attach_override_write(const struct pins *pins, const char *interface, enum attach_mode mode)
{
	char path[PATH_MAX];

	path_of(pins, interface, path);
	if (unlink(path) && errno != ENOENT)
		log_warning("%s cannot be removed: %s", path, strerror(errno));
	else if (symlink(attach_override_word(mode), path))
		log_warning("interface %s: that it is %s will not survive a restart: %s", interface,
			    attach_override_word(mode), strerror(errno));
}

void attach_overrides_clear(const struct pins *pins)
{
	DIR *directory = opendir(pins->links_directory);
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
			unlinkat(dirfd(directory), entry->d_name, 0);
	}
	if (directory)
		closedir(directory);
}
