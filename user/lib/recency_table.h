/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table that knows which of its entries was put in longest ago: the user-space counterpart of an LRU hash map, but exact.
 *
 * Owns: entries of fixed size, their order of insertion. May not know: what keys and values mean.
 */
#ifndef WARMPATH_USER_RECENCY_TABLE_H
#define WARMPATH_USER_RECENCY_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct recency_table;

/*
 * capacity: the most entries it holds, the one put in longest ago making room for a new one; 0: no limit.
 * Returns NULL without memory.
 */
struct recency_table *recency_table_new(size_t key_size, size_t value_size, size_t capacity);

void recency_table_free(struct recency_table *table);

/* The value, to be changed in place if wanted, or NULL. Looking does not make an entry younger. Valid until the next put or remove. */
void *recency_table_find(struct recency_table *table, const void *key);

/* Writes a copy of `value`, and makes the entry the youngest. 0, or -ENOMEM. */
int recency_table_put(struct recency_table *table, const void *key, const void *value);

/* Takes an entry out, if it is there. */
void recency_table_remove(struct recency_table *table, const void *key);

/* Takes out all entries whose value matches. */
void recency_table_remove_all(struct recency_table *table,
			      bool (*matches)(const void *value, const void *context),
			      const void *context);

void recency_table_clear(struct recency_table *table);

size_t recency_table_count(const struct recency_table *table);

#endif /* WARMPATH_USER_RECENCY_TABLE_H */
