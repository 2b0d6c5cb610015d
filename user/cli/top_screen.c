/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/top_screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/top_pages.h"

#define HEAD_ROWS 6 /* above the headings of the list */

/* Widths of the list's columns but name and bar, which share what is left. */
enum {
	STATE_WIDTH = 8,
	REQUESTS_WIDTH = 5,
	TOKENS_WIDTH = 7,
	RATE_WIDTH = 6,
	HITS_WIDTH = 5,
	SHARE_WIDTH = 6,
	MOVES_WIDTH = 11,
	NAME_WIDTH_LEAST = 10,
	NAME_WIDTH_MOST = 40,
	BAR_WIDTH_LEAST = 8,
	BAR_WIDTH_MOST = 60,
};

/* --- numbers ------------------------------------------------------------------------------------------------------------ */

/* "0", "0.3", "12", "1.2k", "35M": at most five characters. */
static void short_number(char text[16], double number)
{
	static const char *const units[] = {"", "k", "M", "G"};
	int unit = 0;

	if (number < 0) {
		strcpy(text, "-");
		return;
	}
	while (number >= 9999.5 && unit < 3) {
		number /= 1000;
		unit++;
	}
	if (unit == 0 && (number >= 9.95 || number == floor(number)))
		snprintf(text, 16, "%.0f", number);
	else
		snprintf(text, 16, number < 99.95 ? "%.1f%s" : "%.0f%s", number, units[unit]);
}

static void per_second(char text[16], double rate)
{
	short_number(text, rate);
	if (rate >= 0)
		strcat(text, "/s");
}

/* --- the head ----------------------------------------------------------------------------------------------------------- */

static void draw_title(struct frame *frame, const struct top_model *model,
		       const struct top_screen *screen)
{
	int column = frame_text(frame, 0, 0, FRAME_TITLE, "warmpath ");
	char right[64];
	int width;

	if (model->described) {
		column = frame_printf(frame, 0, column, FRAME_TITLE, "%s",
				      client_text(model->described, "name"));
		column = frame_printf(frame, 0, column, FRAME_PLAIN, "  %s, by %s",
				      client_text(model->described, "policy"),
				      client_text(model->described, "load_metric"));
		if (model->service_count > 1)
			column = frame_printf(frame, 0, column, FRAME_QUIET, "  service %u of %u",
					      model->service_number, model->service_count);
	}
	if (screen->lost)
		snprintf(right, sizeof(right), "NO AGENT  %s", screen->clock);
	else if (model->paused)
		snprintf(right, sizeof(right), "PAUSED  %s", screen->clock);
	else
		snprintf(right, sizeof(right), "%s", screen->clock);
	width = (int)strlen(right);
	if (column + width < frame->columns)
		frame_text(frame, 0, frame->columns - width,
			   screen->lost	   ? FRAME_WRONG
			   : model->paused ? FRAME_WARN
					   : FRAME_QUIET,
			   right);
}

/* "NAME 12/s", and the next column. */
static int draw_rate(struct frame *frame, int row, int column, const char *name, double rate,
		     bool bad)
{
	char text[16];

	per_second(text, rate);
	column = frame_printf(frame, row, column, FRAME_QUIET, "%s ", name);
	return frame_printf(frame, row, column, bad && rate > 0 ? FRAME_WRONG : FRAME_PLAIN, "%s  ",
			    text);
}

static void draw_rates(struct frame *frame, const struct top_model *model)
{
	char requests[16], tokens[16];
	int column = 0;

	short_number(requests, client_number(model->described, "requests"));
	short_number(tokens, client_number(model->described, "tokens"));
	column = frame_text(frame, 1, column, FRAME_QUIET, "in flight ");
	column = frame_printf(frame, 1, column, FRAME_PLAIN, "%s requests, %s tokens  ", requests,
			      tokens);
	if (model->capped && client_number(model->described, "requests") > 0) {
		char cap[16];

		short_number(cap, model->cap);
		column = frame_text(frame, 1, column, FRAME_QUIET, "cap ");
		column = frame_printf(frame, 1, column, FRAME_PLAIN, "%s  ", cap);
	}
	frame_printf(frame, 1, column, FRAME_QUIET, "replicas ");
	frame_printf(frame, 1, column + 9, FRAME_PLAIN, "%lld of %u",
		     (long long)client_number(model->described, "replica_count"), model->all);

	column = draw_rate(frame, 2, 0, "decided", model->decisions, false);
	column = draw_rate(frame, 2, column, "answered", model->answered, false);
	column = draw_rate(frame, 2, column, "failed", model->failed + fmax(model->refused, 0),
			   true);
	column = draw_rate(frame, 2, column, "moved", model->moved, false);
	draw_rate(frame, 2, column, "packets", model->packets, false);
}

/* A list of rates in one row, of which those that do not fit are left out whole. */
static void draw_list(struct frame *frame, int row, const char *title, const struct top_rate *list,
		      unsigned int count, double sum, enum frame_style style, const char *none)
{
	int column = frame_printf(frame, row, 0, FRAME_QUIET, "%-8s", title);

	if (count == 0)
		frame_text(frame, row, column, FRAME_QUIET, none);
	for (unsigned int i = 0; i < count; i++) {
		char text[64], rate[16];

		per_second(rate, list[i].rate);
		if (sum > 0)
			snprintf(text, sizeof(text), "%.28s %s (%.0f%%)  ", list[i].name, rate,
				 100 * list[i].rate / sum);
		else
			snprintf(text, sizeof(text), "%.36s %s  ", list[i].name, rate);
		if (column + (int)strlen(text) - 2 > frame->columns)
			return;
		column = frame_text(frame, row, column, style, text);
	}
}

static void draw_lists(struct frame *frame, const struct top_model *model)
{
	char traced[48];
	const char *quiet = model->rates_known ? "none at present" : "...";
	double reasons = 0;

	for (unsigned int i = 0; i < model->reason_count; i++)
		reasons += model->reasons[i].rate;
	draw_list(frame, 3, "reasons", model->reasons, model->reason_count, reasons, FRAME_PLAIN,
		  quiet);
	draw_list(frame, 4, "moves", model->causes, model->cause_count, 0, FRAME_PLAIN, quiet);
	draw_list(frame, 5, "drops", model->drop_rates, model->drop_count, 0, FRAME_WRONG, quiet);
	/* rates of reasons are of what is traced: say so where that is not all */
	if (model->rates_known && model->traced < 0.9 * model->decisions) {
		snprintf(traced, sizeof(traced), " %.0f%% traced",
			 100 * model->traced / model->decisions);
		frame_text(frame, 4, frame->columns - (int)strlen(traced), FRAME_WARN, traced);
	}
}

/* --- the list ----------------------------------------------------------------------------------------------------------- */

struct layout {
	int name, bar; /* widths */
};

static struct layout lay_out(const struct frame *frame, const struct top_model *model)
{
	const int rest = STATE_WIDTH + REQUESTS_WIDTH + TOKENS_WIDTH + RATE_WIDTH + HITS_WIDTH +
			 SHARE_WIDTH + MOVES_WIDTH + 8;
	int left = frame->columns - rest, longest = NAME_WIDTH_LEAST;
	struct layout layout;

	for (unsigned int i = 0; i < model->count; i++)
		longest = fmax(longest, strlen(model->replicas[i].name));
	if (longest > NAME_WIDTH_MOST)
		longest = NAME_WIDTH_MOST;
	layout.name = left - BAR_WIDTH_LEAST < longest ? left - BAR_WIDTH_LEAST : longest;
	if (layout.name < NAME_WIDTH_LEAST)
		layout.name = NAME_WIDTH_LEAST;
	layout.bar = left - layout.name;
	if (layout.bar < BAR_WIDTH_LEAST)
		layout.bar = BAR_WIDTH_LEAST;
	if (layout.bar > BAR_WIDTH_MOST)
		layout.bar = BAR_WIDTH_MOST;
	return layout;
}

/* The heading of a column; the one sorted by is marked. */
static int draw_heading(struct frame *frame, const struct top_model *model, int row, int column,
			int width, bool right, const char *heading, int sorted_by)
{
	bool marked = (int)model->sort == sorted_by;
	char text[32];

	snprintf(text, sizeof(text), "%s%s", heading, marked ? (model->reverse ? "^" : "v") : "");
	frame_field(frame, row, column, width, right, FRAME_HEADING, text);
	return column + width + 1;
}

static void draw_headings(struct frame *frame, const struct top_model *model,
			  const struct layout *layout, int row)
{
	int column = 0;

	frame_row_style(frame, row, FRAME_HEADING);
	column = draw_heading(frame, model, row, column, layout->name, false, "REPLICA", TOP_NAME);
	column = draw_heading(frame, model, row, column, STATE_WIDTH, false, "STATE", -1);
	column = draw_heading(frame, model, row, column, layout->bar, false,
			      model->capped ? "LOAD/CAP" : "LOAD", TOP_LOAD);
	column =
		draw_heading(frame, model, row, column, REQUESTS_WIDTH, true, "REQS", TOP_REQUESTS);
	column = draw_heading(frame, model, row, column, TOKENS_WIDTH, true, "TOKENS", TOP_TOKENS);
	column = draw_heading(frame, model, row, column, RATE_WIDTH, true, "REQ/S", TOP_RATE);
	column = draw_heading(frame, model, row, column, HITS_WIDTH, true, "HIT%", TOP_HITS);
	column = draw_heading(frame, model, row, column, SHARE_WIDTH, true, "RING%", TOP_SHARE);
	draw_heading(frame, model, row, column, MOVES_WIDTH, true, "MOVED +/-", TOP_MOVES);
}

static enum frame_style state_style(const char *state)
{
	if (strcmp(state, "active") == 0)
		return FRAME_GOOD;
	return strcmp(state, "down") == 0 ? FRAME_WRONG : FRAME_WARN;
}

static void draw_replica(struct frame *frame, const struct top_model *model,
			 const struct top_replica *replica, const struct layout *layout, int row)
{
	enum frame_style fill = replica->fill > 1     ? FRAME_WRONG
				: replica->fill > 0.8 ? FRAME_WARN
						      : FRAME_GOOD;
	char text[40], in[16], out[16];
	int column = 0;

	frame_field(frame, row, column, layout->name, false, FRAME_PLAIN, replica->name);
	column += layout->name + 1;
	frame_field(frame, row, column, STATE_WIDTH, false, state_style(replica->state),
		    replica->state);
	column += STATE_WIDTH + 1;
	frame_bar(frame, row, column, layout->bar, replica->fill,
		  model->capped ? fill : FRAME_GOOD);
	column += layout->bar + 1;
	short_number(text, replica->requests);
	frame_field(frame, row, column, REQUESTS_WIDTH, true, FRAME_PLAIN, text);
	column += REQUESTS_WIDTH + 1;
	short_number(text, replica->tokens);
	frame_field(frame, row, column, TOKENS_WIDTH, true, FRAME_PLAIN, text);
	column += TOKENS_WIDTH + 1;
	short_number(text, replica->rate);
	frame_field(frame, row, column, RATE_WIDTH, true, FRAME_PLAIN, text);
	column += RATE_WIDTH + 1;
	short_number(text, replica->hits < 0 ? replica->hits : round(100 * replica->hits));
	frame_field(frame, row, column, HITS_WIDTH, true, FRAME_PLAIN, text);
	column += HITS_WIDTH + 1;
	snprintf(text, sizeof(text), "%.1f", 100 * replica->share);
	frame_field(frame, row, column, SHARE_WIDTH, true, FRAME_PLAIN, text);
	column += SHARE_WIDTH + 1;
	short_number(in, replica->moves_in);
	short_number(out, replica->moves_out);
	snprintf(text, sizeof(text), "%s/%s", in, out);
	frame_field(frame, row, column, MOVES_WIDTH, true, FRAME_PLAIN, text);
}

static void draw_replicas(struct frame *frame, const struct top_model *model,
			  struct top_screen *screen)
{
	struct layout layout = lay_out(frame, model);
	unsigned int rows = frame->rows - HEAD_ROWS - 2;

	if (screen->selected >= model->count)
		screen->selected = model->count ? model->count - 1 : 0;
	if (screen->selected < screen->first)
		screen->first = screen->selected;
	if (screen->selected >= screen->first + rows)
		screen->first = screen->selected - rows + 1;
	if (screen->first + rows > model->count)
		screen->first = model->count > rows ? model->count - rows : 0;
	draw_headings(frame, model, &layout, HEAD_ROWS);
	for (unsigned int i = 0; i < rows && screen->first + i < model->count; i++) {
		int row = HEAD_ROWS + 1 + (int)i;

		draw_replica(frame, model, &model->replicas[screen->first + i], &layout, row);
		if (screen->first + i == screen->selected)
			frame_row_style(frame, row, FRAME_SELECTED);
	}
	if (model->count == 0)
		frame_text(frame, HEAD_ROWS + 2, 2, FRAME_QUIET,
			   model->filter[0] ? "no replica's name contains the filter (Esc drops it)"
					    : "this service has no replica");
}

/* --- the last row --------------------------------------------------------------------------------------------------------- */

static void draw_foot(struct frame *frame, const struct top_model *model,
		      const struct top_screen *screen)
{
	int row = frame->rows - 1, column = 0;

	if (screen->prompt[0]) {
		column = frame_printf(frame, row, 0, FRAME_TITLE, "%s: ", screen->prompt);
		column = frame_text(frame, row, column, FRAME_PLAIN, screen->typed);
		frame_text(frame, row, column, FRAME_SELECTED, " ");
		return;
	}
	if (screen->notice[0]) {
		frame_text(frame, row, 0, FRAME_WRONG, screen->notice);
		return;
	}
	if (screen->page != TOP_LIST) {
		frame_text(frame, row, 0, FRAME_QUIET, "Esc back  c conversation  p pause  q quit");
		return;
	}
	column = frame_text(frame, row, 0, FRAME_QUIET,
			    "q quit  s sort  r reverse  f filter  p pause  Enter more  "
			    "c conversation  ? help");
	if (model->filter[0])
		frame_printf(frame, row, column + 2, FRAME_WARN, "filter: %s", model->filter);
	else if (model->count > 0)
		frame_printf(frame, row, column + 2, FRAME_QUIET, "%u/%u", screen->selected + 1,
			     model->count);
}

/* --- the whole ---------------------------------------------------------------------------------------------------------- */

int top_screen_rows(const struct top_model *model)
{
	return HEAD_ROWS + 2 + (int)model->count;
}

void top_screen_draw(struct frame *frame, const struct top_model *model, struct top_screen *screen)
{
	if (frame->rows < TOP_ROWS_LEAST || frame->columns < TOP_COLUMNS_LEAST) {
		frame_printf(frame, 0, 0, FRAME_PLAIN, "at least %d columns and %d rows",
			     TOP_COLUMNS_LEAST, TOP_ROWS_LEAST);
		return;
	}
	draw_title(frame, model, screen);
	if (screen->page == TOP_HELP) {
		top_draw_help(frame, 2);
	} else if (!model->described) {
		frame_text(frame, 2, 0, FRAME_QUIET,
			   model->now ? "there is no such service" : "waiting for warmpathd...");
	} else if (screen->page == TOP_REPLICA) {
		top_draw_replica(frame, 2, model, screen);
	} else if (screen->page == TOP_CONVERSATION) {
		top_draw_conversation(frame, 2, screen);
	} else {
		draw_rates(frame, model);
		draw_lists(frame, model);
		draw_replicas(frame, model, screen);
	}
	draw_foot(frame, model, screen);
}
