/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/bar.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <string.h>

const char *bar_text(char *text, unsigned int width, double filled, bool unicode)
{
	/* U+2588 is the full block, U+258F an eighth of it */
	unsigned int steps = unicode ? 8 : 1;
	double part = filled > 1 ? 1 : filled > 0 ? filled : 0;
	unsigned int all = lround(part * width * steps);
	char *end = text;

	if (all == 0 && part > 0)
		all = 1; /* something is not nothing */
	for (; all >= steps; all -= steps)
		end = unicode ? stpcpy(end, "\u2588") : stpcpy(end, "#");
	if (all > 0) {
		end = stpcpy(end, "\u2588");
		end[-1] = (char)(0x90 - all);
	}
	*end = '\0';
	return text;
}

bool bar_is_unicode(void)
{
	setlocale(LC_CTYPE, "");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
