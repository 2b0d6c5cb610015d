/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A page to draw on with cairo, that becomes an SVG or a PNG.
 *
 * Owns: files, fonts, colours, text at a place. May not know: what is drawn.
 *
 * The palette is that of Okabe and Ito, which people with any kind of colour blindness can tell apart; beyond its eight colours come
 * their lighter and darker shades.
 */
#ifndef WARMPATH_CLI_CANVAS_H
#define WARMPATH_CLI_CANVAS_H

#include <argp.h>
#include <cairo/cairo.h>
#include <stdbool.h>

#include "lib/error.h"

enum canvas_align {
	CANVAS_LEFT,
	CANVAS_CENTRE,
	CANVAS_RIGHT,
};

struct canvas {
	cairo_t *cairo; /* in points; white to begin with */
	double width;
	double height;
	cairo_surface_t *surface;
	const char *path; /* borrowed */
	bool png;
};

/* The file of an option: complains if its name does not end in .svg or .png, and ends. */
const char *canvas_argument(struct argp_state *state, const char *path);

/* 0, or a negative errno with a sentence; canvas_close() is due only after 0. */
int canvas_open(struct canvas *canvas, const char *path, double width, double height,
		struct error *error);

/* Writes the file and frees what the canvas holds. 0, or a negative errno with a sentence. */
int canvas_close(struct canvas *canvas, struct error *error);

/*
 * Text whose base line is at y. canvas_text_cut() leaves the beginning
 * (of names, the common part) of text that is wider than `room` out.
 */
void canvas_text(struct canvas *canvas, double x, double y, double size, enum canvas_align align,
		 const char *text);
void canvas_text_cut(struct canvas *canvas, double x, double y, double size, double room,
		     const char *text);
void canvas_bold(struct canvas *canvas, bool bold);
void canvas_printf(struct canvas *canvas, double x, double y, double size, enum canvas_align align,
		   const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The colour of the thing of this number becomes the source of what is drawn next; greys: 0 black, 1 white. */
void canvas_colour(struct canvas *canvas, unsigned int number);
void canvas_grey(struct canvas *canvas, double white);

/* Fills the path with stripes of the colour on white, and forgets it. */
void canvas_hatch(struct canvas *canvas, unsigned int number);

/* A part of a ring, of angles from 0 (at the top, clockwise) to 1, as the path. */
void canvas_arc(struct canvas *canvas, double x, double y, double inner, double outer, double from,
		double to);

void canvas_line(struct canvas *canvas, double x1, double y1, double x2, double y2, double width);

#endif /* WARMPATH_CLI_CANVAS_H */
