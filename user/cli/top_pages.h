/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages of `warmpath top` besides the list: help, one replica, one conversation.
 *
 * Owns: what is on them. May not know: where their data come from.
 */
#ifndef WARMPATH_CLI_TOP_PAGES_H
#define WARMPATH_CLI_TOP_PAGES_H

#include "cli/top_screen.h"

/* Each draws from `row` down to the row above the last. */
void top_draw_help(struct frame *frame, int row);
void top_draw_replica(struct frame *frame, int row, const struct top_model *model,
		      const struct top_screen *screen);
void top_draw_conversation(struct frame *frame, int row, const struct top_screen *screen);

#endif /* WARMPATH_CLI_TOP_PAGES_H */
