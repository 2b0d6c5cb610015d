/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The charts of `warmpath ring study`: spread, moves, look-up and memory, each over the number of virtual nodes.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/canvas.h"
#include "cli/ring_study.h"

#define PANEL_WIDTH  430.0
#define PANEL_HEIGHT 250.0
#define LEFT	     64.0 /* of a panel's field, for the numbers of its axis */
#define TOP	     92.0

struct panel {
	struct canvas *canvas;
	const struct ring_study_results *results;
	double x, y; /* of the field's upper left corner */
	double low, high;
	bool logarithmic;
	unsigned int labels; /* lines named so far */
};

/* What a line shows of a row. */
typedef double (*value_function)(const struct ring_study_results *results, size_t row);

static double place_x(const struct panel *panel, double vnodes)
{
	const struct ring_study_results *results = panel->results;
	double first = log(results->rows[0].vnodes),
	       last = log(results->rows[results->count - 1].vnodes);

	if (last <= first)
		return panel->x + PANEL_WIDTH / 2;
	return panel->x + 12 + (log(vnodes) - first) / (last - first) * (PANEL_WIDTH - 24);
}

static double place_y(const struct panel *panel, double value)
{
	double part;

	if (panel->logarithmic)
		part = log(fmax(value, panel->low) / panel->low) / log(panel->high / panel->low);
	else
		part = (value - panel->low) / (panel->high - panel->low);
	return panel->y + PANEL_HEIGHT - fmin(fmax(part, 0), 1) * PANEL_HEIGHT;
}

/* --- axes ------------------------------------------------------------------------------------------------------------- */

static void draw_level(const struct panel *panel, double value, const char *unit)
{
	double y = place_y(panel, value);

	canvas_grey(panel->canvas, 0.86);
	canvas_line(panel->canvas, panel->x, y, panel->x + PANEL_WIDTH, y, 0.8);
	canvas_grey(panel->canvas, 0.25);
	canvas_printf(panel->canvas, panel->x - 8, y + 4, 11, CANVAS_RIGHT, "%g%s", value, unit);
}

static void draw_levels(const struct panel *panel, const char *unit)
{
	static const double steps[] = {1, 2, 5};
	double step;

	if (panel->logarithmic) {
		for (double decade = panel->low; decade < panel->high * 1.001; decade *= 10)
			for (int i = 0; i < 3; i++)
				if (decade * steps[i] < panel->high * 1.001)
					draw_level(panel, decade * steps[i], unit);
		return;
	}
	step = pow(10, floor(log10((panel->high - panel->low) / 2)));
	if ((panel->high - panel->low) / step > 8)
		step *= 2;
	for (int i = 0; panel->low + i * step <= panel->high * 1.001; i++)
		draw_level(panel, panel->low + i * step, unit);
}

/* Numbers of virtual nodes that have room. */
static void draw_columns(const struct panel *panel)
{
	double last = -1e9;

	for (size_t i = 0; i < panel->results->count; i++) {
		double x = place_x(panel, panel->results->rows[i].vnodes);

		canvas_grey(panel->canvas, 0.25);
		canvas_line(panel->canvas, x, panel->y + PANEL_HEIGHT, x,
			    panel->y + PANEL_HEIGHT + 4, 1);
		if (x - last < 30)
			continue;
		canvas_printf(panel->canvas, x, panel->y + PANEL_HEIGHT + 17, 11, CANVAS_CENTRE,
			      "%u", panel->results->rows[i].vnodes);
		last = x;
	}
	canvas_text(panel->canvas, panel->x + PANEL_WIDTH / 2, panel->y + PANEL_HEIGHT + 34, 12,
		    CANVAS_CENTRE, "virtual nodes of a replica");
}

static void draw_frame(struct panel *panel, const char *title, const char *unit)
{
	canvas_grey(panel->canvas, 0);
	canvas_bold(panel->canvas, true);
	canvas_text(panel->canvas, panel->x - LEFT + 24, panel->y - 14, 14, CANVAS_LEFT, title);
	canvas_bold(panel->canvas, false);
	draw_levels(panel, unit);
	draw_columns(panel);
	cairo_rectangle(panel->canvas->cairo, panel->x, panel->y, PANEL_WIDTH, PANEL_HEIGHT);
	cairo_set_line_width(panel->canvas->cairo, 1);
	cairo_stroke(panel->canvas->cairo);
}

/* The highest and, on a logarithmic axis, lowest value, rounded outwards. */
static void scale(struct panel *panel, value_function highest)
{
	double most = 0;

	for (size_t i = 0; i < panel->results->count; i++)
		most = fmax(most, highest(panel->results, i));
	if (panel->logarithmic) {
		panel->low = 1;
		panel->high = fmin(fmax(most * 1.1, 2), 1000);
		return;
	}
	panel->low = 0;
	panel->high = most > 0 ? most * 1.15 : 1;
}

/* --- lines ------------------------------------------------------------------------------------------------------------ */

static void draw_band(const struct panel *panel, value_function low, value_function high,
		      unsigned int colour)
{
	const struct ring_study_results *results = panel->results;
	cairo_t *cairo = panel->canvas->cairo;

	cairo_new_path(cairo);
	for (size_t i = 0; i < results->count; i++)
		cairo_line_to(cairo, place_x(panel, results->rows[i].vnodes),
			      place_y(panel, high(results, i)));
	for (size_t i = results->count; i-- > 0;)
		cairo_line_to(cairo, place_x(panel, results->rows[i].vnodes),
			      place_y(panel, low(results, i)));
	cairo_close_path(cairo);
	canvas_colour(panel->canvas, colour);
	cairo_push_group(cairo);
	cairo_fill(cairo);
	cairo_pop_group_to_source(cairo);
	cairo_paint_with_alpha(cairo, 0.22);
}

/* Names the line in the panel's upper right corner, where no curve that falls comes. */
static void draw_label(struct panel *panel, const char *label, unsigned int colour, bool dashed)
{
	static const double dashes[] = {5, 4};
	double x = panel->x + PANEL_WIDTH - 178, y = panel->y + 18 + 17 * panel->labels++;

	canvas_grey(panel->canvas, 1);
	cairo_rectangle(panel->canvas->cairo, x - 5, y - 13, 180, 17);
	cairo_fill(panel->canvas->cairo);
	cairo_set_dash(panel->canvas->cairo, dashes, dashed ? 2 : 0, 0);
	canvas_colour(panel->canvas, colour);
	canvas_line(panel->canvas, x, y - 4, x + 22, y - 4, 2.2);
	cairo_set_dash(panel->canvas->cairo, dashes, 0, 0);
	canvas_grey(panel->canvas, 0);
	canvas_text(panel->canvas, x + 28, y, 12, CANVAS_LEFT, label);
}

static void draw_line(struct panel *panel, value_function value, unsigned int colour,
		      const char *label)
{
	const struct ring_study_results *results = panel->results;
	cairo_t *cairo = panel->canvas->cairo;

	canvas_colour(panel->canvas, colour);
	cairo_new_path(cairo);
	for (size_t i = 0; i < results->count; i++)
		cairo_line_to(cairo, place_x(panel, results->rows[i].vnodes),
			      place_y(panel, value(results, i)));
	cairo_set_line_width(cairo, 2.2);
	cairo_stroke(cairo);
	for (size_t i = 0; i < results->count; i++) {
		cairo_arc(cairo, place_x(panel, results->rows[i].vnodes),
			  place_y(panel, value(results, i)), 3.2, 0, 2 * M_PI);
		cairo_fill(cairo);
	}
	if (label)
		draw_label(panel, label, colour, false);
}

static void draw_ideal(struct panel *panel, double value, unsigned int colour)
{
	static const double dashes[] = {5, 4};
	double y = place_y(panel, value);

	cairo_set_dash(panel->canvas->cairo, dashes, 2, 0);
	canvas_colour(panel->canvas, colour);
	canvas_line(panel->canvas, panel->x, y, panel->x + PANEL_WIDTH, y, 1.4);
	cairo_set_dash(panel->canvas->cairo, dashes, 0, 0);
}

/* --- values ----------------------------------------------------------------------------------------------------------- */

#define VALUE(name, expression)                                                \
	static double name(const struct ring_study_results *results, size_t i) \
	{                                                                      \
		return expression;                                             \
	}

VALUE(max_min_p10, results->rows[i].max_min.p10)
VALUE(max_min_median, results->rows[i].max_min.median)
VALUE(max_min_p90, results->rows[i].max_min.p90)
VALUE(max_mean_p10, results->rows[i].max_mean.p10)
VALUE(max_mean_median, results->rows[i].max_mean.median)
VALUE(max_mean_p90, results->rows[i].max_mean.p90)
VALUE(added_p10, 100 * results->rows[i].added.p10)
VALUE(added_median, 100 * results->rows[i].added.median)
VALUE(added_p90, 100 * results->rows[i].added.p90)
VALUE(removed_p10, 100 * results->rows[i].removed.p10)
VALUE(removed_median, 100 * results->rows[i].removed.median)
VALUE(removed_p90, 100 * results->rows[i].removed.p90)
VALUE(look_up, results->look_up_nanoseconds[i])
VALUE(memory, results->rows[i].bytes / 1048576.0)

/* --- the page --------------------------------------------------------------------------------------------------------- */

static void mark_recommended(const struct panel *panel)
{
	static const double dashes[] = {2, 3};
	const struct ring_study_results *results = panel->results;
	double x;

	if (results->recommended < 0)
		return;
	x = place_x(panel, results->rows[results->recommended].vnodes);
	cairo_set_dash(panel->canvas->cairo, dashes, 2, 0);
	canvas_grey(panel->canvas, 0);
	canvas_line(panel->canvas, x, panel->y, x, panel->y + PANEL_HEIGHT, 1.4);
	cairo_set_dash(panel->canvas->cairo, dashes, 0, 0);
}

static struct panel make_panel(struct canvas *canvas, const struct ring_study_results *results,
			       int column, int row)
{
	return (struct panel){
		.canvas = canvas,
		.results = results,
		.x = 30 + LEFT + column * (PANEL_WIDTH + LEFT + 34),
		.y = TOP + 20 + row * (PANEL_HEIGHT + 92),
	};
}

static void draw_spread(struct canvas *canvas, const struct ring_study_results *results)
{
	struct panel panel = make_panel(canvas, results, 0, 0);

	panel.logarithmic = true;
	scale(&panel, max_min_p90);
	draw_frame(&panel, "How even: the fullest replica's share, compared", "\u00d7");
	mark_recommended(&panel);
	draw_band(&panel, max_min_p10, max_min_p90, 5);
	draw_band(&panel, max_mean_p10, max_mean_p90, 0);
	draw_line(&panel, max_min_median, 5, "with the emptiest one's");
	draw_line(&panel, max_mean_median, 0, "with its due");
}

static void draw_moves(struct canvas *canvas, const struct ring_study_results *results)
{
	struct panel panel = make_panel(canvas, results, 1, 0);

	scale(&panel, removed_p90);
	if (results->study.replicas == 1)
		panel.high =
			150; /* removing the only one moves all; and room for the names of the lines */
	draw_frame(&panel, "Conversations that a change of the set moves", " %");
	mark_recommended(&panel);
	draw_band(&panel, added_p10, added_p90, 2);
	draw_band(&panel, removed_p10, removed_p90, 3);
	draw_ideal(&panel, 100 * results->rows[0].added_ideal, 2);
	draw_ideal(&panel, 100 * results->rows[0].removed_ideal, 3);
	draw_line(&panel, added_median, 2, "by one replica more");
	draw_line(&panel, removed_median, 3, "by one replica less");
	draw_label(&panel, "even share", 7, true);
}

static void draw_look_ups(struct canvas *canvas, const struct ring_study_results *results)
{
	struct panel panel = make_panel(canvas, results, 0, 1);

	scale(&panel, look_up);
	draw_frame(&panel, "A look-up in the kernel", results->measured ? " ns" : "");
	mark_recommended(&panel);
	if (results->measured)
		draw_line(&panel, look_up, 4, NULL);
	else
		canvas_text(canvas, panel.x + PANEL_WIDTH / 2, panel.y + PANEL_HEIGHT / 2, 13,
			    CANVAS_CENTRE, "not measured");
}

static void draw_memory(struct canvas *canvas, const struct ring_study_results *results)
{
	struct panel panel = make_panel(canvas, results, 1, 1);

	scale(&panel, memory);
	draw_frame(&panel, "The kernel's tables, both generations", " MiB");
	mark_recommended(&panel);
	draw_line(&panel, memory, 1, NULL);
}

int ring_study_draw(const struct ring_study_results *results, const char *path, struct error *error)
{
	struct canvas canvas;
	int result = canvas_open(&canvas, path, 2 * (PANEL_WIDTH + LEFT + 34) + 34,
				 TOP + 2 * (PANEL_HEIGHT + 92) + 30, error);

	if (result)
		return result;
	canvas_bold(&canvas, true);
	canvas_printf(&canvas, 30, 36, 19, CANVAS_LEFT, "%u replica%s on a ring",
		      results->study.replicas, results->study.replicas == 1 ? "" : "s");
	canvas_bold(&canvas, false);
	canvas_grey(&canvas, 0.25);
	canvas_printf(
		&canvas, 30, 59, 13, CANVAS_LEFT,
		"%u random rings each, dialect %s; lines are medians, bands what eight rings in "
		"ten lie within (P10 to P90)",
		results->study.rings, ring_dialect_name(results->study.dialect));
	draw_spread(&canvas, results);
	draw_moves(&canvas, results);
	draw_look_ups(&canvas, results);
	draw_memory(&canvas, results);
	canvas_grey(&canvas, 0.25);
	if (results->recommended >= 0)
		canvas_printf(
			&canvas, 30, canvas.height - 18, 12, CANVAS_LEFT,
			"dotted: %u virtual nodes, recommended for the spread that was asked for",
			results->rows[results->recommended].vnodes);
	return canvas_close(&canvas, error);
}
