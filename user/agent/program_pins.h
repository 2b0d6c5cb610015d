/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs of this agent and of the former one, pinned so that the next agent knows them again when it finds them attached:
 * asking the kernel about a program by its id alone would take CAP_SYS_ADMIN.
 *
 * Owns: pin_path/v1/programs, the ids. May not know: where the programs are attached.
 */
#ifndef WARMPATH_AGENT_PROGRAM_PINS_H
#define WARMPATH_AGENT_PROGRAM_PINS_H

#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>

struct bpf_program;
struct datapath;
struct pins;

#define KNOWN_PROGRAMS_MAX 16

struct known_programs {
	__u32 id[KNOWN_PROGRAMS_MAX]; /* ours, and what a former agent pinned */
	unsigned int count;
};

/*
 * After loading, before attaching: learns the ids of what a former agent left, and pins the programs of this one beside them. What cannot be
 * pinned is only noted: it costs the next agent a capability, nothing else.
 */
void program_pins_begin(struct datapath *datapath, const struct pins *pins);

/* After attaching: the programs of this agent take the places of the former's. */
void program_pins_settle(const struct datapath *datapath, const struct pins *pins);

/* Only learns what is pinned. */
void program_pins_find(struct datapath *datapath, const struct pins *pins);

/*
 * Whose the program is, if it is another agent's whose pin_path lies beside that of the data path in `directory` (pin_path/v1): writes that
 * pin_path to `owner`.
 */
bool program_pins_owner(const char *directory, __u32 id, char owner[PATH_MAX]);

bool program_is_known(const struct known_programs *known, __u32 id);

#endif /* WARMPATH_AGENT_PROGRAM_PINS_H */
