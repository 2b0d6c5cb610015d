/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kind of device an interface is.
 *
 * Owns: driver names and what they imply. May not know: what is attached.
 */
#ifndef WARMPATH_USER_DEVICE_H
#define WARMPATH_USER_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the name of the interface's driver ("?" if it has none that can be asked). Returns `driver`. */
const char *device_driver(const char *interface, char *driver, size_t size);

/*
 * Whether packets may arrive on a device of this driver with checksums still to be filled in (virtual links between machines or
 * namespaces): tc programs know of that, XDP programs cannot.
 */
bool driver_has_partial_checksums(const char *driver);

/* What a device says it can do for XDP: bits of enum netdev_xdp_act; -1: the kernel cannot say (before Linux 6.3). */
#define DEVICE_XDP_BASIC     1
#define DEVICE_XDP_REDIRECT  2
#define DEVICE_XDP_NDO_XMIT  4
#define DEVICE_XDP_FRAGMENTS 32
int64_t device_xdp_features(int index);

/*
 * Whether XDP may redirect frames to the interface (ndo_xdp_xmit works now: for a veth that depends on its peer). 1 or 0; or a
 * negative errno where the kernel cannot say (before Linux 6.3).
 */
int device_takes_redirects(int index);

#endif /* WARMPATH_USER_DEVICE_H */
