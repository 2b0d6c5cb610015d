/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/canvas.h"

#include <cairo/cairo-svg.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PNG_SCALE 2 /* pixels to a point */
#define FONT	  "sans-serif"

static const double palette[][3] = {
	{0.00, 0.45, 0.70}, /* blue */
	{0.90, 0.62, 0.00}, /* orange */
	{0.00, 0.62, 0.45}, /* bluish green */
	{0.80, 0.47, 0.65}, /* reddish purple */
	{0.34, 0.71, 0.91}, /* sky blue */
	{0.84, 0.37, 0.00}, /* vermilion */
	{0.94, 0.89, 0.26}, /* yellow */
	{0.45, 0.45, 0.45}, /* grey */
};
#define PALETTE_SIZE (sizeof(palette) / sizeof(palette[0]))

static bool ends_in(const char *path, const char *ending)
{
	size_t length = strlen(path), tail = strlen(ending);

	return length > tail && strcmp(path + length - tail, ending) == 0;
}

const char *canvas_argument(struct argp_state *state, const char *path)
{
	if (!ends_in(path, ".svg") && !ends_in(path, ".png"))
		argp_error(state, "\"%s\" does not end in .svg or .png", path);
	return path;
}

static int check(const struct canvas *canvas, cairo_status_t status, struct error *error)
{
	if (status == CAIRO_STATUS_SUCCESS)
		return 0;
	return error_set(error, -EIO, "%s cannot be written: %s", canvas->path,
			 status == CAIRO_STATUS_WRITE_ERROR && errno
				 ? strerror(errno)
				 : cairo_status_to_string(status));
}

int canvas_open(struct canvas *canvas, const char *path, double width, double height,
		struct error *error)
{
	*canvas = (struct canvas){
		.width = width,
		.height = height,
		.path = path,
		.png = ends_in(path, ".png"),
	};
	errno = 0;
	if (canvas->png)
		canvas->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width * PNG_SCALE,
							     height * PNG_SCALE);
	else
		canvas->surface = cairo_svg_surface_create(path, width, height);
	canvas->cairo = cairo_create(canvas->surface);
	if (check(canvas, cairo_status(canvas->cairo), error)) {
		cairo_destroy(canvas->cairo);
		cairo_surface_destroy(canvas->surface);
		return -EIO;
	}
	if (canvas->png)
		cairo_scale(canvas->cairo, PNG_SCALE, PNG_SCALE);
	canvas_bold(canvas, false);
	canvas_grey(canvas, 1);
	cairo_paint(canvas->cairo);
	canvas_grey(canvas, 0);
	return 0;
}

int canvas_close(struct canvas *canvas, struct error *error)
{
	cairo_status_t status = cairo_status(canvas->cairo);

	errno = 0;
	cairo_destroy(canvas->cairo);
	if (status == CAIRO_STATUS_SUCCESS && canvas->png)
		status = cairo_surface_write_to_png(canvas->surface, canvas->path);
	cairo_surface_finish(canvas->surface);
	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_status(canvas->surface);
	cairo_surface_destroy(canvas->surface);
	return check(canvas, status, error);
}

void canvas_bold(struct canvas *canvas, bool bold)
{
	cairo_select_font_face(canvas->cairo, FONT, CAIRO_FONT_SLANT_NORMAL,
			       bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
}

static double text_width(struct canvas *canvas, const char *text)
{
	cairo_text_extents_t extents;

	cairo_text_extents(canvas->cairo, text, &extents);
	return extents.x_advance;
}

void canvas_text(struct canvas *canvas, double x, double y, double size, enum canvas_align align,
		 const char *text)
{
	cairo_set_font_size(canvas->cairo, size);
	if (align == CANVAS_CENTRE)
		x -= text_width(canvas, text) / 2;
	else if (align == CANVAS_RIGHT)
		x -= text_width(canvas, text);
	cairo_move_to(canvas->cairo, x, y);
	cairo_show_text(canvas->cairo, text);
	cairo_new_path(canvas->cairo);
}

void canvas_text_cut(struct canvas *canvas, double x, double y, double size, double room,
		     const char *text)
{
	char shorter[256];

	cairo_set_font_size(canvas->cairo, size);
	snprintf(shorter, sizeof(shorter), "%s", text);
	while (text[0] != '\0' && text_width(canvas, shorter) > room)
		snprintf(shorter, sizeof(shorter), "\u2026%s", ++text);
	canvas_text(canvas, x, y, size, CANVAS_LEFT, shorter);
}

void canvas_printf(struct canvas *canvas, double x, double y, double size, enum canvas_align align,
		   const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	canvas_text(canvas, x, y, size, align, text);
}

/* Beyond the palette: lighter ones, then darker ones, then from the beginning. */
static void mix(unsigned int number, double colour[3])
{
	unsigned int shade = number / PALETTE_SIZE % 3;

	for (int i = 0; i < 3; i++) {
		double plain = palette[number % PALETTE_SIZE][i];

		colour[i] = shade == 1 ? 0.5 + 0.5 * plain : shade == 2 ? 0.55 * plain : plain;
	}
}

void canvas_colour(struct canvas *canvas, unsigned int number)
{
	double colour[3];

	mix(number, colour);
	cairo_set_source_rgb(canvas->cairo, colour[0], colour[1], colour[2]);
}

void canvas_grey(struct canvas *canvas, double white)
{
	cairo_set_source_rgb(canvas->cairo, white, white, white);
}

void canvas_hatch(struct canvas *canvas, unsigned int number)
{
	const double step = 4.5;
	double left, top, right, bottom, slope;
	cairo_t *cairo = canvas->cairo;

	cairo_path_extents(cairo, &left, &top, &right, &bottom);
	slope = bottom - top;
	cairo_save(cairo);
	canvas_grey(canvas, 1);
	cairo_fill_preserve(cairo);
	canvas_colour(canvas, number);
	cairo_set_line_width(cairo, 0.8);
	cairo_stroke_preserve(cairo);
	cairo_clip(cairo);
	cairo_set_line_width(cairo, 1.4);
	for (double x = floor((left - slope) / step) * step; x < right; x += step) {
		cairo_move_to(cairo, x, bottom);
		cairo_line_to(cairo, x + slope, top);
	}
	cairo_stroke(cairo);
	cairo_restore(cairo);
	cairo_new_path(cairo);
}

void canvas_arc(struct canvas *canvas, double x, double y, double inner, double outer, double from,
		double to)
{
	double first = (from - 0.25) * 2 * M_PI, last = (to - 0.25) * 2 * M_PI;

	cairo_new_path(canvas->cairo);
	cairo_arc(canvas->cairo, x, y, outer, first, last);
	cairo_arc_negative(canvas->cairo, x, y, inner, last, first);
	cairo_close_path(canvas->cairo);
}

void canvas_line(struct canvas *canvas, double x1, double y1, double x2, double y2, double width)
{
	cairo_set_line_width(canvas->cairo, width);
	cairo_move_to(canvas->cairo, x1, y1);
	cairo_line_to(canvas->cairo, x2, y2);
	cairo_stroke(canvas->cairo);
}
