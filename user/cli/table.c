/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void table_begin(struct table *table, unsigned int columns, const char *const *headings)
{
	unsigned int i;

	memset(table, 0, sizeof(*table));
	table->columns = columns;
	for (i = 0; i < columns; i++)
		table_cell(table, "%s", headings[i]);
}

void table_cell(struct table *table, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		abort();
	va_end(arguments);
	if (table->cells == table->room) {
		table->room = table->room ? table->room * 2 : 64;
		table->text = realloc(table->text, table->room * sizeof(*table->text));
		if (!table->text)
			abort();
	}
	table->text[table->cells++] = text;
}

void table_print(struct table *table)
{
	size_t width[TABLE_COLUMNS_MAX] = {0};
	unsigned int i, column;

	for (i = 0; i < table->cells; i++) {
		column = i % table->columns;
		if (strlen(table->text[i]) > width[column])
			width[column] = strlen(table->text[i]);
	}
	for (i = 0; i < table->cells; i++) {
		column = i % table->columns;
		if (column + 1 == table->columns)
			printf("%s\n", table->text[i]);
		else
			printf("%-*s  ", (int)width[column], table->text[i]);
		free(table->text[i]);
	}
	free(table->text);
}
