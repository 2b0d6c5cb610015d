/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directory on the BPF file system where maps and links stay when the agent goes: making it, one agent a directory,
 * clearing it.
 *
 * Owns: mounting, directories, the lock. May not know: what is pinned there.
 */
#ifndef WARMPATH_AGENT_PINS_H
#define WARMPATH_AGENT_PINS_H

#include <limits.h>
#include <stdbool.h>

#include "lib/error.h"

struct pins {
	char directory[PATH_MAX];	   /* pin_path/v1: maps */
	char links_directory[PATH_MAX];	   /* pin_path/v1/links */
	char inner_directory[PATH_MAX];	   /* pin_path/v1/inner: maps in maps */
	char programs_directory[PATH_MAX]; /* pin_path/v1/programs */
	int lock;			   /* descriptor of pin_path; -1: not locked */
};

/* Only says which directories they are. */
void pins_name(struct pins *pins, const char *pin_path);

/*
 * 0 if nothing below `pin_path` was pinned by a build with another layout of the maps; else -EINVAL with a sentence: such maps can neither
 * be taken over nor be left beside new ones, as their programs are on the interfaces.
 */
int pins_find_other_layout(const char *pin_path, struct error *error);

/*
 * Makes the directories below `pin_path`, mounting /sys/fs/bpf if that is where they are and it is not mounted, and takes the
 * lock that keeps a second agent off. 0, or a negative errno with a sentence (-EBUSY: another agent has it).
 */
int pins_open(struct pins *pins, const char *pin_path, struct error *error);

/* Gives the lock back; what is pinned stays. */
void pins_close(struct pins *pins);

/* Removes all pins and the directories below pin_path, and pin_path itself if nothing else is in it. */
int pins_remove(struct pins *pins, const char *pin_path, struct error *error);

#endif /* WARMPATH_AGENT_PINS_H */
