/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fills struct http_settings from what an operator writes.
 *
 * Owns: the rules for names of headers and the form in which the parser compares them. May not know: configuration files,
 * maps. User space only.
 */
#ifndef WARMPATH_HTTP_SETTINGS_H
#define WARMPATH_HTTP_SETTINGS_H

#include "http.h"

#include <errno.h>

/* No name yet; the fallback key is made of `key_bytes` of the body. -ERANGE: more than HTTP_KEY_BYTES_MAX. */
static inline int http_settings_init(struct http_settings *settings, __u32 key_bytes)
{
	static const char fixed[] =
		"cteux"; /* content-length, transfer-encoding, expect, upgrade, x-*-tokens */

	memset(settings, 0, sizeof(*settings));
	if (key_bytes > HTTP_KEY_BYTES_MAX)
		return -ERANGE;
	settings->key_bytes = key_bytes;
	for (const char *letter = fixed; *letter; letter++)
		settings->first_letters |= 1u << (*letter & 31);
	return 0;
}

/* Is it a character of a token (RFC 9110, 5.6.2)? */
static inline bool http_settings_is_token(unsigned char character)
{
	return (character >= '0' && character <= '9') || (character >= 'a' && character <= 'z') ||
	       (character >= 'A' && character <= 'Z') ||
	       (character && strchr("!#$%&'*+-.^_`|~", character));
}

/*
 * Adds the next name, less preferred than those before it. -ENOSPC: there are HTTP_ID_NAMES_MAX already; -ERANGE: empty or longer than
 * HTTP_NAME_MAX; -EINVAL: a character that no header's name has; -EEXIST: there already; -EBUSY: a header that says
 * something else to the router.
 */
static inline int http_settings_add_name(struct http_settings *settings, const char *name)
{
	unsigned char lower[HTTP_NAME_MAX] = {0};
	static const char *const taken[] = {
		"content-length", "transfer-encoding", "connection",  "expect",
		"upgrade",	  "x-prompt-tokens",   "x-max-tokens"};
	struct http_name words = {0};
	size_t length = strlen(name);

	if (settings->name_count >= HTTP_ID_NAMES_MAX)
		return -ENOSPC;
	if (!length || length > HTTP_NAME_MAX)
		return -ERANGE;
	for (size_t i = 0; i < length; i++) {
		if (!http_settings_is_token(name[i]))
			return -EINVAL;
		lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i];
		words.word[i / 8] |= (__u64)lower[i] << (i % 8 * 8);
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (strlen(taken[i]) == length && !memcmp(taken[i], lower, length))
			return -EBUSY;
	for (__u32 i = 0; i < settings->name_count; i++)
		if (settings->name_length[i] == length &&
		    !memcmp(&settings->name[i], &words, sizeof(words)))
			return -EEXIST;
	settings->first_letters |= 1u << (lower[0] & 31);
	settings->name_length[settings->name_count] = length;
	settings->name[settings->name_count++] = words;
	return 0;
}

#endif /* WARMPATH_HTTP_SETTINGS_H */
