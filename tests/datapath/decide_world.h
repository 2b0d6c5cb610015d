/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service with replicas in the maps of a BPF object that decides, and the control program on the same maps; nothing is pinned, no
 * packets, no namespaces.
 *
 * Owns: loading both, ring, replicas, membership. May not know: what the object's programs do.
 */
#ifndef WARMPATH_TESTS_DECIDE_WORLD_H
#define WARMPATH_TESTS_DECIDE_WORLD_H

#include <bpf/libbpf.h>
#include <warmpath/layout.h>

#include "lib/ring.h"

struct control_bpf;

#define DECIDE_WORLD_SERVICE 3

struct decide_world {
	struct bpf_object *object; /* the caller's */
	struct control_bpf *control;
	int control_program;
	__u32 replica_count; /* llm-0 and so on, slots 10 and so on */
	struct ring ring;
};

#define DECIDE_WORLD_SLOT(number) (10 + (number))

/* Before the object is loaded: private maps, those in `unused` (closed by NULL) not made at all. */
void decide_world_prepare(struct bpf_object *object, const char *const *unused);

/* The loaded object gets the service and its replicas, all active. 0 or a negative errno, after a line on stderr. */
int decide_world_make(struct decide_world *world, struct bpf_object *object,
		      const struct policy_settings *policy, __u32 replica_count, __u32 vnodes);
void decide_world_unmake(struct decide_world *world);

int decide_world_map(const struct decide_world *world, const char *name);

/* What is in the maps now. */
struct replica_load decide_world_load(const struct decide_world *world, __u32 number);
struct service_load decide_world_sums(const struct decide_world *world);

/* Other settings, loads and requests at zero, memory empty. 0 or a negative errno. */
int decide_world_set_policy(struct decide_world *world, const struct policy_settings *policy);

#endif /* WARMPATH_TESTS_DECIDE_WORLD_H */
