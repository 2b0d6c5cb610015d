/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/recency_table.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_AT_FIRST 64

/* In a bucket's chain, and in a list by age. Key and value follow. */
struct entry {
	struct entry *next_in_bucket;
	struct entry *older;
	struct entry *younger;
	unsigned char data[];
};

struct recency_table {
	size_t key_size;
	size_t value_offset;
	size_t value_size;
	size_t capacity;
	size_t count;
	size_t bucket_count; /* a power of two */
	struct entry **buckets;
	struct entry *oldest;
	struct entry *youngest;
};

struct recency_table *recency_table_new(size_t key_size, size_t value_size, size_t capacity)
{
	struct recency_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->key_size = key_size;
	table->value_offset = (key_size + 15) / 16 * 16;
	table->value_size = value_size;
	table->capacity = capacity;
	table->bucket_count = BUCKETS_AT_FIRST;
	table->buckets = calloc(table->bucket_count, sizeof(*table->buckets));
	if (!table->buckets) {
		free(table);
		return NULL;
	}
	return table;
}

void recency_table_clear(struct recency_table *table)
{
	struct entry *entry = table->oldest, *next;

	for (; entry; entry = next) {
		next = entry->younger;
		free(entry);
	}
	memset(table->buckets, 0, table->bucket_count * sizeof(*table->buckets));
	table->oldest = NULL;
	table->youngest = NULL;
	table->count = 0;
}

void recency_table_free(struct recency_table *table)
{
	if (!table)
		return;
	recency_table_clear(table);
	free(table->buckets);
	free(table);
}

size_t recency_table_count(const struct recency_table *table)
{
	return table->count;
}

/* FNV-1a, with the upper bits folded in, as only the lower ones choose the bucket. */
static size_t bucket_number(const struct recency_table *table, const void *key, size_t bucket_count)
{
	const unsigned char *bytes = key;
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < table->key_size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	return (hash ^ hash >> 32) & (bucket_count - 1);
}

static struct entry **find_link(struct recency_table *table, const void *key)
{
	struct entry **link = &table->buckets[bucket_number(table, key, table->bucket_count)];

	while (*link && memcmp((*link)->data, key, table->key_size) != 0)
		link = &(*link)->next_in_bucket;
	return link;
}

void *recency_table_find(struct recency_table *table, const void *key)
{
	struct entry *entry = *find_link(table, key);

	return entry ? entry->data + table->value_offset : NULL;
}

static void leave_list(struct recency_table *table, struct entry *entry)
{
	if (entry->older)
		entry->older->younger = entry->younger;
	else
		table->oldest = entry->younger;
	if (entry->younger)
		entry->younger->older = entry->older;
	else
		table->youngest = entry->older;
}

static void join_list(struct recency_table *table, struct entry *entry)
{
	entry->older = table->youngest;
	entry->younger = NULL;
	if (table->youngest)
		table->youngest->younger = entry;
	else
		table->oldest = entry;
	table->youngest = entry;
}

void recency_table_remove(struct recency_table *table, const void *key)
{
	struct entry **link = find_link(table, key);
	struct entry *entry = *link;

	if (!entry)
		return;
	*link = entry->next_in_bucket;
	leave_list(table, entry);
	free(entry);
	table->count--;
}

void recency_table_remove_all(struct recency_table *table,
			      bool (*matches)(const void *value, const void *context),
			      const void *context)
{
	struct entry *entry = table->oldest, *next;

	for (; entry; entry = next) {
		next = entry->younger;
		if (matches(entry->data + table->value_offset, context))
			recency_table_remove(table, entry->data);
	}
}

/* Doubles the buckets. Without memory for it the chains just get longer. */
static void grow(struct recency_table *table)
{
	size_t bucket_count = table->bucket_count * 2;
	struct entry **buckets = calloc(bucket_count, sizeof(*buckets));

	if (!buckets)
		return;
	for (struct entry *entry = table->oldest; entry; entry = entry->younger) {
		size_t number = bucket_number(table, entry->data, bucket_count);

		entry->next_in_bucket = buckets[number];
		buckets[number] = entry;
	}
	free(table->buckets);
	table->buckets = buckets;
	table->bucket_count = bucket_count;
}

int recency_table_put(struct recency_table *table, const void *key, const void *value)
{
	struct entry *entry = *find_link(table, key), **link;

	if (entry) {
		memcpy(entry->data + table->value_offset, value, table->value_size);
		leave_list(table, entry);
		join_list(table, entry);
		return 0;
	}
	entry = calloc(1, sizeof(*entry) + table->value_offset + table->value_size);
	if (!entry)
		return -ENOMEM;
	if (table->capacity > 0 && table->count == table->capacity)
		recency_table_remove(table, table->oldest->data);
	if (table->count >= table->bucket_count)
		grow(table);
	memcpy(entry->data, key, table->key_size);
	memcpy(entry->data + table->value_offset, value, table->value_size);
	link = find_link(table, key);
	*link = entry;
	join_list(table, entry);
	table->count++;
	return 0;
}
