/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

static enum log_level shown_level = LOG_LEVEL_INFO;
static int library_details;

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

void log_set_level(enum log_level level)
{
	shown_level = level;
}

void log_set_library_details(int shown)
{
	library_details = shown;
}

static void write_line(enum log_level level, const char *source, const char *format,
		       va_list arguments)
{
	int saved_errno = errno;
	char line[4096];
	int length;

	if (level > shown_level)
		return;
	length = vsnprintf(line, sizeof(line), format, arguments);
	while (length > 0 && length < (int)sizeof(line) && line[length - 1] == '\n')
		line[--length] = '\0';
	fprintf(stderr, "%s: %s%s\n", level_names[level], source, line);
	errno = saved_errno;
}

#define DEFINE_LEVEL(function, level)                       \
	void function(const char *format, ...)              \
	{                                                   \
		va_list arguments;                          \
                                                            \
		va_start(arguments, format);                \
		write_line((level), "", format, arguments); \
		va_end(arguments);                          \
	}

DEFINE_LEVEL(log_error, LOG_LEVEL_ERROR)
DEFINE_LEVEL(log_warning, LOG_LEVEL_WARNING)
DEFINE_LEVEL(log_info, LOG_LEVEL_INFO)
DEFINE_LEVEL(log_debug, LOG_LEVEL_DEBUG)

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN || library_details)
		write_line(LOG_LEVEL_DEBUG, "libbpf: ", format, arguments);
	return 0;
}

static int print_libxdp(enum libxdp_print_level level, const char *format, va_list arguments)
{
	if (level == LIBXDP_WARN || library_details)
		write_line(LOG_LEVEL_DEBUG, "libxdp: ", format, arguments);
	return 0;
}

void log_take_over_libraries(void)
{
	libbpf_set_print(print_libbpf);
	libxdp_set_print(print_libxdp);
}
