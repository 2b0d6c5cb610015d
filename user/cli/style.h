/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Colours of lines on standard output: only on a terminal, and not with NO_COLOR.
 *
 * Owns: when and which. May not know: what is printed.
 */
#ifndef WARMPATH_CLI_STYLE_H
#define WARMPATH_CLI_STYLE_H

enum style {
	STYLE_PLAIN,
	STYLE_QUIET,  /* less important than what is beside it */
	STYLE_STRONG, /* to be seen first */
	STYLE_CHANGE, /* something was changed */
	STYLE_WRONG,  /* something failed */
};

/* What switches to a style, to be printed; "" where there are no colours. STYLE_PLAIN ends any. */
const char *style_text(enum style style);

#endif /* WARMPATH_CLI_STYLE_H */
