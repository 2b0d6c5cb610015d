/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of the handoff in the maps: the cluster's keys, and what services routed by an HTTP header need besides struct service.
 *
 * Owns: the values of the maps handoff_keys and http_services, the segment sizes in them. May not know: when they are written.
 */
#ifndef WARMPATH_AGENT_HANDOFF_SETTINGS_H
#define WARMPATH_AGENT_HANDOFF_SETTINGS_H

#include "agent/datapath.h"
#include "lib/config.h"

/* Writes the keys of the configuration's secrets. 0, or a negative errno with a sentence. */
int handoff_keys_write(int map, const struct config_handoff *handoff, struct error *error);

/*
 * Writes the settings of the service at `index`. mtu: the smallest of the links towards clients and replicas. 0, or a negative errno
 * with a sentence.
 */
int http_service_write(int map, __u32 index, const struct config_service *settings,
		       unsigned int mtu, struct error *error);

/* The smallest MTU of the configured interfaces that exist; 1500 if none does. */
unsigned int interfaces_smallest_mtu(const struct config *config);

#endif /* WARMPATH_AGENT_HANDOFF_SETTINGS_H */
