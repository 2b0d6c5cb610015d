/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warmpath ring plot: the ring on the left, what each replica has of it on the right.
 */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/canvas.h"
#include "cli/cli.h"
#include "cli/ring_view.h"
#include "lib/ring_compare.h"

#define MARGIN	     30.0
#define TITLE_HEIGHT 74.0
#define RING_X	     310.0
#define RING_Y	     (TITLE_HEIGHT + 276.0)
#define RING_RADIUS  255.0
#define BARS_X	     625.0
#define NAME_WIDTH   128.0
#define BAR_WIDTH    190.0
#define VALUE_WIDTH  122.0
#define COLUMN_WIDTH (NAME_WIDTH + BAR_WIDTH + VALUE_WIDTH + 20)
#define ROWS_MAX     32 /* in a column */
/* A ring of more points is drawn in slices, each of the colour of what lies in its middle: nobody could see more. */
#define SLICES 14400

/* --- the ring --------------------------------------------------------------------------------------------------------- */

/* Which of the arcs are drawn. */
enum arcs {
	ARCS_ALL,
	ARCS_RESTING, /* of replicas that are not on the ring at present, hatched */
};

static void draw_arc(struct canvas *canvas, const struct ring_view *view, __u32 replica,
		     enum arcs arcs, double inner, double outer, double from, double to)
{
	if (arcs == ARCS_RESTING && view->replicas[replica].share > 0)
		return;
	canvas_arc(canvas, RING_X, RING_Y, inner, outer, from, to);
	if (arcs == ARCS_RESTING) {
		canvas_hatch(canvas, replica);
		return;
	}
	canvas_colour(canvas, replica);
	cairo_fill(canvas->cairo);
}

/* The owner of the slice or arc of this number, and where it ends. */
static __u32 piece(const struct ring *ring, __u32 number, __u32 pieces, double *end)
{
	__u32 point = number;

	if (pieces == SLICES) {
		*end = (number + 1.0) / SLICES;
		point = ring_lookup(ring, (__u64)((number + 0.5) / SLICES * 0x1p64));
	} else if (number == ring->header.point_count) {
		*end = 1;
		point = 0;
	} else {
		*end = ring->points[number].hash / 0x1p64;
	}
	return ring->points[point].replica;
}

/* Neighbouring arcs of one replica are one. */
static void draw_ring(struct canvas *canvas, const struct ring_view *view, const struct ring *ring,
		      enum arcs arcs, double inner, double outer)
{
	__u32 pieces = ring->header.point_count < SLICES ? ring->header.point_count + 1 : SLICES;
	double from = 0, to = 0, end;
	__u32 replica = 0;

	if (ring->header.point_count == 0)
		return;
	for (__u32 i = 0; i < pieces; i++) {
		__u32 next = piece(ring, i, pieces, &end);

		if (i > 0 && next != replica) {
			draw_arc(canvas, view, replica, arcs, inner, outer, from, to);
			from = to;
		}
		replica = next;
		to = end;
	}
	draw_arc(canvas, view, replica, arcs, inner, outer, from, to);
}

struct moved {
	struct canvas *canvas;
	const struct ring_view *view;
	double inner, outer;
	double from, to; /* collected so far; from < 0: nothing */
};

static void draw_moved(struct moved *moved)
{
	if (moved->from >= 0) {
		canvas_arc(moved->canvas, RING_X, RING_Y, moved->inner, moved->outer, moved->from,
			   moved->to);
		canvas_grey(moved->canvas, 0.1);
		cairo_fill(moved->canvas->cairo);
	}
	moved->from = -1;
}

static void take_moved(void *context, __u64 first, __u64 last, __u32 before, __u32 after)
{
	struct moved *moved = context;
	const struct ring_view *view = moved->view;

	if (view->before.members[before].replica == view->after.members[after].replica) {
		draw_moved(moved);
		return;
	}
	if (moved->from < 0)
		moved->from = first / 0x1p64;
	moved->to = ((double)last + 1) / 0x1p64;
}

static void draw_rings(struct canvas *canvas, const struct ring_view *view)
{
	const double radius = RING_RADIUS;

	if (view->changed) {
		struct moved moved = {canvas, view, radius - 62, radius - 52, -1, 0};

		draw_ring(canvas, view, &view->before, ARCS_ALL, radius - 112, radius - 65);
		draw_ring(canvas, view, &view->after, ARCS_ALL, radius - 49, radius);
		if (view->after.header.point_count > 0)
			ring_compare(&view->before, &view->after, take_moved, &moved);
		else
			moved = (struct moved){canvas, view, moved.inner, moved.outer, 0, 1};
		draw_moved(&moved);
	} else {
		draw_ring(canvas, view, &view->before, ARCS_ALL, radius - 90, radius);
		if (view->resting > 0)
			draw_ring(canvas, view, &view->whole, ARCS_RESTING, radius + 4,
				  radius + 18);
	}
}

static void draw_middle(struct canvas *canvas, const struct ring_view *view)
{
	canvas_grey(canvas, 0);
	if (view->changed) {
		canvas_bold(canvas, true);
		canvas_printf(canvas, RING_X, RING_Y - 4, 30, CANVAS_CENTRE, "%.1f %%",
			      100 * view->moved);
		canvas_bold(canvas, false);
		canvas_text(canvas, RING_X, RING_Y + 18, 13, CANVAS_CENTRE, "of all conversations");
		canvas_text(canvas, RING_X, RING_Y + 34, 13, CANVAS_CENTRE,
			    view->after.header.point_count > 0 ? "get another home"
							       : "have no home any more");
		return;
	}
	canvas_bold(canvas, true);
	canvas_printf(canvas, RING_X, RING_Y, 26, CANVAS_CENTRE, "%u",
		      view->before.header.member_count);
	canvas_bold(canvas, false);
	canvas_printf(canvas, RING_X, RING_Y + 20, 13, CANVAS_CENTRE, "replica%s on the ring",
		      view->before.header.member_count == 1 ? "" : "s");
	if (view->resting > 0)
		canvas_printf(canvas, RING_X, RING_Y + 38, 13, CANVAS_CENTRE,
			      "%zu draining or down", view->resting);
}

/* --- bars --------------------------------------------------------------------------------------------------------------- */

struct scale {
	double per_share; /* width of a share of 1 */
	size_t rows;	  /* in a column */
	double row_height;
};

static struct scale make_scale(const struct ring_view *view)
{
	struct scale scale = {.rows = view->count < ROWS_MAX ? view->count : ROWS_MAX};
	double most = 0;

	for (size_t i = 0; i < view->count; i++) {
		const struct ring_view_replica *replica = &view->replicas[i];

		most = fmax(most, fmax(fmax(replica->share, replica->share_after),
				       fmax(replica->due, replica->due_after)));
	}
	scale.per_share = BAR_WIDTH / most;
	scale.row_height = scale.rows <= 12 ? 36 : 22;
	return scale;
}

static void draw_value(struct canvas *canvas, const struct ring_view *view,
		       const struct ring_view_replica *replica, double x, double y, double size)
{
	canvas_grey(canvas, 0);
	if (view->changed)
		canvas_printf(canvas, x, y, size, CANVAS_LEFT, "%.1f \u2192 %.1f %%",
			      100 * replica->share, 100 * replica->share_after);
	else if (replica->share > 0)
		canvas_printf(canvas, x, y, size, CANVAS_LEFT, "%.2f %% (%.2f\u00d7)",
			      100 * replica->share, replica->share / replica->due);
	else
		canvas_text(canvas, x, y, size, CANVAS_LEFT, replica->state);
}

static void draw_bar(struct canvas *canvas, double x, double y, double width, double height,
		     unsigned int colour, bool hatched)
{
	if (width <= 0)
		return;
	cairo_rectangle(canvas->cairo, x, y, width, height);
	if (hatched) {
		canvas_hatch(canvas, colour);
		return;
	}
	canvas_colour(canvas, colour);
	cairo_fill(canvas->cairo);
}

static void draw_row(struct canvas *canvas, const struct ring_view *view, size_t number,
		     const struct scale *scale)
{
	const struct ring_view_replica *replica = &view->replicas[number];
	double x = BARS_X + number / scale->rows * COLUMN_WIDTH;
	double top = TITLE_HEIGHT + 26 + number % scale->rows * scale->row_height;
	double height = scale->row_height * 0.68, size = scale->row_height >= 22 ? 13 : 11;
	double base = top + height / 2 + size * 0.36, bar = x + NAME_WIDTH, due, name_room;
	char weight[24] = "";

	draw_bar(canvas, x, top + height / 2 - 5, 10, 10, number,
		 replica->share == 0 && !view->changed);
	if (replica->weight != 1)
		snprintf(weight, sizeof(weight), "weight %g", replica->weight);
	name_room = NAME_WIDTH - 22;
	canvas_grey(canvas, 0);
	if (weight[0] && scale->row_height >= 36) {
		canvas_text_cut(canvas, x + 16, base - 7, size, name_room, replica->name);
		canvas_text(canvas, x + 16, base + 7, 11, CANVAS_LEFT, weight);
	} else if (weight[0]) {
		snprintf(weight, sizeof(weight), "\u00d7%g", replica->weight);
		canvas_text_cut(canvas, x + 16, base, size, name_room - 34, replica->name);
		canvas_text(canvas, bar - 8, base, size - 1, CANVAS_RIGHT, weight);
	} else {
		canvas_text_cut(canvas, x + 16, base, size, name_room, replica->name);
	}

	if (view->changed) {
		draw_bar(canvas, bar, top, replica->share * scale->per_share, height * 0.42, number,
			 true);
		draw_bar(canvas, bar, top + height * 0.5, replica->share_after * scale->per_share,
			 height * 0.5, number, false);
	} else {
		draw_bar(canvas, bar, top, replica->share * scale->per_share, height, number,
			 false);
	}
	due = view->changed ? replica->due_after : replica->due;
	canvas_grey(canvas, 0);
	if (due > 0)
		canvas_line(canvas, bar + due * scale->per_share, top - 2,
			    bar + due * scale->per_share, top + height + 2, 1.6);
	draw_value(canvas, view, replica, bar + BAR_WIDTH + 10, base, size);
}

/* --- the page ----------------------------------------------------------------------------------------------------------- */

static void draw_legend(struct canvas *canvas, const struct ring_view *view)
{
	double x = MARGIN, y = canvas->height - 18;

	canvas_grey(canvas, 0);
	canvas_line(canvas, x + 2, y - 10, x + 2, y + 2, 1.6);
	canvas_text(canvas, x + 10, y, 12, CANVAS_LEFT, "its due by weight");
	x += 130;
	if (view->changed) {
		draw_bar(canvas, x, y - 9, 18, 9, 7, true);
		canvas_grey(canvas, 0);
		canvas_text(canvas, x + 24, y, 12, CANVAS_LEFT, "before (inner ring)");
		draw_bar(canvas, x + 150, y - 9, 18, 9, 7, false);
		canvas_grey(canvas, 0);
		canvas_text(canvas, x + 174, y, 12, CANVAS_LEFT, "after (outer ring)");
		cairo_rectangle(canvas->cairo, x + 292, y - 9, 18, 9);
		canvas_grey(canvas, 0.1);
		cairo_fill(canvas->cairo);
		canvas_grey(canvas, 0);
		canvas_text(canvas, x + 316, y, 12, CANVAS_LEFT, "gets another home");
	} else if (view->resting > 0) {
		draw_bar(canvas, x, y - 9, 18, 9, 7, true);
		canvas_grey(canvas, 0);
		canvas_text(canvas, x + 24, y, 12, CANVAS_LEFT,
			    "draining or down: gets no conversations; the arcs it would have");
	}
}

static void draw(struct canvas *canvas, const struct ring_view *view, const struct scale *scale)
{
	char text[512];

	canvas_bold(canvas, true);
	ring_view_describe_change(view, text, sizeof(text));
	canvas_text(canvas, MARGIN, 34, 19, CANVAS_LEFT,
		    text[0] ? text : "Shares of the ring: where conversations have their home");
	canvas_bold(canvas, false);
	ring_view_describe(view, text, sizeof(text));
	canvas_grey(canvas, 0.25);
	canvas_text(canvas, MARGIN, 57, 13, CANVAS_LEFT, text);
	draw_rings(canvas, view);
	draw_middle(canvas, view);
	canvas_grey(canvas, 0.25);
	canvas_text(canvas, BARS_X + NAME_WIDTH, TITLE_HEIGHT + 12, 12, CANVAS_LEFT,
		    view->changed ? "share of all conversations, before and after"
				  : "share of all conversations (compared with its due)");
	for (size_t i = 0; i < view->count; i++)
		draw_row(canvas, view, i, scale);
	draw_legend(canvas, view);
}

static int plot(const struct ring_view *view, const char *path)
{
	struct scale scale = make_scale(view);
	size_t columns = (view->count + scale.rows - 1) / scale.rows;
	double height = TITLE_HEIGHT + 26 + scale.rows * scale.row_height + 46;
	struct canvas canvas;
	struct error error;
	int result;

	if (height < RING_Y + RING_RADIUS + 66)
		height = RING_Y + RING_RADIUS + 66;
	result = canvas_open(&canvas, path, BARS_X + columns * COLUMN_WIDTH + MARGIN - 20, height,
			     &error);
	if (!result) {
		draw(&canvas, view, &scale);
		result = canvas_close(&canvas, &error);
	}
	if (result == 0)
		return EXIT_DONE;
	complain("%s", error.text);
	return EXIT_FAILED;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct ring_view_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = options;
		return 0;
	case 'o':
		options->output = canvas_argument(state, argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int ring_plot_main(int argc, char **argv)
{
	static const struct argp_option option_list[] = {
		{"output", 'o', "FILE", 0, "What to draw: FILE.svg or FILE.png (ring.svg)", 0},
		{0},
	};
	static const struct argp_child children[] = {{&ring_view_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = option_list,
		.parser = parse,
		.children = children,
		.doc = "Draw the ring of the running warmpathd, or of replicas that are given: the arcs of each "
		       "replica and its share beside what is its due; those draining hatched.\v"
		       "Examples:\n"
		       "  warmpath ring plot --output ring.svg\n"
		       "  warmpath ring plot --diff +llm-3 --output fourth.png\n"
		       "  warmpath ring plot --replicas llm-0,llm-1 --weights llm-1=2",
	};
	struct ring_view_options options = {.set.dialect = RING_LLM, .output = "ring.svg"};
	struct ring_view view;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	code = ring_view_make(&view, &options);
	if (code != EXIT_DONE)
		return code;
	code = plot(&view, options.output);
	if (code == EXIT_DONE)
		printf("%s\n", options.output);
	ring_view_free(&view);
	return code;
}
