/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages of `warmpath top`: how a model looks in a frame.
 *
 * Owns: places, columns, words, which page. May not know: curses, keys, the agent's socket.
 */
#ifndef WARMPATH_CLI_TOP_SCREEN_H
#define WARMPATH_CLI_TOP_SCREEN_H

#include "cli/frame.h"
#include "cli/top_model.h"

#define TOP_COLUMNS_LEAST 40
#define TOP_ROWS_LEAST	  10

enum top_page {
	TOP_LIST,
	TOP_REPLICA,	  /* the selected one */
	TOP_CONVERSATION, /* the one asked for */
	TOP_HELP,
};

struct top_screen {
	enum top_page page;
	unsigned int selected;	      /* index into the model's replicas */
	unsigned int first;	      /* the uppermost one that is shown; kept by drawing */
	char name[REPLICA_NAME_SIZE]; /* TOP_REPLICA: whose page */
	const json_t
		*answer; /* what the agent has said for the page; NULL: nothing yet. Borrowed */
	char prompt[32]; /* "": nothing is being typed */
	char typed[ID_LENGTH_MAX + 1];
	char notice[256]; /* a sentence instead of the keys; "": none */
	bool lost;	  /* the agent does not answer at present */
	char clock[16];	  /* the time of day */
};

/* Draws the whole frame. */
void top_screen_draw(struct frame *frame, const struct top_model *model, struct top_screen *screen);

/* Rows that all of the list would need. */
int top_screen_rows(const struct top_model *model);

#endif /* WARMPATH_CLI_TOP_SCREEN_H */
