/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bars of text.
 *
 * Owns: their characters, in Unicode (eighths of a character) and ASCII. May not know: what is measured, screens.
 */
#ifndef WARMPATH_CLI_BAR_H
#define WARMPATH_CLI_BAR_H

#include <stdbool.h>

/* Bytes of a bar of `width` characters. */
#define BAR_SIZE(width) ((width)*3 + 1)

/* A bar whose part `filled` (cut to 0 to 1) is full, without trailing blanks. Returns `text`, of BAR_SIZE(width). */
const char *bar_text(char *text, unsigned int width, double filled, bool unicode);

/* Whether the locale of the environment writes UTF-8. Sets the locale. */
bool bar_is_unicode(void);

#endif /* WARMPATH_CLI_BAR_H */
