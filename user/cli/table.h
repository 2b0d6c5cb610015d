/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Printing rows in aligned columns.
 *
 * Owns: widths. May not know: what is in the cells.
 */
#ifndef WARMPATH_CLI_TABLE_H
#define WARMPATH_CLI_TABLE_H

#define TABLE_COLUMNS_MAX 16

struct table {
	unsigned int columns;
	unsigned int cells;
	char **text;
	unsigned int room;
};

/* Begins a table whose headings are `columns` words. */
void table_begin(struct table *table, unsigned int columns, const char *const *headings);

/* Adds the next cell, row by row. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints all rows, the headings first, and frees the table. */
void table_print(struct table *table);

#endif /* WARMPATH_CLI_TABLE_H */
