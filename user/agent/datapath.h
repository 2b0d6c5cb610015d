/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs and maps in the kernel: loading them, or adopting the maps that a former agent pinned.
 *
 * Owns: the BPF objects, the check that pinned maps fit, the map descriptors. May not know: what is written into the maps, where
 * the programs are attached.
 */
#ifndef WARMPATH_AGENT_DATAPATH_H
#define WARMPATH_AGENT_DATAPATH_H

#include <bpf/libbpf.h>
#include <stdbool.h>

#include "agent/pins.h"
#include "agent/program_pins.h"
#include "lib/config.h"
#include "lib/error.h"
#include "lib/ring_maps.h"

struct router_xdp_bpf;
struct router_tc_bpf;
struct handoff_bpf;
struct handoff_local_bpf;
struct control_bpf;

struct datapath {
	struct router_xdp_bpf *xdp;
	struct router_tc_bpf *tc;
	struct control_bpf *control;
	struct handoff_bpf *handoff;		   /* role replica */
	struct handoff_local_bpf *handoff_local;   /* shape node-local, where the kernel can */
	const struct bpf_program *handoff_program; /* of the one that is loaded; NULL: none is */
	bool adopted;				   /* the maps were pinned already */
	bool trial;				   /* by datapath_try(): nothing is pinned */
	bool only_pinned; /* opened by datapath_open_pinned(): nothing is loaded */
	struct config_limits limits;
	struct known_programs known_programs;
	enum agent_role role;
	enum deployment_shape shape;
	unsigned int mtu;	  /* the smallest of the configured interfaces */
	char directory[PATH_MAX]; /* where the maps are pinned */

	/* descriptors of the pinned maps; they belong to the objects */
	int service_addresses;
	int services;
	int replicas;
	int replica_addresses;
	int replica_loads;
	int service_loads;
	int requests;
	int placements;
	int trace_settings;
	int events;
	int flows;
	int redirect_devices;
	int counters;
	int handoff_keys;
	int http_services;
	int connections;
	int replica_contacts;
	struct ring_maps ring_maps;
	int control_program; /* descriptor of warmpath_control (lib/calls.h); belongs to the object */
};

/*
 * Loads the programs, and makes and pins the maps, or takes those that are pinned. 0; or a negative errno with a sentence, and what
 * was pinned before is as it was.
 */
int datapath_open(struct datapath *datapath, const struct pins *pins, const struct config *config,
		  struct error *error);

/*
 * Whether datapath_open() would succeed: loads everything onto the maps that are pinned, pins nothing, and closes it again. `datapath` is
 * room for it. As above.
 */
int datapath_try(struct datapath *datapath, const struct pins *pins, const struct config *config,
		 struct error *error);

/* The path of a pinned map that somebody has deleted since datapath_open(); NULL: all are there. It belongs to `datapath`. */
const char *datapath_deleted_pin(const struct datapath *datapath);

/* Opens the pinned maps that are needed to recognise and take away what is attached, and loads nothing. As above. */
int datapath_open_pinned(struct datapath *datapath, const struct pins *pins,
			 const struct config *config, struct error *error);

/* Can this kernel make connections of marked segments (bpf_sk_assign_tcp_reqsk, Linux 6.9)? */
bool kernel_takes_connections_over(void);

/* Closes the descriptors; programs and maps that are attached or pinned stay in the kernel. */
void datapath_close(struct datapath *datapath);

/*
 * Opens (does not load) another copy of the XDP program's object, on the same pinned maps: libxdp's dispatcher needs one for each
 * interface. NULL with a sentence on error; router_xdp_bpf__destroy() frees it.
 */
struct router_xdp_bpf *datapath_open_xdp_copy(const struct datapath *datapath, struct error *error);

#endif /* WARMPATH_AGENT_DATAPATH_H */
