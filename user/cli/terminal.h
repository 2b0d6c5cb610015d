/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The terminal, by curses: shows frames, gives keys.
 *
 * Owns: curses, colours (256, 8 or none; none with NO_COLOR). May not know: what is shown.
 */
#ifndef WARMPATH_CLI_TERMINAL_H
#define WARMPATH_CLI_TERMINAL_H

#include <stdbool.h>

#include "cli/frame.h"
#include "lib/error.h"

/* Takes the terminal over; false with a sentence if there is none. terminal_end() gives it back. */
bool terminal_begin(struct error *error);
void terminal_end(void);

void terminal_size(int *rows, int *columns);
void terminal_show(const struct frame *frame);

/* A key as curses names it (27: Esc), or -1 after so many milliseconds, also when the terminal has another size now. */
int terminal_key(int milliseconds);

#endif /* WARMPATH_CLI_TERMINAL_H */
