/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to the operator, on standard error, one line each, in four levels.
 *
 * Owns: the level and the form of a line. May not know: who reads it.
 *
 * What libbpf and libxdp say goes through the same door, demoted: their warnings (verifier logs among them) are shown
 * at `debug` (-v), the rest only with -v twice. The agent's own sentence about the same failure is what a user reads.
 */
#ifndef WARMPATH_USER_LOG_H
#define WARMPATH_USER_LOG_H

enum log_level {
	LOG_LEVEL_ERROR = 0,
	LOG_LEVEL_WARNING = 1,
	LOG_LEVEL_INFO = 2,
	LOG_LEVEL_DEBUG = 3,
};

/* The most talkative level that is shown; LOG_LEVEL_INFO until set. */
void log_set_level(enum log_level level);

/* Shows also what the libraries say below their warnings (only at LOG_LEVEL_DEBUG). */
void log_set_library_details(int shown);

/* Routes the messages of libbpf and libxdp through this log. */
void log_take_over_libraries(void);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* WARMPATH_USER_LOG_H */
