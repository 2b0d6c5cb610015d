/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One plain sentence for the user, next to the errno for the program.
 *
 * Owns: the buffer of the sentence. May not know: where the sentence goes (terminal, log, control socket).
 */
#ifndef WARMPATH_USER_ERROR_H
#define WARMPATH_USER_ERROR_H

struct error {
	char text[1024];
};

/*
 * Writes the sentence into `error` (may be NULL) and returns `code`, a negative errno, so that
 * `return error_set(error, -EINVAL, "...")` reads well. A sentence that does not fit is cut.
 */
int error_set(struct error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " in front of the sentence that is there. Returns `code`. */
int error_prefix(struct error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The analyzer does not look into another file: that it returns what it is given. */
#ifdef __clang_analyzer__
#define error_set(error, number, ...) (error_set(error, number, __VA_ARGS__), number)
#endif

#endif /* WARMPATH_USER_ERROR_H */
