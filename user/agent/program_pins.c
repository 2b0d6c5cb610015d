/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/program_pins.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <warmpath/layout.h>

#include "agent/datapath.h"
#include "agent/pins.h"
#include "lib/log.h"
#include "router_tc.skel.h"
#include "router_xdp.skel.h"

#define NEW "+new" /* the BPF file system allows no dots in names */

/* What is attached somewhere; NULL: not loaded. */
static void list_programs(const struct datapath *datapath, const struct bpf_program *programs[4])
{
	programs[0] = datapath->xdp ? datapath->xdp->progs.warmpath_router_xdp : NULL;
	programs[1] = datapath->tc ? datapath->tc->progs.warmpath_router_tc : NULL;
	programs[2] = datapath->tc ? datapath->tc->progs.warmpath_return_tc : NULL;
	programs[3] = datapath->handoff_program;
}

static void learn(struct known_programs *known, int descriptor)
{
	struct bpf_prog_info info = {0};
	__u32 length = sizeof(info);

	if (bpf_obj_get_info_by_fd(descriptor, &info, &length) == 0 &&
	    known->count < KNOWN_PROGRAMS_MAX && !program_is_known(known, info.id))
		known->id[known->count++] = info.id;
}

static void learn_all(struct known_programs *known, const char *programs_directory)
{
	DIR *directory = opendir(programs_directory);
	char path[PATH_MAX];
	struct dirent *entry;
	int descriptor;

	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.3500s/%.255s", programs_directory, entry->d_name);
		descriptor = bpf_obj_get(path);
		if (descriptor < 0)
			continue;
		learn(known, descriptor);
		close(descriptor);
	}
	if (directory)
		closedir(directory);
}

void program_pins_find(struct datapath *datapath, const struct pins *pins)
{
	learn_all(&datapath->known_programs, pins->programs_directory);
}

/* The directory above; false at the root. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

bool program_pins_owner(const char *directory, __u32 id, char owner[PATH_MAX])
{
	char above[PATH_MAX], programs[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *beside;

	snprintf(above, sizeof(above), "%s", directory);
	if (!go_up(above) || !go_up(above))
		return false;
	beside = opendir(above);
	while (beside && !found && (entry = readdir(beside))) {
		struct known_programs known = {.count = 0};

		if (entry->d_name[0] == '.')
			continue;
		snprintf(owner, PATH_MAX, "%.3000s/%.255s", above, entry->d_name);
		snprintf(programs, sizeof(programs),
			 "%.3400s/" WARMPATH_LAYOUT_DIRECTORY "/programs", owner);
		learn_all(&known, programs);
		found = program_is_known(&known, id);
	}
	if (beside)
		closedir(beside);
	return found;
}

static void program_path(const struct pins *pins, const struct bpf_program *program,
			 const char *suffix, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.3500s/%.64s%s", pins->programs_directory,
		 bpf_program__name(program), suffix);
}

void program_pins_begin(struct datapath *datapath, const struct pins *pins)
{
	const struct bpf_program *programs[4];
	char path[PATH_MAX];
	unsigned int i;

	program_pins_find(datapath, pins);
	list_programs(datapath, programs);
	for (i = 0; i < 4; i++) {
		if (!programs[i])
			continue;
		learn(&datapath->known_programs, bpf_program__fd(programs[i]));
		program_path(pins, programs[i], NEW, path);
		unlink(path);
		if (bpf_obj_pin(bpf_program__fd(programs[i]), path))
			log_debug("program %s cannot be pinned: %s", path, strerror(errno));
	}
}

void program_pins_settle(const struct datapath *datapath, const struct pins *pins)
{
	const struct bpf_program *programs[4];
	char from[PATH_MAX], to[PATH_MAX];
	unsigned int i;

	list_programs(datapath, programs);
	for (i = 0; i < 4; i++) {
		if (!programs[i])
			continue;
		program_path(pins, programs[i], NEW, from);
		program_path(pins, programs[i], "", to);
		if (rename(from, to))
			log_debug("program pin %s cannot be renamed: %s", from, strerror(errno));
	}
}

bool program_is_known(const struct known_programs *known, __u32 id)
{
	unsigned int i;

	for (i = 0; i < known->count; i++) {
		if (known->id[i] == id)
			return true;
	}
	return false;
}
