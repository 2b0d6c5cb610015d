/* SPDX-License-Identifier: BSD-2-Clause */
#include "prompt_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_SHARE_LEAST 0.25

struct prompt_cache {
	uint64_t limit_tokens, tokens;
	uint32_t bytes_per_token;
	uint32_t count, capacity;
	struct span *entries; /* oldest first */
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
		text_release(cache->entries[i].text);
	free(cache->entries);
	free(cache);
}

/* Takes entry `index` out without releasing its text. */
static struct span take(struct prompt_cache *cache, uint32_t index)
{
	struct span entry = cache->entries[index];

	cache->count--;
	memmove(&cache->entries[index], &cache->entries[index + 1],
		(cache->count - index) * sizeof(entry));
	cache->tokens -= entry.length;
	return entry;
}

int64_t prompt_cache_save(struct prompt_cache *cache, struct span content)
{
	uint32_t kept = 0, drop = 0;

	if (!content.length || content.length > cache->limit_tokens)
		return 0;
	for (uint32_t i = 0; i < cache->count; i++)
		if (cache->entries[i].length >= content.length &&
		    span_common(cache->entries[i], content) == content.length)
			return 0;
	if (cache->count == cache->capacity) {
		uint32_t capacity = cache->capacity ? cache->capacity * 2 : 16;
		struct span *entries = realloc(cache->entries, capacity * sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		cache->entries = entries;
		cache->capacity = capacity;
	}
	for (uint32_t i = 0; i < cache->count; i++) {
		struct span entry = cache->entries[i];

		if (entry.length < content.length && span_common(entry, content) == entry.length) {
			cache->tokens -= entry.length;
			text_release(entry.text);
			continue;
		}
		cache->entries[kept++] = entry;
	}
	cache->count = kept;
	while (cache->tokens + content.length > cache->limit_tokens) {
		cache->tokens -= cache->entries[drop].length;
		text_release(cache->entries[drop++].text);
	}
	memmove(cache->entries, cache->entries + drop, (cache->count - drop) * sizeof(content));
	cache->count -= drop;
	cache->entries[cache->count].text = text_hold(content.text);
	cache->entries[cache->count++].length = content.length;
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

	for (uint32_t i = 0; i < cache->count; i++) {
		double kept;

		common = span_common(cache->entries[i], prompt);
		kept = (double)common / cache->entries[i].length;
		if (kept >= KEPT_SHARE_LEAST && kept > kept_best && common > common_best) {
			kept_best = kept;
			common_best = common;
			best = i;
		}
	}
	return best < 0 ? (struct span){0} : take(cache, (uint32_t)best);
}

uint32_t prompt_cache_entries(const struct prompt_cache *cache)
{
	return cache->count;
}

uint64_t prompt_cache_bytes(const struct prompt_cache *cache)
{
	return cache->tokens * cache->bytes_per_token;
}
