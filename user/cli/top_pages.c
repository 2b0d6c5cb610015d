/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/top_pages.h"

#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/event_line.h"

/* --- help --------------------------------------------------------------------------------------------------------------- */

void top_draw_help(struct frame *frame, int row)
{
	static const char *const lines[] = {
		"up down PgUp PgDn   select a replica       Tab   the next service",
		"s   sort by the next column                r     reverse the order",
		"f   show names that contain some text      Esc   drop the filter; back",
		"p   pause and go on                        q     quit",
		"Enter   the selected replica and the last decisions for it",
		"c       a conversation: where it lives, and why it moved",
		"",
		"LOAD/CAP  requests or tokens in flight, whichever the policy counts, compared with",
		"          the cap that a request of mean size has to keep",
		"HIT%      part of the prompt tokens that the replica had cached, as far as can be told",
		"          from what it has answered before",
		"RING%     conversations that have their home there",
		"MOVED     conversations that came from and went to other replicas",
		"reasons, moves and hits are of the decisions that are traced (trace.decisions_per_second)",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (row + (int)i < frame->rows - 1)
			frame_text(frame, row + (int)i, 0, FRAME_PLAIN, lines[i]);
}

/* --- decisions ---------------------------------------------------------------------------------------------------------- */

/* Long lines go on, indented, in the rows below. Returns the row after the last one. */
static int draw_wrapped(struct frame *frame, int row, int indent, enum frame_style style,
			const char *text)
{
	int column = 0;

	while (*text && row < frame->rows - 1) {
		int room = frame->columns - column;
		int length = (int)strlen(text), cut = length;

		if (length > room) {
			cut = room;
			while (cut > room / 2 && text[cut] != ' ')
				cut--;
		}
		frame_printf(frame, row++, column, style, "%.*s", cut, text);
		text += cut;
		while (*text == ' ')
			text++;
		column = indent;
	}
	return row;
}

static enum frame_style frame_style_of(enum style style)
{
	switch (style) {
	case STYLE_STRONG:
		return FRAME_WARN;
	case STYLE_WRONG:
		return FRAME_WRONG;
	case STYLE_QUIET:
		return FRAME_QUIET;
	default:
		return FRAME_PLAIN;
	}
}

static void draw_decisions(struct frame *frame, int row, const json_t *list)
{
	json_t *decision;
	size_t i;

	frame_text(frame, row++, 0, FRAME_HEADING, "LAST DECISIONS");
	if (json_array_size(list) == 0)
		frame_text(frame, row, 0, FRAME_QUIET, "none that is remembered");
	json_array_foreach(list, i, decision)
	{
		char time[16], line[EVENT_LINE_SIZE], text[EVENT_LINE_SIZE + 96];
		enum style style = event_line(decision, line);
		const char *status = client_text(decision, "status");

		event_time(decision, time);
		snprintf(text, sizeof(text), "%s %s%s%s%s", time, line, status[0] ? " (" : "",
			 status, status[0] ? ")" : "");
		row = draw_wrapped(frame, row, 9, frame_style_of(style), text);
	}
}

/* --- a replica ---------------------------------------------------------------------------------------------------------- */

static const struct top_replica *find(const struct top_model *model, const char *name)
{
	for (unsigned int i = 0; i < model->count; i++)
		if (strcmp(model->replicas[i].name, name) == 0)
			return &model->replicas[i];
	return NULL;
}

void top_draw_replica(struct frame *frame, int row, const struct top_model *model,
		      const struct top_screen *screen)
{
	const struct top_replica *replica = find(model, screen->name);
	int column = 0;

	frame_printf(frame, row++, 0, FRAME_TITLE, "replica %s", screen->name);
	if (!replica) {
		frame_text(frame, row, 0, FRAME_WARN, "is not in the service any more");
		return;
	}
	frame_printf(frame, row++, 0, FRAME_PLAIN, "%s at %s, weight %g, %.2f %% of the ring",
		     replica->state, replica->address, replica->weight, 100 * replica->share);
	frame_printf(frame, row++, 0, FRAME_PLAIN,
		     "in flight: %ld requests, %ld tokens; %s: %.0f %%", replica->requests,
		     replica->tokens, model->capped ? "of the cap" : "of the fullest",
		     100 * replica->fill);
	if (replica->hits >= 0)
		column = frame_printf(frame, row, 0, FRAME_PLAIN,
				      "cached: %.1f %% of prompt tokens; ", 100 * replica->hits);
	frame_printf(frame, row++, column, FRAME_PLAIN,
		     "moved: %.0f came, %.0f went; refused: %.0f", replica->moves_in,
		     replica->moves_out, replica->refusals);
	draw_decisions(frame, row + 1, json_object_get(screen->answer, "decisions"));
}

/* --- a conversation ----------------------------------------------------------------------------------------------------- */

void top_draw_conversation(struct frame *frame, int row, const struct top_screen *screen)
{
	const json_t *answer = screen->answer;
	const json_t *placement = json_object_get(answer, "placement");
	const char *home = client_text(answer, "home");

	if (!answer) {
		frame_text(frame, row, 0, FRAME_QUIET, "...");
		return;
	}
	frame_printf(frame, row++, 0, FRAME_TITLE, "conversation %s", client_text(answer, "id"));
	frame_printf(frame, row++, 0, FRAME_PLAIN, "home %s, hash %s", home[0] ? home : "(none)",
		     client_text(answer, "hash"));
	if (json_is_object(placement))
		frame_printf(frame, row++, 0, FRAME_PLAIN,
			     "cached on %s: %lld prompt tokens, served %.0f s ago%s%s",
			     client_text(placement, "replica"),
			     (long long)client_number(placement, "prompt_tokens"),
			     json_number_value(json_object_get(placement, "age_seconds")),
			     json_is_true(json_object_get(placement, "counts")) ? "" : "; void: ",
			     client_text(placement, "void_because"));
	else
		frame_text(frame, row++, 0, FRAME_PLAIN, "no placement is remembered");
	frame_printf(frame, row++, 0, FRAME_PLAIN, "open requests: %zu",
		     json_array_size(json_object_get(answer, "open")));
	draw_decisions(frame, row + 1, json_object_get(answer, "decisions"));
}
