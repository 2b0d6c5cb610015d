/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What commands have said about interfaces, kept beside the pins, so that it survives the agent: until the configuration is reloaded.
 *
 * Owns: pin_path/v1/links/mode_INTERFACE, a symbolic link whose target is the word. May not know: what is attached.
 */
#ifndef WARMPATH_AGENT_ATTACH_OVERRIDES_H
#define WARMPATH_AGENT_ATTACH_OVERRIDES_H

#include <stdbool.h>

#include "agent/pins.h"
#include "lib/config.h"

/* Not a mode: the interface was detached. */
#define ATTACH_OVERRIDE_DETACHED ((enum attach_mode)0)

/* What was said about the interface; false, and `*mode` untouched: nothing. */
bool attach_override_read(const struct pins *pins, const char *interface, enum attach_mode *mode);

/* That it cannot be kept is logged, nothing else. */
void attach_override_write(const struct pins *pins, const char *interface, enum attach_mode mode);

/* Forgets all of it: the configuration counts again. */
void attach_overrides_clear(const struct pins *pins);

/* "native", ..., or "detached". */
const char *attach_override_word(enum attach_mode mode);

#endif /* WARMPATH_AGENT_ATTACH_OVERRIDES_H */
