/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines out of a stream whose pieces end anywhere.
 *
 * Owns: the unfinished line, and how long it may become. May not know: what a line means.
 */
#ifndef WARMPATH_AGENT_LINE_READER_H
#define WARMPATH_AGENT_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

struct line_reader {
	char *text; /* the unfinished line */
	size_t length;
	size_t room;
	size_t most; /* bytes of a line, without its newline */
};

/*
 * Gives each line that is complete now to `take` (without its newline, not ended by NUL, empty ones left out), which may say that it wants no more.
 * 0; -EMSGSIZE: a line is longer than `most`; -ENOMEM; -ECANCELED: `take` wants no more.
 */
int line_reader_take(struct line_reader *reader, const char *bytes, size_t length,
		     bool (*take)(void *context, const char *line, size_t length), void *context);

/* Forgets the unfinished line. */
void line_reader_reset(struct line_reader *reader);
void line_reader_free(struct line_reader *reader);

#endif /* WARMPATH_AGENT_LINE_READER_H */
