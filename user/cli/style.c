/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/style.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool coloured(void)
{
	const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(refused && refused[0]) && terminal &&
	       strcmp(terminal, "dumb") != 0;
}

const char *style_text(enum style style)
{
	static const char *const texts[] = {
		[STYLE_PLAIN] = "\033[0m",    [STYLE_QUIET] = "\033[2m",
		[STYLE_STRONG] = "\033[1m",   [STYLE_CHANGE] = "\033[36m",
		[STYLE_WRONG] = "\033[31;1m",
	};

	return coloured() ? texts[style] : "";
}
