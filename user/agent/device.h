/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kind of device an interface is.
 *
 * Owns: driver names and what they imply. May not know: what is attached.
 */
#ifndef WARMPATH_AGENT_DEVICE_H
#define WARMPATH_AGENT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the name of the interface's driver ("?" if it has none that can be asked). Returns `driver`. */
const char *device_driver(const char *interface, char *driver, size_t size);

/*
 * Whether packets may arrive on a device of this driver with checksums still to be filled in (virtual links between machines or
 * namespaces): tc programs know of that, XDP programs cannot.
 */
bool driver_has_partial_checksums(const char *driver);

/*
 * Whether XDP may redirect frames to the interface (ndo_xdp_xmit works now: for a veth that depends on its peer). 1 or 0; or a
 * negative errno where the kernel cannot say (before Linux 6.3).
 */
int device_takes_redirects(int index);

#endif /* WARMPATH_AGENT_DEVICE_H */
