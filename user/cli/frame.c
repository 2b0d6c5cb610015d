/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/frame.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bar.h"

#define LINE_SIZE 1024

bool frame_make(struct frame *frame, int rows, int columns, bool unicode)
{
	*frame = (struct frame){.rows = rows, .columns = columns, .unicode = unicode};
	frame->cells = calloc((size_t)rows * columns + 1, sizeof(*frame->cells));
	if (!frame->cells)
		return false;
	for (int i = 0; i < rows * columns; i++)
		strcpy(frame->cells[i].text, " ");
	return true;
}

void frame_free(struct frame *frame)
{
	free(frame->cells);
	frame->cells = NULL;
}

static struct frame_cell *cell_at(struct frame *frame, int row, int column)
{
	if (row < 0 || row >= frame->rows || column < 0 || column >= frame->columns)
		return NULL;
	return &frame->cells[(size_t)row * frame->columns + column];
}

/* Bytes of the UTF-8 character that begins with this byte. */
static int character_length(unsigned char first)
{
	return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

int frame_text(struct frame *frame, int row, int column, enum frame_style style, const char *text)
{
	while (*text) {
		int length = character_length((unsigned char)*text);
		struct frame_cell *cell = cell_at(frame, row, column++);
		char character[5] = "?";

		if (strnlen(text, length) < (size_t)length)
			break;
		if (length == 1 && (unsigned char)*text >= ' ' && (unsigned char)*text < 0x7f)
			character[0] = *text;
		else if (length > 1 && frame->unicode)
			memcpy(character, text, length);
		if (cell) {
			memset(cell->text, 0, sizeof(cell->text));
			strcpy(cell->text, character);
			cell->style = style;
		}
		text += length;
	}
	return column;
}

int frame_printf(struct frame *frame, int row, int column, enum frame_style style,
		 const char *format, ...)
{
	char text[LINE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return frame_text(frame, row, column, style, text);
}

/* Characters, each one column wide. */
static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

void frame_field(struct frame *frame, int row, int column, int width, bool right,
		 enum frame_style style, const char *text)
{
	int blanks = width - width_of(text), end = column + width;

	for (int i = column; i < end; i++)
		frame_text(frame, row, i, style, " ");
	if (right && blanks > 0)
		column += blanks;
	while (*text && column < end) {
		int length = character_length((unsigned char)*text);
		char character[5] = "";

		if (strnlen(text, length) < (size_t)length)
			break;
		memcpy(character, text, length);
		column = frame_text(frame, row, column, style, character);
		text += length;
	}
}

void frame_bar(struct frame *frame, int row, int column, int width, double filled,
	       enum frame_style style)
{
	char text[BAR_SIZE(256)];

	if (width > 0)
		frame_text(frame, row, column, style,
			   bar_text(text, width < 256 ? width : 256, filled, frame->unicode));
}

void frame_row_style(struct frame *frame, int row, enum frame_style style)
{
	for (int i = 0; i < frame->columns; i++) {
		struct frame_cell *cell = cell_at(frame, row, i);

		if (cell)
			cell->style = style;
	}
}

void frame_print(const struct frame *frame, FILE *to)
{
	for (int row = 0; row < frame->rows; row++) {
		const struct frame_cell *cells = &frame->cells[(size_t)row * frame->columns];
		int last = frame->columns;

		while (last > 0 && strcmp(cells[last - 1].text, " ") == 0)
			last--;
		for (int i = 0; i < last; i++)
			fputs(cells[i].text, to);
		fputc('\n', to);
	}
}
