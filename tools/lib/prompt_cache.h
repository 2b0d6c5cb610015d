/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A replica's cache of conversations in RAM, beside its slots: what --cache-ram does on llama-server.
 *
 * Owns: the entries, their order, the size limit. May not know: slots, time.
 */
#ifndef TOOLS_PROMPT_CACHE_H
#define TOOLS_PROMPT_CACHE_H

#include "text.h"

struct prompt_cache;

/* NULL if there is no memory. With `limit_bytes` 0 nothing is ever stored. */
struct prompt_cache *prompt_cache_new(uint64_t limit_bytes, uint32_t bytes_per_token);
void prompt_cache_free(struct prompt_cache *cache);

/*
 * Stores a copy of a slot's content as the newest entry. Not stored: what an entry begins with already, and what is larger than the limit. Entries
 * that the new one begins with are dropped; so are the oldest until it fits. Returns the tokens copied (0: none),
 * or -ENOMEM.
 */
int64_t prompt_cache_save(struct prompt_cache *cache, struct span content);

/*
 * The best entry for `prompt`, taken out of the cache: one that beats the slot's own `content` both in the share of itself that
 * would be kept and in the share of the prompt it covers, and keeps at least a quarter of itself. The caller owns the reference.
 * text NULL: none.
 */
struct span prompt_cache_load(struct prompt_cache *cache, struct span content, struct span prompt);

uint32_t prompt_cache_entries(const struct prompt_cache *cache);
uint64_t prompt_cache_bytes(const struct prompt_cache *cache);

#endif /* TOOLS_PROMPT_CACHE_H */
