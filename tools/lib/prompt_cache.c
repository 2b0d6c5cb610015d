/* SPDX-License-Identifier: BSD-2-Clause */
#include "prompt_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_SHARE_LEAST 0.25

struct entry {
	struct span content;
	struct text_lead lead; /* of its text: mostly it is enough to compare */
};

struct prompt_cache {
	uint64_t limit_tokens, tokens;
	uint32_t bytes_per_token;
	uint32_t count, capacity;
	struct entry *entries; /* oldest first */
};

struct prompt_cache *prompt_cache_new(uint64_t limit_bytes, uint32_t bytes_per_token)
{
	struct prompt_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->bytes_per_token = bytes_per_token;
	cache->limit_tokens = limit_bytes / bytes_per_token;
	return cache;
}

void prompt_cache_free(struct prompt_cache *cache)
{
	if (!cache)
		return;
	for (uint32_t i = 0; i < cache->count; i++)
		text_release(cache->entries[i].content.text);
	free(cache->entries);
	free(cache);
}

/* Takes entry `index` out without releasing its text. */
static struct span take(struct prompt_cache *cache, uint32_t index)
{
	struct span content = cache->entries[index].content;

	cache->count--;
	memmove(&cache->entries[index], &cache->entries[index + 1],
		(cache->count - index) * sizeof(cache->entries[0]));
	cache->tokens -= content.length;
	return content;
}

/* Drops the entries that `content` begins with. */
static void drop_contained(struct prompt_cache *cache, struct span content,
			   const struct text_lead *lead)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < cache->count; i++) {
		struct entry *entry = &cache->entries[i];
		uint32_t length = entry->content.length;

		if (length < content.length &&
		    span_common_by_lead(entry->content, &entry->lead, content, lead) == length) {
			cache->tokens -= length;
			text_release(entry->content.text);
			continue;
		}
		if (kept != i)
			cache->entries[kept] = *entry;
		kept++;
	}
	cache->count = kept;
}

int64_t prompt_cache_save(struct prompt_cache *cache, struct span content)
{
	struct text_lead lead;
	uint32_t drop = 0;

	if (!content.length || content.length > cache->limit_tokens)
		return 0;
	lead = text_lead(content.text);
	for (uint32_t i = 0; i < cache->count; i++) {
		const struct entry *entry = &cache->entries[i];

		if (entry->content.length >= content.length &&
		    span_common_by_lead(entry->content, &entry->lead, content, &lead) ==
			    content.length)
			return 0;
	}
	if (cache->count == cache->capacity) {
		uint32_t capacity = cache->capacity ? cache->capacity * 2 : 16;
		struct entry *entries = realloc(cache->entries, capacity * sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		cache->entries = entries;
		cache->capacity = capacity;
	}
	drop_contained(cache, content, &lead);
	while (cache->tokens + content.length > cache->limit_tokens) {
		cache->tokens -= cache->entries[drop].content.length;
		text_release(cache->entries[drop++].content.text);
	}
	memmove(cache->entries, cache->entries + drop,
		(cache->count - drop) * sizeof(cache->entries[0]));
	cache->count -= drop;
	text_hold(content.text);
	cache->entries[cache->count++] = (struct entry){content, lead};
	cache->tokens += content.length;
	return content.length;
}

struct span prompt_cache_load(struct prompt_cache *cache, struct span content, struct span prompt)
{
	uint32_t common = content.length ? span_common(content, prompt) : 0;
	/* any entry beats an empty slot */
	double kept_best = content.length ? (double)common / content.length : -1;
	uint32_t common_best = common;
	int64_t best = -1;
	struct text_lead lead = text_lead(prompt.text);

	for (uint32_t i = 0; i < cache->count; i++) {
		const struct entry *entry = &cache->entries[i];
		double kept;

		common = span_common_by_lead(entry->content, &entry->lead, prompt, &lead);
		kept = (double)common / entry->content.length;
		if (kept >= KEPT_SHARE_LEAST && kept > kept_best && common > common_best) {
			kept_best = kept;
			common_best = common;
			best = i;
		}
	}
	if (best < 0)
		return (struct span){0};
	return take(cache, (uint32_t)best);
}

uint32_t prompt_cache_entries(const struct prompt_cache *cache)
{
	return cache->count;
}

uint64_t prompt_cache_bytes(const struct prompt_cache *cache)
{
	return cache->tokens * cache->bytes_per_token;
}
