/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/terminal.h"

#include <errno.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static SCREEN *screen;
static bool coloured;

static const struct {
	short rich;  /* colour of 256 */
	short plain; /* colour of 8 */
	attr_t with;
	attr_t without; /* colours */
} looks[] = {
	[FRAME_PLAIN] = {-1, -1, 0, 0},
	[FRAME_TITLE] = {-1, -1, A_BOLD, A_BOLD},
	[FRAME_HEADING] = {-1, -1, A_REVERSE, A_REVERSE},
	[FRAME_QUIET] = {245, -1, 0, 0},
	[FRAME_GOOD] = {74, COLOR_CYAN, 0,
			0}, /* blue and orange: also for who cannot tell red from green */
	[FRAME_WARN] = {214, COLOR_YELLOW, 0, A_BOLD},
	[FRAME_WRONG] = {203, COLOR_RED, A_BOLD, A_BOLD | A_UNDERLINE},
	[FRAME_SELECTED] = {-1, -1, A_REVERSE, A_REVERSE},
};

static void choose_colours(void)
{
	const char *refused = getenv("NO_COLOR");

	coloured = !(refused && refused[0]) && has_colors() && start_color() == OK &&
		   use_default_colors() == OK;
	for (size_t i = 0; coloured && i < sizeof(looks) / sizeof(looks[0]); i++)
		init_pair((short)(i + 1), COLORS >= 256 ? looks[i].rich : looks[i].plain, -1);
}

bool terminal_begin(struct error *error)
{
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
		error_set(
			error, -ENOTTY,
			"standard input or output is no terminal; --once prints a frame without one");
		return false;
	}
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		error_set(error, -ENOTTY,
			  "the terminal \"%s\" (TERM) is not known; --once prints a frame",
			  getenv("TERM") ? getenv("TERM") : "");
		return false;
	}
	set_escdelay(50);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	choose_colours();
	return true;
}

void terminal_end(void)
{
	endwin();
	delscreen(screen);
	screen = NULL;
}

void terminal_size(int *rows, int *columns)
{
	getmaxyx(stdscr, *rows, *columns);
}

static attr_t attributes(enum frame_style style)
{
	return coloured ? looks[style].with | COLOR_PAIR(style + 1) : looks[style].without;
}

void terminal_show(const struct frame *frame)
{
	for (int row = 0; row < frame->rows; row++) {
		for (int column = 0; column < frame->columns; column++) {
			const struct frame_cell *cell =
				&frame->cells[(size_t)row * frame->columns + column];

			attrset(attributes(cell->style));
			mvaddstr(row, column, cell->text);
		}
	}
	refresh();
}

int terminal_key(int milliseconds)
{
	int key;

	timeout(milliseconds);
	key = getch();
	return key == KEY_RESIZE ? -1 : key;
}
