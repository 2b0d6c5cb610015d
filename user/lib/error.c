/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/error.h"

#undef error_set

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *error, int code, const char *format, ...)
{
	va_list arguments;

	if (!error)
		return code;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return code;
}

int error_prefix(struct error *error, int code, const char *format, ...)
{
	struct error sentence;
	va_list arguments;
	size_t length;

	if (!error)
		return code;
	sentence = *error;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	length = strlen(error->text);
	snprintf(error->text + length, sizeof(error->text) - length, ": %.900s", sentence.text);
	return code;
}
