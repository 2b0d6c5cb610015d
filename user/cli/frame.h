/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A screenful of characters: written here, and then shown on a terminal, or printed.
 *
 * Owns: cells, cutting at the edges, UTF-8 and ASCII. May not know: what is written, curses.
 */
#ifndef WARMPATH_CLI_FRAME_H
#define WARMPATH_CLI_FRAME_H

#include <stdbool.h>
#include <stdio.h>

enum frame_style {
	FRAME_PLAIN,
	FRAME_TITLE,
	FRAME_HEADING,
	FRAME_QUIET,
	FRAME_GOOD,
	FRAME_WARN,
	FRAME_WRONG,
	FRAME_SELECTED,
};

struct frame_cell {
	char text[5]; /* one character */
	enum frame_style style;
};

struct frame {
	int rows, columns;
	bool unicode;
	struct frame_cell *cells;
};

/* An empty one. False without memory; frame_free() is always allowed then. */
bool frame_make(struct frame *frame, int rows, int columns, bool unicode);
void frame_free(struct frame *frame);

/*
 * Writes text from a place on; what does not fit is left out, and so is what is outside. In ASCII other characters become '?'.
 * Returns the column behind it.
 */
int frame_text(struct frame *frame, int row, int column, enum frame_style style, const char *text);
int frame_printf(struct frame *frame, int row, int column, enum frame_style style,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same within `width` columns (blanks are added); `right`: at its right edge. */
void frame_field(struct frame *frame, int row, int column, int width, bool right,
		 enum frame_style style, const char *text);

/* A bar of `width` columns. */
void frame_bar(struct frame *frame, int row, int column, int width, double filled,
	       enum frame_style style);

/* Gives a whole row a style. */
void frame_row_style(struct frame *frame, int row, enum frame_style style);

/* Row by row, without blanks at the ends. */
void frame_print(const struct frame *frame, FILE *to);

#endif /* WARMPATH_CLI_FRAME_H */
